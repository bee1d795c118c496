"""Origin formats: where they begin, how far they spread, what stops them. A graph in, the formats of tensors out."""

from __future__ import annotations

import pytest

from ge.graph import Format, Graph, Tensor
from ge.graph.types import FORMAT_BY_TEXT, FORMAT_TEXT
from ge.ops import lookup
from ge.ops.origin_format import ANCHORS, RULES
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.format.infer_origin_format import InferOriginFormat
from passes.infer.infer_shapes import InferShapes
from passes.prepare.add_net_output import AddNetOutput

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'


def session(input_format: str = "NCHW") -> CompileSession:
    return CompileSession(CompileOptions(input_format=FORMAT_BY_TEXT[input_format]), Environment())


def inferred(text: str, runs: int = 1, input_format: str = "NCHW", stamps: dict[str, str] | None = None) -> Graph:
    """Parse, stamp the outputs of the named nodes, and run inference as often as asked, shapes in between."""
    graph = parse_graph(text)
    AddNetOutput().run(graph, session())
    for name, wanted in (stamps or {}).items():
        stamp(graph, name, wanted)
    for _ in range(runs):
        InferShapes().run(graph, session())
        InferOriginFormat().run(graph, session(input_format))
        verify(graph)
    return graph


def stamp(graph: Graph, name: str, format: str) -> None:
    desc = next(node for part in graph.all_graphs() for node in part if node.name == name).output_descs[0]
    desc.format = desc.origin_format = FORMAT_BY_TEXT[format]


def outputs(graph: Graph) -> dict[str, str]:
    """The origin format of every output; several per node are joined."""
    nodes = [node for part in graph.all_graphs() for node in part]
    return {n.name: " ".join(FORMAT_TEXT[d.origin_format] for d in n.output_descs) for n in nodes if n.output_descs}


def inputs(graph: Graph, name: str) -> str:
    node = next(node for part in graph.all_graphs() for node in part if node.name == name)
    return " ".join("_" if d is None else FORMAT_TEXT[d.origin_format] for d in node.input_descs)


# -- spreading ---------------------------------------------------------------------------------------------------------
def test_a_convolution_names_its_tensors_and_what_hangs_on_them() -> None:
    graph = inferred(f"""graph g(%a: f32[1,3,8,8]@ND, %b: f32[1,3,8,8]@ND) {{
  %x = Add(%a, %b)
  %w = Const {{value=f32[2,3,1,1]{{1,2,3,4,5,6}}}} -> f32[2,3,1,1]@ND
  %bias = Const {{value=f32[2]{{1,2}}}} -> f32[2]@ND
  %y = Conv2D(%x, %w, %bias) {{{CONV}}}
  %z = Relu(%y)
  return %z
}}""")
    assert outputs(graph) == {
        "a": "NCHW", "b": "NCHW", "x": "NCHW", "w": "NCHW", "bias": "ND", "y": "NCHW", "z": "NCHW",
    }  # fmt: skip
    assert inputs(graph, "Node_Output") == "NCHW"
    assert all(d.format == d.origin_format for node in graph for d in node.output_descs)


def test_a_bias_takes_the_format_when_another_anchor_reaches_its_convolution() -> None:
    """The rule of an operator runs when a format arrives; then tensors of any smaller rank take it, too."""
    text = """graph g(%a: f32[1,2,8,8]@ND, %bias: f32[8]@ND) {
  %y = Add(%a, %bias)
  return %y
}"""
    assert outputs(inferred(text, stamps={"a": "NCHW"})) == {"a": "NCHW", "bias": "NCHW", "y": "NCHW"}


