"""Types and layouts that a user asks for at the ends of a model."""

from __future__ import annotations

from typing import Any

import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Graph
from ge.graph.types import FORMAT_TEXT, short_name
from ge.option_grammar import OutNode, OutputType
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from ge.verify import UNSETTLED, verify
from passes.format.apply_user_formats import ApplyUserFormats
from passes.format.insert_trans_data import InsertTransData
from passes.precision.insert_casts import InsertCasts
from passes.prepare.add_net_output import AddNetOutput

NC1HWC0, NZ, FZ, ZN_RNN, RNN_BIAS = 3, 29, 4, 44, 43
OF_X, OF_Y = OutNode("r", 0), OutNode("s", 0)


def relu(desc: str, attrs: str = "", *, result_attrs: str = "") -> Graph:
    """x -> Relu -> result, with attributes on the descriptors of both ends."""
    graph = parse_graph(f'graph g(%x: {desc}{attrs}) {{\n  %r = Relu(%x) -> {desc}\n  return %r as "y"\n}}')
    AddNetOutput().run(graph, session())
    if result_attrs:
        other = parse_graph(f"graph g(%x: {desc}{result_attrs}) {{\n  return %x\n}}")
        result = graph.net_output().input_descs[0]
        result.attrs.update(other.data_nodes()[0].output_descs[0].attrs)
    return graph


def session(**options: Any) -> CompileSession:
    return CompileSession(CompileOptions(**options), Environment())


def applied(graph: Graph, **options: Any) -> Graph:
    changed = ApplyUserFormats().run(graph, session(**options))
    assert changed == bool(graph.attrs.get(UNSETTLED))
    verify(graph)
    return graph


def ends(graph: Graph) -> tuple[str, str]:
    """Storage views of the first input and the first result as the ends of the model have them."""
    descs = graph.data_nodes()[0].output_descs[0], graph.net_output().input_descs[0]
    first, second = (f"{short_name(d.data_type)}{d.shape}@{FORMAT_TEXT[d.format]}" for d in descs)
    return first, second


def settled(graph: Graph, **options: Any) -> list[str]:
    """What stands between the ends once Casts and TransDatas are inserted."""
    applied(graph, **options)
    InsertCasts().run(graph, session())
    InsertTransData().run(graph, session())
    verify(graph)
    return [node.type for node in graph.topological_order() if node.type not in ("Data", "NetOutput")]


IMAGE = "f32[2,3,4,4]@NCHW"
BLOCKS = "[2,1,4,4,16]@NC1HWC0"


# -- attributes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("desc", "attrs", "stored"),
    [
        (IMAGE, f"{{storage_format={NC1HWC0}, storage_shape=[2,1,4,4,16]}}", f"f32{BLOCKS}"),
        (IMAGE, f"{{storage_format={NC1HWC0}, storage_shape=[]}}", f"f32{BLOCKS}"),
        ("i8[2,3,4,4]@NHWC", f"{{storage_format={NC1HWC0}, storage_shape=[]}}", "i8[2,1,3,4,32]@NC1HWC0"),
        ("f16[34,18]@ND", f"{{storage_format={NZ}, storage_shape=[2,3,16,16]}}", "f16[2,3,16,16]@FRACTAL_NZ"),
        # groups in the format integer: 4 groups of 3 channels and 4 filters are merged
        (
            "f16[16,3,1,1]@NCHW",
            f"{{storage_format={FZ + (4 << 8)}, storage_shape=[]}}",
            "f16[1,1,16,16]@FRACTAL_Z",
        ),
        # C0 in the format integer, the one that the type has anyway
        (IMAGE, f"{{storage_format={NC1HWC0 + (5 << 24)}, storage_shape=[]}}", f"f32{BLOCKS}"),
    ],
)
def test_attributes_lay_out_inputs_and_results(desc: str, attrs: str, stored: str) -> None:
    assert ends(applied(relu(desc, attrs)))[0] == stored
    assert ends(applied(relu(desc, result_attrs=attrs)))[1] == stored


def test_origin_views_stay() -> None:
    graph = applied(relu(IMAGE, f"{{storage_format={NC1HWC0}, storage_shape=[]}}"))
    desc = graph.data_nodes()[0].output_descs[0]
    assert (desc.origin_shape, FORMAT_TEXT[desc.origin_format]) == ([2, 3, 4, 4], "NCHW")
    assert settled(relu(IMAGE, f"{{storage_format={NC1HWC0}, storage_shape=[]}}")) == ["TransData", "Relu"]


def test_what_is_so_already_changes_nothing() -> None:
    graph = relu(f"f32[2,3,4,4]@NCHW | {BLOCKS}", f"{{storage_format={NC1HWC0}, storage_shape=[2,1,4,4,16]}}")
    assert not ApplyUserFormats().run(graph, session())
    plain = relu(IMAGE, "{storage_format=0, storage_shape=[2,3,4,4]}")
    assert not ApplyUserFormats().run(plain, session())


