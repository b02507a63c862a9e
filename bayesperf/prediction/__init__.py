"""Profiles and the predictive distributions they give."""
