"""Reading the constants that fusions ask for."""

from __future__ import annotations

import numpy as np

from ge.graph import DataType, Node, NodeOut, Tensor
from ge.ops.registry import Array, Attributes, definition
from ge.tensor_memory import is_constant

FLOATS = frozenset({DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_DOUBLE})

TOLERANCES = {
    DataType.DT_DOUBLE: 1e-9,
    DataType.DT_FLOAT: 1e-5,
    DataType.DT_FLOAT16: 2e-3,
    DataType.DT_BF16: 2e-2,
}
"""How far a number in a model may be, in proportion, from what it stands for: exporters round sqrt(2) to the type of
the model, and to few digits."""


def value_of(source: NodeOut | None) -> Array | None:
    """Return the value of a Const; ``None`` for everything else, load-time constants included."""
    if source is None or source.node.type != "Const":
        return None
    value = source.node.attrs.get("value")
    return value.array if isinstance(value, Tensor) else None


def number_of(source: NodeOut | None) -> float | None:
    """Return the number that a constant of one element holds."""
    value = value_of(source)
    if value is None or value.size != 1 or value.dtype.kind in "OSU":
        return None
    return float(value.reshape(())[()])


def ints_of(source: NodeOut | None) -> list[int] | None:
    """Return the integers that a constant holds, flattened."""
    value = value_of(source)
    return None if value is None or value.dtype.kind not in "iu" else [int(v) for v in value.ravel()]


def is_fixed(source: NodeOut | None) -> bool:
    """Tell whether a tensor is constant: a Const, or computed once at load."""
    return source is not None and is_constant(source.node)


def is_everywhere(source: NodeOut | None, number: float) -> bool:
    """Tell whether all elements of a constant are ``number``, whatever the sign of a zero."""
    value = value_of(source)
    if value is None or not value.size or value.dtype.kind in "OSU":
        return False
    return bool(value.ravel()[0] == number) and bool(np.all(value == number))


def attributes(node: Node) -> Attributes:
    """Return the attributes of a node, the defaults of its signature filled in."""
    return definition(node).attributes(node.attrs)


def is_float(source: NodeOut) -> bool:
    """Tell whether a tensor holds floating point numbers."""
    return source.desc.data_type in FLOATS
