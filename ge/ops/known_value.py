"""What is known of a tensor's elements while a model is compiled: all of them, or some.

Shapes are computed from shapes: of the vector that Shape makes of ``[-1,3,224,224]`` three elements are known, and the
fourth is known by its name. A Reshape to it, or to parts of it, needs no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ge.graph.tensor_desc import OpenDim, same_dim

Array = np.ndarray[Any, np.dtype[Any]]

MAX_PARTIAL = 1024
"""Elements up to which a tensor that is not known altogether is looked at one by one."""


@dataclass(frozen=True)
class KnownValue:
    """``array`` holds the elements; where ``is_known`` (same shape; ``None``: everywhere) is false, what it holds is 1.

    ``names`` tells by flat index which unknown elements are dims with a name.
    """

    array: Array
    is_known: Array | None = None
    names: Mapping[int, OpenDim] = field(default_factory=dict)

    @classmethod
    def of_dims(cls, dims: Sequence[int], dtype: Any) -> KnownValue:
        """Return the vector of ``dims``, negative ones unknown."""
        known = np.array([dim >= 0 for dim in dims], np.bool_)
        array = np.array([max(dim, 1) if dim < 0 else dim for dim in dims], dtype)
        names = {i: dim for i, dim in enumerate(dims) if isinstance(dim, OpenDim)}
        return cls(array) if known.all() else cls(array, known, names)

    @property
    def whole(self) -> Array | None:
        """The array when every element is known."""
        return self.array if self.is_known is None else None

    def known_mask(self) -> Array:
        """Return a boolean array that tells for each element whether it is known."""
        return np.ones(self.array.shape, np.bool_) if self.is_known is None else self.is_known

    def elements(self) -> list[int | None]:
        """Return the elements of an integer tensor, flattened: a number, an ``OpenDim``, or ``None``."""
        known = self.known_mask().ravel()
        return [int(v) if known[i] else self.names.get(i) for i, v in enumerate(self.array.ravel())]


def certainly_equal(first: int | None, second: int | None) -> bool | None:
    """Compare two elements; ``None`` when it cannot be told. Dims are never negative."""
    if first is None or second is None:
        return None
    for one, other in ((first, second), (second, first)):
        if isinstance(one, OpenDim) and not isinstance(other, OpenDim):
            return False if other < 0 else None
    if isinstance(first, OpenDim):
        return True if same_dim(first, second) else None
    return first == second
