"""Prepared predictions are those of `predict`, from the same draws, compiled."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from bayesperf.inference.sampling import sample_prior
from bayesperf.model import Draws, Request
from bayesperf.models.roofline import Roofline
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.predictor import Kernel, prepare, rebound
from bayesperf.specs import check_targets
from tests.tables import products_table, roofline_table

Fitted = tuple[Encoded, Draws]

SHEETS = check_targets(
    pd.DataFrame({"device": ["a", "far"], "parallel_units": [13.0, 80.0], "bandwidth_bytes_per_s": [2e10, 5e11],
                  "peak_flops_float32": [1e12, 1e13]})
)  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """Products of many shapes and streams, in two campaigns: every term of the model is there."""
    products = pd.concat(
        [products_table(seed).assign(campaign=day) for seed, day in ((1, "one"), (2, "two"))], ignore_index=True
    )
    table = pd.concat([products, roofline_table(1, targets=("a", "b"), campaigns=("one", "two"))], ignore_index=True)
    encoded = Roofline().encode(table, SHEETS)
    tree = sample_prior(Roofline().build(encoded), draws=200, seed=3)
    flat = tree["prior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    return encoded, {str(k): np.asarray(v, dtype=float) for k, v in flat.data_vars.items()}


def _both(fitted: Fitted, kind: dict[str, Any], sizes: pd.DataFrame, request: Request) -> tuple[Any, Any, Kernel]:
    """Parts of the compiled and of the plain prediction of workloads of one kind."""
    encoded, draws = fitted
    first = {**kind, **{str(k): v for k, v in sizes.iloc[0].items()}}
    kernel = prepare(encoded, draws, first, request, SHEETS, np.random.default_rng(4))
    columns = {str(name): sizes[name].to_numpy(float) for name in sizes}
    compiled = jax.jit(kernel.predict)(kernel.parameters, kernel.code(columns))
    table = sizes.assign(**kind)
    plain = Roofline().predict(encoded, draws, table, request, SHEETS, np.random.default_rng(4))
    return compiled, plain, kernel


PRODUCTS = pd.DataFrame({"m": [100.0, 512, 4096], "n": [64.0, 512, 1000], "k": [64.0, 300, 4096]})
PRODUCTS = PRODUCTS.assign(flops=2 * PRODUCTS.prod(axis=1), bytes=1e6, parallelism=PRODUCTS["m"] * PRODUCTS["n"])
STREAMS = pd.DataFrame({"flops": 0.0, "bytes": [1e3, 3e6, 1e9], "working_set_bytes": [1e3, 9e6, np.nan]})


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ({"op": "matmul", "dtype": "float32", "target": "a"}, PRODUCTS),
        ({"op": "stream_copy", "dtype": "float32", "target": "b"}, STREAMS),
        ({"op": "dispatch", "dtype": "float32", "target": "a"}, STREAMS.assign(bytes=0.0)),
        ({"op": "sort", "dtype": "int8", "target": "b"}, PRODUCTS),
        ({"op": "conv2d", "dtype": "float16", "target": "far"}, PRODUCTS),
        ({"op": "stream_copy", "dtype": "float32", "target": "a", "condition": "cold"}, STREAMS),
    ],
    ids=["measured", "no flops", "nothing to do", "new operation", "new target", "condition"],
)
@pytest.mark.parametrize("request_", [Request(), Request(effect="mean")], ids=["fresh", "mean"])
def test_a_prepared_prediction_is_the_prediction(
    fitted: Fitted, kind: dict[str, Any], sizes: pd.DataFrame, request_: Request
) -> None:
    compiled, plain, kernel = _both(fitted, kind, sizes, request_)
    for ours, theirs in zip(compiled, (plain.log_time, plain.misfit, plain.repeat), strict=True):
        # Single precision of log times around -10.
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(kernel.tail, plain.tail)
    assert list(kernel.notes) == list(plain.notes)


def test_a_measured_campaign(fitted: Fitted) -> None:
    kind = {"op": "matmul", "dtype": "float32", "target": "a"}
    compiled, plain, _ = _both(fitted, kind, PRODUCTS, Request("two"))
    np.testing.assert_allclose(np.asarray(compiled[0]), plain.log_time, rtol=2e-5, atol=2e-5)


def test_work_that_only_some_rows_have(fitted: Fitted) -> None:
    """A kind with flops takes rows without: they cost what memory and overhead cost."""
    encoded, draws = fitted
    kind = {"op": "stream_triad", "dtype": "float32", "target": "a"}
    sizes = pd.DataFrame({"flops": [1e6, 0.0], "bytes": [8e6, 8e6]})
    compiled, _, _ = _both(fitted, kind, sizes, Request())
    table = sizes.iloc[1:].assign(**kind)
    plain = Roofline().predict(encoded, draws, table, Request(), SHEETS, np.random.default_rng(4))
    np.testing.assert_allclose(np.asarray(compiled[0])[:, 1:], plain.log_time, rtol=2e-5, atol=2e-5)


def test_a_function_with_other_globals_leaves_the_original_alone() -> None:
    other = rebound(_answer, ANSWER=2)
    assert (other(), _answer()) == (2, 1)


ANSWER = 1


def _answer() -> int:
    return ANSWER
