"""What a mapping function works with: one node of a frozen graph, its inputs already in the GE graph."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from ge.graph import DataType, NodeOut
from parsers.knowledge import Array
from parsers.mapped_node import MappedNode, Source
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow.data_types import data_type
from parsers.tensorflow.functions import Called
from parsers.tensorflow.tensors import read_tensor
from parsers.tensorflow.tf_graph import TfBody, TfNode

if TYPE_CHECKING:
    from parsers.tensorflow.graph_builder import GraphBuilder

__all__ = ["Array", "NodeBuilder", "Source"]

_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("b",),
    int: ("i",),
    float: ("f", "i"),
    str: ("s",),
    list: ("list",),
    DataType: ("type",),
}
"""Which fields of an attribute may hold a value of a Python type."""
_IN_WORDS = {"s": "a text", "i": "an integer", "f": "a number", "b": "a boolean", "type": "a type", "list": "a list"}


class NodeBuilder(MappedNode):
    """One node of a frozen graph to be mapped. ``inputs`` are the producers of its data inputs, none is absent."""

    builder: GraphBuilder

    def __init__(self, builder: GraphBuilder, node: TfNode, name: str, inputs: Sequence[NodeOut]) -> None:
        self.builder = builder
        self.node = node
        self.name = name
        self.op_type = node.op
        self.inputs = list(inputs)

    def input_name(self, index: int) -> str:
        """Return what the file calls an input."""
        return str(self.node.inputs[index])

    def sources(self) -> list[NodeOut]:
        """Return the producers of all inputs."""
        return [self.need(k) for k in range(len(self.inputs))]

    # -- what it calls -----------------------------------------------------------------------------------------------
    def body(self, formal: str, n_arguments: int, n_results: int | None = None) -> TfBody:
        """Return what the node calls as ``formal``: its own body, or the function that the attribute names.

        Raises E11010 unless it takes and gives so many tensors.
        """
        found = self.node.bodies.get(formal)
        if found is not None:
            return self.checked(found, n_arguments, n_results)
        value = self.node.attributes.get(formal)
        if value is None or value.WhichOneof("value") != "func":
            raise self.fail(f"attribute {formal} must name a function")
        called = Called(value.func.name, dict(value.func.attr))
        return self.checked(self.builder.context.functions.body(called), n_arguments, n_results)

    def checked(self, body: TfBody, n_arguments: int, n_results: int | None = None) -> TfBody:
        """Return ``body``. Raises E11010 unless it takes and gives so many tensors."""
        what = f"function {body.function}" if body.function else "its body"
        if len(body.arguments) != n_arguments:
            raise self.fail(f"{what} takes {len(body.arguments)} tensors, but is given {n_arguments}")
        if n_results is not None and len(body.results) != n_results:
            raise self.fail(f"{what} gives {len(body.results)} tensors, but must give {n_results}")
        return body

    def inside(self, builder: GraphBuilder) -> NodeBuilder:
        """Return what adds nodes to a body of this node. Inputs and attributes stay those of the node."""
        inner = copy(self)
        inner.builder = builder
        inner.name = f"{builder.prefix}{self.node.name}"
        return inner

    # -- attributes --------------------------------------------------------------------------------------------------
    def has_attr(self, name: str) -> bool:
        """True when the node gives the attribute a value."""
        return name in self.node.attributes and self.node.attributes[name].WhichOneof("value") is not None

    def attr(self, name: str, default: Any) -> Any:
        """Return an attribute in the type of ``default``, which is what counts where the node does not give it.

        ``default`` may be a type (``int``, ``list``, ``DataType``) for an attribute that must be there.
        Strings are str, lists are lists, element types are :class:`DataType`.
        """
        wanted = default if isinstance(default, type) else type(default)
        if not self.has_attr(name):
            if isinstance(default, type):
                raise self.fail(f"attribute {name} is missing")
            return default
        value = self.node.attributes[name]
        kind = str(value.WhichOneof("value"))
        if kind not in _KINDS[wanted]:
            found = _IN_WORDS.get(kind, f"of the kind {kind}")
            raise self.fail(f"attribute {name} must be {_IN_WORDS[_KINDS[wanted][0]]}, but is {found}")
        if kind == "list":
            return self._plain_list(name, value.list)
        found_value = self._plain(name, kind, getattr(value, kind))
        return float(found_value) if wanted is float else found_value

    def choice(self, name: str, default: str, *others: str) -> str:
        """Return a text attribute that must be ``default`` or one of ``others``."""
        value: str = self.attr(name, default)
        if value not in (default, *others):
            raise self.fail(f"attribute {name} is {value}, but must be one of {', '.join((default, *others))}")
        return value

    def numbers(self, name: str, default: list[int] | type = list) -> list[int]:
        """Return an attribute that is a list of integers."""
        values: list[Any] = self.attr(name, default)
        if not all(isinstance(value, int) for value in values):
            raise self.fail(f"attribute {name} must be a list of integers, but is {values}")
        return values

    def tensor(self, name: str) -> Array:
        """Return the value of a tensor attribute that must be there."""
        value = self.node.attributes.get(name)
        if value is None or value.WhichOneof("value") != "tensor":
            raise self.fail(f"attribute {name} must be a tensor")
        return read_tensor(value.tensor, self.builder.context.pieces, f"attribute {name} of node {self.name}")

    def _plain(self, name: str, kind: str, value: Any) -> Any:
        if kind == "s":
            return self._decode(name, value)
        if kind == "type":
            return data_type(value, f"attribute {name} of node {self.name}")
        return value

    def _plain_list(self, name: str, value: pb.AttrValue.ListValue) -> list[Any]:
        fields = value.ListFields()
        if len(fields) > 1:
            raise self.fail(f"attribute {name} mixes values of several types")
        return [self._plain(name, field.name, item) for field, items in fields for item in items]

    def _decode(self, name: str, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as fault:
            raise self.fail(f"attribute {name} is no UTF-8 text") from fault
