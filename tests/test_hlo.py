"""The parser of optimised HLO text, on a real module of JAX 0.12 and on forms of other versions and backends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from bayesperf import hlo
from bayesperf.errors import InputError

TRIAD = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(s32[], f32[1,3840]{1,0})->f32[1,3840]{1,0}}
FileNames
1 "example.py"
%fused_computation (param_0: f32[3840], param_1.2: f32[3840], param_2.4: s32[]) -> f32[3840] {
  %param_0 = f32[3840]{0} parameter(0)
  %param_2.4 = s32[] parameter(2)
  %convert.0 = f32[] convert(%param_2.4), metadata={op_name="jit(f)/while/body/convert" stack_frame_id=7}
  %mul.1 = f32[3840]{0} broadcast(%convert.0), dimensions={}
  %param_1.2 = f32[3840]{0} parameter(1)
  %mul.0 = f32[3840]{0} multiply(%mul.1, %param_1.2)
  ROOT %add.0 = f32[3840]{0} add(%param_0, %mul.0), metadata={op_name="a ) quoted (" stack_frame_id=10}
}
%region_0.1 (arg_tuple.1: (s32[], f32[3840], s32[], f32[3840])) -> (s32[], f32[3840], s32[], f32[3840]) {
  %arg_tuple.1 = (s32[], f32[3840]{0}, s32[], f32[3840]{0}) parameter(0)
  %get-tuple-element.24 = f32[3840]{0} get-tuple-element(%arg_tuple.1), index=3, metadata={op_name="jit(f)/while"}
  %get-tuple-element.10 = s32[] get-tuple-element(%arg_tuple.1), index=0
  %fusion.1 = f32[3840]{0} fusion(%get-tuple-element.24, %get-tuple-element.24, %get-tuple-element.10), kind=kLoop, calls=%fused_computation
  ROOT %tuple.3 = (s32[], f32[3840]{0}, s32[], f32[3840]{0}) tuple(%get-tuple-element.10, %fusion.1, %get-tuple-element.10, %get-tuple-element.24)
}
%region_1.2 (arg_tuple.3: (s32[], f32[3840], s32[], f32[3840])) -> pred[] {
  %arg_tuple.3 = (s32[], f32[3840]{0}, s32[], f32[3840]{0}) parameter(0)
  ROOT %constant.9 = pred[] constant(true)
}
ENTRY %main.3 (n.1: s32[], carry.1: f32[1,3840]) -> f32[1,3840] {
  %n.1 = s32[] parameter(0), metadata={op_name="n"}
  %carry.1 = f32[1,3840]{1,0} parameter(1)
  %bitcast = f32[3840]{0} bitcast(%carry.1)
  %tuple = (s32[], f32[3840]{0}, s32[], f32[3840]{0}) tuple(%n.1, %bitcast, %n.1, %bitcast)
  %while.7 = (s32[], f32[3840]{0}, s32[], f32[3840]{0}) while(%tuple), condition=%region_1.2, body=%region_0.1
  %gte = f32[3840]{0} get-tuple-element(%while.7), index=1
  ROOT %bitcast.3 = f32[1,3840]{1,0} bitcast(%gte)
}
"""  # noqa: E501 - as the compiler prints it


def test_structure_of_a_real_module() -> None:
    module = hlo.parse(TRIAD)
    assert module.entry == "main.3"
    assert set(module.computations) == {"fused_computation", "region_0.1", "region_1.2", "main.3"}
    entry = module.computations["main.3"]
    assert [p.name for p in entry.parameters] == ["n.1", "carry.1"]
    assert [p.index for p in entry.parameters] == [0, 1]
    assert entry.root.name == "bitcast.3"


def test_loops_bodies_and_what_they_call() -> None:
    module = hlo.parse(TRIAD)
    ((owner, loop),) = module.whiles()
    assert owner.name == "main.3"
    assert dict(loop.called) == {"condition": "region_1.2", "body": "region_0.1"}
    opcodes = [i.opcode for i in module.within("region_0.1")]
    assert opcodes.count("multiply") == 1
    assert "add" in opcodes


def test_instruction_details() -> None:
    body = hlo.parse(TRIAD).computations["region_0.1"]
    gte = body.instructions["get-tuple-element.24"]
    assert gte.index == 3
    assert gte.operands == ("arg_tuple.1",)
    assert gte.bytes == 4 * 3840
    assert {u.opcode for u in body.users(gte.name)} == {"fusion", "tuple"}


def test_parentheses_inside_quotes_do_not_end_an_operand_list() -> None:
    fused = hlo.parse(TRIAD).computations["fused_computation"]
    assert fused.root.operands == ("param_0", "mul.0")


@pytest.mark.parametrize(
    ("shape", "elements", "size"),
    [
        ("f32[4,8]{1,0}", 32, 128),
        ("bf16[10]", 10, 20),
        ("pred[]", 1, 1),
        ("f8e4m3fn[3,3]", 9, 9),
        ("(s32[], f32[2,2]{1,0:T(8,128)})", 5, 20),
        ("f32[<=16]{0}", 16, 64),
        ("token[]", 1, 0),
    ],
)
def test_shapes(shape: str, elements: float, size: float) -> None:
    assert hlo.shape_elements(shape) == elements
    assert hlo.shape_bytes(shape) == size


def test_text_without_percent_signs() -> None:
    text = (
        "ENTRY main (a: f32[2]) -> f32[2] {\n  a = f32[2]{0} parameter(0)\n"
        "  ROOT b = f32[2]{0} add(f32[2]{0} a, a)\n}\n"
    )
    root = hlo.parse(text).computations["main"].root
    assert root.operands == ("a", "a")


def test_custom_call_target() -> None:
    text = (
        "ENTRY %m (a: f32[2,2]) -> f32[2,2] {\n  %a = f32[2,2]{1,0} parameter(0)\n"
        '  ROOT %c = f32[2,2]{1,0} custom-call(%a, %a), custom_call_target="__cublas$gemm", '
        'backend_config={"x":")"}\n}\n'
    )
    assert hlo.parse(text).computations["m"].root.custom_call_target == "__cublas$gemm"


def test_hash_ignores_source_locations_but_not_the_program() -> None:
    moved = TRIAD.replace("stack_frame_id=7", "stack_frame_id=8").replace("example.py", "other.py")
    assert hlo.text_hash(moved) == hlo.text_hash(TRIAD)
    assert hlo.text_hash(TRIAD.replace("multiply(", "divide(")) != hlo.text_hash(TRIAD)


def test_foreign_text_is_refused() -> None:
    with pytest.raises(InputError, match="no ENTRY"):
        hlo.parse("define i32 @main() { ret i32 0 }")


def test_parses_what_this_jax_prints() -> None:
    text = jax.jit(lambda x: jnp.tanh(x) @ x.T).lower(jnp.ones((8, 8))).compile().as_text()
    module = hlo.parse(str(text))
    opcodes = {i.opcode for i in module.within(module.entry)}
    assert "tanh" in opcodes
    assert opcodes & {"dot", "custom-call"}
