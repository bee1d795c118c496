"""Graph and Node as CANN's pass API sees them: names, return values, failures; the IR stays legal throughout."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ge.error import GeError
from ge.errors import ReportedError
from ge.graph import DataType, DumpFormat, Format, Graph, Node, NodeIn, Operator, Shape, Tensor, TensorDesc
from ge.graph.compare import first_difference
from ge.text import parse_graph
from ge.verify import verify

NET = """graph net(%x: f32[1,4]@ND, %y: f32[1,4]@ND) {
  %w = Const {value=f32[4,2]{1, 2, 3, 4, 5, 6, 7, 8}} -> f32[4,2]@ND
  %sum = Add(%x, %y) -> f32[1,4]@ND
  %product = MatMul(%sum, %w) {transpose_x2=false} -> f32[1,2]@ND
  %relu = Relu(%product) ctrl(%sum) -> f32[1,2]@ND
  %halves:2 = SplitD(%relu) {split_dim=1, num_split=2} -> f32[1,1]@ND, f32[1,1]@ND
  %out:0 = NetOutput(%halves, %halves:1)
  return %halves, %halves:1
}"""
WITH_BODIES = """graph main(%c: bool[]@ND, %x: f32[2]@ND) {
  %i = If(%c, %x) {then_branch=@yes, else_branch=@no} -> f32[2]@ND
  return %i
}
graph yes(%yes/x: f32[2]@ND) { %yes/i = If(%yes/p, %yes/x) {then_branch=@deep, else_branch=@no2} -> f32[2]@ND
  %yes/p = Const {value=bool[]{true}} -> bool[]@ND
  return %yes/i }
