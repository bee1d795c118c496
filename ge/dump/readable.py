"""``ge_readable_*.txt``: a listing for readers. Control edges and private attributes are left out.

    %<node> : [#users=<outputs>] = Node[type=<type>] (inputs = (<port>=%<value>, ...), attrs = {<name>: <value>, ...})

``#users`` counts the outputs of a node; a node with several has a line ``%ret_<k>`` for each, whose ``#users`` are the
readers of that output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ge.graph import DataType, Graph, Node, NodeOut, Tensor
from ge.ops import lookup
from ge.ops.signature import Arity, Port

EDGE_ITEMS = 3
"""Values shown at each end of a longer constant."""


def readable_text(graph: Graph) -> str:
    """Return the listing of ``graph``, then of each body in the order in which call nodes name them."""
    parts = [_listing(graph)]
    parts += [_listing(body) for body in _bodies_in_reference_order(graph)]
    return "\n".join(parts)


def _bodies_in_reference_order(graph: Graph) -> list[Graph]:
    """Return each body once, depth first."""
    owned = graph.root.subgraphs
    found: dict[str, Graph] = {}
    stack = [_called(graph)]
    while stack:
        name = next(stack[-1], None)
        if name is None:
            stack.pop()
        elif name not in found and name in owned:
            found[name] = owned[name]
            stack.append(_called(owned[name]))
    return list(found.values())


def _called(graph: Graph) -> Iterator[str]:
    return (name for node in graph for _, name in node.subgraphs)


def _listing(graph: Graph) -> str:
    lines = [f'graph("{graph.name}"):']
    values: dict[NodeOut, str] = {}
    for node in graph:
        if node.type == "NetOutput":
            continue
        lines.append(_node_line(node, values))
        if len(node.output_descs) > 1:
            lines += _element_lines(node, values)
    results = [_value(out, values) for out in graph.outputs]
    if results:
        named = ", ".join(f"output_{i}={value}" for i, value in enumerate(results))
        lines += ["", f"  return ({results[0] if len(results) == 1 else named})"]
    return "\n".join([*lines, ""])


def _element_lines(node: Node, values: dict[NodeOut, str]) -> list[str]:
    lines = []
    results = node.graph.outputs if node.graph.net_output() is None else []
    for out in node.outputs():
        name = "%ret" if not values else f"%ret_{len(values)}"
        values[out] = name
        users = len(node.consumers(out.index)) + results.count(out)
        lines.append(f"  {name} : [#users={users}] = get_element[node=%{node.name}]({out.index})")
    return lines


def _value(out: NodeOut, values: dict[NodeOut, str]) -> str:
    return values.get(out, f"%{out.node.name}")


def _node_line(node: Node, values: dict[NodeOut, str]) -> str:
    inputs = ", ".join(f"{name}={_value(source, values)}" for name, source in _named_inputs(node) if source is not None)
    attrs = ", ".join(f"{name}: {text}" for name, text in _named_attrs(node))
    parts = [f"inputs = ({inputs})"] if inputs else []
    parts += [f"attrs = {{{attrs}}}"] if attrs else []
    return f"  %{node.name} : [#users={len(node.output_descs)}] = Node[type={node.type}] ({', '.join(parts)})"


def _named_inputs(node: Node) -> list[tuple[str, NodeOut | None]]:
    definition = lookup(node.type)
    if definition is None:
        return [(f"_input_{slot}", source) for slot, source in enumerate(node.inputs)]
    slices = definition.signature.input_slices(len(node.inputs))
    named: list[tuple[str, NodeOut | None]] = []
    for port in definition.signature.inputs:
        sources = node.inputs[slices[port.name]]
        if port.arity is Arity.DYNAMIC:
            first = 1 if node.type == "For" else 0
            named += [(f"{port.name}_{i}", source) for i, source in enumerate(sources, start=first)]
        else:
            named += [(port.name, source) for source in sources]
    surplus = list(enumerate(node.inputs))[len(named) :]
    return named + [(f"_input_{slot}", source) for slot, source in surplus]


def _named_attrs(node: Node) -> list[tuple[str, str]]:
    definition = lookup(node.type)
    formal: tuple[Port, ...] = () if definition is None else definition.signature.subgraphs
    known = {port.name for port in formal}
    named = [
        (name if name.rstrip("0123456789") in known or name in known else f"_graph_{i}", f"%{body}")
        for i, (name, body) in enumerate(node.subgraphs)
    ]
    for name in () if definition is None else definition.signature.attrs:
        value = node.attrs.get(name)
        if value is not None and value not in ([], ""):
            named.append((name, _literal(value)))
    return named


def _literal(value: Any) -> str:
    if isinstance(value, Tensor):
        return _tensor_literal(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DataType):
        return value.name
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "{" + ", ".join(map(_literal, value)) + "}"
    return str(value)


def _tensor_literal(tensor: Tensor) -> str:
    array = tensor.array
    if array.size == 0:
        return "<empty>"
    if array.dtype.kind not in "biuf":
        return "<not_supported>"
    flat = array.ravel()
    items = [_number(v) for v in (flat if flat.size <= 2 * EDGE_ITEMS else flat[:EDGE_ITEMS])]
    if flat.size > 2 * EDGE_ITEMS:
        items += ["...", *(_number(v) for v in flat[-EDGE_ITEMS:])]
    return f"[{' '.join(items)}]"


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{float(value):.6f}" if isinstance(value, float | np.floating) else str(int(value))
