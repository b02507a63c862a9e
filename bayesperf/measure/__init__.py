"""From a suite to a table: plan, worker processes, slope timing, interference watch, journal."""