graph no(%no/x: f32[2]@ND) { return %no/x }
graph deep(%deep/x: f32[2]@ND) { return %deep/x }
graph no2(%no2/x: f32[2]@ND) { return %no2/x }"""


@pytest.fixture
def net() -> Graph:
    graph = parse_graph(NET)
    verify(graph)
    return graph


def named(graph: Graph, names: str) -> list[Node]:
    return [graph.find_node_by_name(name) for name in names.split()]


def names(nodes: Any) -> list[str]:
    return [node.name for node in nodes]


# -- looking -----------------------------------------------------------------------------------------------------------
def test_nodes_tell_their_edges(net: Graph) -> None:
    total, product, relu, halves, out, w = named(net, "sum product relu halves out w")
    assert (product.name, product.type) == ("product", "MatMul")
    assert w.type == "Const"
    assert product.get_in_data_nodes_and_port_indexes(1) == (w, 0)
    assert halves.get_out_data_nodes_and_port_indexes(1) == [(out, 1)]
    assert out.get_in_data_nodes_and_port_indexes(1) == (halves, 1)
    assert (relu.get_in_control_nodes(), total.get_out_control_nodes()) == ([total], [relu])
    assert (halves.get_inputs_size(), halves.get_outputs_size(), out.get_outputs_size()) == (1, 2, 0)


def test_absent_optional_inputs_at_the_end_are_not_counted() -> None:
    graph = parse_graph("graph g(%x: f32[2,2]@ND) { %m = MatMul(%x, %x, _) -> f32[2,2]@ND return %m }")
    node = graph.find_node_by_name("m")
    assert node.get_inputs_size() == 2
    with pytest.raises(RuntimeError, match=r"input 2 of node m \(MatMul\) is not connected"):
        node.get_in_data_nodes_and_port_indexes(2)


def test_all_nodes_are_those_of_bodies_too() -> None:
    main = parse_graph(WITH_BODIES)
    assert names(main.get_direct_nodes()) == ["c", "x", "i"]
    assert names(main.get_all_nodes()) == ["c", "x", "i", "yes/x", "yes/i", "yes/p", "no/x", "deep/x", "no2/x"]
    assert names(main.get_all_subgraphs()) == ["yes", "no", "deep", "no2"]
    yes = main.get_subgraph("yes")
    assert yes is not None
    assert names(yes.get_all_nodes()) == ["yes/x", "yes/i", "yes/p", "deep/x", "no2/x"]
    assert names(yes.get_all_subgraphs()) == ["deep", "no2"]
    assert main.get_subgraph("maybe") is None


def test_subgraphs_come_and_go() -> None:
    main = parse_graph(WITH_BODIES)
    body = Graph("extra")
    main.add_subgraph(body)
    assert main.get_subgraph("extra") is body
    with pytest.raises(RuntimeError, match="part of a model already"):
        Graph("other").add_subgraph(body)
    with pytest.raises(RuntimeError, match="main already has a subgraph named extra"):
        main.add_subgraph(Graph("extra"))
    main.remove_subgraph("extra")
    with pytest.raises(RuntimeError, match="main has no subgraph named extra"):
        main.remove_subgraph("extra")


def test_a_subgraph_brings_its_own_bodies() -> None:
    main = Graph("outer")
    main.add_subgraph(parse_graph(WITH_BODIES))
    assert names(main.get_all_subgraphs()) == ["main", "yes", "no", "deep", "no2"]
    assert all(part.root is main for part in main.get_all_subgraphs())


# -- edges -------------------------------------------------------------------------------------------------------------
def test_edges_move_with_descriptors_and_consumers(net: Graph) -> None:
    x, total, relu, product = named(net, "x sum relu product")
    net.remove_edge(product, 0, relu, 0)
    net.add_data_edge(x, 0, relu, 0)
    assert relu.get_in_data_nodes_and_port_indexes(0) == (x, 0)
    assert relu.get_input_desc(0).get_shape() == [1, 4]
    assert product.get_out_data_nodes_and_port_indexes(0) == []
    assert x.consumers() == [NodeIn(total, 0), NodeIn(relu, 0)]
    verify(net)


def test_control_edges_are_named_by_minus_one(net: Graph) -> None:
    total, relu, x = named(net, "sum relu x")
    net.remove_edge(total, -1, relu, -1)
    assert relu.get_in_control_nodes() == []
    net.add_control_edge(x, relu)
    assert x.get_out_control_nodes() == [relu]
    with pytest.raises(RuntimeError, match="no control edge from node sum to node relu"):
        net.remove_edge(total, -1, relu, -1)
    with pytest.raises(RuntimeError, match="cannot run after itself"):
        net.add_control_edge(x, x)


def test_a_left_out_optional_input_comes_to_be(net: Graph) -> None:
    product = net.find_node_by_name("product")
    bias = net.add_const("bias", Tensor.of(np.float32([1, 2])))
    net.add_data_edge(bias.node, 0, product, 2)
    assert product.get_inputs_size() == 3
    verify(net)


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (("sum", 0, "relu", 0), "input 0 of node relu reads product:0: remove that edge first"),
        (("sum", 1, "product", 2), "node sum has 1 outputs, no 1"),
        (("sum", -1, "product", 2), "node sum has 1 outputs, no -1"),
        (("sum", 0, "product", 3), r"node product \(MatMul\) has no input 3"),
        (("sum", 0, "product", -1), r"node product \(MatMul\) has no input -1"),
        (("sum", 0, "out", 2), r"node out \(NetOutput\) has no input 2"),
    ],
)
def test_edges_that_cannot_be_are_refused(net: Graph, edge: tuple[Any, ...], message: str) -> None:
    source, source_port, target, target_port = edge
    before = parse_graph(NET)
    with pytest.raises(RuntimeError, match=message):
        net.add_data_edge(*named(net, source), source_port, *named(net, target), target_port)
    assert first_difference(net, before) is None


@pytest.mark.parametrize("edge", [("sum", 0, "relu", 0), ("product", 1, "relu", 0), ("product", 0, "relu", 1)])
def test_an_edge_that_is_not_there_cannot_be_removed(net: Graph, edge: tuple[Any, ...]) -> None:
    source, source_port, target, target_port = edge
    with pytest.raises(RuntimeError, match="there is no edge from output"):
        net.remove_edge(*named(net, source), source_port, *named(net, target), target_port)


def test_edges_stay_within_one_graph(net: Graph) -> None:
    other = parse_graph(NET)
    with pytest.raises(RuntimeError, match="node sum is in graph net, not in net"):
        other.add_control_edge(net.find_node_by_name("sum"), other.find_node_by_name("relu"))
    with pytest.raises(RuntimeError, match="not in net"):
        other.remove_node(net.find_node_by_name("sum"))


# -- removal -----------------------------------------------------------------------------------------------------------
def test_a_removed_node_takes_its_edges_along(net: Graph) -> None:
    """As in GE its readers are left unconnected; what is reconnected is legal again."""
    x, total, product, relu = named(net, "x sum product relu")
    net.remove_node(total)
    with pytest.raises(RuntimeError, match="input 0 of node product"):
        product.get_in_data_nodes_and_port_indexes(0)
    assert x.get_out_data_nodes_and_port_indexes(0) == []
    assert relu.get_in_control_nodes() == []
    with pytest.raises(ReportedError, match="required input x1 is not connected"):
        verify(net)
    net.add_data_edge(x, 0, product, 0)
    verify(net)


def test_a_lost_result_is_found_by_the_verifier(net: Graph) -> None:
    net.remove_node(net.find_node_by_name("halves"))
    with pytest.raises(ReportedError, match="result 0 is not connected"):
        verify(net)


REMOVED: dict[str, Callable[[Graph, Node], object]] = {
    "edges": lambda graph, node: node.get_in_data_nodes_and_port_indexes(0),
    "readers": lambda graph, node: node.get_out_data_nodes_and_port_indexes(0),
    "sizes": lambda graph, node: node.get_inputs_size(),
    "control": lambda graph, node: node.get_in_control_nodes(),
    "descriptor": lambda graph, node: node.get_output_desc(0),
    "set_attr": lambda graph, node: node.set_attr("a", 1),
    "add": lambda graph, node: graph.add_control_edge(node, graph.find_node_by_name("x")),
    "remove": lambda graph, node: graph.remove_node(node),
    "find": lambda graph, node: graph.find_node_by_name("relu"),
}


@pytest.mark.parametrize("use", REMOVED.values(), ids=REMOVED)
def test_objects_of_removed_nodes_fail_cleanly(net: Graph, use: Callable[[Graph, Node], object]) -> None:
    node = net.find_node_by_name("relu")
    net.remove_node(node)
    assert (node.name, node.type, node.is_removed) == ("relu", "Relu", True)
    with pytest.raises(GeError, match=r"node relu was removed from its graph|has no node named relu"):
        use(net, node)


def test_results_outlive_their_net_output(net: Graph) -> None:
    net.remove_node(net.find_node_by_name("out"))
    assert [(o.node.name, o.index) for o in net.outputs] == [("halves", 0), ("halves", 1)]
    net.add_node("NetOutput", "again", net.outputs, output_descs=[])
    verify(net)


# -- attributes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value",
    ["text", True, 3, 2.5, DataType.DT_INT8, ["a", "b"], [True, False], [1, 2], [0.5, 1.5], [""], ""],
    ids=repr,
)
def test_attributes_come_back_as_they_were_set(net: Graph, value: Any) -> None:
    node = net.find_node_by_name("relu")
    for owner in (node, net):
        owner.set_attr("mine", value)
        assert owner.get_attr("mine") == value
        assert type(owner.get_attr("mine")) is type(value)
    node.set_input_attr("mine", 0, value)
    node.set_output_attr("mine", 0, value)
    assert node.get_input_attr("mine", 0) == node.get_output_attr("mine", 0) == value
    assert node.has_attr("mine")
    verify(net)


def test_a_list_of_data_types_is_stored_as_ints(net: Graph) -> None:
    """GE quirk, custom_passes.md 1.5."""
    net.set_attr("types", [DataType.DT_INT8, DataType.DT_BF16])
    found = net.get_attr("types")
    assert found == [2, 27]
    assert [type(v) for v in found] == [int, int]


@pytest.mark.parametrize(
    ("value", "error"),
    [([], ValueError), (None, TypeError), ({}, TypeError), ((1, 2), TypeError), ([1, "a"], TypeError),
     ([1, 2.0], TypeError), ([[1]], TypeError), (b"x", TypeError), (np.float32(1), TypeError), (1 << 63, ValueError)],
    ids=repr,
)  # fmt: skip
def test_attributes_of_other_types_are_refused(net: Graph, value: Any, error: type[Exception]) -> None:
    node = net.find_node_by_name("relu")
    for set_attr in (
        lambda: node.set_attr("mine", value),
        lambda: net.set_attr("mine", value),
        lambda: node.set_input_attr("mine", 0, value),
        lambda: node.set_output_attr("mine", 0, value),
    ):
        with pytest.raises(error):
            set_attr()
    assert not node.has_attr("mine")


def test_values_are_copies(net: Graph) -> None:
    node, mine = net.find_node_by_name("relu"), [1, 2]
    node.set_attr("mine", mine)
    mine.append(3)
    node.get_attr("mine").append(4)
    assert node.get_attr("mine") == [1, 2]
    net.find_node_by_name("w").get_attr("value").set_format(Format.FORMAT_NCHW)
    assert net.find_node_by_name("w").get_attr("value").format is Format.FORMAT_ND


def test_signatures_give_defaults_and_kinds(net: Graph) -> None:
    product, halves = named(net, "product halves")
    assert product.get_attr("transpose_x1") is False  # not stored, the signature's default
    assert product.has_attr("transpose_x1")
    assert not product.has_attr("transpose_x3")
    halves.set_attr("split_dim", True)
    assert halves.get_attr("split_dim") == 1
    with pytest.raises(RuntimeError, match="node halves: attribute split_dim of SplitD must be an int, not 'a'"):
        halves.set_attr("split_dim", "a")
    with pytest.raises(RuntimeError, match=r"node relu \(Relu\) has no attribute nothing"):
        net.find_node_by_name("relu").get_attr("nothing")
    with pytest.raises(RuntimeError, match="graph net has no attribute nothing"):
        net.get_attr("nothing")


def test_a_float_attribute_takes_an_int() -> None:
    graph = parse_graph("graph g(%x: f32[2]@ND) { %l = LeakyRelu(%x) -> f32[2]@ND return %l }")
    node = graph.find_node_by_name("l")
    node.set_attr("negative_slope", 1)
    assert isinstance(node.get_attr("negative_slope"), float)


def test_the_value_of_a_constant_brings_its_descriptor(net: Graph) -> None:
    w, product = named(net, "w product")
    w.set_attr("value", Tensor([1.0, 2.0, 3.0], data_type=DataType.DT_FLOAT16, shape=[3, 1]))
    assert (w.get_output_desc(0).shape, w.get_output_desc(0).data_type) == ([3, 1], DataType.DT_FLOAT16)
    assert product.get_input_desc(1).shape == [3, 1]
    verify(net)


# -- descriptors -------------------------------------------------------------------------------------------------------
def test_descriptors_are_copies(net: Graph) -> None:
    node = net.find_node_by_name("relu")
    node.get_output_desc(0).set_shape([7])
    node.get_input_desc(0).set_data_type(DataType.DT_INT8)
    assert node.get_output_desc(0).get_shape() == [1, 2]
    assert node.get_input_desc(0).get_data_type() is DataType.DT_FLOAT


def test_readers_follow_an_output_descriptor(net: Graph) -> None:
    relu, halves = named(net, "relu halves")
    desc = TensorDesc([3, 2], Format.FORMAT_NCHW, DataType.DT_FLOAT16)
    relu.update_output_desc(0, desc)
    desc.set_shape([9])
    assert halves.get_input_desc(0) == relu.get_output_desc(0)
    assert relu.get_output_desc(0).get_shape() == [3, 2]
    verify(net)


def test_an_input_descriptor_cannot_contradict_its_producer(net: Graph) -> None:
    """GE lets them differ until the next inference, which takes the producer's; here they never differ."""
    halves = net.find_node_by_name("halves")
    halves.update_input_desc(0, TensorDesc([5], Format.FORMAT_NHWC, DataType.DT_INT8))
    assert halves.get_input_desc(0).get_shape() == [1, 2]
    agreeing = halves.get_input_desc(0).set_origin_shape([2])
    halves.update_input_desc(0, agreeing)
    assert halves.get_input_desc(0).get_origin_shape() == [2]
    verify(net)


