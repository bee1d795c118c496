"""Schedule: neighbouring axes become one loop, loops get tiles that fit a cache, one is divided among cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ge.ascir import AscGraph, AscTensor, Schedule
from ge.graph.types import numpy_dtype
from passes.lowering.refusal import Refusal, Rule
from passes.lowering.tiling import TilingGroups, groups_of

TILE_BYTES = 24 << 10
"""What the values of one tile may take: half of a first-level data cache of 48 KiB."""
_LEAST_VALUES = 2


def scheduled(graph: AscGraph, tile_bytes: int = TILE_BYTES) -> AscGraph:
    """Return the kernel with a schedule. Raises :class:`Refusal` where the operators want contradicting loops."""
    groups = groups_of(graph)
    if groups is None:
        raise Refusal(Rule.EMISSION, "operators want one axis to be two kinds of loop")
    loops = merged_loops(graph, groups)
    extents = [math.prod(graph.axes[axis].size for axis in loop) for loop in loops]
    kinds = {kind: tuple(k for k, loop in enumerate(loops) if loop[0] in getattr(groups, kind)) for kind in "xyrn"}
    budget = max(1, tile_bytes // max(1, bytes_per_element(graph)))
    schedule = Schedule(
        tuple(loops), kinds["x"], kinds["y"], kinds["r"], kinds["n"],
        tiles=tile_sizes(extents, kinds["n"], budget), block=_block(extents, [*kinds["x"], *kinds["y"]]),
    )  # fmt: skip
    return replace(graph, schedule=schedule)


def merged_loops(graph: AscGraph, groups: TilingGroups) -> list[tuple[int, ...]]:
    """Return the axes, neighbours together where every tensor passes them in one step and they are of one kind."""
    loops: list[tuple[int, ...]] = []
    for axis in range(len(graph.axes)):
        if loops and _is_one_loop(graph, groups, loops[-1][-1], axis):
            loops[-1] = (*loops[-1], axis)
        else:
            loops.append((axis,))
    return loops


def _is_one_loop(graph: AscGraph, groups: TilingGroups, outer: int, inner: int) -> bool:
    if any((outer in group) != (inner in group) for group in (groups.x, groups.y, groups.r, groups.n)):
        return False
    for op in graph.ops:
        if op.output is not None and not _is_contiguous(op.output, graph, outer, inner):
            return False
        guards = op.attr("guards") if op.type in _GUARDED else ()
        if any(guard[outer] or guard[inner] for guard in guards):
            return False
    return True


_GUARDED = frozenset({"Store", "All", "Any", "Max", "Mean", "Min", "Prod", "Sum"})


def _is_contiguous(tensor: AscTensor, graph: AscGraph, outer: int, inner: int) -> bool:
    """Whether stepping over the end of the inner axis is one step of the outer one, or neither moves."""
    if len(tensor.repeats) != len(graph.axes):
        return False
    sizes = graph.axes[outer].size, graph.axes[inner].size
    if 1 in sizes:
        return True
    repeats = tensor.repeats[outer], tensor.repeats[inner]
    strides = tensor.strides[outer], tensor.strides[inner]
    if repeats == (1, 1):
        return True
    return repeats == sizes and strides[0] == sizes[1] * strides[1]


def bytes_per_element(graph: AscGraph) -> int:
    """Return the bytes that the most values alive at one step take, per element of the loops."""
    last_use = {number: place for place, op in enumerate(graph.ops) for number in op.inputs}
    alive: set[int] = set()
    most = 0
    for place, op in enumerate(graph.ops):
        if op.output is not None and op.type not in ("Data", "Scalar"):
            alive.add(place)
        sizes = [max(4, numpy_dtype(graph.ops[number].tensor.dtype).itemsize) for number in alive]
        most = max(most, sum(sizes))
        alive = {number for number in alive if last_use.get(number, place) > place}
    return max(most, 4 * _LEAST_VALUES)


def tile_sizes(extents: Sequence[int], undivided: Sequence[int], budget: int) -> tuple[int, ...]:
    """Return the steps of each loop in a tile of about ``budget`` elements: inner loops whole, then one in part."""
    tiles = [max(1, extent) if k in undivided else 1 for k, extent in enumerate(extents)]
    left = max(1, budget // math.prod(tiles))
    for k in reversed(range(len(extents))):
        if k in undivided:
            continue
        tiles[k] = max(1, min(extents[k], left))
        left //= tiles[k]
        if left < 2:
            break
    return tuple(tiles)


def _block(extents: Sequence[int], divisible: Sequence[int]) -> int:
    """Return the outermost loop of more than one step whose steps do not depend on each other; -1 for none."""
    return next((k for k in sorted(divisible) if extents[k] > 1), -1)
