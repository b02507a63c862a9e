"""Compute and workload probes: flops and bytes counted by hand, precisions told apart, senseless sweeps refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.errors import InputError, MeasurementError
from bayesperf.measure.chain import build
from bayesperf.measure.point import check_result
from bayesperf.probe import Config, Kernel, Probe
from tests.probes.examples import EXAMPLES

HAND: list[tuple[str, dict[str, Any], float, float, float]] = [
    ("matmul", {"dtype": "float64", "m": 2, "n": 3, "k": 5}, 60, 8 * (10 + 15 + 6), 6),
    ("matmul", {"dtype": "tf32", "m": 2, "n": 3, "k": 5}, 60, 4 * (10 + 15 + 6), 6),
    # One-byte operands, results of four bytes.
    ("matmul", {"dtype": "int8", "batch": 2, "m": 2, "n": 3, "k": 5}, 120, 2 * (10 + 15 + 4 * 6), 12),
    ("matmul", {"dtype": "float8", "m": 2, "n": 3, "k": 5}, 60, 10 + 15 + 4 * 6, 6),
    # 4 values through 128 steps of a multiply-add, before them 4 products, after them 3 additions.
    ("fma", {"dtype": "float32", "elements": 1024, "ilp": 4}, 1024 * (2 * 4 * 128 + 7), 8192, 1024),
    ("transcendental", {"op": "exp", "dtype": "bfloat16", "elements": 1024}, 1024, 4096, 1024),
    (
        "conv2d",
        {"dtype": "float32", "batch": 1, "height": 4, "width": 5, "c_in": 2, "c_out": 3, "kernel_size": 3},
        2 * 20 * 9 * 6,
        4 * (20 * 2 + 9 * 6 + 20 * 3),
        60,
    ),
    # Per token of 4: four 4 x 4 products, 4 x 16 and 16 x 4; 16 GELUs of 10; two norms of 3 x 4; two residuals of 4.
    # Per head: two products of 2 x 2 x 2 and four softmax values of 5.
    (
        "prefill",
        {"dtype": "float32", "batch": 1, "sequence": 2, "heads": 2, "head_dim": 2},
        2 * (4 * 32 + 2 * 128 + 160 + 24 + 8) + 2 * (2 * 16 + 4 * 5),
        4 * (4 * 8 + 4 * 16 + 2 * 64),
        8,
    ),
    # Four norms; each of 2 x 2 heads multiplies one query with 3 keys of 2, and 3 shares with as many values.
    (
        "decode",
        {"dtype": "float32", "batch": 2, "sequence": 3, "heads": 2, "head_dim": 2},
        2 * (4 * 32 + 2 * 128 + 160 + 48 + 8) + 4 * (2 * 2 * 3 * 2 + 3 * 5),
        4 * (2 * 2 * 3 * 4 + 4 * 16 + 2 * 64 + 4 * 8),
        8,
    ),
    # Two products forward, three backward, of 2 x 3 x 4 each.
    (
        "mlp_train",
        {"dtype": "float32", "rows": 2, "hidden": 3, "cols": 4},
        5 * 2 * 24 + 2 * 8 + 2 * 6 + 2 * 24,
        4 * (2 * 6 + 2 * 24),
        24,
    ),
    (
        "conv_block",
        {"dtype": "float32", "batch": 1, "height": 2, "width": 3, "channels": 2},
        2 * (2 * 6 * 9 * 4) + 7 * 12,
        4 * (2 * 12 + 2 * 36 + 4 * 2),
        12,
    ),
    ("embedding", {"dtype": "float32", "rows": 3, "vocabulary": 10, "hidden": 4}, 0, 2 * 48 + 12, 12),
    ("stencil", {"dtype": "float32", "rows": 4, "cols": 5, "sweeps": 2}, 2 * 6 * 6, 2 * 4 * (20 + 6), 6),
    ("fft", {"dtype": "float32", "rows": 2, "cols": 8}, 5 * 2 * 8 * 3, 2 * 16 * 8, 16),
    ("sort", {"dtype": "int32", "rows": 2, "cols": 8}, 0, 2 * 64, 16),
]


@pytest.mark.parametrize(("name", "config", "flops", "size", "parallelism"), HAND, ids=lambda v: str(v)[:20])
def test_formula(name: str, config: Config, flops: float, size: float, parallelism: float) -> None:
    work = plugins.load("probe", name).work(config)
    assert (work.flops, work.bytes, work.parallelism) == (flops, size, parallelism)


COUNTED = {
    **{name: EXAMPLES[name] for name in ("matmul", "fma")},
    # It counts the body of a loop once.
    "stencil": {"dtypes": ["float32"], "shapes": [[32, 48, 2]]},
    "intensity": {"chain": [8], "working_set_bytes": [8192]},
    "conv2d": {"dtypes": ["float32"], "shapes": [[1, 64, 64, 4, 4, 3]]},
    "conv_block": {"dtypes": ["float32"], "shapes": [[1, 64, 64, 4]]},
    "attention": {"dtypes": ["float32"], "shapes": [[1, 2, 32, 32]]},
    "mlp_block": {"dtypes": ["float32"], "shapes": [[16, 32]]},
    "mlp_train": {"dtypes": ["float32"], "shapes": [[16, 32]]},
    "prefill": {"dtypes": ["float32"], "shapes": [[2, 64, 2, 16]]},
    "decode": {"dtypes": ["float32"], "shapes": [[2, 64, 2, 16]]},
}


@pytest.mark.parametrize("name", COUNTED)
def test_formula_beside_the_count_of_the_traced_program(name: str) -> None:
    """XLA counts the same program before it optimises it: no taps on padding, a few scalars more."""
    probe: Probe = plugins.load("probe", name)
    for config in probe.configurations(COUNTED[name]):
        if config["dtype"] != "float32":
            continue
        kernel = probe.kernel(config, np.random.default_rng(0))
        counted = jax.jit(kernel.step).lower(np.int32(1), kernel.carry, *kernel.operands).cost_analysis()
        assert counted is not None
        assert probe.work(config).flops == pytest.approx(counted["flops"], rel=0.03)


def _tf32_kernel() -> tuple[Config, Kernel]:
    """The tf32 product's data, without asking this device for tf32."""
    from bayesperf.probes import matmul

    config = {"op": "matmul", "dtype": "tf32", "m": 64, "n": 64, "k": 96}
    rng = np.random.default_rng(0)
    a, b, c = (matmul._data(rng, shape, "tf32") for shape in ((64, 96), (96, 64), (64, 64)))
    return config, Kernel((b,), (a, c), lambda i, carry, b: carry, form="chained")


