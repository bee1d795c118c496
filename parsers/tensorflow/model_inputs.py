"""The inputs of a frozen graph: its Placeholders, and inner nodes that ``--input_shape`` makes inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ge.errors import ReportedError
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.data_types import type_name
from parsers.tensorflow.tf_graph import TfGraph, TfNode
from parsers.tensorflow.trimming import is_leftover

INPUT_OPS = frozenset({"Placeholder", "PlaceholderV2"})
_SCALARS_ARE_SCALARS = 24
"""Graphs of an older version write an empty shape where nothing is known of it."""


@dataclass(frozen=True)
class TfInput:
    """An input. ``dims`` is ``None`` without a shape, ``-1`` stands for a dim that is not fixed."""

    name: str
    elem_type: int
    dims: list[int] | None

    def describe(self) -> str:
        """Return what stands in messages: element type and shape."""
        shape = "of unknown shape" if self.dims is None else self.dims
        return f"{type_name(self.elem_type)} {shape}"


def read_input(node: TfNode, producer: int) -> TfInput:
    """Return what a Placeholder says of itself. Raises E11010 for one without a type."""
    kind = node.attributes.get("dtype")
    if kind is None or kind.WhichOneof("value") != "type":
        raise ReportedError("E11010", opname=node.name, optype=node.op, reason="attribute dtype is missing")
    return TfInput(node.name, kind.type, _dims(node, producer))


def _dims(node: TfNode, producer: int) -> list[int] | None:
    shape = node.attributes.get("shape")
    if shape is None or shape.WhichOneof("value") != "shape" or shape.shape.unknown_rank:
        return None
    dims = [dim.size for dim in shape.shape.dim]
    if any(dim < -2 for dim in dims):
        raise ReportedError("E11010", opname=node.name, optype=node.op, reason=f"attribute shape is {dims}")
    if not dims and 0 < producer < _SCALARS_ARE_SCALARS:
        return None
    return [max(dim, -1) for dim in dims]


def with_inner_inputs(graph: TfGraph, asked: Collection[str]) -> TfGraph:
    """Return the graph with the nodes that ``--input_shape`` names as Placeholders.

    Raises E10016 for a name that no node has, E10017 for a node without a result that could be fed.
    """
    by_name = graph.by_name()
    names = [node.name for node in graph.nodes if node.op in INPUT_OPS]
    hint = f"Inputs of the model are {', '.join(names) or 'none'}; inner nodes can be named too, without an index."
    for name in asked:
        if name not in by_name:
            raise ReportedError("E10016", opname=name, parameter="--input_shape", solution=hint)
        if is_leftover(by_name[name].op):
            raise ReportedError("E10017", opname=name, parameter="--input_shape", solution=hint)
    changed = [_as_input(node) if node.name in asked and node.op not in INPUT_OPS else node for node in graph.nodes]
    return TfGraph(changed, graph.functions, graph.producer)


_TYPE_ATTRIBUTES: Mapping[str, str] = {
    "Cast": "DstT",
    "Shape": "out_type",
    "ShapeN": "out_type",
    "Size": "out_type",
    "ArgMax": "output_type",
    "ArgMin": "output_type",
    "Unpack": "T",
    "OneHot": "T",
    "GatherV2": "Tparams",
    "Gather": "Tparams",
    "GatherNd": "Tparams",
    "Range": "Tidx",
    "QuantizeV2": "T",
}
_BOOLEAN = frozenset(
    {
        *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
        *("LogicalAnd", "LogicalOr", "LogicalNot", "LogicalXor", "All", "Any", "IsNan", "IsInf", "IsFinite"),
    }
)
_FLOAT = frozenset({"ResizeBilinear", "ResizeBicubic", "CropAndResize"})


def _as_input(node: TfNode) -> TfNode:
    """Return a Placeholder in place of an inner node; its type is that of the node's first output."""
    if node.op in _BOOLEAN:
        number = pb.DT_BOOL
    elif node.op in _FLOAT:
        number = pb.DT_FLOAT
    else:
        names: Sequence[str] = (_TYPE_ATTRIBUTES[node.op],) if node.op in _TYPE_ATTRIBUTES else ("dtype", "T")
        found = [node.attributes[name] for name in names if name in node.attributes]
        if found and found[0].WhichOneof("value") == "type":
            number = found[0].type
        else:
            reason = "it cannot become an input, because none of its attributes says the type of its result"
            raise ReportedError("E11010", opname=node.name, optype=node.op, reason=reason)
    return node.without_inputs("Placeholder", {"dtype": pb.AttrValue(type=number)})
