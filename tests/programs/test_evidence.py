"""A program run here under the profiler: its time attributed, beside a prediction that is known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax import lax

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.programs.evidence import Evidence, _beside, _held_back, whole_pieces
from bayesperf.programs.running import arguments
from tests.known import DRAWS, known_profile


def array(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def layers(x: Any, weights: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w), None

    return lax.scan(layer, x, weights)[0] @ weights[0]


@pytest.fixture(scope="module")
def seen() -> Evidence:
    options = {"draws": DRAWS}
    return bp.evidence(layers, array(256, 256), array(3, 256, 256), profile=known_profile(0.1), runs=5, options=options)


def test_kernels_are_seen_as_often_as_they_were_counted(seen: Evidence) -> None:
    frame = seen.by_kernel()
    assert frame["instruction"].is_unique
    products = frame[frame["op"] == "matmul"]
    assert sorted(products["count"]) == [1.0, 3.0]
    assert (products["executions"] == products["count"]).all()
    assert (products["measured_s"] > 0).all()
    assert (products["fastest_s"] <= products["measured_s"]).all()
    assert (products["measured_s"] <= products["slowest_s"]).all()


def test_each_second_is_attributed_and_tracing_is_measured(seen: Evidence) -> None:
    assert len(seen.parts) == 5
    assert len(seen.untraced_s) == 5
    assert (seen.parts[["dispatch", "kernels", "control", "idle", "return"]] >= -1e-9).all().all()
    row = seen.summary().to_dict(orient="records")[0]
    assert row["unattributed_share"] < 0.05
    assert row["kernels_s"] > 0
    assert math.isfinite(row["tracing_overhead"])
    assert row["predicted_s"] == pytest.approx(float(seen.prediction.median())) if seen.prediction else False


def test_measured_stands_beside_predicted(seen: Evidence) -> None:
    frame = seen.by_kernel(0.8).set_index("instruction")
    products = frame[frame["op"] == "matmul"]
    # The known model: a millisecond for each product, whatever it is.
    np.testing.assert_allclose(products["predicted_s"], products["count"] * 1e-3, rtol=0.01)
    np.testing.assert_allclose(products["ratio"], products["measured_s"] / products["predicted_s"])
    assert (products["limit"] == "compute").all()
    assert frame.loc["launch", "limit"] == "overhead"
    assert set(frame["verdict"].dropna()) <= {"as predicted", "slower", "faster", "not seen"}


@pytest.mark.parametrize(
    ("measured", "fastest", "verdict", "held_back"),
    [
        (1.0, 0.9, "as predicted", "memory"),
        (3.0, 1.1, "slower", "interference"),
        (3.0, 2.5, "slower", "model"),
        (0.1, 0.1, "faster", "model"),
        (math.nan, math.nan, "not seen", None),
    ],
)
def test_what_held_a_kernel_back(measured: float, fastest: float, verdict: str, held_back: str | None) -> None:
    beside = _beside(measured, fastest, np.linspace(0.5, 1.5, 101), 0.5, 1.5)
    assert beside["verdict"] == verdict
    assert _held_back(beside, "memory") == held_back


def test_arguments_may_be_overwritten_or_static() -> None:
    def step(state: Any, by: float, *, times: int) -> Any:
        return state * by**times + 1.0

    jitted = jax.jit(step, donate_argnums=0, static_argnames=("by", "times"))
    found = bp.evidence(jitted, array(1024), 2.0, times=3, runs=3)
    assert found.prediction is None
    assert len(found.parts) == 3
    assert "predicted_s" not in found.by_kernel()


def test_shapes_become_data_that_are_not_zero() -> None:
    shapes = {"x": array(4, 3), "i": array(5, dtype=jnp.int32), "b": array(2, dtype=jnp.bfloat16), "n": 7}
    (made,), named = arguments((shapes,), {"k": "text"})
    assert (made["x"].shape, made["x"].dtype, made["b"].dtype) == ((4, 3), jnp.float32, jnp.bfloat16)
    assert all(bool((made[name] != 0).all()) for name in "xib")
    assert (made["n"], named["k"]) == (7, "text")


def test_a_target_needs_a_profile() -> None:
    with pytest.raises(InputError, match="profile="):
        bp.evidence(layers, array(8, 8), array(3, 8, 8), target="box")
    with pytest.raises(InputError, match="runs"):
        bp.evidence(layers, array(8, 8), array(3, 8, 8), runs=0)


def test_a_loop_that_runs_as_one_piece_is_set_beside_its_kernels() -> None:
    table = pd.DataFrame(
        {
            "instruction": ["add", "mul", "sub", "dot"], "op": "elementwise", "count": [1.0, 9.0, 3.0, 3.0],
            "within": [None, "call/while.2", "call", "while.3"],
        }
    )  # fmt: skip
    assert whole_pieces(table, ["add", "call", "while.2", "while.3", "dot"]) == ["call"]
    assert whole_pieces(table, ["add", "sub", "call", "while.2", "while.3"]) == ["while.3", "while.2"]
    assert whole_pieces(table, ["add", "mul", "sub", "dot"]) == []


def test_a_small_loop_is_explained_as_a_whole() -> None:
    def many(x: Any) -> Any:
        return lax.fori_loop(0, 200, lambda _, x: x * 0.5 + 1.0, x)

    found = bp.evidence(many, array(64), profile=known_profile(), runs=3, options={"draws": DRAWS})
    frame = found.by_kernel()
    assert frame["instruction"].is_unique
    seen = frame[frame["measured_s"].notna()]
    # Whichever way this compiler runs it: the loop's time stands beside its prediction.
    assert (seen.loc[seen["op"].isin(["piece", "elementwise"]), "predicted_s"] > 0).any()


def test_a_page_tells_where_the_time_went(seen: Evidence, tmp_path: Path) -> None:
    seen.to_html(tmp_path / "step.html", "layers <of> mine", interval=0.8)
    page = (tmp_path / "step.html").read_text()
    assert "layers &lt;of&gt; mine" in page
    assert "<of>" not in page
    for row in seen.by_kernel().to_dict(orient="records"):
        assert row["instruction"] in page
    for part in ("dispatch", "kernels", "control", "idle", "return", "unattributed"):
        assert f"<td>{part}</td>" in page
    assert page.count("data:image/svg+xml") == 1
    alone = Evidence(seen.workloads, seen.parts, seen.kernels, seen.untraced_s)
    alone.to_html(tmp_path / "alone.html", "layers")
    assert "data:image" not in (tmp_path / "alone.html").read_text()