@pytest.mark.parametrize(
    ("op", "shape", "format"),
    [
        ('BiasAdd(%x, %c) {data_format="NHWC"}', "2,3,4,2", "NHWC"),
        ('BiasAdd(%x, %c) {data_format="NHWC"}', "2,3,4,5,2", "NDHWC"),
        ('BiasAdd(%x, %c) {data_format="NCHW"}', "2,2,3,4,5", "NCDHW"),
        ("GlobalAveragePool(%x)", "2,2,3,4", "NCHW"),
        ("GlobalAveragePool(%x)", "2,2,3,4,5", "NCDHW"),
        ('GlobalAveragePool(%x) {_x_data_format="NHWC"}', "2,3,4,2", "NHWC"),
        ("GlobalAveragePool(%x)", "2,2,3", "ND"),
        ('DepthToSpace(%x) {block_size=2, data_format="NHWC"}', "2,3,4,8", "NHWC"),
        ("LRN(%x)", "2,2,3,4", "NCHW"),
        ("Relu(%x)", "2,2,3,4", "ND"),
        ("SoftmaxV2(%x)", "2,2,3,4", "ND"),
    ],
)
def test_which_operators_are_anchors(op: str, shape: str, format: str) -> None:
    graph = inferred(f"graph g(%x: f32[{shape}]@ND, %c: f32[2]@ND) {{ %y = {op} return %y }}")
    assert (outputs(graph)["x"], outputs(graph)["y"]) == (format, format)
    assert outputs(graph)["c"] == "ND"


@pytest.mark.parametrize("type", ANCHORS)
def test_anchors_name_ports_that_operators_have(type: str) -> None:
    signature, named = lookup(type).signature, ANCHORS[type]
    ins, outs = {port.name for port in signature.inputs}, {port.name for port in signature.outputs}
    assert {*named.inputs, *filter(None, [named.filter])} <= ins
    assert set(named.outputs) <= outs


def test_rules_are_those_of_registered_operators() -> None:
    assert [name for name in RULES if lookup(name) is None] == []


def test_axes_of_a_filter_by_its_own_order() -> None:
    graph = inferred("""graph g(%x: f32[1,8,8,3]@ND, %w: f32[1,1,3,2]@ND) {
  %y = Conv2D(%x, %w) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NHWC"}
  return %y
}""")
    assert outputs(graph) == {"x": "NHWC", "w": "HWCN", "y": "NHWC"}


def test_volumes() -> None:
    graph = inferred("""graph g(%x: f32[1,3,4,8,8]@ND, %w: f32[2,3,1,1,1]@ND) {
  %y = Conv3D(%x, %w) {strides=[1,1,1,1,1], pads=[0,0,0,0,0,0], data_format="NCDHW"}
  return %y
}""")
    assert outputs(graph) == {"x": "NCDHW", "w": "NCDHW", "y": "NCDHW"}


def test_the_first_writer_wins() -> None:
    text = "graph g(%a: f32[1,2,3,4]@ND, %b: f32[1,2,3,4]@ND) { %s = Add(%a, %b) %r = Relu(%s) return %r }"
    graph = inferred(text, stamps={"a": "NHWC", "b": "NCHW"})
    assert outputs(graph) == {"a": "NHWC", "b": "NCHW", "s": "NHWC", "r": "NHWC"}


def test_the_value_of_a_constant_says_its_format_on_the_first_run() -> None:
    graph = parse_graph("graph g() { %c = Const {value=f32[1,1,1,2]{1,2}} -> f32[1,1,1,2]@ND %r = Relu(%c) return %r }")
    value: Tensor = graph.find_node_by_name("c").attrs["value"]
    value.desc.format = value.desc.origin_format = Format.FORMAT_HWCN
    InferOriginFormat().run(graph, session())
    assert outputs(graph) == {"c": "HWCN", "r": "HWCN"}


# -- what stops it -----------------------------------------------------------------------------------------------------
ADD = "graph g(%a: f32[1,2,3,4]@ND, %b: f32[1,2,3,4]@ND) {{ %s = Add(%a, %b) {attrs} %r = Relu(%s) return %r }}"


