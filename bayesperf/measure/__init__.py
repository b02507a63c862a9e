"""From a suite to a table: plan, worker processes, slope timing, interference watch, journal.

The package is itself the public function `bayesperf.measure.run.measure`: a function of that name beside it would be
hidden as soon as a module of this package is imported.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any


class _Measure(types.ModuleType):
    """Module that is called like its main function, and introspected like it."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from bayesperf.measure.run import measure

        return measure(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        from bayesperf.measure.run import measure

        return inspect.signature(measure)


sys.modules[__name__].__class__ = _Measure
