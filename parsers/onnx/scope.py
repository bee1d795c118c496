"""Scopes: the tensors that the nodes of a graph or of an inlined function can read, and how their names resolve."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto

from ge.errors import ReportedError
from ge.graph import NodeOut
from parsers.onnx.onnx_graph import OnnxNode
from parsers.onnx.opset import Opsets


class Scope:
    """Tensor names of one graph, or of one call of a function, and their producers.

    ``path`` prefixes the names of nodes, ``bindings`` are the values of a function's attributes, ``depth`` counts
    the calls and graphs around it.
    """

    def __init__(
        self, opsets: Opsets, path: str = "", bindings: Mapping[str, AttributeProto] | None = None, depth: int = 0
    ) -> None:
        self.opsets = opsets
        self.path = path
        self.bindings: Mapping[str, AttributeProto] = {} if bindings is None else bindings
        self.depth = depth
        self.values: dict[str, NodeOut | None] = {}
        self._producers: dict[str, str] = {}

    def define(self, tensor: str, source: NodeOut | None, producer: str) -> None:
        """Give a tensor its producer. ``None`` stands for an optional argument that a call leaves out.

        Raises E13031 for a second producer.
        """
        if not tensor:
            return
        if tensor in self.values:
            first = self._producers[tensor]
            raise ReportedError("E13031", reason=f"tensor [{tensor}] is produced twice: by {first} and by {producer}")
        self.values[tensor] = source
        self._producers[tensor] = producer

    def find(self, tensor: str, reader: OnnxNode) -> NodeOut | None:
        """Return the producer of a tensor; ``None`` for ``""``. Raises E13025 for a tensor that nobody produces."""
        if not tensor:
            return None
        if tensor not in self.values:
            reason = f"node [{self.path}{reader.name}] ({reader.op_type}) reads [{tensor}], which nothing produces"
            raise ReportedError("E13025", reason=reason)
        return self.values[tensor]

    def resolve_attributes(self, node: OnnxNode) -> dict[str, AttributeProto]:
        """Return the attributes of a node; references to attributes of the enclosing function are replaced."""
        found: dict[str, AttributeProto] = {}
        for name, attribute in node.attributes.items():
            if not attribute.ref_attr_name:
                found[name] = attribute
            elif attribute.ref_attr_name in self.bindings:
                found[name] = self.bindings[attribute.ref_attr_name]
        return found
