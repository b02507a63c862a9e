"""Many fits, validations and reports from one configuration: in this process, in several, or on a Dask cluster.

The package is itself the public function `bayesperf.batch.run.batch`: a function of that name beside it would be
hidden as soon as a module of this package is imported.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any


class _Batch(types.ModuleType):
    """Module that is called like its main function, and introspected like it."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from bayesperf.batch.run import batch

        return batch(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        from bayesperf.batch.run import batch

        return inspect.signature(batch)


sys.modules[__name__].__class__ = _Batch
