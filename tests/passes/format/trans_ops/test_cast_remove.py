"""Casts that lead nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ge.graph import DataType
from ge.graph.types import numpy_dtype
from ge.text import parse_graph
from passes.format.trans_ops.cast_remove import CastRemove
from passes.format.trans_ops.trans_op import is_exact
from passes.prepare.add_net_output import AddNetOutput
from tests.passes.format.trans_ops.rewritten import after, graph_of, run, session, shown

IMAGE = "%x: f32[1,3,8,8]@NCHW"
HD16 = "[1,3,8,8]@NCHW | [1,1,8,8,16]@NC1HWC0"
HD32 = "[1,3,8,8]@NCHW | [1,1,8,8,32]@NC1HWC0"
TRANS = 'TransData({}) {{src_format="NCHW", dst_format="NC1HWC0"}}'


COMPILERS = ", _datadump_original_op_names=[]"


def cast(source: str, dtype: str, dims: str = "[4]@ND", attrs: str = COMPILERS) -> str:
    number = {"f32": 0, "f16": 1, "i8": 2, "i32": 3, "f64": 11, "bool": 12, "bf16": 27}[dtype]
    return f"Cast(%{source}) {{dst_type={number}{attrs}}} -> {dtype}{dims}"


def test_two_casts_that_undo_each_other_go() -> None:
    assert after(
        CastRemove(), f"%a = {cast('x', 'f16')}", f"%b = {cast('a', 'f32')}", "%y = Relu(%b) -> f32[4]@ND"
    ) == [
        "y = Relu(x) -> f32[4]@ND",
        "NetOutput(y)",
    ]


def test_a_cast_to_the_type_at_hand_goes() -> None:
    assert after(CastRemove(), f"%a = {cast('x', 'f32')}", "%y = Relu(%a) -> f32[4]@ND") == [
        "y = Relu(x) -> f32[4]@ND",
        "NetOutput(y)",
    ]


def test_what_stands_between_gets_the_type() -> None:
    assert after(
        CastRemove(),
        f"%a = {cast('x', 'f16', '[1,3,8,8]@NCHW')}",
        f"%t = {TRANS.format('%a')} -> f16{HD16}",
        f"%b = {cast('t', 'f32', HD16)}",
        f"%y = Relu(%b) -> f32{HD16}",
        f"%z = Neg(%b) -> f32{HD16}",
        params=IMAGE,
        results="%y, %z",
    ) == [
        "t = TransData(x) -> f32[1,1,8,8,16]@NC1HWC0",
        "y = Relu(t) -> f32[1,1,8,8,16]@NC1HWC0",
        "z = Neg(t) -> f32[1,1,8,8,16]@NC1HWC0",
        "NetOutput(y, z)",
    ]


def moved(first: str = COMPILERS, more: str = "") -> list[str]:
    """The types in which what stands between two Casts works: a Transpose and an Unsqueeze."""
    lines = [
        f"%c = {cast('x', 'f16', '[2,3]@ND', attrs=first)}",
        "%t = TransposeD(%c) {perm=[1,0]} -> f16[3,2]@ND",
        "%u = Unsqueeze(%t) {axes=[0]} -> f16[1,3,2]@ND",
        f"%d = {cast('u', 'f32', '[1,3,2]@ND')}",
    ]
    graph = graph_of(*lines, *([more] if more else []), params="%x: f32[2,3]@ND", results="%d, %z" if more else "%d")
    run(CastRemove(), graph)
    return [node.type for node in graph.nodes_of_type("Cast")] + [
        desc.data_type.name for node in graph if node.name in "tu" for desc in node.output_descs
    ]


def test_operators_that_only_move_elements_take_the_type_back() -> None:
    assert moved() == ["DT_FLOAT", "DT_FLOAT"]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        pytest.param("", "", id="the rounding is the model's own"),
        pytest.param(COMPILERS, "%z = Abs(%t) -> f16[3,2]@ND", id="another node reads what is moved"),
        pytest.param(COMPILERS, "%z = Abs(%c) -> f16[2,3]@ND", id="another node reads what is rounded"),
    ],
)
def test_they_keep_it_where_somebody_relies_on_it(first: str, more: str) -> None:
    assert moved(first, more) == ["Cast", "Cast", "DT_FLOAT16", "DT_FLOAT16"]


def test_the_longest_way_back_goes_and_the_rest_stays() -> None:
    steps = ["f64", "f32", "f16", "f32", "f16", "bf16"]
    names = ["x", *"abcdef"]
    lines = [f"%{names[i + 1]} = {cast(names[i], dtype)}" for i, dtype in enumerate(steps)]
    assert after(CastRemove(), *lines) == ["e = Cast(x) -> f16[4]@ND", "f = Cast(e) -> bf16[4]@ND", "NetOutput(f)"]


@pytest.mark.parametrize(
    ("there", "back", "kept"),
    [
        ("f16", "f32", False),
        ("bf16", "f32", False),
        ("f64", "f32", False),
        ("i32", "f32", True),
        ("i8", "f32", True),
        ("bool", "f32", True),
    ],
)
def test_a_cast_that_loses_more_than_digits_stays(there: str, back: str, kept: bool) -> None:
    left = after(CastRemove(), f"%a = {cast('x', there)}", f"%b = {cast('a', back)}")
    assert (len(left) == 3) is kept


def test_rounding_that_the_model_asks_for_stays() -> None:
    """What has no note of its origin is an operator of the model, too."""
    for attrs, left in ((', _datadump_original_op_names=["Cast_3"]', 3), ("", 3), (COMPILERS, 1)):
        assert len(after(CastRemove(), f"%a = {cast('x', 'f16', attrs=attrs)}", f"%b = {cast('a', 'f32')}")) == left


def test_a_wider_type_on_the_way_is_no_rounding() -> None:
    of_model = ', _datadump_original_op_names=["Cast_3"]'
    lines = [f"%a = {cast('x', 'f64', attrs=of_model)}", f"%b = {cast('a', 'f32', attrs=of_model)}"]
    assert len(after(CastRemove(), *lines)) == 3  # the second Cast rounds, who knows what
    graph = graph_of(f"%a = {cast('x', 'f32', attrs=of_model)}", f"%b = {cast('a', 'f16')}", params="%x: f16[4]@ND")
    assert run(CastRemove(), graph)


def test_int_to_bool_by_way_of_int_stays() -> None:
    """Spec case 51."""
    left = after(CastRemove(), f"%a = {cast('x', 'i32')}", f"%b = {cast('a', 'bool')}", f"%c = {cast('b', 'f32')}")
    assert len(left) == 4


def test_an_input_taken_for_another_type_is_left_alone() -> None:
    """Spec case 49: the first Cast says that it reads bool, Data makes f16."""
    graph = graph_of(f"%a = {cast('x', 'f32')}", f"%b = {cast('a', 'f16')}", params="%x: f16[4]@ND")
    [first, _] = graph.nodes_of_type("Cast")
    first.input_descs[0].data_type = DataType.DT_BOOL
    before = shown(graph)
    assert not CastRemove().run(graph, session())
    assert shown(graph) == before


def test_an_operator_that_changes_the_type_without_being_a_cast_is_left_alone() -> None:
    """Spec case 48, in types."""
    lines = [f"%t = {TRANS.format('%x')} -> f16{HD16}", f"%b = {cast('t', 'f32', HD16)}"]
    assert len(after(CastRemove(), *lines, params=IMAGE)) == 3


def test_a_layout_that_depends_on_the_type_is_left_alone() -> None:
    lines = [
        f"%a = {cast('x', 'f16', '[1,3,8,8]@NCHW')}",
        f"%t = {TRANS.format('%a')} -> f16{HD32}",
        f"%b = {cast('t', 'i8', HD32)}",
    ]
    assert len(after(CastRemove(), *lines, params=IMAGE.replace("f32", "i8"))) == 4


def test_a_tensor_in_between_that_others_read_ends_the_run() -> None:
    lines = [f"%a = {cast('x', 'f16')}", f"%b = {cast('a', 'f32')}", "%y = Relu(%a) -> f16[4]@ND"]
    assert len(after(CastRemove(), *lines, results="%b, %y")) == 4
    assert len(after(CastRemove(), *lines[:2], results="%a, %b")) == 3


def test_who_waited_still_waits() -> None:
    assert after(
        CastRemove(),
        "%w = Abs(%x) -> f32[4]@ND",
        "%p = Neg(%x) -> f32[4]@ND",
        "%a = Cast(%p) {dst_type=1, _datadump_original_op_names=[]} ctrl(%w) -> f16[4]@ND",
        f"%b = {cast('a', 'f32')}",
        "%y = Relu(%b) -> f32[4]@ND",
        "%l = Exp(%x) ctrl(%a) -> f32[4]@ND",
        results="%y, %l",
    ) == [
        "w = Abs(x) -> f32[4]@ND",
        "p = Neg(x) -> f32[4]@ND",
        "y = Relu(p) -> f32[4]@ND after w",
        "l = Exp(x) -> f32[4]@ND after p, w",
        "NetOutput(y, l)",
    ]


def test_bodies_are_looked_at() -> None:
    graph = parse_graph(f"""graph g(%c: bool[]@ND, %x: f32[4]@ND) {{
  %y = If(%c, %x) {{then_branch=@t, else_branch=@e}} -> f32[4]@ND
  return %y
}}
graph t(%t/i: f32[4]@ND {{_parent_node_index=1}}) {{
  %t/a = {cast("t/i", "f16")}
  %t/b = {cast("t/a", "f32")}
  return %t/b
}}
graph e(%e/i: f32[4]@ND {{_parent_node_index=1}}) {{
  return %e/i
}}""")
    AddNetOutput().run(graph, session())
    assert run(CastRemove(), graph)
    assert "NetOutput(t/i)" in shown(graph)


def values_of(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Every value of a type of up to 16 bits, else small ones and the extremes."""
    if dtype.itemsize <= 2:
        codes = np.arange(2 if dtype.kind == "b" else 1 << (8 * dtype.itemsize))
        values = codes.astype(f"u{dtype.itemsize}").view(dtype)
        with np.errstate(invalid="ignore"):
            return values[~np.isnan(values)] if dtype.kind not in "biu" else values
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    extremes = [limits.min, limits.max, *([] if dtype.kind in "iu" else [limits.tiny, limits.eps, 1 + limits.eps])]
    return np.concatenate([np.arange(1 << 16).astype(dtype), np.array(extremes, dtype)])


@pytest.mark.parametrize("source", [t for t in DataType if any(is_exact(t, u) for u in DataType if u is not t)])
def test_what_is_called_exact_is(source: DataType) -> None:
    values = values_of(numpy_dtype(source))
    for target in DataType:
        if is_exact(source, target):
            there = values.astype(numpy_dtype(target)) if target is not source else values
            np.testing.assert_array_equal(there.astype(values.dtype), values, err_msg=target.name)
