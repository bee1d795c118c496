"""Arithmetic on constants inside a sketch: done now, or left to nodes that run once at load.

Numbers are float64 until they are stored, so that a folded weight is rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.graph import DataType, Format, NodeOut
from ge.graph.types import NARROW_FLOATS, numpy_dtype
from ge.ops.registry import Array
from ge.ops.rounding import round_to_odd
from ge.tensor_memory import LOAD_TIME_CONST
from passes.fusion.constants import TOLERANCES, value_of
from passes.fusion.sketch import Sketch

Dims = tuple[int, ...]
_UFUNCS: dict[str, Any] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide, "Sqrt": np.sqrt}

_SCALING = frozenset({"Mul", "RealDiv"})


@dataclass(frozen=True)
class Constant:
    """A float64 constant of ``shape``: its ``value``, or, where a load-time constant takes part, a tensor ``source``.

    The source may have the elements in another shape, ``source_shape``; they are reshaped where it matters, which
    saves nodes. ``is_lost`` says that a product or quotient was too small for float64.
    """

    sketch: Sketch
    shape: Dims
    value: Array | None = None
    source: NodeOut | None = None
    source_shape: Dims = ()
    is_lost: bool = False

    @classmethod
    def of(cls, sketch: Sketch, feeding: NodeOut) -> Constant:
        """Return a constant that feeds the sketch."""
        value, shape = value_of(feeding), tuple(feeding.desc.origin_shape)
        if value is not None:
            return cls(sketch, shape, value=value.astype(np.float64))
        return cls._at_load(sketch, shape, "Cast", sketch.input_of(feeding), dst_type=DataType.DT_DOUBLE)

    @classmethod
    def filled(cls, sketch: Sketch, shape: Dims, value: float) -> Constant:
        """Return a constant whose elements are all the same."""
        return cls(sketch, shape, value=np.full(shape, value, np.float64))

    @classmethod
    def number(cls, sketch: Sketch, value: float) -> Constant:
        """Return a scalar."""
        return cls.filled(sketch, (), value)

    @classmethod
    def _at_load(cls, sketch: Sketch, shape: Dims, type: str, *inputs: NodeOut, **attrs: Any) -> Constant:
        return cls(sketch, shape, source=at_load(sketch, type, *inputs, **attrs), source_shape=shape)

    def __add__(self, other: Constant | float) -> Constant:
        return self._with("Add", other)

    def __sub__(self, other: Constant | float) -> Constant:
        return self._with("Sub", other)

    def __mul__(self, other: Constant | float) -> Constant:
        return self._with("Mul", other)

    def __truediv__(self, other: Constant | float) -> Constant:
        return self._with("RealDiv", other)

    def sqrt(self) -> Constant:
        """Return the square root of each element."""
        return self._made("Sqrt", self.shape, self)

    def _with(self, type: str, other: Constant | float) -> Constant:
        second = other if isinstance(other, Constant) else Constant.number(self.sketch, other)
        return self._made(type, np.broadcast_shapes(self.shape, second.shape), self, second)

    def _made(self, type: str, shape: Dims, *operands: Constant) -> Constant:
        values = [operand.value for operand in operands if operand.value is not None]
        if len(values) == len(operands):
            with np.errstate(all="ignore"):
                value = np.asarray(_UFUNCS[type](*values))
            is_lost = any(operand.is_lost for operand in operands) or (type in _SCALING and _is_lost(value, *values))
            return Constant(self.sketch, shape, value=value, is_lost=is_lost)
        arrays = [operand for operand in operands if operand.shape]
        own = {operand.source_shape if operand.value is None else None for operand in arrays}
        if len(own) == 1 and None not in own and {operand.shape for operand in arrays} == {shape}:
            sources = [operand.tensor(operand.source_shape) for operand in operands]
            made = at_load(self.sketch, type, *sources)
            return Constant(self.sketch, shape, source=made, source_shape=arrays[0].source_shape)
        return Constant._at_load(self.sketch, shape, type, *[operand.tensor(operand.shape) for operand in operands])

    def reshape(self, dims: Dims) -> Constant:
        """Return the elements in another shape; one dim may be -1."""
        shape = tuple(prod(self.shape) // -prod(dims) if dim == -1 else dim for dim in dims)
        value = None if self.value is None else self.value.reshape(shape)
        return Constant(self.sketch, shape, value, self.source, self.source_shape, self.is_lost)

    def transpose(self) -> Constant:
        """Return the transposed of a matrix."""
        shape = self.shape[::-1]
        if self.value is not None:
            return Constant(self.sketch, shape, value=self.value.T, is_lost=self.is_lost)
        order = self.sketch.ints((1, 0))
        return Constant._at_load(self.sketch, shape, "Transpose", self.tensor(self.shape), order)

    def is_storable(self, dtype: DataType) -> bool:
        """False if an element is known to be no finite number in ``dtype``, or to become 0 there."""
        if self.value is None:
            return True
        kept = rounded(self.value, dtype).astype(np.float64)
        return bool(np.isfinite(kept).all() and not np.any((kept == 0) & (self.value != 0))) and not self.is_lost

    def keeps_digits(self, dtype: DataType) -> bool:
        """False if an element is known to have so few digits in ``dtype`` that products with it are other ones."""
        if self.value is None:
            return True
        kept = rounded(self.value, dtype).astype(np.float64)
        return bool(np.all(np.abs(kept - self.value) <= np.abs(self.value) * TOLERANCES[dtype]))

    def magnitude(self) -> float:
        """The largest absolute value that is known."""
        return 0.0 if self.value is None else float(np.abs(self.value).max(initial=0.0))

    def is_everywhere(self, number: float) -> bool:
        """True if all elements are known to be ``number``."""
        return self.value is not None and bool(np.all(self.value == number))

    def tensor(self, shape: Dims) -> NodeOut:
        """Return a tensor of the sketch that holds the elements in ``shape``."""
        if self.source is None:
            assert self.value is not None
            return self.sketch.const(self.value.reshape(shape))
        if self.source_shape == shape:
            return self.source
        return at_load(self.sketch, "Reshape", self.source, self.sketch.ints(shape))

    def stored(self, dtype: DataType, format: Format = Format.FORMAT_ND) -> NodeOut:
        """Return a tensor of the sketch that holds the numbers, rounded to ``dtype``."""
        if self.value is not None:
            return self.sketch.const(rounded(self.value, dtype), format)
        return at_load(self.sketch, "Cast", self.tensor(self.shape), dst_type=dtype)


def _is_lost(result: Array, first: Array, second: Array) -> bool:
    """Tell whether ``result`` has elements below the range of float64 that are not 0, or infinitely small, by right."""
    is_tiny = np.abs(result) < np.finfo(np.float64).tiny
    return bool(np.any(is_tiny & (first != 0) & (second != 0) & np.isfinite(second)))


def at_load(sketch: Sketch, type: str, *inputs: NodeOut | None, **attrs: Any) -> NodeOut:
    """Add a node that runs once at load."""
    made = sketch.add(type, *inputs, **attrs)
    made.node.attrs[LOAD_TIME_CONST] = True
    return made


def rounded(value: Array, dtype: DataType) -> Array:
    """Round float64 numbers to ``dtype`` in one go."""
    with np.errstate(all="ignore"):
        narrow = dtype in NARROW_FLOATS and dtype is not DataType.DT_FLOAT16
        kept = (round_to_odd(value) if narrow else value).astype(numpy_dtype(dtype))
        return np.ascontiguousarray(kept).reshape(value.shape)  # numpy makes vectors of scalars
