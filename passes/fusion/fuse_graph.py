"""Pass fuse-graph."""

from __future__ import annotations

import logging
from typing import ClassVar

from ge.graph import Graph
from ge.passes import PassContext
from ge.passes.engine import run_pass
from ge.session import CompileSession
from passes.fusion.graph_fusion import GraphFusion
from passes.fusion.reshape_reshape import ReshapeReshape

logger = logging.getLogger("atc")

BUILTIN_FUSIONS: tuple[type[GraphFusion], ...] = (ReshapeReshape,)
"""In the order in which they run."""


class FuseGraph:
    """Before: operators as the model has them. After: the built-in fusions have run, one after the other.

    1. Those that the switches turn off are left out (``ge/fusion_switches.py``).
    2. New nodes have shapes and types.
    """

    name: ClassVar[str] = "fuse-graph"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Run them."""
        changed = [run_fusion(fusion, graph, session) for fusion in BUILTIN_FUSIONS]
        session.is_rewritten |= any(changed)
        return any(changed)


def run_fusion(fusion: type[GraphFusion], graph: Graph, session: CompileSession) -> bool:
    """Run one built-in fusion, if it is on."""
    if not session.options.fusion_switches.allows_builtin(fusion.name, is_closable=fusion.is_closable):
        logger.info("fusion %s is switched off", fusion.name)
        return False
    context = PassContext(fusion.name, options=session.options.ge_options, statistics=session.fusion, warn=session.warn)
    return run_pass(fusion, graph, context)
