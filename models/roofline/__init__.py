"""Hierarchical roofline: compute rate, bandwidth over the working set, overhead; campaigns and robust noise."""

from bayesperf.models.roofline.model import Roofline

__all__ = ["Roofline"]