def test_attributes_of_an_input_survive_inference_of_its_producer(net: Graph) -> None:
    relu, halves = named(net, "relu halves")
    halves.set_input_attr("kept", 0, "yes")
    relu.update_output_desc(0, TensorDesc([4, 2]))
    assert halves.get_input_attr("kept", 0) == "yes"


# -- arguments ---------------------------------------------------------------------------------------------------------
BAD_ARGUMENTS: dict[str, Callable[[Graph, Node], object]] = {
    "graph name": lambda g, n: Graph(3),  # type: ignore[arg-type]
    "node name": lambda g, n: g.find_node_by_name(3),  # type: ignore[arg-type]
    "attr key": lambda g, n: n.get_attr(3),  # type: ignore[arg-type]
    "has_attr": lambda g, n: n.has_attr(None),  # type: ignore[arg-type]
    "set_attr key": lambda g, n: g.set_attr(3, 1),  # type: ignore[arg-type]
    "in index": lambda g, n: n.get_in_data_nodes_and_port_indexes("0"),  # type: ignore[arg-type]
    "out index": lambda g, n: n.get_out_data_nodes_and_port_indexes(0.0),  # type: ignore[arg-type]
    "desc index": lambda g, n: n.get_input_desc("0"),  # type: ignore[arg-type]
    "desc": lambda g, n: n.update_output_desc(0, [1]),  # type: ignore[arg-type]
    "input attr": lambda g, n: n.set_input_attr("a", "0", 1),  # type: ignore[arg-type]
    "node": lambda g, n: g.remove_node("relu"),  # type: ignore[arg-type]
    "edge node": lambda g, n: g.add_data_edge("x", 0, n, 0),  # type: ignore[arg-type]
    "edge port": lambda g, n: g.add_data_edge(n, "0", n, 0),  # type: ignore[arg-type]
    "removed edge": lambda g, n: g.remove_edge(n, 0, n, None),  # type: ignore[arg-type]
    "control edge": lambda g, n: g.add_control_edge(n, 1),  # type: ignore[arg-type]
    "subgraph": lambda g, n: g.add_subgraph("body"),  # type: ignore[arg-type]
    "subgraph name": lambda g, n: g.remove_subgraph(1),  # type: ignore[arg-type]
    "get_subgraph": lambda g, n: g.get_subgraph(1),  # type: ignore[arg-type]
    "dump format": lambda g, n: g.dump_to_stream("kOnnx"),  # type: ignore[arg-type]
    "dump suffix": lambda g, n: g.dump_to_file(DumpFormat.kOnnx, 3),  # type: ignore[arg-type]
    "air path": lambda g, n: g.save_to_air(3),  # type: ignore[arg-type]
    "air source": lambda g, n: g.load_from_air(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("use", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_arguments_of_other_types_are_type_errors(net: Graph, use: Callable[[Graph, Node], object]) -> None:
    with pytest.raises(TypeError, match="must be"):
        use(net, net.find_node_by_name("relu"))


OUT_OF_RANGE: dict[str, Callable[[Node], object]] = {
    "reader": lambda n: n.get_out_data_nodes_and_port_indexes(1),
    "producer": lambda n: n.get_in_data_nodes_and_port_indexes(-1),
    "input desc": lambda n: n.get_input_desc(1),
    "output desc": lambda n: n.get_output_desc(-1),
    "update input": lambda n: n.update_input_desc(1, TensorDesc()),
    "update output": lambda n: n.update_output_desc(1, TensorDesc()),
    "input attr": lambda n: n.get_input_attr("a", 1),
    "missing input attr": lambda n: n.get_input_attr("a", 0),
    "output attr": lambda n: n.set_output_attr("a", 2, 1),
    "missing output attr": lambda n: n.get_output_attr("a", 0),
}


@pytest.mark.parametrize("use", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_what_is_not_there_is_a_runtime_error(net: Graph, use: Callable[[Node], object]) -> None:
    with pytest.raises(GeError, match="node relu"):
        use(net.find_node_by_name("relu"))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_nothing_is_copied(net: Graph, copied: Callable[[Any], Any]) -> None:
    node = net.find_node_by_name("relu")
    tensor = net.find_node_by_name("w").get_attr("value")
    with Operator.lend(node) as lent:
        for thing in (net, node, tensor, node.get_output_desc(0), lent):
            with pytest.raises(RuntimeError, match="cop"):
                copied(thing)


# -- callbacks' operators ----------------------------------------------------------------------------------------------
def test_an_operator_is_lent(net: Graph) -> None:
    with Operator.lend(net.find_node_by_name("relu")) as lent:
        lent.set_attr("mine", 1)
        assert (lent.name, lent.type, lent.get_attr("mine")) == ("relu", "Relu", 1)
    with pytest.raises(RuntimeError, match="inside its callback only"):
        _ = lent.name
    with Operator.lend(net.find_node_by_name("relu"), is_read_only=True) as lent:
        assert lent.get_attr("mine") == 1
        with pytest.raises(RuntimeError, match="read-only"):
            lent.set_attr("mine", 2)
    with pytest.raises(RuntimeError, match="not directly"):
        Operator()


# -- files and texts ---------------------------------------------------------------------------------------------------
def test_air_files_hold_the_whole_graph(tmp_path: Any) -> None:
    graph = parse_graph(WITH_BODIES)
    graph.set_attr("mine", [1, 2])
    graph.find_node_by_name("x").set_attr("mine", "y")
    graph.add_control_edge(*named(graph, "c i"))
    path = str(tmp_path / "net.air")
    graph.save_to_air(path)
    loaded = Graph("other")
    old = loaded.add_node("NoOp", "old", n_outputs=0)
    assert loaded.load_from_air(path) is None
    assert first_difference(loaded, graph) is None
    assert all(node.graph.root is loaded for node in loaded.get_all_nodes())
    assert old.is_removed
    loaded.remove_edge(*[loaded.find_node_by_name("c"), -1, loaded.find_node_by_name("i"), -1])
    verify(loaded)


def test_air_files_keep_constants(net: Graph, tmp_path: Any) -> None:
    path = str(tmp_path / "net.air")
    net.save_to_air(path)
    net.load_from_air(path)
    assert net.find_node_by_name("w").get_attr("value").data == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert first_difference(net, parse_graph(NET)) is None


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff", b"\x0a\x03net", None], ids=["empty", "noise", "no graph", "absent"]
)
def test_an_air_file_that_holds_no_graph_is_refused(net: Graph, tmp_path: Any, content: bytes | None) -> None:
    path = tmp_path / "bad.air"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RuntimeError, match=r"bad\.air"):
        net.load_from_air(str(path))
    assert first_difference(net, parse_graph(NET)) is None


def test_an_air_file_without_an_end_is_refused(net: Graph) -> None:
    with pytest.raises(RuntimeError, match="/dev/zero cannot be read: it is not a regular file"):
        net.load_from_air("/dev/zero")


def test_an_air_file_that_cannot_be_written_is_a_failure(net: Graph, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="cannot be saved"):
        net.save_to_air(str(tmp_path / "file" / "net.air"))


def test_the_readable_text_is_the_string_form(net: Graph) -> None:
    assert str(net) == net.dump_to_stream() == net.dump_to_stream(DumpFormat.kReadable)
    assert "%relu : [#users=1] = Node[type=Relu] (inputs = (x=%product))" in str(net)


@pytest.mark.parametrize(
    ("format", "first", "second"),
    [
        (DumpFormat.kReadable, "ge_readable_00000_graph_0_stage_1.txt", "ge_readable_00001_graph_0.txt"),
        (DumpFormat.kOnnx, "ge_onnx_00000_graph_0_stage_1.pbtxt", "ge_onnx_00001_graph_0.pbtxt"),
        (DumpFormat.kTxt, "ge_proto_00000_graph_0_stage_1.txt", "ge_proto_00001_graph_0.txt"),
    ],
)
def test_dumps_are_numbered(
    net: Graph, tmp_path: Any, monkeypatch: Any, format: DumpFormat, first: str, second: str
) -> None:
    monkeypatch.setenv("ASCEND_WORK_PATH", str(tmp_path))
    net.dump_to_file(format, "stage/1")
    net.dump_to_file(format)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([first, second])
    assert (tmp_path / second).read_text(encoding="utf-8") == net.dump_to_stream(format)


def test_a_dump_that_cannot_be_written_is_a_failure(net: Graph, tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASCEND_WORK_PATH", str(tmp_path / "file" / "sub"))
    with pytest.raises(RuntimeError, match="cannot be written"):
        net.dump_to_file()


def test_shapes_compare_like_lists() -> None:
    shape = Shape([1, 3, 8, 8])
    assert shape == [1, 3, 8, 8] == shape
    assert shape != [1, 3, 8]
    assert shape[2:] == [8, 8]
    assert operator.add(shape, [2]) == [1, 3, 8, 8, 2]
    assert operator.add([2], shape) == [2, 1, 3, 8, 8]
    assert operator.add(shape[1:], (4,)) == (3, 8, 8, 4)
    assert {shape: 1}[Shape([1, 3, 8, 8])] == 1
