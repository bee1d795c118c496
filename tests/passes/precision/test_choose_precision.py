"""Precision modes: a small graph in, the graph with its Casts out."""

from __future__ import annotations

import pytest

from ge.errors import ReportedError
from ge.graph import DataType
from ge.ops.precision import has_bf16
from ge.precision_files import Customized, CustomTypes, KeptNodes, MixListChanges
from ge.text import parse_graph
from tests.passes.precision.lowered import lower, lowered

NET = """graph g(%x: f32[2,4]@ND) {
  %w = Const {value=f32[4,3]{1,2,3,4,5,6,7,8,9,10,11,100000}}
  %h = MatMulV2(%x, %w)
  %r = Relu(%h)
  %p = SoftmaxV2(%r) {axes=[1]}
  %a = Abs(%p)
  return %a
}"""

HALF = """graph g(%x: f32[2,4]@ND) {
  %x_0_Cast = Cast(%x) {dst_type=1} -> f16[2,4]@ND
  %w_Cast = Const {value=f16[4,3]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 65504.0}} -> f16[4,3]@ND
  %h = MatMulV2(%x_0_Cast, %w_Cast) -> f16[2,3]@ND
  %r = Relu(%h) -> f16[2,3]@ND
  %p = SoftmaxV2(%r) {axes=[1]} -> f16[2,3]@ND
  %a = Abs(%p) -> f16[2,3]@ND
  %a_0_Cast = Cast(%a) {dst_type=0} -> f32[2,3]@ND
  %Node_Output:0 = NetOutput(%a_0_Cast)
  return %a_0_Cast
}"""


def types(text: str, mode: str, **options: object) -> str:
    """Return ``name:type`` per node, with the compiler's Casts as ``>``."""
    graph = parse_graph(text)
    lower(graph, mode, **options)
    words = []
    for node in graph:
        if node.type == "Cast" and node.attrs.get("_datadump_original_op_names") == []:
            words.append(">")
        elif node.type not in ("Data", "Const", "NetOutput"):
            names = [desc.data_type.name.removeprefix("DT_").lower() for desc in node.output_descs]
            words.append(f"{node.name}:{'+'.join(names)}")
    return " ".join(words)


def test_half_precision_everywhere_between_inputs_and_results() -> None:
    assert lowered(NET) == HALF


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("origin", "h:float r:float p:float a:float"),
        ("fp16", "> h:float16 r:float16 p:float16 a:float16 >"),
        ("cube_fp16in_fp32out", "> h:float r:float p:float a:float"),
        ("allow_fp32_to_fp16", "> h:float16 > r:float p:float a:float"),
        ("allow_fp32_to_bf16", "h:float r:float p:float a:float"),
        # Relu is gray: it follows the product before it; the softmax is black, and so Abs behind it stays
        ("mixed_float16", "> h:float16 r:float16 > p:float a:float"),
        ("mixed_bfloat16", "> h:bf16 r:bf16 > p:float a:float"),
    ],
)
def test_modes_for_single_precision(mode: str, expected: str) -> None:
    assert types(NET, mode) == expected


@pytest.mark.parametrize(
    ("mode", "soc_version", "expected"),
    [
        ("origin", "Ascend310P3", "h:bf16 a:bf16"),
        ("fp16", "Ascend910B1", "> h:float16 a:float16 >"),
        ("cube_fp16in_fp32out", "Ascend910B1", "> h:float a:float >"),
        ("allow_fp32_to_fp16", "Ascend910B1", "h:bf16 a:bf16"),
        ("allow_fp32_to_fp16", "Ascend310P3", "> h:float a:float >"),
        ("allow_fp32_to_bf16", "Ascend910B1", "h:bf16 a:bf16"),
        ("mixed_float16", "Ascend910B1", "> h:float16 a:float16 >"),
        ("mixed_bfloat16", "Ascend910B1", "h:bf16 a:bf16"),
    ],
)
def test_modes_for_bf16(mode: str, soc_version: str, expected: str) -> None:
    text = "graph g(%x: bf16[4,4]@ND) { %h = MatMulV2(%x, %x) %a = Abs(%h) return %a }"
    assert types(text, mode, soc_version=soc_version) == expected


