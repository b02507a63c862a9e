"""Contention: what co-running work costs, from shares of processors, of bandwidth and of caches.

Mixes are predicted from the demands of their members, never from products of measured pairs.
"""

from bayesperf.models.contention.alone import alone_rows
from bayesperf.models.contention.model import Contention
from bayesperf.models.contention.sharing import sharing
from bayesperf.models.contention.slowdown import slowdown
from bayesperf.models.contention.usl import scalability

__all__ = ["Contention", "alone_rows", "scalability", "sharing", "slowdown"]
