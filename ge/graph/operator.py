"""Operators as callbacks see them: name, type and attributes of a node, for as long as the callback runs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ge.error import GeError
from ge.graph.node import Node


class Operator:
    """A node lent to a callback; after that every use is a ``RuntimeError``.

    It is made by :meth:`lend` and ends with its ``with`` block. A read-only one refuses changes.
    """

    __slots__ = ("_is_read_only", "_node")
    _is_read_only: bool
    _node: Node | None

    def __init__(self) -> None:
        raise GeError("an Operator is made for a callback, not directly")

    @classmethod
    def lend(cls, node: Node, *, is_read_only: bool = False) -> Operator:
        """Lend ``node``: ``with Operator.lend(node) as op: callback(op)``."""
        operator = cls.__new__(cls)
        operator._node = node
        operator._is_read_only = is_read_only
        return operator

    def __enter__(self) -> Operator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node = None

    def __copy__(self) -> Operator:
        raise GeError("an Operator cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> Operator:
        raise GeError("an Operator cannot be copied")

    def _lent(self) -> Node:
        node = self._node
        if node is None:
            raise GeError("an Operator is good inside its callback only")
        return node

    @property
    def name(self) -> str:
        """The node's name."""
        return self._lent().name

    @property
    def type(self) -> str:
        """The operator type."""
        return self._lent().type

    def get_attr(self, name: str) -> Any:
        """Return the value of an attribute; see :meth:`ge.graph.node.Node.get_attr`."""
        return self._lent().get_attr(name)

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute; see :meth:`ge.graph.node.Node.set_attr`. Raises ``RuntimeError`` when it is read-only."""
        node = self._lent()
        if self._is_read_only:
            raise GeError(f"operator {node.name} is read-only")
        node.set_attr(name, value)