def test_a_locked_node_stays_as_it_is() -> None:
    graph = inferred(ADD.format(attrs="{_format_locked=true}"), stamps={"a": "NCHW", "b": "NCHW"})
    assert outputs(graph) == {"a": "NCHW", "b": "NCHW", "s": "ND", "r": "ND"}
    assert inputs(graph, "s") == "ND ND"
    assert outputs(inferred(ADD.format(attrs=""), stamps={"a": "NCHW"})) == dict.fromkeys("absr", "NCHW")


def test_backward_a_locked_producer_keeps_its_result() -> None:
    graph = inferred(f"""graph g(%a: f32[1,3,8,8]@ND, %w: f32[2,3,1,1]@ND) {{
  %x = Relu(%a) {{_format_locked=true}}
  %y = Conv2D(%x, %w) {{{CONV}}}
  return %y
}}""")
    assert outputs(graph) == {"a": "ND", "w": "NCHW", "x": "ND", "y": "NCHW"}
    assert inputs(graph, "y") == "NCHW NCHW"


@pytest.mark.parametrize(
    ("op", "formats"),
    [
        ("Reshape(%x, %shape)", "ND"),
        ("Flatten(%x)", "ND"),
        ("TransposeD(%x) {perm=[0,2,3,1]}", "ND"),
        ("Relu(%x)", "NCHW"),
        ("Unsqueeze(%x) {axes=[0]}", "ND"),  # NCHW has no fifth axis
        ("Squeeze(%x) {axis=[0]}", "NCHW"),  # reached at rank 4
        ("Shape(%x)", "NCHW"),
    ],
)
def test_rules_of_operators(op: str, formats: str) -> None:
    text = f"""graph g(%x: f32[1,2,3,4]@ND) {{
  %shape = Const {{value=i64[2]{{4,6}}}} -> i64[2]@ND
  %y = {op}
  %z = Identity(%y)
  return %z
}}"""
    graph = inferred(text, stamps={"x": "NCHW"})
    assert outputs(graph)["y"] == outputs(graph)["z"] == formats
    assert inputs(graph, "y").startswith("NCHW")


def test_matrix_products_let_nothing_through() -> None:
    text = "graph g(%a: f32[1,2,3,4]@ND, %b: f32[1,2,4,3]@ND) { %m = BatchMatMulV2(%a, %b) %r = Relu(%m) return %r }"
    graph = inferred(text, stamps={"a": "NCHW"})
    assert outputs(graph) == {"a": "NCHW", "b": "ND", "m": "ND", "r": "ND"}


def test_a_scalar_has_no_format() -> None:
    text = "graph g(%a: f32[1,2,3,4]@ND, %s: f32[]@ND) { %y = Mul(%a, %s) %z = Neg(%s) return %y, %z }"
    graph = inferred(text, stamps={"a": "NCHW"})
    assert (outputs(graph)["s"], outputs(graph)["z"]) == ("ND", "ND")


SQUEEZE = "graph g(%x: f32[{shape}]@ND) {{ %a = Relu(%x) %s = {op} %b = Relu(%s) return %b }}"


@pytest.mark.parametrize(
    ("shape", "op", "stamped", "reached"),
    [
        ("3,224", "Squeeze(%a)", "x", "xa"),
        ("3,224", "Squeeze(%a)", "b", "b"),
        ("1,3,224", "Squeeze(%a)", "b", "b"),
        ("1,3,5,224", "Squeeze(%a) {axis=[0]}", "x", "xasb"),  # reached at rank 4, the operator shares it
        ("3,224", "Unsqueeze(%a) {axes=[0]}", "x", "xa"),
        ("3,224", "Relu(%a)", "x", "xasb"),
    ],
)
def test_a_squeeze_below_rank_four_stops_both_ways(shape: str, op: str, stamped: str, reached: str) -> None:
    found = outputs(inferred(SQUEEZE.format(shape=shape, op=op), stamps={stamped: "NCHW"}))
    assert found == {name: "NCHW" if name in reached else "ND" for name in "xasb"}


