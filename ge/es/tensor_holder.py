"""Tensors of a graph under construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ge.error import GeError
from ge.graph.node import Node, NodeOut
from ge.graph.tensor_desc import checked_dims
from ge.graph.types import DataType, Format

if TYPE_CHECKING:
    from ge.es.graph_builder import GraphBuilder
    from ge.es.tensor_like import TensorLike


class TensorHolder:
    """A tensor that a :class:`GraphBuilder` or an operator function made; its builder stays alive with it.

    ``+ - * /`` make Add, Sub, Mul and Div; the other side may be a number or nested lists of numbers. Reflected ``+``
    and ``*`` put the tensor first: ``2 + t`` is ``Add(t, 2)``. Two tensors of different builders are a ``ValueError``.
    An operator without outputs gives a holder that has no tensor and serves control dependencies only.
    """

    __slots__ = ("_builder", "_index", "_node")
    _builder: GraphBuilder
    _index: int
    _node: Node

    def __init__(self) -> None:
        raise GeError("a TensorHolder is made by a GraphBuilder or an operator function")

    @classmethod
    def _of(cls, builder: GraphBuilder, node: Node, index: int) -> TensorHolder:
        """Wrap one output of ``node``; index -1 stands for the node alone."""
        holder = cls.__new__(cls)
        holder._builder, holder._node, holder._index = builder, node, index
        return holder

    def __copy__(self) -> TensorHolder:
        raise GeError("a TensorHolder cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> TensorHolder:
        raise GeError("a TensorHolder cannot be copied")

    def __repr__(self) -> str:
        return f"<TensorHolder {self._node.name}:{self._index}>"

    @property
    def name(self) -> str:
        """The name of the node that makes the tensor."""
        return self._node.name

    def get_owner_builder(self) -> GraphBuilder:
        """Return the builder that the tensor belongs to."""
        return self._builder

    def _get_node_snapshot(self) -> Node:
        """Return the node that makes the tensor (the node itself: changes show in the graph)."""
        return self._node

    def _output(self) -> NodeOut:
        """Return the output that the holder stands for. Raises ``ValueError`` when the operator has none."""
        if self._index < 0:
            raise ValueError(f"node {self._node.name} ({self._node.type}) has no output")
        return NodeOut(self._node, self._index)

    def set_data_type(self, data_type: DataType) -> TensorHolder:
        """Set the element type of the descriptor; chains. Raises ``TypeError`` unless it is a DataType."""
        self._builder._check_usable("set a data type")
        desc = self._output().desc.copy().set_data_type(data_type)
        self._node.update_output_desc(self._index, desc)
        return self

    def set_format(self, format: Format) -> TensorHolder:
        """Set storage and origin format of the descriptor; chains. Raises ``TypeError`` unless it is a Format."""
        self._builder._check_usable("set a format")
        desc = self._output().desc.copy().set_format(format).set_origin_format(format)
        self._node.update_output_desc(self._index, desc)
        return self

    def set_shape(self, shape: list[int]) -> TensorHolder:
        """Set storage and origin shape of the descriptor; chains. Raises ``TypeError`` unless it is a list of int."""
        self._builder._check_usable("set a shape")
        dims = checked_dims(shape)
        desc = self._output().desc.copy().set_shape(dims).set_origin_shape(dims)
        self._node.update_output_desc(self._index, desc)
        return self

    def add(self, other: TensorHolder | TensorLike) -> TensorHolder:
        """Return ``Add(self, other)``."""
        return self._with("Add", self, other)

    def sub(self, other: TensorHolder | TensorLike) -> TensorHolder:
        """Return ``Sub(self, other)``."""
        return self._with("Sub", self, other)

    def mul(self, other: TensorHolder | TensorLike) -> TensorHolder:
        """Return ``Mul(self, other)``."""
        return self._with("Mul", self, other)

    def div(self, other: TensorHolder | TensorLike) -> TensorHolder:
        """Return ``Div(self, other)``."""
        return self._with("Div", self, other)

    __add__ = __radd__ = add
    __sub__ = sub
    __mul__ = __rmul__ = mul
    __truediv__ = div

    def __rsub__(self, other: TensorLike) -> TensorHolder:
        return self._with("Sub", other, self)

    def __rtruediv__(self, other: TensorLike) -> TensorHolder:
        return self._with("Div", other, self)

    def _with(self, type: str, x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder:
        from ge.es.tensor_like import convert_to_tensor_holder  # it imports this module

        first, second = (convert_to_tensor_holder(x, self._builder) for x in (x1, x2))
        if first is None or second is None:
            raise TypeError(f"{type} takes two tensors, not None")
        return self._builder._add_operator(type, [first, second], {}, 1)[0]
