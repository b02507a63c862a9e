"""From a table to a posterior: sampling behind one adapter, diagnostics, the fit."""