def test_a_squeezed_input_of_a_convolution_stays_nd() -> None:
    graph = inferred(f"""graph g(%x: f32[3,224]@ND, %w: f32[2,1,1,1]@ND) {{
  %s = Squeeze(%x)
  %u = Unsqueeze(%s) {{axes=[0, 1]}}
  %y = Conv2D(%u, %w) {{{CONV}}}
  %z = Squeeze(%y) {{axis=[0]}}
  %r = Squeeze(%z)
  return %r
}}""")
    assert outputs(graph) == {"x": "ND", "w": "NCHW", "s": "ND", "u": "NCHW", "y": "NCHW", "z": "NCHW", "r": "ND"}


def test_reserved_blocks() -> None:
    graph = inferred(ADD.format(attrs=""), stamps={"a": "NCHW", "s": "FORMAT_RESERVED"})
    assert (outputs(graph)["s"], outputs(graph)["r"]) == ("FORMAT_RESERVED", "ND")


def test_private_layouts_are_no_anchors() -> None:
    graph = parse_graph("graph g(%x: f32[1,16,4,4]@ND | [1,1,4,4,16]@NC1HWC0) { %r = Relu(%x) return %r }")
    InferOriginFormat().run(graph, session())
    assert outputs(graph) == {"x": "ND", "r": "ND"}
    assert graph.find_node_by_name("x").output_descs[0].format == Format.FORMAT_NC1HWC0


# -- bodies ------------------------------------------------------------------------------------------------------------
IF = """graph g(%c: bool[]@ND, %x: f32[1,2,3,4]@ND) {
  %i = If(%c, %x) {then_branch=@then, else_branch=@else}
  %r = Relu(%i)
  return %r
}
graph then(%then/d: f32[1,2,3,4]@ND {_parent_node_index=1}) {
  %then/sub = Sub(%then/d, %then/d)
  %then/k = Const {value=f32[1,1,1,1]{1}} -> f32[1,1,1,1]@ND
  return %then/k
}
graph else(%else/d: f32[1,2,3,4]@ND {_parent_node_index=1}) {
  %else/n = Neg(%else/d)
  return %else/n
}"""


def test_formats_enter_branches_and_leave_them() -> None:
    graph = inferred(IF, stamps={"x": "NHWC", "then/k": "NCHW"})
    found = outputs(graph)
    assert {name: found[name] for name in ("x", "then/d", "then/sub", "else/d")} == dict.fromkeys(
        ("x", "then/d", "then/sub", "else/d"), "NHWC"
    )
    assert (found["i"], found["r"]) == ("NHWC", "NHWC"), "the first writer of a result wins: the other branch"


def test_inputs_and_results_of_an_if_are_apart() -> None:
    """Inputs NHWC by what they are fed with, outputs NCHW by what a branch gives."""
    text = IF.replace("return %else/n", "%else/q = Reshape(%else/n, %else/s) return %else/q").replace(
        "%else/n =", "%else/s = Const {value=i64[4]{1,2,3,4}} -> i64[4]@ND %else/n ="
    )
    graph = inferred(text, stamps={"x": "NHWC", "then/k": "NCHW"})
    found = outputs(graph)
    assert [found[name] for name in ("x", "then/d", "then/sub", "else/d", "else/n")] == ["NHWC"] * 5
    assert [found[name] for name in ("then/k", "else/q", "i", "r")] == ["NCHW"] * 4
    assert inputs(graph, "i") == "ND NHWC"


def test_a_format_from_within_a_branch_reaches_the_outside() -> None:
    text = IF.replace("%then/sub = Sub(%then/d, %then/d)", "%then/sub = LRN(%then/d)")
    found = outputs(inferred(text))
    assert [found[name] for name in ("then/d", "x", "else/d", "else/n", "i", "r")] == ["NCHW"] * 6


