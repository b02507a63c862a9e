"""Programs that JAX compiles here, against counts made by hand.

Counts state the mathematics: FLOP of the whole run, and compulsory bytes where it is clear which kernels there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import bayesperf as bp
from bayesperf.errors import InputError


def array(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def total(table: pd.DataFrame, column: str) -> float:
    return float((table[column] * table["count"]).sum())


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and what it takes: FLOP, function values among them, bytes; None: not counted."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    flops: float
    bytes: float | None = None
    functions: float = 0.0
    ops: tuple[str, ...] = ()


def convolve(x: Any, w: Any, stride: int = 1, **options: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout, **options)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def perceptron(weights: Any, x: Any, y: Any) -> Any:
    w1, w2 = weights
    return ((jax.nn.relu(x @ w1) @ w2 - y) ** 2).sum()


def tower(weights: Any, x: Any) -> Any:
    layer = jax.checkpoint(lambda w, x: jnp.tanh(x @ w))
    for w in weights:
        x = layer(w, x)
    return x.sum()


def transformer(x: Any, weights: Any) -> Any:
    """Pre-norm layers over (tokens, hidden), one head, scanned over stacked weights."""

    def layer(x: Any, weights: Any) -> Any:
        wq, wk, wv, wo, w1, w2 = weights
        q, k, v = x @ wq, x @ wk, x @ wv
        x = x + jax.nn.softmax(q @ k.T, axis=-1) @ v @ wo
        return x + jax.nn.relu(x @ w1) @ w2, None

    return lax.scan(layer, x, weights)[0]


def long_memory(w: Any, state: Any, xs: Any) -> Any:
    def cell(state: Any, x: Any) -> Any:
        h, c = state
        i, g, o, f = jnp.split(jnp.concatenate([x, h], axis=-1) @ w, 4, axis=-1)
        c = c * f + i * g
        return (c * o, c), c

    return lax.scan(cell, state, xs)[1]


def heat(u: Any) -> Any:
    def step(_: int, u: Any) -> Any:
        return u.at[1:-1].set(0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:]))

    return lax.fori_loop(0, 10, step, u)


B, H, T, D = 2, 4, 64, 32
N = 4096
STACK = tuple(array(6, *shape) for shape in [(64, 64)] * 4 + [(64, 256), (256, 64)])
BF16, INT8 = jnp.bfloat16, jnp.int8

PROGRAMS = [
    Program("one product", lambda a, b: a @ b, (array(64, 128), array(128, 32)), 2 * 64 * 32 * 128,
            4 * (64 * 128 + 128 * 32 + 64 * 32), ops=("matmul",)),
    Program("a chain of products", lambda a, b, c: (a @ b) @ c, (array(64, 128), array(128, 32), array(32, 16)),
            2 * 64 * 32 * 128 + 2 * 64 * 16 * 32, 4 * (64 * 128 + 128 * 32 + 2 * 64 * 32 + 32 * 16 + 64 * 16),
            ops=("matmul", "matmul")),
    Program("a product with a vector", lambda a, b: a @ b, (array(640, 320), array(320)), 2 * 640 * 320,
            4 * (640 * 320 + 320 + 640), ops=("matvec",)),
    Program("vmap of a product", jax.vmap(jnp.matmul), (array(8, 64, 32), array(8, 32, 16)), 2 * 8 * 64 * 16 * 32,
            4 * 8 * (64 * 32 + 32 * 16 + 64 * 16), ops=("matmul",)),
    Program("einsum with two batches", lambda a, b: jnp.einsum("abij,abkj->abik", a, b),
            (array(3, 4, 16, 32), array(3, 4, 24, 32)), 2 * 12 * 16 * 24 * 32, 4 * 12 * (16 * 32 + 24 * 32 + 16 * 24)),
    Program("bfloat16 operands, float32 result", lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.float32),
            (array(64, 128, dtype=BF16), array(128, 32, dtype=BF16)), 2 * 64 * 32 * 128,
            2 * (64 * 128 + 128 * 32) + 4 * 64 * 32, ops=("matmul",)),
    Program("int8 operands", lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.int32),
            (array(64, 128, dtype=INT8), array(128, 32, dtype=INT8)), 2 * 64 * 32 * 128,
            64 * 128 + 128 * 32 + 4 * 64 * 32, ops=("matmul",)),
    Program("complex operands", lambda a, b: a @ b,
            (array(16, 8, dtype=jnp.complex64), array(8, 4, dtype=jnp.complex64)), 8 * 16 * 4 * 8),
    Program("attention", attention, (array(B, H, T, D),) * 3, 4 * B * H * T * T * D + 6 * B * H * T * T + B * H * T,
            functions=B * H * T * T),
    Program("a convolution", convolve, (array(2, 16, 16, 8), array(3, 3, 8, 32)), 2 * 2 * 16 * 16 * 32 * 9 * 8,
            4 * (2 * 16 * 16 * 8 + 9 * 8 * 32 + 2 * 16 * 16 * 32), ops=("conv2d",)),
    Program("a strided convolution", lambda x, w: convolve(x, w, 2), (array(2, 16, 16, 8), array(3, 3, 8, 32)),
            2 * 2 * 8 * 8 * 32 * 9 * 8, 4 * (2 * 16 * 16 * 8 + 9 * 8 * 32 + 2 * 8 * 8 * 32), ops=("conv2d",)),
    Program("a depthwise convolution", lambda x, w: convolve(x, w, feature_group_count=8),
            (array(2, 16, 16, 8), array(3, 3, 1, 8)), 2 * 2 * 16 * 16 * 8 * 9,
            4 * (2 * 2 * 16 * 16 * 8 + 9 * 8), ops=("depthwise_conv2d",)),
    Program("a dilated convolution", lambda x, w: convolve(x, w, rhs_dilation=(2, 2)),
            (array(2, 16, 16, 8), array(3, 3, 8, 32)), 2 * 2 * 16 * 16 * 32 * 9 * 8),
    Program("both gradients of a strided convolution",
            jax.grad(lambda x, w: convolve(x, w, 2).sum(), argnums=(0, 1)), (array(2, 16, 16, 8), array(3, 3, 8, 32)),
            2 * 2 * 2 * 8 * 8 * 32 * 9 * 8),
    Program("one elementwise kernel", lambda x, y, z: jnp.tanh(x) * y + z, (array(64, 64),) * 3, 3 * N, 4 * 4 * N, N,
            ("elementwise",)),
    Program("integers that are compared in the end", lambda x: jnp.where(3 * x + 1 > 7, x, 0),
            (array(N, dtype=jnp.int32),), 3 * N, 2 * 4 * N),
    Program("a mask of positions", lambda x: jnp.where(jnp.arange(N) + 1 < 100, x, 0.0), (array(N),), N, 2 * 4 * N),
    Program("a choice", lambda x: jnp.where(x > 0, x, 0.0), (array(N),), N, 2 * 4 * N),
    Program("a softmax", lambda x: jax.nn.softmax(x, axis=-1), (array(128, 512),), 5 * 128 * 512 + 128,
            functions=128 * 512),
    Program("a layer norm", layer_norm, (array(128, 512), array(512), array(512)), 8 * 128 * 512 + 5 * 128,
            functions=128),
    Program("a sum", lambda x: x.sum(), (array(N),), N, 4 * N + 4, ops=("reduce",)),
    Program("a maximum pool",
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            (array(2, 16, 16, 8),), 2 * 16 * 16 * 8, 4 * 2 * 8 * (256 + 64)),
    Program("a gradient", jax.grad(perceptron), ((array(64, 128), array(128, 32)), array(16, 64), array(16, 32)),
            # Two products forward, three backward; ReLU and its mask; difference, and twice it.
            5 * 2 * 16 * 32 * 128 + (2 * 2 * 16 * 128 * (64 - 32)) + 2 * 16 * 128 + 2 * 16 * 32),
    Program("a rematerialised gradient", jax.grad(tower), ([array(64, 64)] * 3, array(16, 64)),
            # Forward but for the last layer, whose value is not asked for; all three again; backward two each but for
            # the first, whose input has no gradient. With t = tanh: (g + g t) (1 - t) for each.
            (2 + 3 + 5) * 2 * 16 * 64 * 64 + 16 * 64 * (2 + 3 + 3 * 4), functions=5 * 16 * 64),
    Program("a transformer scanned over its layers", transformer, (array(16, 64), STACK),
            # Products with weights and of attention; softmax; ReLU; two residuals; the counter.
            6 * (2 * 16 * 64 * (4 * 64 + 8 * 64) + 4 * 16 * 16 * 64 + 5 * 16 * 16 + 16 + 16 * 256 + 2 * 16 * 64 + 1),
            functions=6 * 16 * 16),
    Program("a recurrent scan", long_memory, (array(96, 256), (array(8, 64), array(8, 64)), array(20, 8, 32)),
            20 * (2 * 8 * 256 * 96 + 4 * 8 * 64 + 1)),
    Program("a stencil in a loop", heat, (array(N),), 10 * (4 * (N - 2) + 1)),
    Program("a transform", jnp.fft.fft, (array(4, 256, dtype=jnp.complex64),), 5 * 4 * 256 * log2(256), 2 * 8 * 4 * 256,
            ops=("fft",)),
    Program("a real transform", jnp.fft.rfft, (array(4, 256),), 2.5 * 4 * 256 * log2(256), 4 * 4 * 256 + 8 * 4 * 129),
    Program("a transform of two dimensions", jnp.fft.fft2, (array(16, 32, dtype=jnp.complex64),),
            5 * 16 * 32 * log2(16 * 32), 2 * 8 * 16 * 32),
    Program("a transform back to real values", jnp.fft.irfft, (array(4, 129, dtype=jnp.complex64),),
            2.5 * 4 * 256 * log2(256), 4 * 4 * 256 + 8 * 4 * 129),
    Program("the largest few", lambda x: lax.top_k(x, 8), (array(16, 256),), 0, ops=("sort",)),
    Program("a sort", lambda x: jnp.sort(x, axis=-1), (array(4, 256),), 0, 2 * 4 * 4 * 256, ops=("sort",)),
    Program("a look-up", lambda t, i: jnp.take(t, i, axis=0, mode="clip"),
            (array(5000, 64), array(32, dtype=jnp.int32)), 0, 4 * (2 * 32 * 64 + 32), ops=("embedding",)),
    Program("a branch", lambda i, x: lax.cond(i, lambda x: x @ x, lambda x: x + 1.0, x),
            (array(dtype=jnp.bool_), array(64, 64)), 2 * 64**3),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return {program.name: bp.workload(program.fn, *program.args) for program in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_counts_equal_those_made_by_hand(program: Program, tables: dict[str, pd.DataFrame]) -> None:
    table = tables[program.name]
    assert total(table, "flops") == program.flops
    assert total(table, "transcendentals") == program.functions
    if program.bytes is not None:
        assert total(table, "bytes") == program.bytes
    if program.ops:
        assert tuple(table["op"]) == program.ops
    assert table["flags"].dropna().isin(["branch"]).all()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_xla_agrees_or_the_difference_is_explained(program: Program, tables: dict[str, pd.DataFrame]) -> None:
    check = tables[program.name].attrs["cross_check"]
    if check["xla_flops"] is None:
        # It leaves out what is zero.
        assert check["by_their_rules"] == 0
        assert check["explained"] is None
        return
    assert check["explained"], check
    if abs(check["flops_ratio"] - 1) > 0.02:
        assert check["reasons"]
        assert not any("unexplained" in reason for reason in check["reasons"])


def test_programs_are_enough_and_their_columns_are_those_of_the_contract(tables: dict[str, pd.DataFrame]) -> None:
    assert len(PROGRAMS) >= 20
    for table in tables.values():
        assert list(table.columns[:8]) == [
            "op", "dtype", "flops", "bytes", "working_set_bytes", "parallelism", "message_bytes", "n_devices",
        ]  # fmt: skip
        assert table["instruction"].is_unique
        assert (table["bytes"] > 0).all()
        assert (table["working_set_bytes"] >= 0.999 * table["footprint_bytes"]).all()


def test_dtypes_are_those_of_what_is_multiplied(tables: dict[str, pd.DataFrame]) -> None:
    assert tables["bfloat16 operands, float32 result"]["dtype"].tolist() == ["bfloat16"]
    assert tables["int8 operands"]["dtype"].tolist() == ["int8"]
    assert tables["a transform"]["dtype"].tolist() == ["float32"]


@pytest.mark.parametrize(
    ("fn", "op"),
    [
        (lambda x: x.max(axis=1), "reduce"),
        (lambda x: x.sum(axis=0), "reduce_columns"),
        (lambda x: x.argmin(axis=1), "arg_reduce"),
        (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), "reduce_window"),
        (lambda x: x.T, "transpose"),
        (lambda x: x + jnp.roll(x, 1, axis=0), "piecewise"),
        (lambda x: x.at[jnp.array([5, 3, 5])].add(1.0), "scatter_rows"),
    ],
)
def test_names_say_how_a_kernel_goes_through_memory(fn: Callable[[Any], Any], op: str) -> None:
    table = bp.workload(fn, array(128, 256))
    # What is updated is copied before, since the argument is not to be overwritten.
    assert table[table["op"] != "stream_copy"].sort_values("bytes")["op"].iloc[-1] == op


def test_products_across_rows_are_told() -> None:
    def told(fn: Callable[..., Any]) -> bool:
        table = bp.workload(fn, array(128, 96), array(128, 96))
        return bool(table.loc[table["op"] == "matmul", "across"].any())

    assert [told(fn) for fn in (lambda a, b: a.T @ b, lambda a, b: a @ b.T)] == [True, False]


def test_a_frame_is_copied_and_put_together_only_where_it_is_computed_with() -> None:
    assert bp.workload(lambda x: jnp.pad(x, 1), array(128, 256))["op"].tolist() == ["stream_copy"]
    assert bp.workload(lambda x: jnp.pad(x * x, 1), array(128, 256))["op"].tolist() == ["piecewise"]


def test_functions_without_an_instruction_are_counted_by_name() -> None:
    (row,) = bp.workload(lambda x: jnp.exp(x) * x + jnp.sqrt(x), array(N)).to_dict(orient="records")
    assert (row["function"], row["function_values"], row["transcendentals"]) == ("exp", N, 2 * N)
    (row,) = bp.workload(lambda x: jnp.sqrt(x) + x, array(N)).to_dict(orient="records")
    assert (row["function"], row["function_values"], row["transcendentals"]) == (None, 0, N)


def test_kernels_name_the_loops_around_them() -> None:
    def nested(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: lax.fori_loop(0, 4, lambda _, x: jnp.sin(x), x) @ x, x)

    table = bp.workload(nested, array(16, 16)).set_index("op")
    (outer,) = {table.loc["matmul", "within"]}
    inner = table[table["function"] == "sin"]
    assert inner["count"].tolist() == [12.0]
    assert inner["within"].iloc[0].startswith(f"{outer!s}/")


def test_shapes_of_products(tables: dict[str, pd.DataFrame]) -> None:
    row = tables["vmap of a product"].iloc[0]
    assert (row["batch"], row["m"], row["n"], row["k"]) == (8, 64, 16, 32)
    row = tables["a convolution"].iloc[0]
    names = ("batch", "height", "width", "c_in", "c_out", "kernel_size")
    assert tuple(row[name] for name in names) == (2, 16, 16, 8, 32, 3)


def test_an_end_that_depends_on_data_is_named() -> None:
    def until(x: Any) -> Any:
        return lax.while_loop(lambda x: x.sum() < 10, lambda x: x * 1.5, x)

    table = bp.workload(until, array(N))
    (name,) = table.attrs["unknown_trip_counts"]
    assert table.loc[table["flags"] == "unknown-trip-count", "count"].isna().all()
    told = bp.workload(until, array(N), trip_counts={name: 5})
    # The sum of the condition runs six times, the product five.
    assert total(told, "flops") == 6 * N + 5 * N
    assert total(told, "bytes") == total(bp.workload(until, array(N), trip_counts=5), "bytes")


def test_what_is_updated_in_place_moves_the_update() -> None:
    def write(cache: Any, new: Any, at: Any) -> Any:
        return lax.dynamic_update_slice(cache, new, (at, 0))

    donated = jax.jit(write, donate_argnums=0)
    table = bp.workload(donated, array(1024, 64), array(1, 64), array(dtype=jnp.int32))
    assert total(table, "bytes") == 2 * 4 * 64 + 4
    assert table.attrs["output_bytes"] == 0


def test_arrays_static_arguments_and_keywords() -> None:
    def power(x: Any, *, times: int) -> Any:
        for _ in range(times):
            x = x @ x
        return x

    jitted = jax.jit(power, static_argnames="times")
    table = bp.workload(jitted, np.ones((32, 32), np.float32), times=3)
    assert total(table, "flops") == 3 * 2 * 32**3


def test_what_cannot_be_traced_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be compiled"):
        bp.workload(lambda a, b: a @ b, array(3, 4), array(3, 4))
    with pytest.raises(InputError, match="a function is needed"):
        bp.workload(3)  # type: ignore[arg-type]


# Several devices.

S = 4 * N


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:4]), ("d",))


def mapped(mesh: Mesh, fn: Callable[[Any], Any], given: Any, returned: Any) -> Callable[..., Any]:
    return jax.shard_map(fn, mesh=mesh, in_specs=given, out_specs=returned, check_vma=False)


P = PartitionSpec


@pytest.mark.parametrize(
    ("fn", "given", "returned", "op", "message", "moved"),
    [
        (lambda x: lax.psum(x, "d"), P("d"), P(), "all_reduce", S / 4, S / 2),
        (lambda x: lax.all_gather(x, "d", tiled=True), P("d"), P(), "all_gather", S, 1.25 * S),
        (lambda x: lax.psum_scatter(x, "d", tiled=True), P(), P("d"), "reduce_scatter", S, 1.25 * S),
        (lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True), P("d"), P("d"), "all_to_all", S / 4, S / 2),
        (lambda x: lax.ppermute(x, "d", [(0, 1), (1, 2), (2, 3), (3, 0)]), P("d"), P("d"), "ppermute", S / 4, S / 2),
    ],
)  # fmt: skip
def test_collectives_are_rows_of_one_rank(
    mesh: Mesh, fn: Callable[[Any], Any], given: Any, returned: Any, op: str, message: float, moved: float
) -> None:
    table = bp.workload(mapped(mesh, fn, given, returned), array(N))
    (row,) = table[table["message_bytes"].notna()].to_dict(orient="records")
    assert (row["op"], row["n_devices"], row["flops"]) == (op, 4, 0)
    assert row["message_bytes"] == message
    assert row["bytes"] == moved


def test_a_sharded_product_is_split_and_summed(mesh: Mesh) -> None:
    a = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(mesh, P(None, "d")))
    b = jax.ShapeDtypeStruct((128, 32), jnp.float32, sharding=NamedSharding(mesh, P("d", None)))
    table = bp.workload(lambda a, b: a @ b, a, b)
    assert table["op"].tolist() == ["matmul", "all_reduce"]
    # The product's work is that of all devices, its shape that of one, the message that of a rank.
    assert total(table, "flops") == 2 * 64 * 32 * 128
    assert table.loc[0, "k"] == 32
    assert table.loc[1, "message_bytes"] == 4 * 64 * 32
    assert table.attrs["n_devices"] == 4


def test_groups_over_one_axis_of_a_mesh() -> None:
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
    fn = jax.shard_map(lambda x: lax.psum(x, "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", None))
    (row,) = bp.workload(fn, array(64, 64)).to_dict(orient="records")
    assert (row["op"], row["n_devices"]) == ("all_reduce", 2)
    assert row["message_bytes"] == 4 * 32 * 32
