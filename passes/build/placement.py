"""Offsets for pieces of memory with known lifetimes: a pure data problem, known as dynamic storage allocation.

Finding the least total is NP-complete. What works well on neural networks is to place one piece after the other into a
gap left by those it coexists with; the art is the order. The cheapest comes first: step by step, forwards or backwards
in time. Then several orders are tried, and the best one is improved by a local search: a piece that sticks out is
placed earlier. All of it stops at the bound (the most bytes alive at one step), which most networks reach. Work is
limited by counted steps, not by time, so results never vary.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import numpy as np

Interval = tuple[int, int, int]
"""Size in bytes, first step, last step (both inclusive)."""

MAX_CONFLICTS = 4_000_000
"""Pairs of coexisting pieces up to which their lists are kept."""

ORDER_BUDGET = 8_000_000
"""Visits of coexisting pieces that trying orders may cost. The first order is always tried."""

SEARCH_BUDGET = 6_000_000
"""Visits of coexisting pieces that the local search may cost."""

MAX_CROWD = 8_000
"""Pieces up to which each may be compared with all others, once their lists would be too long."""

_SEED = 20230


def load(intervals: Sequence[Interval]) -> list[int]:
    """Return the bytes alive at each step, from the earliest to the latest one."""
    if not intervals:
        return []
    start = min(first for _, first, _ in intervals)
    change = [0] * (max(last for _, _, last in intervals) - start + 2)
    for size, first, last in intervals:
        change[first - start] += size
        change[last + 1 - start] -= size
    return list(accumulate(change))[:-1]


def bound(intervals: Sequence[Interval]) -> int:
    """Return the most bytes alive at one step: no placement needs less."""
    return max(load(intervals), default=0)


def height(intervals: Sequence[Interval], offsets: Sequence[int]) -> int:
    """Return the bytes that a placement needs."""
    return max((offset + size for offset, (size, _, _) in zip(offsets, intervals, strict=True)), default=0)


def place(intervals: Sequence[Interval], search_budget: int = SEARCH_BUDGET) -> list[int]:
    """Return an offset per interval so that intervals with a common step do not overlap.

    Offsets are sums of sizes: sizes that are multiples of 512 give offsets that are. Pieces of no size lie at 0.
    """
    kept = [i for i, (size, _, _) in enumerate(intervals) if size > 0]
    offsets = [0] * len(intervals)
    if kept:
        for i, offset in zip(kept, _place_sized([intervals[i] for i in kept], search_budget), strict=True):
            offsets[i] = offset
    return offsets


def _place_sized(pieces: list[Interval], search_budget: int) -> list[int]:
    goal = bound(pieces)
    backwards = [(size, -last, -first) for size, first, last in pieces]
    swept = _sweep(pieces)
    if height(pieces, swept) > goal:
        swept = min(swept, _sweep(backwards), key=lambda offsets: height(pieces, offsets))
    if height(pieces, swept) <= goal:
        return swept
    conflicts = _count_conflicts(pieces)
    if conflicts > MAX_CONFLICTS:
        return _place_crowded(pieces, swept, goal)
    problem = _Problem(pieces, _conflict_lists(pieces))
    cost = 2 * conflicts + len(pieces)
    best = _Attempt([], False, [], sum(problem.sizes) + 1)
    for order in islice(_orders(pieces), max(1, ORDER_BUDGET // (2 * cost))):
        for is_tight in (False, True):
            offsets, top = problem.fill(order, is_tight, best.top - 1)
            if offsets is not None:
                best = _Attempt(order, is_tight, offsets, top)
            if best.top <= goal:
                return best.offsets
    return _improve(problem, best, goal, search_budget // cost).offsets


@dataclass(frozen=True)
class _Attempt:
    order: list[int]
    is_tight: bool
    offsets: list[int]
    top: int


class _Problem:
    """Pieces and, per piece, those that are alive at a common step."""

    def __init__(self, pieces: list[Interval], conflicts: list[list[int]]) -> None:
        self.sizes = [size for size, _, _ in pieces]
        self.conflicts = conflicts

    def fill(self, order: Sequence[int], is_tight: bool, limit: int) -> tuple[list[int] | None, int]:
        """Place the pieces in this order, each into the lowest gap that takes it (``is_tight``: the smallest one).

        Returns the offsets and the total; no offsets when the total would exceed ``limit``.
        """
        sizes, conflicts = self.sizes, self.conflicts
        offsets = [-1] * len(sizes)
        top = 0
        for i in order:
            spans = [(offsets[j], sizes[j]) for j in conflicts[i] if offsets[j] >= 0]
            spans.sort()
            offset = _gap(spans, sizes[i], is_tight)
            offsets[i] = offset
            if offset + sizes[i] > top:
                top = offset + sizes[i]
                if top > limit:
                    return None, top
        return offsets, top


def _gap(spans: list[tuple[int, int]], size: int, is_tight: bool) -> int:
    end, found, least = 0, -1, -1
    for offset, length in spans:
        room = offset - end
        if room >= size and (found < 0 or room < least):
            found, least = end, room
            if not is_tight:
                return found
        if offset + length > end:
            end = offset + length
    return end if found < 0 else found


def _count_conflicts(pieces: list[Interval]) -> int:
    firsts = sorted(first for _, first, _ in pieces)
    lasts = sorted(last for _, _, last in pieces)
    apart = sum(bisect_left(lasts, first) for first in firsts)
    return len(pieces) * (len(pieces) - 1) // 2 - apart


def _conflict_lists(pieces: list[Interval]) -> list[list[int]]:
    conflicts: list[list[int]] = [[] for _ in pieces]
    alive: list[int] = []
    for i in sorted(range(len(pieces)), key=lambda i: pieces[i][1]):
        start = pieces[i][1]
        alive = [j for j in alive if pieces[j][2] >= start]
        for j in alive:
            conflicts[j].append(i)
        conflicts[i].extend(alive)
        alive.append(i)
    return conflicts


def _orders(pieces: list[Interval]) -> Iterator[list[int]]:
    every = range(len(pieces))

    def life(i: int) -> int:
        return pieces[i][2] - pieces[i][1]

    yield sorted(every, key=lambda i: (-pieces[i][0], -life(i), pieces[i][1]))
    crowd = _crowd(pieces)
    yield sorted(every, key=lambda i: (-crowd[i], -life(i), -pieces[i][0]))
    yield sorted(every, key=lambda i: (-crowd[i], -pieces[i][0], pieces[i][1]))
    yield sorted(every, key=lambda i: (-pieces[i][0] * (life(i) + 1), pieces[i][1]))
    yield sorted(every, key=lambda i: (-life(i), -pieces[i][0], pieces[i][1]))
    yield sorted(every, key=lambda i: (-pieces[i][2], -pieces[i][0], pieces[i][1]))
    yield sorted(every, key=lambda i: (pieces[i][1], -pieces[i][0], -pieces[i][2]))


def _crowd(pieces: list[Interval]) -> list[int]:
    """Return per piece the most bytes that are alive at one of its steps."""
    loads = load(pieces)
    start = min(first for _, first, _ in pieces)
    # sparse table of maxima over windows of 2^k steps
    tables = [loads]
    while 2 << (len(tables) - 1) <= len(loads):
        width, previous = 1 << (len(tables) - 1), tables[-1]
        tables.append(list(map(max, previous[: len(previous) - width], previous[width:])))
    crowd = []
    for _, first, last in pieces:
        level = (last - first + 1).bit_length() - 1
        table = tables[level]
        crowd.append(max(table[first - start], table[last - start + 1 - (1 << level)]))
    return crowd


def _improve(problem: _Problem, best: _Attempt, goal: int, steps: int) -> _Attempt:
    """Change the order a little, keep what is not worse, up to ``steps`` times or until the total is ``goal``."""
    chance = random.Random(_SEED)
    order, offsets, top = best.order, best.offsets, best.top
    for _ in range(steps):
        if top <= goal:
            break
        changed = _neighbour(problem, order, offsets, top, goal, chance)
        found, total = problem.fill(changed, best.is_tight, top)
        if found is not None:
            order, offsets, top = changed, found, total
    return _Attempt(order, best.is_tight, offsets, top)


def _neighbour(
    problem: _Problem, order: list[int], offsets: list[int], top: int, goal: int, chance: random.Random
) -> list[int]:
    ends = [offset + size for offset, size in zip(offsets, problem.sizes, strict=True)]
    sticking_out = [i for i, end in enumerate(ends) if end == top]
    if chance.random() < 0.3:
        sticking_out = [i for i, end in enumerate(ends) if end > goal]
    piece = chance.choice(sticking_out)
    position = [0] * len(order)
    for at, i in enumerate(order):
        position[i] = at
    earlier = [j for j in problem.conflicts[piece] if position[j] < position[piece]]
    changed = list(order)
    kind = chance.random()
    if earlier and kind < 0.5:
        del changed[position[piece]]
        changed.insert(position[chance.choice(earlier)], piece)
        return changed
    one, other = piece, piece
    if earlier and kind < 0.8:
        other = chance.choice(earlier)
    elif problem.conflicts[piece]:
        one = chance.choice(problem.conflicts[piece])
        other = chance.choice(problem.conflicts[one])
    changed[position[one]], changed[position[other]] = other, one
    return changed


def _place_crowded(pieces: list[Interval], best: list[int], goal: int) -> list[int]:
    """Place pieces of which too many coexist for lists of them, better than ``best`` if possible.

    Unless there are too many even for that: one after the other in two orders, each among all placed so far, whole
    arrays at a time.
    """
    for order in islice(_orders(pieces), 2 if len(pieces) <= MAX_CROWD else 0):
        offsets = _fill_crowded(pieces, order)
        if height(pieces, offsets) < height(pieces, best):
            best = offsets
        if height(pieces, best) <= goal:
            break
    return best


def _sweep(pieces: list[Interval]) -> list[int]:
    """Place the pieces in the order in which they come alive, each into the smallest gap that takes it then."""
    offsets = [0] * len(pieces)
    gaps = _Gaps()
    ends: list[tuple[int, int]] = []
    for i in sorted(range(len(pieces)), key=lambda i: (pieces[i][1], -pieces[i][0])):
        size, first, last = pieces[i]
        while ends and ends[0][0] < first:
            gone = heapq.heappop(ends)[1]
            gaps.give(offsets[gone], pieces[gone][0])
        offsets[i] = gaps.take(size)
        heapq.heappush(ends, (last, i))
    return offsets


class _Gaps:
    """What is free below the top of a stack of pieces; gaps that touch are one."""

    def __init__(self) -> None:
        self._top = 0
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Return the offset of a place for ``size`` bytes: in the smallest gap that has them, else on top."""
        at = bisect_left(self._by_size, (size, 0))
        if at == len(self._by_size):
            self._top += size
            return self._top - size
        room, start = self._by_size[at]
        self._remove(start, start + room)
        if room > size:
            self._add(start + size, start + room)
        return start

    def give(self, start: int, size: int) -> None:
        """Free the ``size`` bytes at ``start``."""
        end = start + size
        if start in self._start_of:
            before = self._start_of[start]
            self._remove(before, start)
            start = before
        if end in self._end_of:
            behind = self._end_of[end]
            self._remove(end, behind)
            end = behind
        if end == self._top:
            self._top = start
        else:
            self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        self._end_of[start], self._start_of[end] = end, start
        insort(self._by_size, (end - start, start))

    def _remove(self, start: int, end: int) -> None:
        del self._end_of[start], self._start_of[end]
        del self._by_size[bisect_left(self._by_size, (end - start, start))]


def _fill_crowded(pieces: list[Interval], order: list[int]) -> list[int]:
    # rows of the placed pieces, sorted by offset: offset, end, first, last
    placed = np.empty((4, len(pieces)), np.int64)
    offsets = [0] * len(pieces)
    for count, i in enumerate(order):
        size, first, last = pieces[i]
        rows = placed[:, :count]
        alive = rows[:2, (rows[2] <= last) & (rows[3] >= first)]
        offset = 0
        if alive.shape[1]:
            ends = np.maximum.accumulate(alive[1])
            rooms = alive[0] - np.concatenate(([0], ends[:-1]))
            fits = np.flatnonzero(rooms >= size)
            offset = int(ends[-1]) if not fits.size else int(ends[fits[0] - 1]) if fits[0] else 0
        at = int(np.searchsorted(rows[0], offset, side="right"))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = offset, offset + size, first, last
        offsets[i] = offset
    return offsets