@pytest.mark.parametrize(
    ("dims", "attrs", "expected"),
    [("[]", "", True), ("[]", " {_enable_storage_format_spread=false}", False), ("[2,1,4,4,16]", "", None)],
)
def test_a_layout_without_dims_spreads(dims: str, attrs: str, expected: bool | None) -> None:
    graph = applied(relu(IMAGE, f"{{storage_format={NC1HWC0}, storage_shape={dims}}}{attrs}"))
    assert graph.data_nodes()[0].attrs.get("_is_heavy_op") is expected


@pytest.mark.parametrize(
    ("attrs", "code", "words"),
    [
        ("{storage_format=3}", "E14002", ["[storage_shape]", "input x", "missing"]),
        ("{storage_shape=[]}", "E14002", ["[storage_format]", "missing"]),
        ('{storage_format="NC1HWC0", storage_shape=[]}', "E14002", ["[storage_format]", "'NC1HWC0'"]),
        ("{storage_format=true, storage_shape=[]}", "E14002", ["[storage_format]", "number"]),
        ("{storage_format=3, storage_shape=7}", "E14002", ["[storage_shape]", "list"]),
        ("{storage_format=3, storage_shape=[2,1,4,4,16.0]}", "E14002", ["[storage_shape]", "whole"]),
        ("{storage_format=200, storage_shape=[]}", "E14002", ["[storage_format]", "200"]),
        ("{storage_format=-1, storage_shape=[]}", "E14002", ["[storage_format]", "-1"]),
        ("{storage_format=3, storage_shape=[2,1,4,4,32]}", "E14002", ["[2,1,4,4,16]", "[2,1,4,4,32]"]),
        (f"{{storage_format={NC1HWC0 + (6 << 24)}, storage_shape=[]}}", "E14002", ["16 elements, not 32"]),
        ("{storage_format=33, storage_shape=[]}", "E14002", ["FRACTAL_Z_3D"]),
        ("{storage_format=40, storage_shape=[]}", "E14002", ["RESERVED"]),
        (f"{{storage_format={ZN_RNN}, storage_shape=[]}}", "E10055", ["FRACTAL_ZN_RNN", "input x"]),
        (f"{{storage_format={RNN_BIAS}, storage_shape=[]}}", "E10055", ["ND_RNN_BIAS"]),
    ],
)
def test_attributes_that_make_no_sense(attrs: str, code: str, words: list[str]) -> None:
    with pytest.raises(ReportedError) as caught:
        applied(relu(IMAGE, attrs))
    assert caught.value.code == code
    assert all(word in caught.value.message for word in words), caught.value.message


FORMATS_OF_NO_TENSOR = [*range(5, 12), 15, *range(17, 25), 26, 34, 35, *range(38, 43), *range(45, 50)]


@pytest.mark.parametrize("layout", FORMATS_OF_NO_TENSOR)
@pytest.mark.parametrize("desc", [IMAGE, "f32[2,3,4,4]@ND", "f32[6]@ND"])
def test_formats_that_no_input_or_result_can_have(desc: str, layout: int) -> None:
    attrs = f"{{storage_format={layout}, storage_shape=[]}}"
    for graph, owner in ((relu(desc, attrs), "input x"), (relu(desc, result_attrs=attrs), "result y")):
        with pytest.raises(ReportedError, match=owner) as caught:
            applied(graph)
        assert caught.value.code == "E14002"


@pytest.mark.parametrize(
    ("desc", "layout", "reason"),
    [
        (IMAGE, NC1HWC0 + (5 << 8), "NC1HWC0 does not depend on groups, 5 are given"),
        ("f16[34]@ND", NZ, "FRACTAL_NZ holds matrices"),
        ("f16[]@ND", NZ, "FRACTAL_NZ holds matrices"),
    ],
)
def test_layouts_that_do_not_fit_the_tensor(desc: str, layout: int, reason: str) -> None:
    with pytest.raises(ReportedError, match=reason) as caught:
        applied(relu(desc, f"{{storage_format={layout}, storage_shape=[]}}"))
    assert caught.value.code == "E14002"


@pytest.mark.parametrize(("layout", "stored"), [(1, "[2,4,4,3]@NHWC"), (14, "[3,4,4,2]@CHWN"), (16, "[4,4,3,2]@HWCN")])
def test_results_with_their_axes_in_another_order(layout: int, stored: str) -> None:
    graph = relu(IMAGE, result_attrs=f"{{storage_format={layout}, storage_shape=[]}}")
    assert settled(graph) == ["Relu", "TransData"]
    assert ends(graph) == ("f32[2,3,4,4]@NCHW", f"f32{stored}")
    attrs = f"{{storage_format={layout}, storage_shape=[]}}"
    assert settled(relu(IMAGE, attrs, result_attrs=attrs)) == ["TransData", "Relu", "TransData"]


def test_axes_without_names_have_no_blocks_of_channels() -> None:
    with pytest.raises(ReportedError, match="nobody says") as caught:
        applied(relu("f32[2,3,4,4]@ND", f"{{storage_format={NC1HWC0}, storage_shape=[]}}"))
    assert caught.value.code == "E14002"


