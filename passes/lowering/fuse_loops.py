"""Pass fuse-loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ge.graph import Graph
from ge.session import CompileSession
from passes.lowering.fused_nodes import FusedGraph
from passes.lowering.lower_model import lower_model
from passes.lowering.strategy import configured, profile


@dataclass
class FuseLoops:
    """Before: operators that move and compute elements. After: AscBackend nodes, each for several of them.

    1. ``fusion_profile`` says how: ``host`` or ``cann`` (specification of CANN, by SoC family); AUTOFUSE_FLAGS and
       AUTOFUSE_DFX_FLAGS of the environment change that.
    2. A graph with open shapes stays as it is: which loops there are depends on them.
    3. ``results`` hold what was fused, and where fusion ended.
    """

    fusion_profile: str = "host"
    name: ClassVar[str] = "fuse-loops"

    def __post_init__(self) -> None:
        self.results: list[FusedGraph] = []

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Fuse the loops of a model."""
        base = profile(self.fusion_profile, session.options.soc_version)
        strategy = configured(base, session.environment, session.warn)
        is_open = any(d.shape.is_unknown_shape() for p in graph.all_graphs() for n in p for d in n.output_descs)
        if not strategy.is_enabled or is_open:
            return False
        session.dump(graph, "AutoFuser_BeforeAutoFuse")
        self.results = lower_model(graph, strategy, after_stage=lambda stage, fused: _dump(session, stage, fused))
        for fused in self.results:
            for stop in fused.stops:
                session.info(f"autofuse: {stop}")
            for apart in fused.kernel_stops:
                session.info(f"autofuse: {apart}")
        return any(fused.kernels for fused in self.results)


def _dump(session: CompileSession, stage: str, fused: FusedGraph) -> None:
    is_body = fused.graph.parent is not None
    session.dump(fused.graph, f"{stage}_Subgraph" if is_body else stage)
