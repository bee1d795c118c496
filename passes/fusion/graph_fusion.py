"""What all built-in fusions have in common. They are written on the API of custom passes."""

from __future__ import annotations

from typing import ClassVar

from ge.passes import MatchResult, PassContext, PatternFusionPass


class GraphFusion(PatternFusionPass):
    """A built-in fusion: patterns, a replacement, and the reasons for which a match is left alone.

    ``name`` is what switch files and ``fusion_result.json`` call it. One that is not ``is_closable`` is needed for
    right results: neither ``ALL:off`` nor ``--oo_level=O1`` turns it off. The replacement is inferred by the compiler.
    """

    name: ClassVar[str]
    is_closable: ClassVar[bool] = True
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
