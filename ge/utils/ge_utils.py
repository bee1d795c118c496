"""Questions that passes ask about graphs and nodes."""

from __future__ import annotations

from ge.error import GeError
from ge.errors import ReportedError
from ge.graph.graph import Graph
from ge.graph.node import Node
from ge.graph.tensor_desc import Shape, checked_dims
from ge.graph.types import DataType, has_numpy_dtype
from ge.graph_inference import infer_graph
from ge.ops import InferContext, const_value, lookup
from ge.ops.registry import Misfit, OpDef

_RUN_BY_THE_EXECUTOR = frozenset({"Data", "Const", "NetOutput", "NoOp"})
_HANDLES = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


class GeUtils:
    """Static methods only."""

    @staticmethod
    def infer_shape(graph: Graph, input_shapes: list[list[int]]) -> None:
        """Infer shapes and types of ``graph`` for one shape per Data node, in the order of their indexes.

        Nothing else happens to the graph. Raises ``TypeError`` unless it gets a Graph and a list of lists of int,
        ``RuntimeError`` that says why when inference fails.
        """
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, not {type(graph).__name__}")
        if not isinstance(input_shapes, list | tuple):
            raise TypeError(f"input_shapes must be a list of lists of int, not {type(input_shapes).__name__}")
        shapes = [checked_dims(dims, f"input shape {index}") for index, dims in enumerate(input_shapes)]
        inputs = graph.data_nodes()
        if len(shapes) != len(inputs):
            raise _failed(f"graph {graph.name} has {len(inputs)} inputs, {len(shapes)} shapes are given")
        for node, shape in zip(inputs, shapes, strict=True):
            if any(dim < -1 for dim in shape) and not shape.is_unknown_rank():
                raise _failed(f"{shape} is not a shape (input {node.name})")
            _set_shape(node, shape)
        try:
            infer_graph(graph)
        except ReportedError as fault:
            raise _failed(f"{fault.code}: {fault.message}") from None

    @staticmethod
    def check_node_support_on_aicore(node: Node) -> tuple[bool, str]:
        """Tell whether ``node`` can be executed with the shapes and types that it has, and if not, why.

        To be asked after inference. There is no AI core here: it is the CPU that must be able to run the node. Raises
        ``TypeError`` unless it gets a Node, ``RuntimeError`` for a node that was removed.
        """
        if not isinstance(node, Node):
            raise TypeError(f"node must be a Node, not {type(node).__name__}")
        graph = node.graph
        definition = lookup(node.type)
        if definition is None:
            return False, f"operator type {node.type} of node {node.name} is not registered"
        is_call = bool(definition.signature.subgraphs)
        if definition.compute is None and not is_call and node.type not in _RUN_BY_THE_EXECUTOR:
            return False, f"there is no kernel for the operator type {node.type}"
        for where, data_type in _types(node):
            if not has_numpy_dtype(data_type) and data_type not in _HANDLES:
                return False, f"{where} of node {node.name} is {data_type.name}, for which there is no kernel"
        reason = "" if is_call else _misfit(node, definition)
        return not reason, f"graph {graph.name}: {reason}" if reason else ""


def _failed(reason: str) -> GeError:
    return GeError(f"Failed to infer shape: {reason}")


def _set_shape(node: Node, shape: Shape) -> None:
    desc = node.get_output_desc(0)
    desc.shape = desc.origin_shape = shape
    node.update_output_desc(0, desc)


def _types(node: Node) -> list[tuple[str, DataType]]:
    inputs = [(f"input {i}", source.desc.data_type) for i, source in enumerate(node.inputs) if source is not None]
    return inputs + [(f"output {i}", desc.data_type) for i, desc in enumerate(node.output_descs)]


def _misfit(node: Node, definition: OpDef) -> str:
    """Return why the node's arguments do not fit its operator; empty when they do. The node stays as it is."""
    for spec in definition.signature.attrs.values():
        if spec.is_required and node.attrs.get(spec.name) is None:
            return f"node {node.name} ({node.type}) lacks the attribute {spec.name}"
    try:
        definition.infer(InferContext(node, definition, const_value))
    except ReportedError as fault:
        return fault.message
    except Misfit as fault:
        return f"node {node.name} ({node.type}): {fault}"
    return ""