@pytest.mark.parametrize("mode", ["origin", "fp16", "mixed_float16", "mixed_bfloat16", "allow_fp32_to_fp16"])
def test_half_precision_of_the_model_stays(mode: str) -> None:
    text = "graph g(%x: f16[4,4]@ND) { %h = MatMulV2(%x, %x) %a = Abs(%h) return %a }"
    assert types(text, mode) == "h:float16 a:float16"


def test_vector_operators_are_widened_around_products() -> None:
    text = "graph g(%x: f16[4,4]@ND) { %h = MatMulV2(%x, %x) %a = Abs(%h) return %a }"
    assert types(text, "cube_fp16in_fp32out") == "h:float a:float >"


def test_products_that_have_no_wide_result_are_computed_in_single_precision() -> None:
    text = """graph g(%x: f32[4,4]@ND) {
  %one = Const {value=f32[1]{1}}
  %h = GEMM(%x, %x, %x, %one, %one)
  return %h
}"""
    assert types(text, "cube_fp16in_fp32out") == "h:float"
    assert types(text, "allow_fp32_to_fp16") == "> h:float16 >"


def test_a_bias_is_added_to_sums_that_are_not_rounded() -> None:
    text = """graph g(%x: f32[2,2]@ND) {
  %w = Const {value=f32[2,1]{1,2}}
  %b = Const {value=f32[1]{100000}}
  %h = MatMulV2(%x, %w, %b)
  return %h
}"""
    assert "%b = Const {value=f32[1]{100000.0}}" in lowered(text, "cube_fp16in_fp32out")
    assert "%b_Cast = Const {value=f16[1]{65504.0}" in lowered(text, "fp16")


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64", "u8"])
def test_other_types_stay(dtype: str) -> None:
    text = f"graph g(%x: {dtype}[2,4]@ND) {{ %h = Add(%x, %x) %a = Abs(%h) return %a }}"
    assert ">" not in types(text, "fp16")


def test_one_cast_serves_all_readers_of_a_tensor() -> None:
    text = "graph g(%x: f32[2,4]@ND) { %a = Abs(%x) %n = Neg(%x) %s = Add(%x, %x) return %a, %n, %s }"
    assert types(text, "fp16") == "> a:float16 n:float16 s:float16 > > >"


def test_operators_that_take_any_type_read_what_is_there() -> None:
    text = """graph g(%x: f32[2,4]@ND) {
  %i = Cast(%x) {dst_type=9}
  %s = Shape(%x)
  %n = IsNan(%x)
  %r = Relu(%x)
  %q = Cast(%r) {dst_type=3}
  return %i, %s, %n, %q
}"""
    assert types(text, "fp16") == "i:int64 s:int32 n:bool > r:float16 q:int32"


def test_results_whose_type_is_an_attribute_keep_it() -> None:
    text = """graph g(%n: i32[2]@ND, %x: f32[3]@ND) {
  %r = RandomUniform(%n) {dtype=dtype f32, seed=1}
  %a = Abs(%r)
  return %a
}"""
    assert types(text, "fp16") == "r:float > a:float16 >"


def test_scales_stay_in_single_precision() -> None:
    text = """graph g(%x: u8[4]@ND, %s: f32[]@ND, %t: f32[4]@ND) {
  %d = XDequantizeLinear(%x, %s)
  %m = Mul(%d, %t)
  %q = XQuantizeLinear(%m, %s)
  return %q
}"""
    assert types(text, "fp16") == "d:float > > m:float16 q:uint8"


def test_inputs_whose_values_decide_shapes_stay() -> None:
    text = """graph g(%x: f32[1,2,4,4]@NCHW) {
  %s = Const {value=f32[4]{1,1,2.0004,2}}
  %y = Resize(%x, _, %s) {mode="nearest"}
  return %y
}"""
    assert "%s = Const {value=f32[4]" in lowered(text)
    assert types(text, "fp16") == "> y:float16 >"


def test_what_follows_from_shapes_stays_exact() -> None:
    """5001 has no place in fp16: the shape would be another one."""
    text = """graph g(%x: f32[-1,5001]@ND) {
  %s = Shape(%x)
  %f = Cast(%s) {dst_type=0}
  %one = Const {value=f32[]{1}}
  %n = Mul(%f, %one)
  %i = Cast(%n) {dst_type=3}
  %h = Abs(%x)
  %y = Reshape(%h, %i)
  return %y
}"""
    assert types(text, "fp16") == "s:int32 f:float n:float i:int32 > h:float16 y:float16 >"


