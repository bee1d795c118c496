"""What all passes over trans-ops have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ge.graph import Graph
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import TRANS_OPS


class TransOpPass(ABC):
    """A pass that goes over each graph of a model for itself; as in GE, ``--oo_level=O1`` does without it."""

    name: ClassVar[str]

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Go over the root and all bodies."""
        if session.options.fusion_switches.is_level_one:
            return False
        changed = False
        for part in graph.all_graphs():
            if any(node.type in TRANS_OPS for node in part):
                changed |= self.go_over(part, session)
        return changed

    @abstractmethod
    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Change one graph; return whether anything has changed."""
