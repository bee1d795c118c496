"""Running parsed graphs by the reference semantics of their operators, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ge.graph import Graph, Node, NodeOut, Tensor
from ge.graph.types import data_type_of, has_numpy_dtype
from ge.ops import definition
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from parsers.onnx import parse

Array = np.ndarray[Any, np.dtype[Any]]


def session(**options: Any) -> CompileSession:
    """Return a session with these options, its environment empty."""
    return CompileSession(CompileOptions(**options), Environment())


def parse_model(model: Any, **options: Any) -> Graph:
    """Parse a model (path, bytes, ModelProto) under these options."""
    return parse(model.SerializeToString() if isinstance(model, ModelProto) else model, session(**options))


def evaluate(graph: Graph, feeds: Sequence[Array], outer: Mapping[int, Array] | None = None) -> list[Array]:
    """Return the outputs of ``graph`` for ``feeds`` in the order of its Data nodes.

    A value must have the inferred type and fit the inferred shape. ``outer`` gives the inputs of a body by the slot of
    its call node.
    """
    values: dict[NodeOut, Array] = {}
    for data, value in zip(graph.data_nodes(), feeds, strict=outer is None):
        values[data.output()] = value
    for node in graph.topological_order():
        if node.type == "Data":
            if outer is not None:
                values[node.output()] = outer[node.attrs["_parent_node_index"]]
            results = [values[node.output()]]
        elif node.type == "Const":
            held = node.attrs["value"]
            assert isinstance(held, Tensor)
            results = [held.array]
        elif node.type in ("NetOutput", "NoOp"):
            results = []
        else:
            arguments = [None if source is None else values[source] for source in node.inputs]
            if node.subgraphs:
                results = _call(node, arguments)
            else:
                types = [desc.data_type for desc in node.output_descs]
                results = definition(node).evaluate(node.attrs, arguments, types)
        for out, result in zip(node.outputs(), results, strict=True):
            check(out, result)
            values[out] = result
    return [values[out] for out in graph.outputs]


def _call(node: Node, arguments: Sequence[Any]) -> list[Array]:
    bodies = {formal: node.graph.root.subgraphs[name] for formal, name in node.subgraphs}
    kind = node.type.removeprefix("Stateless")
    if kind == "If":
        branch = bodies["then_branch" if arguments[0].reshape(-1)[0] else "else_branch"]
        return evaluate(branch, (), dict(enumerate(arguments)))
    if kind == "Case":
        index = int(arguments[0].reshape(-1)[0])
        branch = list(bodies.values())[index if 0 <= index < len(bodies) else -1]
        return evaluate(branch, (), dict(enumerate(arguments)))
    assert kind == "While"
    state = list(arguments)
    while evaluate(bodies["cond"], (), dict(enumerate(state)))[0].reshape(-1)[0]:
        state = evaluate(bodies["body"], (), dict(enumerate(state)))
    return state


def check(out: NodeOut, result: Array) -> None:
    """Fail unless ``result`` has the inferred type and a shape that inference allows."""
    if not has_numpy_dtype(out.desc.data_type):
        return  # a handle
    shape = out.desc.origin_shape
    assert data_type_of(result.dtype) is out.desc.data_type, f"{out}: {result.dtype}, inferred {out.desc}"
    if not shape.is_unknown_rank():
        fits = len(shape) == result.ndim and all(d in (-1, s) for d, s in zip(shape, result.shape, strict=True))
        assert fits, f"{out}: computed {result.shape}, inferred {out.desc}"
