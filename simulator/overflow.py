"""Counts what half precision could not hold: infinite results of finite inputs, and casts to integers that saturate.

It costs two reading passes over every float16 and bfloat16 result, some 0.1 ms per million elements. Where a result has
infinite elements the inputs are looked at too, so the operator is named that made them and not those behind it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from ge.graph import DataType, Node, TensorDesc
from ge.graph.types import NARROW_FLOATS, numpy_dtype

Value = Any
"""An array, a handle, or ``None`` for what is absent."""

# the bits of +infinity; above it as a signed number there are NaNs only, and so for -infinity as an unsigned one
_INFINITY = {np.dtype(np.float16): 0x7C00, np.dtype(ml_dtypes.bfloat16): 0x7F80}
_SIGN, _MAGNITUDE = 0x8000, 0x7FFF
_FLOATS = frozenset(numpy_dtype(t) for t in (*NARROW_FLOATS, DataType.DT_FLOAT, DataType.DT_DOUBLE))
_CASTS = frozenset({"Cast", "CastLike"})


@dataclass(frozen=True)
class Overflow:
    """What went beyond the range of a type at one node: the most elements in one run.

    ``infinite`` elements became infinite although all inputs were finite, ``saturated`` ones became the nearest integer
    that there is.
    """

    node: str
    type: str
    infinite: int = 0
    saturated: int = 0


class OverflowCounter:
    """Counts for the runs of one session. An executor tells it of every node that has run."""

    def __init__(self) -> None:
        self._found: dict[str, Overflow] = {}
        self._run: dict[str, Overflow] = {}
        self._is_infinite: dict[int, bool] = {}
        self.seconds = 0.0
        """Time that counting took in the run under way, which is none of the model's."""

    def start(self) -> None:
        """Begin a run."""
        self._run = {}
        self._is_infinite = {}
        self.seconds = 0.0

    def finish(self) -> None:
        """End a run: per node the largest counts stay."""
        for node, now in self._run.items():
            known = self._found.get(node, now)
            most = (max(known.infinite, now.infinite), max(known.saturated, now.saturated))
            self._found[node] = replace(now, infinite=most[0], saturated=most[1])

    def found(self) -> list[Overflow]:
        """Return what has been counted, in the order in which nodes ran."""
        return list(self._found.values())

    def forget(self) -> None:
        """Forget earlier runs."""
        self._found = {}

    def after(
        self,
        name: str,
        optype: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        *,
        is_call: bool = False,
        unread: frozenset[int] = frozenset(),
    ) -> None:
        """See a node that has run. What a call node gives was counted inside; ``unread`` outputs harm nobody."""
        start = time.perf_counter()
        read = [o for place, o in enumerate(outputs) if place not in unread]
        narrow = [o for o in read if isinstance(o, np.ndarray) and o.dtype in _INFINITY]
        counts = [_infinities(o) if _may_be_infinite(o) else 0 for o in narrow]
        infinite = 0 if is_call or (any(counts) and self._takes_infinite(inputs, outputs)) else sum(counts)
        saturated = _saturated(inputs[0], outputs[0]) if optype in _CASTS else 0
        self._is_infinite.update((_place(o), count > 0) for o, count in zip(narrow, counts, strict=True))
        if infinite or saturated:
            before = self._run.get(name, Overflow(name, optype))
            self._run[name] = Overflow(name, optype, before.infinite + infinite, before.saturated + saturated)
        self.seconds += time.perf_counter() - start

    def _takes_infinite(self, inputs: Iterable[Value], outputs: Sequence[Value]) -> bool:
        """Tell whether an input was infinite: what an output lies on is gone, but was looked at when it was made."""
        for value in inputs:
            if not isinstance(value, np.ndarray) or value.dtype not in _FLOATS:
                continue
            is_gone = any(isinstance(o, np.ndarray) and np.may_share_memory(value, o) for o in outputs)
            if self._is_infinite.get(_place(value), False) if is_gone else _infinities(value) > 0:
                return True
        return False


def _place(array: Value) -> int:
    return int(array.__array_interface__["data"][0])


def _may_be_infinite(array: Value) -> bool:
    """Tell whether there are infinities, or NaNs, which look alike: two passes that allocate nothing."""
    if not array.size:
        return False
    infinity = _INFINITY[array.dtype]
    bits = array.view(np.uint16)
    return bool(bits.view(np.int16).max() >= infinity or bits.max() >= infinity | _SIGN)


def _infinities(array: Value) -> int:
    infinity = _INFINITY.get(array.dtype)
    if infinity is None:
        return int(np.count_nonzero(np.isinf(array)))
    return int(np.count_nonzero(array.view(np.uint16) & _MAGNITUDE == infinity))


def _saturated(source: Value, made: Value) -> int:
    """Return how many floats had no place among the integers that they became."""
    if not (isinstance(source, np.ndarray) and isinstance(made, np.ndarray)):
        return 0
    if source.dtype not in _FLOATS or made.dtype.kind not in "iu" or not made.size:
        return 0
    info = np.iinfo(made.dtype)
    if made.max() != info.max and made.min() != info.min:
        return 0
    values = source.astype(np.float64)
    return int(np.count_nonzero((values >= float(info.max) + 1) | (values < float(info.min))))


def unread_outputs(node: Node) -> frozenset[int]:
    """Return the numbers of the outputs that nobody reads."""
    return frozenset(place for place in range(len(node.output_descs)) if not node.consumers(place))


def is_narrow(desc: TensorDesc) -> bool:
    """Tell whether a tensor may have elements to count."""
    return desc.data_type in (DataType.DT_FLOAT16, DataType.DT_BF16)


def has_narrow_floats(arrays: Iterable[Value]) -> bool:
    """Tell whether there is anything to count."""
    return any(isinstance(array, np.ndarray) and array.dtype in _INFINITY for array in arrays)