@pytest.mark.parametrize("rounding", [0x0, 0x1000])
def test_tf32_reference_tells_tf32_from_float32(rounding: int) -> None:
    """Whether a device cuts operands to tf32 or rounds them to nearest, the result is the same; float32's is not."""
    probe = plugins.load("probe", "matmul")
    config, kernel = _tf32_kernel()
    _, expected = probe.reference(config, kernel, 1)
    a, b = kernel.carry[0], kernel.operands[0]

    def tf32(array: np.ndarray) -> np.ndarray:
        return ((array.view(np.uint32) + np.uint32(rounding)) & np.uint32(0xFFFFE000)).view(np.float32)

    scale = np.abs(expected).max()
    assert np.abs(tf32(a) @ tf32(b) - expected).max() / scale < probe.tolerance(config)
    assert np.abs(a @ b - expected).max() / scale > 2 * probe.tolerance(config)


@pytest.mark.parametrize("dtype", ["tf32", "float8"])
def test_a_dtype_the_device_does_not_have_is_refused(dtype: str) -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("this device may have it")
    (config,) = plugins.load("probe", "matmul").configurations({"dtypes": [dtype], "shapes": [64]})
    with pytest.raises(MeasurementError) as caught:
        build(plugins.load("probe", "matmul"), config, jax.local_devices()[:1], np.random.default_rng(0))
    assert caught.value.reason == "unsupported-dtype"


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("float64", "float64"), ("float32", "float32"), ("float16", "float16"), ("int8", "int32")],
)
def test_results_of_a_product_have_the_stated_type(dtype: str, result: str) -> None:
    probe = plugins.load("probe", "matmul")
    config = {"op": "matmul", "dtype": dtype, "m": 64, "n": 48, "k": 32}
    program = build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
    assert program.carry()[1].dtype == result
    check_result(probe, config, program)


def test_float64_products_are_not_done_in_float32() -> None:
    probe = plugins.load("probe", "matmul")
    config = {"op": "matmul", "dtype": "float64", "m": 32, "n": 32, "k": 64}
    kernel = probe.kernel(config, np.random.default_rng(0))
    _, exact = probe.reference(config, kernel, 1)
    narrow = kernel.carry[0].astype(np.float32) @ kernel.operands[0].astype(np.float32)
    assert np.abs(narrow - exact).max() / np.abs(exact).max() > probe.tolerance(config)


