"""A match as a pass sees it."""

from __future__ import annotations

from ge.error import GeError
from ge.graph.node import Node
from ge.passes.boundary import Boundary
from ge.passes.matcher import Match
from ge.passes.pattern import NodeIo


class MatchResult:
    """One place where a pattern was found; good for the call of the hook that gets it, not longer."""

    def __init__(self, match: Match) -> None:
        self._found: Match | None = match

    def _match(self) -> Match:
        if self._found is None:
            raise GeError("MatchResult handle has expired")
        return self._found

    def _invalidate(self) -> None:
        """Let every further question fail (the compiler does that when the hook is done)."""
        self._found = None

    def _boundary(self) -> Boundary:
        return self._match().boundary

    def get_matched_nodes(self) -> list[Node]:
        """Return the matched nodes, constants included, producers first; placeholders are bound to others."""
        return list(self._match().nodes)

    def get_captured_tensor(self, capture_index: int) -> NodeIo:
        """Return what the captured tensor of that number was bound to; for a placeholder the producer."""
        match = self._match()
        if not isinstance(capture_index, int) or isinstance(capture_index, bool):
            raise TypeError(f"capture_index must be an int, not {type(capture_index).__name__}")
        captured = match.pattern.captured
        if not 0 <= capture_index < len(captured):
            raise GeError(f"pattern {match.pattern.name} captures {len(captured)} tensors, there is no {capture_index}")
        found = match.bound(captured[capture_index])
        if found is None:
            raise GeError(f"captured tensor {capture_index} of pattern {match.pattern.name} is not part of the match")
        return found

    def get_pattern_graph_name(self) -> str:
        """Return the name of the pattern graph."""
        return self._match().pattern.name

    def __str__(self) -> str:
        return str(self._match())
