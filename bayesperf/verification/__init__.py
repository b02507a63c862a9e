"""Whether a profile is what was written, rests on the rows it names, and comes out again when it is fitted again."""

from bayesperf.verification.checking import verify
from bayesperf.verification.result import Finding, Verification

__all__ = ["Finding", "Verification", "verify"]