@pytest.mark.parametrize("ilp", [1, 2, 8])
def test_every_multiply_add_must_survive(ilp: int) -> None:
    """A chain of which the compiler drops the last step is refused, whatever its result."""
    probe: Probe = plugins.load("probe", "fma")
    shorter = replace(
        probe.kernel({"dtype": "float32", "elements": 1024, "ilp": ilp}, np.random.default_rng(0)),
        step=lambda i, carry, b: (b * (0.5 + 1e-7 * i.astype("float32")) + 0.25,),
    )

    class Dropped:
        """The probe with most of its steps gone."""

        mode, work = probe.mode, probe.work

        def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
            return shorter

    dropped: Any = Dropped()
    with pytest.raises(MeasurementError, match="folded"):
        build(
            dropped,
            {"dtype": "float32", "elements": 1024, "ilp": ilp},
            jax.local_devices()[:1],
            np.random.default_rng(0),
        )


def test_convolution_by_its_definition() -> None:
    from bayesperf.probes.convolution import convolve_in_numpy

    rng = np.random.default_rng(0)
    x, filters = rng.random((2, 4, 5, 2)), rng.random((2, 2, 2, 3))
    expected = np.zeros((2, 4, 5, 3))
    # SAME padding of an even number of taps lies behind.
    for image, row, col, out in np.ndindex(expected.shape):
        for i, j in np.ndindex(2, 2):
            if row + i < 4 and col + j < 5:
                expected[image, row, col, out] += x[image, row + i, col + j] @ filters[i, j, :, out]
    np.testing.assert_allclose(convolve_in_numpy(x, filters), expected)


def test_prefill_looks_at_nothing_later() -> None:
    probe = plugins.load("probe", "prefill")
    (config,) = probe.configurations({"dtypes": ["float32"], "shapes": [[1, 6, 2, 4]]})
    kernel = probe.kernel(config, np.random.default_rng(0))
    x, rest = kernel.carry[0].astype(np.float64), [o.astype(np.float64) for o in kernel.operands]
    before, *_ = probe.definition(config, x, *rest)
    x[:, 4:] += 1.0
    after, *_ = probe.definition(config, x, *rest)
    np.testing.assert_allclose(after[:, :4], before[:, :4])
    assert np.abs(after[:, 4:] - before[:, 4:]).max() > 0.1


def test_decode_is_prefill_one_token_at_a_time() -> None:
    """The last token of a sequence that is in the cache, against the layer over the whole sequence."""
    from bayesperf.probes.workloads import decode, layers

    probe = plugins.load("probe", "prefill")
    (config,) = probe.configurations({"dtypes": ["float32"], "shapes": [[2, 6, 2, 4]]})
    kernel = probe.kernel(config, np.random.default_rng(0))
    x, rest = kernel.carry[0].astype(np.float64), [o.astype(np.float64) for o in kernel.operands]
    y, keys, values = probe.definition(config, x, *rest)
    cache = [c.transpose(0, 2, 1, 3).copy() for c in (keys, values)]
    found = decode._step_in_numpy(0, x[:, 5], *cache, *rest)
    np.testing.assert_allclose(found, layers.norm_in_numpy(y[:, 5]))
    _, keys, values = probe.definition(config, found[:, None], *rest)
    for before, after in zip((keys, values), cache, strict=True):
        np.testing.assert_allclose(after[:, :, 0], before[:, 0])


@pytest.mark.parametrize(
    ("name", "sweep", "message"),
    [
        ("matmul", {"dtypes": ["float32"], "shapes": [[1, 2, 3, 4, 5]]}, "m, n, k"),
        ("matmul", {"dtypes": ["float32"], "shapes": [[4, 0, 4]]}, "at least 1"),
        ("matmul", {"dtypes": ["float32"], "shapes": [8], "dtype": ["float32"]}, "no key named 'dtype'"),
        ("fma", {"ilp": [3], "working_set_bytes": [8192]}, "there are: 1, 2, 4"),
        ("fma", {"ilp": [1], "working_set_bytes": [-1]}, "positive"),
        ("transcendental", {"ops": ["gamma"], "working_set_bytes": [8192]}, "there are: exp"),
        ("conv2d", {"dtypes": ["float32"], "shapes": [[1, 8, 8, 3, 3]]}, "kernel_size"),
        ("embedding", {"dtypes": ["float32"], "shapes": [[10, 10, 4]]}, "fewer than vocabulary"),
        ("stencil", {"dtypes": ["float32"], "shapes": [[8, 8, 3]]}, "even"),
        ("stencil", {"dtypes": ["float32"], "shapes": [[2, 8, 2]]}, "at least 3"),
        ("fft", {"dtypes": ["bfloat16"], "shapes": [[2, 8]]}, "there are: float32, float64"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(name: str, sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plugins.load("probe", name).configurations(sweep)
