"""What all built-in fusions have in common. They are written on the API of custom passes.

Three forms, by what they look for:

- :class:`passes.fusion.pair_fusion.PairFusion`: an operator and its only reader. Patterns, as a user would write them.
- :class:`passes.fusion.chain_fusion.ChainFusion`: a run of operators of any length. One rewrite per run: by pairs, the
  names of origins would be copied once for every pair, which is quadratic in the length.
- :class:`passes.fusion.expression_fusion.ExpressionFusion`: arithmetic that exporters write in hundreds of ways. It is
  read as a polynomial and compared; as patterns, every order of operands would be a pattern of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import ClassVar

from ge.graph import Graph
from ge.passes import FusionBasePass, MatchResult, PassContext, PatternFusionPass
from passes.fusion.rewriting import Rewriting

GRAPH_NOT_CHANGED = 0x50100040
"""GE's status for a pass that found nothing to do."""


class GraphFusion(FusionBasePass):
    """A built-in fusion.

    ``name`` is what switch files and ``fusion_result.json`` call it. One that is not ``is_closable`` is needed for
    right results: neither ``ALL:off`` nor ``--oo_level=O1`` turns it off.
    """

    name: ClassVar[str]
    is_closable: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def anchor_types(cls) -> Collection[str]:
        """Return the operator types of which a model must have one for the fusion to find anything."""


class PatternFusion(GraphFusion, PatternFusionPass):
    """Patterns, a replacement, and the reasons for which a match is left alone. The compiler infers replacements."""

    infers_replacement: ClassVar[bool] = True

    def refusal(self, match_result: MatchResult) -> str:
        """Return why a match must be left alone; empty if it may be replaced."""
        return ""

    def meet_requirements(self, match_result: MatchResult, context: PassContext) -> bool:  # type: ignore[override]
        """Ask :meth:`refusal` and let the reason be remembered."""
        reason = self.refusal(match_result)
        if reason:
            context.refuse(reason)
        return not reason


class WalkingFusion(GraphFusion):
    """A fusion that walks over the graphs of a model itself."""

    def run(self, graph: Graph, context: PassContext) -> int:
        """Walk over the root and all bodies."""
        rewritings = [Rewriting(part, context) for part in graph.all_graphs()]
        for rewriting in rewritings:
            self.walk(rewriting)
            rewriting.settle()
        return 0 if any(rewriting.is_changed for rewriting in rewritings) else GRAPH_NOT_CHANGED

    @abstractmethod
    def walk(self, rewriting: Rewriting) -> None:
        """Find what is to be fused in ``rewriting.graph`` and let ``rewriting`` replace it."""
