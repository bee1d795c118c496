"""Graphs taken through the precision passes."""

from __future__ import annotations

from typing import Any

from ge.graph import Graph
from ge.graph_inference import infer_graph
from ge.options import CompileOptions, Environment
from ge.passes.origins import OUTPUT_TYPE
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.precision.choose_precision import ChoosePrecision
from passes.precision.insert_casts import InsertCasts
from passes.precision.remove_casts import RemoveCasts
from passes.prepare.add_net_output import AddNetOutput

PASSES = (ChoosePrecision(), InsertCasts(), RemoveCasts())


def lower(graph: Graph, mode: str = "fp16", soc_version: str = "Ascend910B1", **options: Any) -> CompileSession:
    """Run the precision passes on an inferred graph, which inference must find settled afterwards."""
    names = {"precision_mode": mode} if mode.startswith("allow") else {"precision_mode_v2": mode}
    session = CompileSession(CompileOptions(soc_version=soc_version, **names, **options), Environment())
    AddNetOutput().run(graph, session)
    infer_graph(graph)
    for step in PASSES:
        step.run(graph, session)
        verify(graph)
    assert not infer_graph(graph), "types are not those that inference gives"
    return session


def lowered(text: str, mode: str = "fp16", **options: Any) -> str:
    """Return the text of a graph behind the precision passes, without the notes for data dumps."""
    graph = parse_graph(text)
    lower(graph, mode, **options)
    for desc in [desc for part in graph.all_graphs() for node in part for desc in node.output_descs]:
        desc.attrs.pop(OUTPUT_TYPE, None)
    return print_graph(graph).replace(", _datadump_original_op_names=[]", "")
