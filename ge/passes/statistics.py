"""How often passes matched and changed something: what ``fusion_result.json`` tells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

MAX_REFUSALS = 1000
"""Refusals that are remembered; later ones are counted only."""


@dataclass
class Times:
    """``match`` counts matches, refused ones included, ``effect`` those that changed the graph."""

    match: int = 0
    effect: int = 0


@dataclass(frozen=True)
class Refusal:
    """A match that was left alone, and why."""

    pass_name: str
    nodes: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{self.pass_name} left {', '.join(self.nodes)} alone: {self.reason}"


@dataclass
class FusionStatistics:
    """The counts of one compile, by pass. ``ub_fusion`` are those of fused loops."""

    graph_fusion: dict[str, Times] = field(default_factory=dict)
    ub_fusion: dict[str, Times] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def count(self, pass_name: str, *, matched: int = 0, effected: int = 0) -> None:
        """Add to the counts of a pass. A pass that never matched does not appear."""
        if matched or effected:
            times = self.graph_fusion.setdefault(pass_name, Times())
            times.match += matched
            times.effect += effected

    def refuse(self, pass_name: str, nodes: tuple[str, ...], reason: str) -> Refusal:
        """Remember why a match was left alone."""
        refusal = Refusal(pass_name, nodes, reason)
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append(refusal)
        return refusal

    def as_json(self, session_and_graph_id: str = "0_0") -> str:
        """Return the text of ``fusion_result.json``: keys sorted, numbers as strings, as CANN writes them."""
        groups = {}
        if self.graph_fusion:
            groups["graph_fusion"] = {name: _texts(times) for name, times in self.graph_fusion.items()}
        if self.ub_fusion:
            groups["ub_fusion"] = {
                name: _texts(times) | {"repository_hit_times": "0"} for name, times in self.ub_fusion.items()
            }
        content = {f"session_and_graph_id_{session_and_graph_id}": groups} if groups else {}
        return json.dumps(content, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def _texts(times: Times) -> dict[str, str]:
    return {"effect_times": str(times.effect), "match_times": str(times.match)}
