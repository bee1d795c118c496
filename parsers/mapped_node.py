"""What every mapping function works with: a node of a model, its inputs already in the GE graph; adds GE nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph import DataType, Node, NodeOut, Shape
from ge.graph.types import numpy_dtype
from ge.ops import lookup
from parsers.ge_nodes import GeNodes
from parsers.knowledge import Array

Source = Node | NodeOut | None
"""An input of a GE node; a node stands for its output 0, ``None`` for an absent optional input."""


class MappedNode:
    """One node of a model to be mapped. ``inputs`` are the producers (``None``: absent)."""

    builder: GeNodes
    name: str
    op_type: str
    inputs: list[NodeOut | None]

    # -- reading -----------------------------------------------------------------------------------------------------
    def input_name(self, index: int) -> str:
        """Return what the model calls an input; for messages."""
        raise NotImplementedError

    def input(self, index: int) -> NodeOut | None:
        """Return the producer of an input; ``None`` when it is absent or not given."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need(self, index: int) -> NodeOut:
        """Return the producer of an input that must be there."""
        source = self.input(index)
        if source is None:
            raise self.fail(f"its input {index} is absent")
        return source

    def shape(self, source: Source) -> Shape:
        """Return the shape of a tensor; ``[-2]`` when not even its rank is known."""
        return self._out(source).desc.origin_shape

    def dtype(self, source: Source) -> DataType:
        """Return the element type of a tensor."""
        return self._out(source).desc.data_type

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input. An unknown one is an error."""
        shape = self.shape(self.need(index))
        if shape.is_unknown_rank():
            raise self.fail(f"the rank of its input {index} ({self.input_name(index)}) is not known")
        return len(shape)

    def axis(self, value: int, rank: int, name: str = "axis") -> int:
        """Return an axis in 0..rank-1. One out of range is an error."""
        if not -rank <= value < rank:
            raise self.fail(f"{name} {value} is out of range for rank {rank}")
        return value % rank

    def value(self, source: Source) -> Array | None:
        """Return the value of a tensor if it is known now."""
        return None if source is None else self.builder.knowledge.value(self._out(source))

    def ints(self, source: Source) -> list[int] | None:
        """Return the known value of an integer tensor, flattened; ``None`` when absent or not known."""
        found = self.value(source)
        if found is None:
            return None
        if found.dtype.kind not in "iub":
            raise self.fail(f"{self._out(source)} should hold integers, but is {found.dtype}")
        return [int(v) for v in np.ravel(found)]

    @staticmethod
    def _out(source: Source) -> NodeOut:
        assert source is not None
        return source.output(0) if isinstance(source, Node) else source

    # -- building ----------------------------------------------------------------------------------------------------
    def add(self, type: str, /, *inputs: Source, role: str = "", n_outputs: int | None = None, **attrs: Any) -> Node:
        """Add a GE node and infer its outputs.

        The node that gives the result has no ``role`` and the model's node's own name, others are ``<name>_<role>``.
        ``n_outputs`` is needed for operators with a dynamic output only. Trailing absent inputs are left out.
        """
        sources = [None if source is None else self._out(source) for source in inputs]
        while sources and sources[-1] is None:
            sources.pop()
        definition = lookup(type)
        if n_outputs is None:
            is_fixed = definition is not None and not definition.signature.has_dynamic_output
            n_outputs = len(definition.signature.outputs) if definition is not None and is_fixed else 1
        node = self.builder.add_node(self, type, role, sources, attrs, n_outputs)
        self.builder.knowledge.infer(node)
        return node

    def add_call(self, type: str, /, *inputs: NodeOut, n_outputs: int) -> Node:
        """Add a node that calls graphs; the caller says what its outputs are."""
        return self.builder.add_node(self, type, "", inputs, {}, n_outputs)

    def const(self, role: str, array: Any) -> NodeOut:
        """Add a Const ``<name>_<role>``."""
        return self.builder.add_const(self, role, np.asarray(array))

    def index(self, role: str, values: int | Iterable[int]) -> NodeOut:
        """Add an int32 Const: a scalar for one number, a vector for several. Numbers beyond int32 are clamped."""
        array = np.asarray(values if isinstance(values, int) else list(values), np.int64)
        return self.const(role, np.clip(array, -(2**31), 2**31 - 1).astype(np.int32))

    def int64(self, values: Iterable[int], role: str) -> NodeOut:
        """Add an int64 vector Const."""
        return self.const(role, np.asarray(list(values), np.int64))

    def scalar(self, role: str, value: float, dtype: DataType) -> NodeOut:
        """Add a scalar Const of an element type."""
        return self.const(role, np.asarray(value).astype(numpy_dtype(dtype)))

    def cast(self, source: Source, dtype: DataType, role: str = "Cast") -> NodeOut:
        """Return ``source`` in ``dtype``; adds a Cast only when the type differs."""
        found = self._out(source)
        if found.desc.data_type == dtype:
            return found
        return self.add("Cast", found, role=role, dst_type=int(dtype)).output()

    def fail(self, reason: str) -> ReportedError:
        """Return the error for a node that cannot be mapped: ``raise n.fail("...")``."""
        return ReportedError("E11010", opname=self.name, optype=self.op_type, reason=reason)
