"""ge_proto files: the whole graph, read back with ge.proto."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from ge.dump.proto_text import OPTION_SETS, model_message, proto_text
from ge.dump.settings import Detail
from ge.graph import Graph, Tensor
from ge.graph.compare import first_difference
from ge.plan import Block, GraphPlan, Plan
from ge.proto import ge_ir_pb2 as pb
from ge.proto.graph_def import graph_of


def dumped(
    graph: Graph, detail: Detail, options: dict[str, str] | None = None, plan: Plan | None = None
) -> pb.ModelDef:
    return text_format.Parse(proto_text(model_message(graph, detail, plan), detail, options), pb.ModelDef())


def test_detail_1_gives_the_same_graph_back(net: Graph) -> None:
    model = dumped(net, Detail.FULL)
    assert (model.name, model.version, [g.name for g in model.graph]) == ("", 2, ["net", "then", "else"])
    assert first_difference(net, graph_of(model)) is None


@pytest.mark.parametrize("detail", [Detail.WITHOUT_WEIGHTS, Detail.LINKS_ONLY])
def test_the_other_details_lack_the_values_of_constants_only(net: Graph, detail: Detail) -> None:
    full, less = dumped(net, Detail.FULL), dumped(net, detail)
    value = next(op for op in full.graph[0].op if op.name == "w").attr.pop("value")
    assert value.t.data == np.array([0.5, -1], "<f4").tobytes()
    assert less == full


def test_tensors_of_other_nodes_stay(net: Graph) -> None:
    net.find("mix").attrs["table"] = Tensor.of(np.array([3], np.uint8))
    mix = next(op for op in dumped(net, Detail.WITHOUT_WEIGHTS).graph[0].op if op.name == "mix")
    assert mix.attr["table"].t.data == b"\3"


def test_text_names_enums_and_control_edges(net: Graph) -> None:
    text = proto_text(model_message(net, Detail.FULL), Detail.FULL)
    for line in ("dtype: DT_FLOAT16", "val_type: VT_LIST_INT", 'input: ""', 'input: "go:-1"', 'key: "alpha"'):
        assert line in text


@pytest.mark.parametrize("detail", list(Detail))
def test_options_stand_on_the_root(net: Graph, detail: Detail) -> None:
    options = {"ge.socVersion": "Ascend310P3", "ge.inputShape": 'x:1,"ü"'}
    root, *bodies = dumped(net, detail, options).graph
    shown = {name: root.attr[name].func for name in OPTION_SETS if name in root.attr}
    assert not any(name in body.attr for body in bodies for name in OPTION_SETS)
    if detail is Detail.LINKS_ONLY:
        assert shown == {}
        return
    assert {name: func.name for name, func in shown.items()} == {name: name for name in OPTION_SETS}
    assert {key: value.s.decode() for key, value in shown["GraphOptions"].attr.items()} == options
    assert not shown["SessionOptions"].attr
    assert not shown["GlobalOptions"].attr


def test_the_message_is_left_as_it_was(net: Graph) -> None:
    message = model_message(net, Detail.WITHOUT_WEIGHTS)
    before = message.SerializeToString(deterministic=True)
    proto_text(message, Detail.WITHOUT_WEIGHTS, {"a": "b"})
    assert message.SerializeToString(deterministic=True) == before


def test_places_in_memory(net: Graph) -> None:
    plan = Plan({"net": GraphPlan(blocks={("mix", 0): Block(1024, 128)}, arena_size=4096)})
    root = dumped(net, Detail.WITHOUT_WEIGHTS, plan=plan).graph[0]
    assert root.attr["_arena_size"].i == 4096
    mix = next(op for op in root.op if op.name == "mix")
    assert (list(mix.output_i), mix.output_desc[0].size) == ([1024, -1], 128)
