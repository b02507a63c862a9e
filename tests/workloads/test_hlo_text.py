"""Programs of other backends, as text: library calls, fusions, collectives, what nobody knows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bayesperf.errors import InputError
from bayesperf.store import read_workloads
from bayesperf.workloads.attributes import minor
from bayesperf.workloads.trace import from_hlo
from tests.workloads.hlo_texts import loop, only, program

GEMM = (
    '"gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":{"lhs_contracting_dimensions":["%s"],'
    '"rhs_contracting_dimensions":["%s"],"lhs_batch_dimensions":[%s],"rhs_batch_dimensions":[%s]},'
    '"precision_config":{"operand_precision":["%s","%s"],"algorithm":"ALG_UNSET"},"epilogue":"DEFAULT"}'
)


@pytest.mark.parametrize(("precision", "dtype"), [("DEFAULT", "tf32"), ("HIGHEST", "float32")])
def test_a_cublas_product_is_counted_by_its_dimensions_without_its_workspace(precision: str, dtype: str) -> None:
    config = GEMM % ("1", "0", "", "", precision, precision)
    text = program(f"""
        %x = f32[64,256]{{1,0}} parameter(0)
        %w = f32[256,128]{{1,0}} parameter(1)
        %g = (f32[64,128]{{1,0}}, s8[33554432]{{0}}) custom-call(f32[64,256]{{1,0}} %x, f32[256,128]{{1,0}} %w), custom_call_target="__cublas$gemm", metadata={{op_name="jit(f)/dot_general"}}, backend_config={{"operation_queue_id":"0",{config}}}
        ROOT %r = f32[64,128]{{1,0}} get-tuple-element(%g), index=0
    """)  # noqa: E501 - as the compiler prints it
    row = only(from_hlo(text, platform="gpu", relaxed="tf32"))
    assert (row["op"], row["dtype"], row["instruction"], row["source"]) == ("matmul", dtype, "g", "jit(f)/dot_general")
    assert row["flops"] == 2 * 64 * 128 * 256
    assert row["bytes"] == 4 * (64 * 256 + 256 * 128 + 64 * 128)
    assert (row["m"], row["n"], row["k"]) == (64, 128, 256)
    assert row["parallelism"] == 64 * 128


def test_a_batched_product_with_a_bias_in_one_library_call() -> None:
    config = GEMM % ("2", "1", '"0"', '"0"', "DEFAULT", "DEFAULT")
    text = program(f"""
        %x = bf16[8,64,32] parameter(0)
        %w = bf16[8,32,16] parameter(1)
        %b = bf16[16] parameter(2)
        ROOT %g = bf16[8,64,16] custom-call(%x, %w, %b), custom_call_target="__cublas$lt$matmul", backend_config={{{config}}}
    """)  # noqa: E501 - as the compiler prints it
    row = only(from_hlo(text, platform="gpu", relaxed="tf32"))
    assert row["dtype"] == "bfloat16"
    assert row["flops"] == 2 * 8 * 64 * 16 * 32
    assert row["bytes"] == 2 * (8 * 64 * 32 + 8 * 32 * 16 + 16 + 8 * 64 * 16)
    assert (row["batch"], row["m"], row["n"], row["k"]) == (8, 64, 16, 32)


def test_a_onednn_product_has_no_dimension_numbers_and_needs_none() -> None:
    text = program("""
        %x = f32[2,8,4,16] parameter(0)
        %w = f32[2,8,16,32] parameter(1)
        ROOT %g = f32[2,8,4,32] custom-call(%x, %w), custom_call_target="__onednn$matmul", backend_config={"onednn_matmul_config":{}}
    """)  # noqa: E501 - as the compiler prints it
    row = only(from_hlo(text))
    assert row["op"] == "matmul"
    assert row["flops"] == pytest.approx(2 * 16 * 4 * 32 * 16)
    assert row["k"] == pytest.approx(16)


FORWARD = 2 * (32 * 28 * 28 * 128) * (3 * 3 * 64)


@pytest.mark.parametrize(
    ("target", "operands", "result"),
    [
        ("__cudnn$convForward", ("f32[32,56,56,64]", "f32[3,3,64,128]"), "f32[32,28,28,128]"),
        ("__cudnn$convBackwardInput", ("f32[32,28,28,128]", "f32[3,3,64,128]"), "f32[32,56,56,64]"),
        ("__cudnn$convBackwardFilter", ("f32[32,56,56,64]", "f32[32,28,28,128]"), "f32[3,3,64,128]"),
    ],
)
def test_a_cudnn_convolution_and_its_gradients_multiply_alike(
    target: str, operands: tuple[str, str], result: str
) -> None:
    text = program(f"""
        %a = {operands[0]} parameter(0)
        %b = {operands[1]} parameter(1)
        %c = ({result}, u8[4096]) custom-call(%a, %b), window={{size=3x3 stride=2x2 pad=0_1x0_1}}, dim_labels=b01f_01io->b01f, custom_call_target="{target}"
        ROOT %r = {result} get-tuple-element(%c), index=0
    """)  # noqa: E501 - as the compiler prints it
    row = only(from_hlo(text, platform="gpu"))
    assert row["op"] == "conv2d"
    assert row["flops"] == FORWARD
    assert row["bytes"] == 4 * (32 * 56 * 56 * 64 + 9 * 64 * 128 + 32 * 28 * 28 * 128)
    assert (row["c_in"], row["c_out"], row["kernel_size"]) == (64, 128, 3)


@pytest.mark.parametrize(
    ("asked", "relaxed", "dtype"),
    [
        ("", "bfloat16", "bfloat16"),
        ("", None, "float32"),
        (", operand_precision={highest,highest}", "bfloat16", "float32"),
        (", algorithm=dot_tf32_tf32_f32", None, "tf32"),
        (", algorithm=dot_bf16_bf16_f32", None, "bfloat16"),
        (", algorithm=dot_bf16_bf16_f32_x3", None, "float32"),
    ],
)
def test_a_product_that_is_written_as_a_convolution(asked: str, relaxed: str | None, dtype: str) -> None:
    text = program(f"""
        %x = f32[64,256]{{1,0:T(8,128)S(1)}} parameter(0)
        %w = f32[256,128]{{1,0:T(8,128)}} parameter(1)
        ROOT %c = f32[64,128]{{1,0:T(8,128)}} convolution(%x, %w), dim_labels=bf_io->bf{asked}
    """)
    row = only(from_hlo(text, platform="tpu", relaxed=relaxed))
    assert (row["op"], row["dtype"]) == ("matmul", dtype)
    assert row["flops"] == 2 * 64 * 256 * 128
    assert (row["m"], row["n"], row["k"]) == (64, 128, 256)


def test_attention_in_one_call() -> None:
    text = program("""
        %q = bf16[2,4,128,64] parameter(0)
        %k = bf16[2,4,256,64] parameter(1)
        %v = bf16[2,4,256,64] parameter(2)
        ROOT %a = (bf16[2,4,128,64], u8[0]) custom-call(%q, %k, %v), custom_call_target="__cudnn$fmhaSoftmax"
    """)
    row = only(from_hlo(text, platform="gpu"))
    assert row["op"] == "attention"
    assert row["flops"] == 4 * 8 * 128 * 256 * 64 + 5 * 8 * 128 * 256
    assert row["bytes"] == 2 * 8 * 64 * (2 * 128 + 2 * 256)


SOFTMAX = """
%max (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(%a, %b)
}
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
%softmax (p: f32[128,512]) -> f32[128,512] {
  %p = f32[128,512]{1,0} parameter(0)
  %z = f32[] constant(-inf)
  %o = f32[] constant(0)
  %max.1 = f32[128]{0} reduce(%p, %z), dimensions={1}, to_apply=%max
  %b.1 = f32[128,512]{1,0} broadcast(%max.1), dimensions={0}
  %s.1 = f32[128,512]{1,0} subtract(%p, %b.1)
  %e.1 = f32[128,512]{1,0} exponential(%s.1)
  %sum.1 = f32[128]{0} reduce(%e.1, %o), dimensions={1}, to_apply=%sum
  %b.2 = f32[128,512]{1,0} broadcast(%sum.1), dimensions={0}
  ROOT %d.1 = f32[128,512]{1,0} divide(%e.1, %b.2)
}
"""


def test_a_softmax_in_one_fusion_counts_as_the_probe_does() -> None:
    text = program(
        """
        %x = f32[128,512]{1,0} parameter(0)
        ROOT %f = f32[128,512]{1,0} fusion(%x), kind=kCustom, calls=%softmax, backend_config={"fusion_backend_config":{"kind":"__triton"}}
        """,  # noqa: E501 - as the compiler prints it
        SOFTMAX,
    )
    row = only(from_hlo(text, platform="gpu"))
    assert row["op"] == "softmax"
    assert row["flops"] == 5 * 128 * 512
    assert row["transcendentals"] == 128 * 512
    assert row["bytes"] == 2 * 4 * 128 * 512


def test_an_update_in_place_moves_the_update_alone() -> None:
    fused = """
