"""Held-out measurements against predictions: scores, group tests, verdicts by regime."""
