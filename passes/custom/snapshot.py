"""What a model looks like at one moment: tells whether somebody has changed it since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ge.graph import Graph, Node


@dataclass(frozen=True)
class Snapshot:
    """Everything that nodes, edges, descriptors and attributes say, in one flat list, which is quickly made.

    A tensor in an attribute counts as changed when another is set, even an equal one; its bytes are not looked at.
    """

    content: list[object]

    @classmethod
    def of(cls, graph: Graph) -> Snapshot:
        """Look at a model: its root graph and all bodies."""
        content: list[object] = []
        for part in graph.all_graphs():
            content += (part.name, len(part), len(part.output_names))
            content += part.output_names
            content += part.outputs
            _add_attrs(content, part.attrs)
            for node in part:
                _add_node(content, node)
        return cls(content)


def _add_node(content: list[object], node: Node) -> None:
    content += (node, node.name, node.type, len(node.inputs), len(node.output_descs))
    content += node.inputs
    content += node.control_inputs
    for desc in (*node.output_descs, *node.input_descs):
        if desc is not None:
            content += (desc.shape, desc.format, desc.sub_format, desc.data_type, desc.origin_shape, desc.origin_format)
            if desc.attrs:
                _add_attrs(content, desc.attrs)
    content += node.subgraphs
    _add_attrs(content, node.attrs)


def _add_attrs(content: list[object], attrs: dict[str, Any]) -> None:
    for name, value in attrs.items():
        content.append(name)
        _add_value(content, value)


def _add_value(content: list[object], value: Any) -> None:
    if isinstance(value, list):
        content.append(len(value))
        for element in value:
            _add_value(content, element)
    else:
        content.append(value)
