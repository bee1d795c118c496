"""Running built-in fusions on graph text in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atc.compiler import compile_graph
from ge.fusion_switches import FusionSwitches
from ge.graph import Graph
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from ge.verify import verify
from passes.fusion.fuse_graph import run_fusion
from passes.fusion.graph_fusion import GraphFusion
from simulator import InferSession


def fused(fusion: type[GraphFusion], text: str, switches: FusionSwitches | None = None) -> tuple[Graph, CompileSession]:
    """Run one fusion on a graph and verify what it leaves."""
    options = CompileOptions() if switches is None else CompileOptions(fusion_switches=switches)
    session = CompileSession(options, Environment())
    graph = parse_graph(text)
    verify(graph)
    run_fusion(fusion, graph, session)
    verify(graph)
    return graph, session


def run_model(graph: Graph, session: CompileSession, inputs: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Compile a graph (it is consumed) with the options of ``session``, run it, and return the results."""
    return list(InferSession(0, compile_graph(graph, session)).infer(list(inputs)))