def test_bodies_are_lowered_inside_and_keep_what_they_are_given_and_give() -> None:
    text = """graph g(%c: bool[]@ND, %x: f32[2]@ND) {
  %h = Abs(%x)
  %i = If(%c, %h) {then_branch=@then, else_branch=@else}
  %n = Neg(%i)
  return %n
}
graph then(%a: f32[2]@ND {_parent_node_index=1}) { %t = Exp(%a) return %t }
graph else(%b: f32[2]@ND {_parent_node_index=1}) { %e = Log(%b) return %e }
"""
    text = lowered(text)
    assert "%t = Exp(%a_0_Cast) -> f16[2]@ND\n  %t_0_Cast = Cast(%t) {dst_type=0} -> f32[2]@ND" in text
    assert "%e = Log(%b_0_Cast) -> f16[2]@ND\n  %e_0_Cast = Cast(%e) {dst_type=0} -> f32[2]@ND" in text
    assert "%i = If(%c, %h_0_Cast) {then_branch=@then, else_branch=@else} -> f32[2]@ND" in text


def test_the_state_of_a_loop_keeps_its_type() -> None:
    text = """graph g(%go: bool[]@ND, %x: f32[2]@ND) {
  %w:2 = While(%go, %x) {cond=@cond, body=@body}
  return %w:1
}
graph cond(%g1: bool[]@ND {_parent_node_index=0}, %x1: f32[2]@ND {_parent_node_index=1}) { return %g1 }
graph body(%g2: bool[]@ND {_parent_node_index=0}, %x2: f32[2]@ND {_parent_node_index=1}) {
  %s = Sqrt(%x2)
  %no = LogicalNot(%g2)
  return %no, %s
}
"""
    text = lowered(text)
    assert "%w:2 = While(%go, %x) {cond=@cond, body=@body} -> bool[]@ND, f32[2]@ND" in text
    assert "%s = Sqrt(%x2_0_Cast) -> f16[2]@ND" in text


# -- exceptions by name ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "kept", [KeptNodes(names=("p",)), KeptNodes(types=("SoftmaxV2",)), KeptNodes(names=("original_p",))]
)
def test_named_nodes_keep_their_types(kept: KeptNodes) -> None:
    text = NET.replace("{axes=[1]}", '{axes=[1], _datadump_original_op_names=["original_p"]}')
    assert types(text, "fp16", kept_nodes=kept) == "> h:float16 r:float16 > p:float > a:float16 >"


def test_names_that_the_model_does_not_have_are_mentioned_up_to_ten() -> None:
    kept = KeptNodes(names=tuple(f"layer{k}" for k in range(12)), types=("SoftmaxV3",))
    warnings = lower(parse_graph(NET), kept_nodes=kept).warnings
    assert len(warnings) == 11
    assert warnings[0] == "--keep_dtype: the model has no node layer0"
    assert warnings[-1] == "--keep_dtype: 3 more names are unknown"
    near = lower(parse_graph(NET), kept_nodes=KeptNodes(types=("SoftmaxV3",))).warnings
    assert near == ["--keep_dtype: the model has no operator type SoftmaxV3; did you mean SoftmaxV2?"]


FP16, FP32, BF16 = DataType.DT_FLOAT16, DataType.DT_FLOAT, DataType.DT_BF16


@pytest.mark.parametrize(
    ("custom", "mode", "expected"),
    [
        (Customized(by_name={"p": CustomTypes((FP32,))}), "fp16", "> h:float16 r:float16 > p:float > a:float16 >"),
        (
            Customized(by_type={"Relu": CustomTypes((FP16,), (FP16,))}),
            "origin",
            "h:float > r:float16 > p:float a:float",
        ),
        (Customized(by_name={"h": CustomTypes((FP16, FP16), (FP32,))}), "origin", "> h:float r:float p:float a:float"),
        # the name beats the type, and both beat --keep_dtype
        (
            Customized(by_name={"r": CustomTypes((BF16,))}, by_type={"Relu": CustomTypes((FP32,))}),
            "fp16",
            "> h:float16 > r:bf16 > p:float16 a:float16 >",
        ),
        (Customized(by_name={"a": CustomTypes((None,))}), "fp16", "> h:float16 r:float16 p:float16 a:float16 >"),
    ],
)
def test_customised_types(custom: Customized, mode: str, expected: str) -> None:
    assert types(
        NET, mode, custom_types=custom, kept_nodes=KeptNodes(types=("Relu",) if "bf16" in expected else ())
    ) == (expected)


