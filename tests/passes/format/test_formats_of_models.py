"""What formats whole compiles find: an ONNX model and --input_format in, the formats of its inputs and results out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from onnx import ModelProto

from ge.graph import Graph
from ge.graph.types import FORMAT_BY_TEXT, FORMAT_TEXT
from ge.ops import infer_node
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from parsers.onnx import parse
from passes.driver import Driver, Step
from passes.format.infer_origin_format import InferOriginFormat
from passes.infer.infer_shapes import InferShapes
from passes.pipeline import infer, optimize, prepare
from passes.prepare.add_net_output import AddNetOutput
from tests.parsers.onnx_models import model, node, value

CONV = node("Conv", "x w", kernel_shape=[1, 1])
FILTER = {"w": np.ones((2, 3, 1, 1), np.float32)}


def formats(source: ModelProto, *steps: Step, input_format: str = "NCHW", **options: Any) -> dict[str, str]:
    """Compile as far as formats of storage, or through these steps; origin formats of inputs, then of results."""
    graph, _ = compiled(source, *steps, input_format=input_format, **options)
    ends = {data.name: data.output().desc for data in graph.data_nodes()}
    ends |= {f"-> {name}": desc for name, desc in zip(graph.output_names, _results(graph), strict=True)}
    return {name: FORMAT_TEXT[desc.origin_format] for name, desc in ends.items()}


def _results(graph: Graph) -> list[Any]:
    net_output = graph.net_output()
    assert net_output is not None
    return net_output.input_descs


def compiled(source: ModelProto, *steps: Step, input_format: str = "NCHW", **options: Any) -> tuple[Graph, Driver]:
    session = CompileSession(CompileOptions(input_format=FORMAT_BY_TEXT[input_format], **options), Environment())
    graph, driver = parse(source, session), Driver(session)
    driver.run(graph, steps or [*prepare(), *infer(), *optimize()])
    return graph, driver


@pytest.mark.parametrize("input_format", ["NCHW", "NCDHW", "ND"])
def test_what_operators_say_counts_more_than_the_option(input_format: str) -> None:
    source = model([CONV], [value("x", (1, 3, 4, 4))], [value("y", (1, 2, 4, 4))], FILTER)
    assert formats(source, input_format=input_format) == {"x": "NCHW", "-> y": "NCHW"}


@pytest.mark.parametrize(
    ("input_format", "planar", "volume", "matrix"),
    [("NCHW", "NCHW", "ND", "ND"), ("NCDHW", "ND", "NCDHW", "ND"), ("ND", "ND", "ND", "ND")],
)
def test_the_option_is_for_inputs_of_its_rank_of_which_nobody_says_more(
    input_format: str, planar: str, volume: str, matrix: str
) -> None:
    shapes = {"a": (1, 2, 3, 4), "b": (1, 2, 3, 4, 5), "c": (3, 4)}
    nodes = [node("Relu", name, f"{name}_y", name=name.upper()) for name in shapes]
    ends = [[value(name + end, dims) for name, dims in shapes.items()] for end in ("", "_y")]
    assert formats(model(nodes, *ends), input_format=input_format) == {
        "a": planar, "b": volume, "c": matrix, "-> a_y": planar, "-> b_y": volume, "-> c_y": matrix,
    }  # fmt: skip


def test_an_input_whose_rank_turns_out_late_gets_it_too() -> None:
    """The reader has an unknown rank when formats are inferred first."""
    source = model([node("Relu", "x")], [value("x", None)], [value("y", None)])
    assert formats(source, input_shape={"x": (1, 2, 3, 4)}) == {"x": "NCHW", "-> y": "NCHW"}


def test_a_tensor_that_turns_out_to_have_more_dims_than_the_format_has_axes_has_none() -> None:
    graph = parse_graph("""graph g(%x: f32[1,3,4,4]@ND) {
  %p = MaxPool(%x) {ksize=[1,1,1,1], strides=[1,1,1,1], padding="VALID", data_format="NCHW"}
  %z = Pack(%x, %x) {axis=0}
  return %z, %p
}""")
    session = CompileSession(CompileOptions(), Environment())
    Driver(session).run(graph, [AddNetOutput(), InferOriginFormat()])
    found = graph.outputs[0].desc
    assert (found.origin_shape, FORMAT_TEXT[found.origin_format]) == ([-2], "NCHW")
    Driver(session).run(graph, [InferShapes(), InferOriginFormat()])
    assert (found.origin_shape, FORMAT_TEXT[found.origin_format]) == ([2, 1, 3, 4, 4], "ND")


class _NegateResults:
    """What a custom pass might do: a node of it in front of every result."""

    name: ClassVar[str] = "negate-results"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        net_output = graph.net_output()
        assert net_output is not None
        for slot, source in enumerate(graph.outputs):
            new = graph.add_node("Neg", f"negated_{slot}", [source])
            infer_node(new)
            graph.set_input(net_output, slot, new.output())
        return True


@pytest.mark.parametrize("stage", ["RunCustomPass_AfterInferShape", "RunCustomPassAfterBuiltinFusionPass"])
def test_nodes_that_custom_passes_add_get_formats(stage: str) -> None:
    source = model([CONV], [value("x", (1, 3, 4, 4))], [value("y", (1, 2, 4, 4))], FILTER)
    steps = [*prepare(), *infer(), *optimize()]
    steps.insert(steps.index(stage), _NegateResults())
    graph, _ = compiled(source, *steps)
    [new] = graph.nodes_of_type("Neg")
    assert FORMAT_TEXT[new.output().desc.origin_format] == "NCHW"
    assert formats(source, *steps) == {"x": "NCHW", "-> y": "NCHW"}


def test_the_last_run_finds_nothing_new_without_rewrites() -> None:
    source = model([CONV, node("Relu", "y", "z", name="r")], outputs=[value("z", (1, 2, 4, 4))], initializers=FILTER)
    _, driver = compiled(source)
    runs = [record.changed for record in driver.records if record.name == InferOriginFormat.name]
    assert (len(runs), runs[-1]) == (3, False)


def test_storage_formats_are_origin_formats_so_far() -> None:
    source = model([CONV], [value("x", (1, 3, 4, 4))], [value("y", (1, 2, 4, 4))], FILTER)
    graph, _ = compiled(source)
    descs = [d for n in graph for d in (*n.output_descs, *n.input_descs) if d is not None]
    assert all((d.shape, d.format) == (d.origin_shape, d.origin_format) for d in descs)
