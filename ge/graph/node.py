"""Nodes: operators of a graph with their descriptors, attributes and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ge.error import GeError
from ge.graph.attributes import checked_key, conform, found, settable, shown
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from ge.graph.graph import Graph
    from ge.ops.signature import Signature

AttrValue = Any
"""str, bytes, int, float, bool, DataType, Tensor, TensorDesc, or a list (of lists of int or float) of these."""


class NodeOut(NamedTuple):
    """One output of a node: the source end of a data edge."""

    node: Node
    index: int  # type: ignore[assignment]  # CANN's name; hides tuple.index, which nobody needs here

    @property
    def desc(self) -> TensorDesc:
        """The descriptor of this output."""
        return self.node.output_descs[self.index]

    def __repr__(self) -> str:
        return f"{self.node.name}:{self.index}"


class NodeIn(NamedTuple):
    """One input port of a node: the target end of a data edge."""

    node: Node
    index: int  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.node.name}<-{self.index}"


class Node:
    """An operator instance.

    ``inputs`` are flat, in signature order: one slot per required or optional input (``None``: absent), one slot per
    element of a dynamic input. ``subgraphs`` lists ``(IR name, graph name)`` of the bodies, owned by the root graph.
    Edges, names and types are changed through the owning :class:`Graph` only, which keeps consumers in step.
    """

    __slots__ = (
        "_consumers",
        "_control_in",
        "_control_out",
        "_graph",
        "_inputs",
        "_name",
        "_type",
        "attrs",
        "input_descs",
        "output_descs",
        "subgraphs",
    )

    def __init__(self, graph: Graph, name: str, type: str, n_inputs: int, output_descs: list[TensorDesc]) -> None:
        self._graph: Graph | None = graph
        self._name = name
        self._type = type
        self._inputs: list[NodeOut | None] = [None] * n_inputs
        self.input_descs: list[TensorDesc | None] = [None] * n_inputs
        self.output_descs = output_descs
        self.attrs: dict[str, AttrValue] = {}
        self.subgraphs: list[tuple[str, str]] = []
        self._consumers: list[dict[NodeIn, None]] = [{} for _ in output_descs]
        self._control_in: dict[Node, None] = {}
        self._control_out: dict[Node, None] = {}

    @property
    def name(self) -> str:
        """Unique within its graph."""
        return self._name

    @property
    def type(self) -> str:
        """Operator type, as registered in ge.ops."""
        return self._type

    @property
    def graph(self) -> Graph:
        """The owning graph. Raises ``RuntimeError`` for a removed node."""
        if self._graph is None:
            raise GeError(f"node {self._name} was removed from its graph")
        return self._graph

    @property
    def is_removed(self) -> bool:
        """True once the node no longer belongs to a graph."""
        return self._graph is None

    @property
    def inputs(self) -> tuple[NodeOut | None, ...]:
        """Producers by input slot."""
        return tuple(self._inputs)

    @property
    def control_inputs(self) -> tuple[Node, ...]:
        """Nodes that must run before this one."""
        return tuple(self._control_in)

    @property
    def control_outputs(self) -> tuple[Node, ...]:
        """Nodes that must run after this one."""
        return tuple(self._control_out)

    def input(self, index: int) -> NodeOut | None:
        """Return the producer of one input slot; ``None`` when absent or beyond the last slot."""
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def output(self, index: int = 0) -> NodeOut:
        """Return one output as an edge source."""
        if not 0 <= index < len(self.output_descs):
            raise IndexError(f"node {self._name} ({self._type}) has {len(self.output_descs)} outputs, not {index + 1}")
        return NodeOut(self, index)

    def outputs(self) -> Iterator[NodeOut]:
        """Iterate over all outputs."""
        return (NodeOut(self, i) for i in range(len(self.output_descs)))

    def consumers(self, index: int = 0) -> list[NodeIn]:
        """Return the readers of one output, in the order in which the edges were made."""
        return list(self._consumers[index])

    def n_consumers(self) -> int:
        """Return the number of data edges that leave this node."""
        return sum(map(len, self._consumers))

    def predecessors(self) -> list[Node]:
        """Return the nodes from which data and control edges come, each once, in the order of the edges."""
        found = [source.node for source in self._inputs if source is not None]
        found += self._control_in
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def successors(self) -> list[Node]:
        """Return the nodes to which data and control edges go, each once, in the order in which they were made."""
        found = [reader.node for readers in self._consumers for reader in readers]
        found += self._control_out
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def take_desc(self, slot: int) -> None:
        """Let the descriptor of an input slot show what its producer makes; further attributes of it stay."""
        source = self._inputs[slot]
        if source is None:
            self.input_descs[slot] = None
            return
        desc, old = source.desc.copy(), self.input_descs[slot]
        if old is not None and old.attrs:
            desc.attrs = old.attrs | desc.attrs
        self.input_descs[slot] = desc

    def __repr__(self) -> str:
        return f"<{self._type} {self._name}>"

    # -- CANN's interface ------------------------------------------------------------------------------------------
    # Failures are RuntimeErrors, arguments of other types TypeErrors. Descriptors and attribute values are copies.
    def __copy__(self) -> Node:
        raise GeError("a Node cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        raise GeError("a Node cannot be copied")

    def get_inputs_size(self) -> int:
        """Return the number of input ports; absent optional ones behind the last connected one do not count."""
        _ = self.graph
        count = len(self._inputs)
        while count and self._inputs[count - 1] is None:
            count -= 1
        return count

    def get_outputs_size(self) -> int:
        """Return the number of outputs."""
        _ = self.graph
        return len(self.output_descs)

    def get_in_data_nodes_and_port_indexes(self, in_index: int) -> tuple[Node, int]:
        """Return producer and output index behind an input port. An unconnected port is a failure."""
        _ = self.graph
        source = self.input(_checked_index(in_index, "input index"))
        if source is None:
            raise GeError(f"input {in_index} of node {self._name} ({self._type}) is not connected")
        return source.node, source.index

    def get_out_data_nodes_and_port_indexes(self, out_index: int) -> list[tuple[Node, int]]:
        """Return readers and their input ports of one output, in the order in which the edges were made."""
        return [(reader.node, reader.index) for reader in self._consumers[self._checked_output(out_index)]]

    def get_in_control_nodes(self) -> list[Node]:
        """Return the nodes that must run before this one."""
        _ = self.graph
        return list(self._control_in)

    def get_out_control_nodes(self) -> list[Node]:
        """Return the nodes that must run after this one."""
        _ = self.graph
        return list(self._control_out)

    def has_attr(self, attr_name: str) -> bool:
        """Tell whether the attribute has a value, be it the default that the operator's signature gives."""
        checked_key(attr_name)
        return self.attrs.get(attr_name) is not None or self._default_of(attr_name) is not None

    def get_attr(self, key: str) -> Any:
        """Return the value of an attribute, or the default that the operator's signature gives."""
        checked_key(key)
        if self.attrs.get(key) is None:
            default = self._default_of(key)
            if default is not None:
                return shown(default)
        return found(self.attrs, key, f"node {self._name} ({self._type})")

    def set_attr(self, key: str, value: Any) -> None:
        """Set an attribute: str, bool, int, float, DataType, Tensor, or a list of str, bool, int or float.

        An attribute of the operator's signature takes the kind declared there; another one is a failure. An empty list
        is a ``ValueError``. A constant's descriptor follows its ``value``.
        """
        checked_key(key)
        _ = self.graph
        stored = settable(value)
        signature = self._signature()
        if signature is not None and key in signature.attrs:
            try:
                stored = conform(signature.attrs[key], stored, self._type)
            except TypeError as fault:
                raise GeError(f"node {self._name}: {fault}") from None
        self.attrs[key] = stored
        if self._type == "Const" and key == "value":
            self._follow_value(stored)

    def _follow_value(self, value: Tensor) -> None:
        for index in range(len(self.output_descs)):
            desc = value.desc.copy()
            desc.attrs.update(self.output_descs[index].attrs)
            self.update_output_desc(index, desc)

    def _signature(self) -> Signature | None:
        from ge.ops import lookup  # ge.ops imports this module

        definition = lookup(self._type)
        return None if definition is None else definition.signature

    def _default_of(self, key: str) -> Any:
        signature = self._signature()
        spec = None if signature is None else signature.attrs.get(key)
        return None if spec is None else spec.default

    def get_input_desc(self, index: int) -> TensorDesc:
        """Return a copy of the descriptor of an input port. An unconnected port is a failure."""
        return self._input_desc(index).copy()

    def get_output_desc(self, index: int) -> TensorDesc:
        """Return a copy of the descriptor of an output."""
        return self.output_descs[self._checked_output(index)].copy()

    def update_input_desc(self, index: int, desc: TensorDesc) -> None:
        """Set the descriptor of an input port.

        An edge carries one tensor, so shape, format and element type stay those that the producer makes: change them
        with :meth:`update_output_desc` of the producer. (GE lets both differ until its next inference.)
        """
        old = self._input_desc(index)
        new = _checked_desc(desc).copy()
        new.shape, new.format, new.sub_format, new.data_type = old.layout
        if desc.layout != old.layout:
            new.origin_shape, new.origin_format = old.origin_shape, old.origin_format
        self.input_descs[index] = new

    def update_output_desc(self, index: int, desc: TensorDesc) -> None:
        """Set the descriptor of an output; the input ports that read it follow."""
        self.output_descs[self._checked_output(index)] = _checked_desc(desc).copy()
        for reader in self._consumers[index]:
            reader.node.take_desc(reader.index)

    def get_input_attr(self, attr_name: str, input_index: int) -> Any:
        """Return an attribute of the descriptor of an input port."""
        checked_key(attr_name)
        return found(self._input_desc(input_index).attrs, attr_name, f"input {input_index} of node {self._name}")

    def set_input_attr(self, attr_name: str, input_index: int, value: Any) -> None:
        """Set an attribute of the descriptor of an input port; values as in :meth:`set_attr`."""
        checked_key(attr_name)
        self._input_desc(input_index).attrs[attr_name] = settable(value)

    def get_output_attr(self, attr_name: str, output_index: int) -> Any:
        """Return an attribute of the descriptor of an output."""
        checked_key(attr_name)
        attrs = self.output_descs[self._checked_output(output_index)].attrs
        return found(attrs, attr_name, f"output {output_index} of node {self._name}")

    def set_output_attr(self, attr_name: str, output_index: int, value: Any) -> None:
        """Set an attribute of the descriptor of an output; values as in :meth:`set_attr`."""
        checked_key(attr_name)
        self.output_descs[self._checked_output(output_index)].attrs[attr_name] = settable(value)

    def _input_desc(self, index: int) -> TensorDesc:
        _ = self.graph
        position = _checked_index(index, "input index")
        desc = self.input_descs[position] if 0 <= position < len(self.input_descs) else None
        if desc is None:
            raise GeError(f"input {index} of node {self._name} ({self._type}) is not connected")
        return desc

    def _checked_output(self, index: int) -> int:
        _ = self.graph
        if not 0 <= _checked_index(index, "output index") < len(self.output_descs):
            raise GeError(f"node {self._name} ({self._type}) has {len(self.output_descs)} outputs, no output {index}")
        return index


def _checked_index(index: object, what: str) -> int:
    if not isinstance(index, int):
        raise TypeError(f"{what} must be an int, not {type(index).__name__}")
    return index


def _checked_desc(desc: object) -> TensorDesc:
    if not isinstance(desc, TensorDesc):
        raise TypeError(f"desc must be a TensorDesc, not {type(desc).__name__}")
    return desc