def test_dims_that_only_a_run_knows_have_no_layout() -> None:
    with pytest.raises(ReportedError, match="only a run knows") as caught:
        applied(relu("f32[-1,3,4,4]@NCHW", f"{{storage_format={NC1HWC0}, storage_shape=[]}}"))
    assert caught.value.code == "E10055"


def test_bodies_take_origin_formats() -> None:
    graph = parse_graph("""graph g(%c: bool[]@ND, %x: f32[2,3,4,4]@NCHW) {
  %y = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[2,3,4,4]@NCHW
  return %y
}
graph t(%t/i: f32[2,3,4,4]@NCHW{storage_format=3, storage_shape=[]} {_parent_node_index=1}) {
  return %t/i
}
graph e(%e/i: f32[2,3,4,4]@NCHW {_parent_node_index=1}) {
  return %e/i
}""")
    AddNetOutput().run(graph, session())
    with pytest.raises(ReportedError, match="t/i of graph t") as caught:
        applied(graph)
    assert caught.value.code == "E10055"


# -- options -----------------------------------------------------------------------------------------------------------
def test_an_input_in_half_precision_keeps_its_layout() -> None:
    graph = applied(relu(IMAGE), half_inputs={"x": False})
    assert ends(graph) == ("f16[2,3,4,4]@NCHW", IMAGE)
    assert graph.data_nodes()[0].attrs["data_type"] == int(DataType.DT_FLOAT16)
    assert settled(relu(IMAGE), half_inputs={"x": False}) == ["Cast", "Relu"]


def test_an_input_in_blocks() -> None:
    graph = applied(relu(IMAGE), half_inputs={"x": True})
    assert ends(graph) == (f"f16{BLOCKS}", IMAGE)
    attrs = graph.data_nodes()[0].attrs
    assert (attrs["_user_defined_data_type"], attrs["_user_defined_format"]) == ("DT_FLOAT16", "NC1HWC0")
    assert settled(relu(IMAGE), half_inputs={"x": True}) == ["Cast", "TransData", "Relu"]


def test_a_result_in_blocks() -> None:
    options = {"out_nodes": (OF_X,), "half_outputs": (True,)}
    graph = applied(relu(IMAGE), **options)
    assert ends(graph) == (IMAGE, f"f16{BLOCKS}")
    assert graph.net_output().attrs["_user_defined_format"] == ["0:NC1HWC0"]
    assert settled(relu(IMAGE), **options) == ["Relu", "Cast", "TransData"]
    assert ends(applied(relu(IMAGE), out_nodes=(OF_X,), half_outputs=(False,))) == (IMAGE, IMAGE)


@pytest.mark.parametrize(
    "types", [OutputType(whole=DataType.DT_FLOAT), OutputType(per_output={("r", 0): DataType.DT_FLOAT})]
)
def test_the_output_type_decides_over_blocks(types: OutputType) -> None:
    graph = applied(relu(IMAGE), out_nodes=(OF_X,), half_outputs=(True,), output_type=types)
    assert ends(graph) == (IMAGE, IMAGE)
    other = OutputType(per_output={("s", 0): DataType.DT_FLOAT})
    assert ends(applied(relu(IMAGE), out_nodes=(OF_X,), half_outputs=(True,), output_type=other))[1] == f"f16{BLOCKS}"


@pytest.mark.parametrize(
    ("desc", "layout", "code", "word"),
    [
        ("i64[2,3,4,4]@NCHW", False, "E10001", "DT_INT64"),
        ("bool[2,3]@ND", False, "E10001", "DT_BOOL"),
        ("f32[2,3]@ND", True, "E10001", "[2,3] in ND"),
        ("f32[2,3,4,4]@ND", True, "E10001", "whose four axes"),
        ("f32[3]@NCHW", True, "E10001", "[3] in NCHW"),
        ("f32[2,3,4,4,4]@NCDHW", True, "E10001", "NCDHW"),
        ("f32[2,-1,4,4]@NCHW", True, "E10055", "only a run knows"),
    ],
)
def test_tensors_that_cannot_be_given_so(desc: str, layout: bool, code: str, word: str) -> None:
    with pytest.raises(ReportedError) as caught:
        applied(relu(desc), half_inputs={"x": layout})
    assert caught.value.code == code
    assert word in caught.value.message
    if code == "E10001":
        assert "--input_fp16_nodes" in caught.value.message or "--is_input_adjust_hw_layout" in caught.value.message


def test_a_result_that_cannot_be_given_so() -> None:
    with pytest.raises(ReportedError) as caught:
        applied(relu("f32[2,3]@ND"), out_nodes=(OF_X,), half_outputs=(True,))
    assert (caught.value.code, caught.value.fields["value"]) == ("E10001", "y")
    assert "--is_output_adjust_hw_layout" in caught.value.message


def test_an_input_that_is_a_result_too() -> None:
    graph = parse_graph("graph g(%x: f32[2,3,4,4]@NCHW) {\n  return %x\n}")
    AddNetOutput().run(graph, session())
    options = {"half_inputs": {"x": True}, "out_nodes": (OutNode("x"),), "half_outputs": (False,)}
    assert settled(graph, **options) == ["Cast", "TransData"]
    assert ends(graph) == (f"f16{BLOCKS}", IMAGE)
