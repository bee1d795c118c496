"""Loop IR: what one operator computes, as an expression over loads of tensors.

A :class:`LoopOp` is immutable and knows its dims; expressions share their parts, so an operator that reads a fusible
producer holds the producer's expression, its Store included, as it is. Counts follow paths, not parts: in ``Mul(x, x)``
x counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ge.graph import DataType, NodeOut
from passes.lowering.loop_index import ZERO, Index, Indices, divided

LOADS = frozenset({"Load", "LoadGather"})
STORES = frozenset(
    {
        "Store",
        "StoreReduction",
        "StoreConcat",
        "StorePack",
        "StoreSplit",
        "StoreMatMul",
        "StoreConv2D",
        "StoreReshape",
    }
)
"""Operators that end an expression."""
VIEWS = frozenset({"Broadcast", "Permute", "Squeeze", "Unsqueeze", "Reshape", "StoreStridedSlice"})
"""Operators that move elements and compute nothing."""
REDUCTIONS = frozenset({"StoreReduction", "ReduceThenBroadcast"})
_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class LoopOp:
    """One step of an expression. ``anchor`` is the tensor that a load reads or a store writes.

    ``dims`` and ``dtype`` are those of the value (BOOL stays BOOL here and becomes uint8 in a kernel). ``origin`` is
    the operator of the model whose lowering made it. ``loads``, ``ops`` and ``slices`` count along all paths below,
    this one included; ``ops`` are all but loads and ``Store``.
    """

    id: int
    type: str
    inputs: tuple[LoopOp, ...]
    dims: tuple[int, ...]
    dtype: DataType
    origin: str
    attrs: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRS)
    anchor: NodeOut | None = None
    sources: tuple[NodeOut, ...] = ()
    loads: int = 0
    ops: int = 0
    slices: int = 0

    def __post_init__(self) -> None:
        own_load = 2 if self.type == "LoadGather" else int(self.type == "Load")
        own_op = int(self.type not in LOADS and self.type != "Store")
        own_slice = int(self.type == "StoreStridedSlice")
        object.__setattr__(self, "loads", own_load + sum(op.loads for op in self.inputs))
        object.__setattr__(self, "ops", own_op + sum(op.ops for op in self.inputs))
        object.__setattr__(self, "slices", own_slice + sum(op.slices for op in self.inputs))

    def walk(self) -> Iterator[LoopOp]:
        """Iterate over all parts, each once, in the order of their numbers."""
        found: dict[int, LoopOp] = {}
        waiting = [self]
        while waiting:
            op = waiting.pop()
            if op.id not in found:
                found[op.id] = op
                waiting += op.inputs
        return (found[number] for number in sorted(found))

    def readable(self) -> str:
        """Return the expression as text, one operator a line."""
        names: dict[int, str] = {}
        lines = []
        for number, op in enumerate(self.walk()):
            names[op.id] = f"tmp{number}"
            lines.append(f"tmp{number} = ops.{op.type}({', '.join(_arguments(op, names))})")
        return "\n".join(lines)


def _arguments(op: LoopOp, names: Mapping[int, str]) -> list[str]:
    places = [] if op.anchor is None else [f'"{op.anchor}"']
    places += [f'"{source}"' for source in op.sources]
    places += [names[source.id] for source in op.inputs]
    return places + [f"{name}={_shown(value)}" for name, value in op.attrs.items()]


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


# -- where a view finds its elements -----------------------------------------------------------------------------------
def source_indices(op: LoopOp, indices: Indices) -> Indices:
    """Return the indices into the input of a view for the element at ``indices`` of its result."""
    rule = _REINDEX.get(op.type)
    return indices if rule is None else rule(op, indices)


def _broadcast(op: LoopOp, indices: Indices) -> Indices:
    found: list[Index] = []
    for index, kind in zip(indices, op.attrs["kinds"], strict=True):
        if kind != "NEW_AXIS":
            found.append(ZERO if kind == "BROADCAST" else index)
    return tuple(found)


def _permute(op: LoopOp, indices: Indices) -> Indices:
    found = [ZERO] * len(indices)
    for place, source in enumerate(op.attrs["order"]):
        found[source] = indices[place]
    return tuple(found)


def _squeeze(op: LoopOp, indices: Indices) -> Indices:
    at = op.attrs["dim"]
    return (*indices[:at], ZERO, *indices[at:])


def _unsqueeze(op: LoopOp, indices: Indices) -> Indices:
    at = op.attrs["dim"]
    return (*indices[:at], *indices[at + 1 :])


def _strided_slice(op: LoopOp, indices: Indices) -> Indices:
    begins, strides = op.attrs["begin"], op.attrs["stride"]
    return tuple(i.scaled(s, b) for i, b, s in zip(indices, begins, strides, strict=True))


def _reshape(op: LoopOp, indices: Indices) -> Indices:
    """One dim becomes two, or two become one; ``at`` is the first of them, ``inner`` the length of the second."""
    at, inner = op.attrs["at"], op.attrs["inner"]
    if len(op.dims) > len(op.inputs[0].dims):
        merged = indices[at].scaled(inner).plus(indices[at + 1])
        return (*indices[:at], merged, *indices[at + 2 :])
    return (*indices[:at], *divided(indices[at], inner), *indices[at + 1 :])


_REINDEX: dict[str, Callable[[LoopOp, Indices], Indices]] = {
    "Broadcast": _broadcast,
    "Permute": _permute,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "StoreStridedSlice": _strided_slice,
}