%update (p: f32[1024,64], u: f32[1,64], i: s32[]) -> f32[1024,64] {
  %p = f32[1024,64] parameter(0)
  %u = f32[1,64] parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %e = f32[1,64] exponential(%u)
  ROOT %d = f32[1024,64] dynamic-update-slice(%p, %e, %i, %zero)
}
"""
    text = program(
        """
        %cache = f32[1024,64] parameter(0)
        %new = f32[1,64] parameter(1)
        %at = s32[] parameter(2)
        ROOT %f = f32[1024,64] fusion(%cache, %new, %at), kind=kLoop, calls=%update
        """,
        fused,
    )
    row = only(from_hlo(text))
    assert row["bytes"] == 2 * 4 * 64 + 4
    assert row["flops"] == 64


GATHER = (
    "gather({}), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
    "slice_sizes={{1,{}}}"
)


@pytest.mark.parametrize(("hidden", "op"), [(256, "embedding"), (4, "gather_random")])
def test_a_look_up_reads_what_it_yields(hidden: int, op: str) -> None:
    text = program(f"""
        %table = f32[5000,{hidden}] parameter(0)
        %rows = s32[32,1] parameter(1)
        ROOT %g = f32[32,{hidden}] {GATHER.format("%table, %rows", hidden)}
    """)
    row = only(from_hlo(text))
    assert row["op"] == op
    assert row["bytes"] == 2 * 4 * 32 * hidden + 4 * 32
    assert row["flops"] == 0
    # The look-ups are spread over the whole table.
    assert row["footprint_bytes"] > 4 * 5000 * hidden


SET = """
%set (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %b = f32[] parameter(1)
}
%accumulate (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
"""


@pytest.mark.parametrize(("reducer", "flops", "reads"), [("set", 0, 1), ("accumulate", 32 * 16, 2)])
def test_a_scatter_moves_its_updates(reducer: str, flops: int, reads: int) -> None:
    text = program(
        f"""
        %table = f32[5000,16] parameter(0)
        %rows = s32[32,1] parameter(1)
        %new = f32[32,16] parameter(2)
        ROOT %s = f32[5000,16] scatter(%table, %rows, %new), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=%{reducer}
        """,  # noqa: E501 - as the compiler prints it
        SET,
    )
    row = only(from_hlo(text))
    assert row["op"] == "scatter_rows"
    assert row["flops"] == flops
    assert row["bytes"] == (1 + reads) * 4 * 32 * 16 + 4 * 32


COLLECTIVES = "HloModule m, is_scheduled=true, num_partitions=8"
S = 4096 * 4


@pytest.mark.parametrize(
    ("lines", "op", "message", "ranks", "moved"),
    [
        (
            """%s = f32[4096] all-reduce-start(%x), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=%accumulate
            ROOT %d = f32[4096] all-reduce-done(%s)""",  # noqa: E501 - as the compiler prints it
            "all_reduce", S, 4, 2 * S,
        ),
        (
            """%s = (f32[4096], f32[32768]) all-gather-start(%x), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
            ROOT %d = f32[32768] all-gather-done(%s)""",
            "all_gather", 8 * S, 8, 9 * S,
        ),
        ("ROOT %d = f32[4096] all-reduce(%x), replica_groups=mesh['x'=2,'y'=4] {'y'}, to_apply=%accumulate",
         "all_reduce", S, 4, 2 * S),
        ("ROOT %d = f32[4096] all-reduce(%x), replica_groups=mesh['x'=2,'y'=4] {'x','y':(2)2}, to_apply=%accumulate",
         "all_reduce", S, 4, 2 * S),
        ("ROOT %d = f32[512] reduce-scatter(%x), replica_groups={}, dimensions={0}, to_apply=%accumulate",
         "reduce_scatter", S, 8, 9 * S / 8),
        ("ROOT %d = f32[4096] all-to-all(%x), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}",
         "all_to_all", S, 2, 2 * S),
        (
            """%s = (f32[4096], f32[4096], u32[], u32[]) collective-permute-start(%x), source_target_pairs={{0,1},{1,0}}
            ROOT %d = f32[4096] collective-permute-done(%s)""",
            "ppermute", S, 8, 2 * S,
        ),
        (
            """%s = ((f32[4096]), f32[4096]) async-start(%x), calls=%wrapped
            ROOT %d = f32[4096] async-done(%s)""",
            "all_to_all", S, 4, 2 * S,
        ),
    ],
)  # fmt: skip
def test_a_collective_is_one_message_of_one_rank(lines: str, op: str, message: float, ranks: int, moved: float) -> None:
    wrapped = """
%wrapped (p: f32[4096]) -> f32[4096] {
  %p = f32[4096] parameter(0)
  ROOT %a = f32[4096] all-to-all(%p), replica_groups=[2,4]<=[8], dimensions={0}
}
"""
    row = only(from_hlo(program(f"%x = f32[4096] parameter(0)\n{lines}", SET, wrapped, header=COLLECTIVES)))
    assert (row["op"], row["flops"]) == (op, 0)
    assert row["message_bytes"] == message
    assert row["n_devices"] == ranks
    assert row["bytes"] == pytest.approx(moved)


def test_work_beside_messages_is_of_all_devices() -> None:
    row = only(from_hlo(program("%x = f32[4096] parameter(0)\nROOT %y = f32[4096] negate(%x)", header=COLLECTIVES)))
    assert row["flops"] == 8 * 4096
    assert row["bytes"] == 8 * 2 * S
    assert row["n_devices"] == 8


def test_a_copy_that_is_started_and_waited_for_is_one_copy() -> None:
    text = program("""
        %x = f32[4096]{0} parameter(0)
        %s = (f32[4096]{0:S(1)}, f32[4096]{0}, u32[]{:S(2)}) copy-start(%x)
        ROOT %d = f32[4096]{0:S(1)} copy-done(%s)
    """)
    row = only(from_hlo(text, platform="tpu"))
    assert (row["op"], row["bytes"], row["parallelism"]) == ("stream_copy", 2 * S, 4096)


def test_a_table_survives_a_file(tmp_path: Path) -> None:
    table = from_hlo(loop())
    table.to_csv(tmp_path / "w.csv", index=False)
    table.to_parquet(tmp_path / "w.parquet")
    for name in ("w.csv", "w.parquet"):
        back = read_workloads(tmp_path / name)
        assert back["op"].tolist() == table["op"].tolist()
        for column in ("flops", "bytes", "working_set_bytes", "count"):
            np.testing.assert_allclose(back[column], table[column])


def test_what_nobody_knows_is_named_with_its_bytes() -> None:
    text = program("""
        %x = f32[4096] parameter(0)
        %c = f32[4096] custom-call(%x), custom_call_target="my_ffi.Kernel"
        ROOT %r = f32[4096] new-opcode(%c)
    """)
    table = from_hlo(text)
    assert table["op"].tolist() == ["custom_call_my_ffi_kernel", "new_opcode"]
    assert table["bytes"].tolist() == [2 * S, 2 * S]
    assert set(table["flags"]) == {"unknown-flops"}
    (note,) = table.attrs["notes"]
    assert "custom_call_my_ffi_kernel" in note
    assert "new_opcode" in note


@pytest.mark.parametrize(
    ("lines", "op", "flops"),
    [
        ("ROOT %r = f64[8,64,64] cholesky(%x), lower=true", "cholesky", 8 * 64**3 / 3),
        ('ROOT %r = (f64[8,64,64], s32[8,64], s32[8]) custom-call(%x), custom_call_target="lapack_dgetrf_ffi"',
         "lu", 8 * 64**3 * 2 / 3),
        ("ROOT %r = f64[8,64,64] triangular-solve(%x, %x), left_side=true", "triangular_solve", 8 * 64**3),
        ("ROOT %r = f64[8,64,64] sort(%x), dimensions={2}, to_apply=%accumulate", "sort", 0),
    ],
)  # fmt: skip
def test_factorisations_and_sorts(lines: str, op: str, flops: float) -> None:
    row = only(from_hlo(program(f"%x = f64[8,64,64] parameter(0)\n{lines}", SET)))
    assert (row["op"], row["dtype"]) == (op, "float64")
    assert row["flops"] == pytest.approx(flops)
    assert row["flags"] is None


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(InputError, match="no ENTRY"):
        from_hlo("a program")


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ("f32[4,8]{1,0}", 1),
        ("f32[4,8]{0,1}", 0),
        ("f32[4,8]", 1),
        ("f32[4,1]{1,0}", 0),
        ("f32[]", None),
        ("f32[1]", None),
    ],
)
def test_which_dimension_lies_together(shape: str, found: int | None) -> None:
    assert minor(shape) == found


def test_parts_of_a_kernel_are_those_that_the_compiler_names() -> None:
    text = """HloModule m
ENTRY %e (a: f32[64,64]) -> f32[64,64] {
  %a = f32[64,64]{1,0} parameter(0)
  %b = f32[64,64]{1,0} negate(%a), backend_config={"outer_dimension_partitions":["2","3"]}
  ROOT %c = f32[64,64]{1,0} negate(%b), backend_config={"outer_dimension_partitions":[]}
}"""
    assert from_hlo(text)["threads"].tolist() == [pytest.approx(6.0), pytest.approx(math.nan, nan_ok=True)]