@pytest.mark.parametrize(
    ("custom", "reason"),
    [
        ({"a": CustomTypes((DataType.DT_INT8,))}, r"\[a\].*\[Abs\].*input 0 is DT_FLOAT and cannot be DT_INT8"),
        ({"a": CustomTypes((None, FP16))}, r"\[a\].*input 1 is not there"),
        ({"a": CustomTypes((FP16,), (FP32,))}, r"\[a\].*output 0 becomes DT_FLOAT16 by these inputs"),
        ({"x": CustomTypes((), (FP16,))}, r"\[x\].*computes nothing by itself"),
    ],
)
def test_types_that_a_node_cannot_have(custom: dict[str, CustomTypes], reason: str) -> None:
    with pytest.raises(ReportedError, match=f"(?s)E20001.*{reason}"):
        types(NET, "fp16", custom_types=Customized(by_name=custom))


def test_operands_of_different_types_are_a_fault_of_the_file() -> None:
    with pytest.raises(ReportedError, match=r"(?s)E14001.*h.*FLOAT16.*FLOAT"):
        types(NET, "origin", custom_types=Customized(by_name={"h": CustomTypes((FP16,))}))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (MixListChanges(black_added=frozenset({"MatMulV2"})), "h:float r:float p:float a:float"),
        (MixListChanges(black_removed=frozenset({"SoftmaxV2"})), "> h:float16 r:float16 p:float16 a:float16 >"),
        (MixListChanges(white_removed=frozenset({"MatMulV2"})), "h:float r:float p:float a:float"),
        (MixListChanges(white_added=frozenset({"Abs"})), "> h:float16 r:float16 > p:float > a:float16 >"),
        (MixListChanges(white_added=frozenset({"SoftmaxV2"})), "> h:float16 r:float16 p:float16 a:float16 >"),
    ],
)
def test_changed_mix_lists(changes: MixListChanges, expected: str) -> None:
    assert types(NET, "mixed_float16", mix_list_changes=changes) == expected


def test_mix_lists_with_types_that_no_operator_has() -> None:
    """A type that only this model lacks, like Sqrt, is no mistake."""
    changes = MixListChanges(white_added=frozenset({"Sqrt", "MatMulV22"}), black_removed=frozenset({"Qwxyz"}))
    assert lower(parse_graph(NET), "mixed_float16", mix_list_changes=changes).warnings == [
        "--modify_mixlist: there is no operator type MatMulV22; did you mean MatMulV2?",
        "--modify_mixlist: there is no operator type Qwxyz",
    ]


@pytest.mark.parametrize(
    ("soc_version", "expected"),
    [
        ("Ascend310", False), ("Ascend310P3", False), ("Ascend910", False), ("Ascend910A", False),
        ("Ascend910B", False), ("Ascend310B1", True), ("Ascend910B1", True), ("Ascend910B2C", True),
        ("Ascend910_9391", True), ("Ascend950", True), ("Ascend950PR_9589", True), ("Ascend610", False),
    ],
)  # fmt: skip
def test_chips_with_bf16(soc_version: str, expected: bool) -> None:
    assert has_bf16(soc_version) == expected


def test_outputs_note_the_type_of_the_model() -> None:
    """A tensor that is of the model's type, and one that the compiler adds, say nothing."""
    graph = parse_graph("""graph g(%x: f32[4]@ND, %k: i32[4]@ND) {
  %a = Exp(%x)
  %b = Neg(%k)
  %c = Cast(%a) {dst_type=0}
  %y = Log(%a)
  return %y, %b, %c
}""")
    lower(graph)
    types = {
        node.name: (desc.data_type.name, desc.attrs.get("_datadump_origin_data_type"))
        for node in graph
        for desc in node.output_descs
    }
    made = {name: found for name, found in types.items() if "_Cast" in name}
    assert {name: types[name] for name in "abcy"} == {
        "a": ("DT_FLOAT16", "DT_FLOAT"),
        "b": ("DT_INT32", None),
        "c": ("DT_FLOAT", None),
        "y": ("DT_FLOAT16", "DT_FLOAT"),
    }
    assert made == {"x_0_Cast": ("DT_FLOAT16", None), "y_0_Cast": ("DT_FLOAT", None)}
