"""Collectives and point-to-point messages: latency, bytes over bandwidth, a choice of protocol; `Communication`."""

from bayesperf.models.communication.model import Communication

__all__ = ["Communication"]
