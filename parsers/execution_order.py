"""The order in which the nodes of a graph are built: producers first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from ge.errors import ReportedError


def ordered(before: Sequence[Collection[int]], names: Sequence[str]) -> list[int]:
    """Return all nodes, by number, so that those in ``before`` of each come first; ties keep the file's order.

    Raises E13025, with ``names``, for a cycle.
    """
    if all(all(source < i for source in sources) for i, sources in enumerate(before)):
        return list(range(len(before)))
    after: list[list[int]] = [[] for _ in before]
    for i, sources in enumerate(before):
        for source in sources:
            after[source].append(i)
    waiting = [len(sources) for sources in before]
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for follower in after[i]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, follower)
    if len(order) < len(before):
        stuck = [i for i, count in enumerate(waiting) if count > 0]
        raise ReportedError("E13025", reason=f"nodes wait for each other: {_cycle(before, names, stuck)}")
    return order


def _cycle(before: Sequence[Collection[int]], names: Sequence[str], stuck: Sequence[int]) -> str:
    members, i = set(stuck), stuck[0]
    path: list[int] = []
    seen: dict[int, int] = {}
    while i not in seen:
        seen[i] = len(path)
        path.append(i)
        i = min(source for source in before[i] if source in members)
    loop = [names[i] for i in reversed(path[seen[i] :])]
    shown = [*loop[:8], *(["..."] if len(loop) > 8 else []), loop[0]]
    return " -> ".join(shown)
