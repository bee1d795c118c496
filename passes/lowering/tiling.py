"""Tiling groups: what kind of loop each axis of a kernel is, and whether two kernels agree about it."""

from __future__ import annotations

from dataclasses import dataclass

from ge.ascir import AscGraph, AscOp, ComputeType


@dataclass(frozen=True)
class TilingGroups:
    """Axes before a joined one (``x``), elementwise (``y``), reduced (``r``), and those that are not divided (``n``).

    Every axis is in one group. Printed as ``(x)(y)(r)(n)``, empty groups at the end left out.
    """

    x: frozenset[int] = frozenset()
    y: frozenset[int] = frozenset()
    r: frozenset[int] = frozenset()
    n: frozenset[int] = frozenset()

    def __str__(self) -> str:
        groups = [",".join(f"z{axis}" for axis in sorted(group)) for group in (self.x, self.y, self.r, self.n)]
        return "".join(f"({group})" for group in groups)

    def merged(self, other: TilingGroups) -> TilingGroups | None:
        """Return the groups of both kernels in one; ``None`` where they contradict each other.

        An elementwise axis is whatever the other kernel makes of it; an axis cannot be of two other kinds, and two
        kernels that both reduce (or both join) do it over the same axes.
        """
        if (self.r and other.r and self.r != other.r) or (self.x and other.x and self.x != other.x):
            return None
        x, r, n = self.x | other.x, self.r | other.r, self.n | other.n
        if x & r or x & n or r & n:
            return None
        return TilingGroups(x, (self.y | other.y) - x - r - n, r, n)


def groups_of_op(op: AscOp, graph: AscGraph) -> TilingGroups:
    """Return what one operator asks of the axes."""
    axes = frozenset(range(len(graph.axes)))
    if op.compute_type is ComputeType.REDUCE:
        view = graph.ops[op.inputs[0]].tensor.repeats
        reduced = frozenset(k for k, (v, left) in enumerate(zip(view, op.tensor.repeats, strict=True)) if v != left)
        return TilingGroups(y=axes - reduced, r=reduced)
    if op.compute_type in (ComputeType.CONCAT, ComputeType.SPLIT):
        axis = int(op.attr("axis"))
        before = frozenset(range(axis))
        return TilingGroups(x=before, n=axes - before)
    if op.compute_type is ComputeType.GATHER:
        axis = int(op.attr("axis"))
        return TilingGroups(y=axes - {axis}, n=frozenset({axis}) & axes)
    if op.compute_type is ComputeType.CUBE:
        return TilingGroups(n=axes)
    return TilingGroups(y=axes)


def groups_of(graph: AscGraph) -> TilingGroups | None:
    """Return the groups of a whole kernel; ``None`` where its own operators contradict each other."""
    found: TilingGroups | None = TilingGroups(y=frozenset(range(len(graph.axes))))
    for op in graph.ops:
        if op.output is not None and found is not None:
            found = found.merged(groups_of_op(op, graph))
    return found
