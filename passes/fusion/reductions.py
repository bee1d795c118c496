"""Reductions as fusions look for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ge.graph import Node, NodeOut
from passes.fusion.constants import attributes, ints_of

MEANS = ("ReduceMean", "ReduceMeanD")
SUMS = ("ReduceSum", "ReduceSumD")


@dataclass(frozen=True)
class Reduction:
    """A reduction of ``source`` over ``axes``, which are not negative, and which stay as axes of one element."""

    source: NodeOut
    axes: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The rank of the source."""
        return len(self.source.desc.origin_shape)

    @property
    def length(self) -> tuple[int, ...]:
        """The dims of the axes."""
        return tuple(self.source.desc.origin_shape[axis] for axis in self.axes)

    @property
    def is_over_last_axes(self) -> bool:
        """True when nothing but the last axes is reduced."""
        return self.axes == tuple(range(self.axes[0], self.rank))

    @property
    def refusal(self) -> str:
        """Why a normalisation over the axes must be left alone; empty if it need not."""
        if not self.is_over_last_axes:
            return f"it is over the axes {list(self.axes)} of {self.rank}, not over the last ones"
        return "" if min(self.length) > 0 else f"the size {list(self.length)} of what is normalised is not known"

    @property
    def is_over_neighbours(self) -> bool:
        """True when the axes lie side by side."""
        return self.axes == tuple(range(self.axes[0], self.axes[-1] + 1))


def reduction_of(node: Node, types: Collection[str]) -> Reduction | None:
    """Return what ``node`` reduces; ``None`` if it is of another type, drops axes, or does not name them."""
    source = node.input(0)
    if node.type not in types or source is None:
        return None
    op, shape = attributes(node), source.desc.origin_shape
    axes = list(op.axes) if node.type.endswith("D") else ints_of(node.input(1))
    if not axes or not op.keep_dims or shape.is_unknown_rank():
        return None
    rank = len(shape)
    return Reduction(source, tuple(sorted(axis % rank for axis in axes)))