WHILE = """graph g(%n: i32[]@ND, %a: f32[1,2,3,4]@ND, %b: f32[1,2,3,4]@ND) {
  %w:3 = While(%n, %a, %b) {cond=@cond, body=@body}
  %r = Relu(%w:2)
  return %w:1, %r
}
graph cond(%cond/n: i32[]@ND {_parent_node_index=0}, %cond/a: f32[1,2,3,4]@ND {_parent_node_index=1}) {
  %cond/k = Const {value=i32[]{3}} -> i32[]@ND
  %cond/less = Less(%cond/n, %cond/k)
  return %cond/less
}
graph body(%body/n: i32[]@ND {_parent_node_index=0}, %body/a: f32[1,2,3,4]@ND {_parent_node_index=1},
           %body/b: f32[1,2,3,4]@ND {_parent_node_index=2}) {
  %body/a1 = FIRST
  %body/b1 = Neg(%body/b)
  return %body/n, %body/a1, SECOND
}"""


def test_the_state_of_a_loop_has_one_format() -> None:
    text = WHILE.replace("FIRST", "LRN(%body/a)").replace("SECOND", "%body/b1")
    found = outputs(inferred(text))
    assert [found[name] for name in ("a", "cond/a", "body/a", "body/a1")] == ["NCHW"] * 4
    assert found["w"] == "ND NCHW ND"
    assert [found[name] for name in ("b", "body/b", "body/b1", "r")] == ["ND"] * 4


def test_state_that_changes_places_has_one_format() -> None:
    """The body hands `a` on as the next `b`: both are the same tensors."""
    text = WHILE.replace("FIRST", "LRN(%body/a)").replace("SECOND", "%body/a")
    found = outputs(inferred(text))
    assert found["w"] == "ND NCHW NCHW"
    assert [found[name] for name in ("b", "body/b", "r")] == ["NCHW"] * 3


# -- inputs of the model -----------------------------------------------------------------------------------------------
TWO = "graph g(%x: f32[{shape}]@ND, %m: f32[7,8]@ND) {{ %y = Relu(%x) %z = Relu(%m) return %y, %z }}"


def test_the_second_run_names_the_inputs() -> None:
    text = TWO.format(shape="1,2,3,4")
    assert outputs(inferred(text, runs=1)) == dict.fromkeys("xymz", "ND")
    assert outputs(inferred(text, runs=2)) == {"x": "NCHW", "y": "NCHW", "m": "ND", "z": "ND"}


@pytest.mark.parametrize(
    ("shape", "input_format", "found"),
    [
        ("1,2,3,4", "NHWC", "NHWC"),
        ("1,2,3,4", "ND", "ND"),
        ("1,2,3,4", "NCDHW", "ND"),
        ("1,2,3,4,5", "NCDHW", "NCDHW"),
        ("1,2,3,4,5", "NCHW", "ND"),
        ("1,2,3", "NCHW", "ND"),
        ("-1,2,-1,4", "NCHW", "NCHW"),
    ],
)
def test_inputs_of_the_right_rank_only(shape: str, input_format: str, found: str) -> None:
    assert outputs(inferred(TWO.format(shape=shape), runs=2, input_format=input_format))["y"] == found


def test_what_has_a_format_keeps_it() -> None:
    graph = inferred(TWO.format(shape="1,2,3,4"), runs=2, stamps={"x": "NHWC"})
    assert outputs(graph)["y"] == "NHWC"


def test_a_third_run_changes_nothing() -> None:
    text = WHILE.replace("FIRST", "LRN(%body/a)").replace("SECOND", "%body/b1")
    graph = inferred(text, runs=2)
    before = print_graph(graph)
    InferShapes().run(graph, session())
    assert not InferOriginFormat().run(graph, session())
    assert print_graph(graph) == before
    assert parse_graph(before).attrs == graph.attrs
