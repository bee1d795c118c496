"""Pass settle-rewrites."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph
from ge.session import CompileSession
from passes.infer.fold_constants import FoldConstants
from passes.prepare.remove_dead_nodes import RemoveDeadNodes


class SettleRewrites:
    """Before: fusions or custom passes have rewritten the graph. After: what they made of constants is folded, and what
    nobody needs any more is gone.

    1. Nothing happens unless ``session.is_rewritten``, which it then resets.
    2. Folding must not make the file grow: the first folding has used up what it may.
    """

    name: ClassVar[str] = "settle-rewrites"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Fold and sweep."""
        if not session.is_rewritten:
            return False
        session.is_rewritten = False
        changed = FoldConstants(limit=0).run(graph, session)
        return RemoveDeadNodes().run(graph, session) or changed
