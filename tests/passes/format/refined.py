"""Running the passes that choose formats on graph text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ge.formats import lay_out
from ge.graph import Format, Graph, Node
from ge.graph.types import FORMAT_TEXT
from ge.graph_inference import infer_graph
from ge.layout_check import STORAGE_FORMAT
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.text import parse_graph
from ge.verify import UNSETTLED, verify
from passes.driver import Pass
from passes.format.choose_formats import ChooseFormats
from passes.format.fold_trans_data import FoldTransData
from passes.format.infer_origin_format import InferOriginFormat
from passes.format.insert_trans_data import InsertTransData
from passes.format.spare_trans_data import SpareTransData
from passes.format.spread_heavy_formats import SpreadHeavyFormats
from passes.prepare.add_net_output import AddNetOutput

CHOOSING = (ChooseFormats(), SpreadHeavyFormats())
ALL_CHOOSING = (*CHOOSING, SpareTransData())
ALL = (*ALL_CHOOSING, InsertTransData(), FoldTransData())


def session(**options: Any) -> CompileSession:
    """A session that refines formats."""
    chosen = {"soc_version": "Ascend910B1", "format_refinement": True, **options}
    return CompileSession(CompileOptions(**chosen), Environment())


def origin_graph(text: str) -> Graph:
    """Parse ``text``; its convolutions say what axes mean, and everything is inferred."""
    graph = parse_graph(text)
    settle(graph)
    return graph


def settle(graph: Graph) -> None:
    """Infer shapes and origin formats."""
    AddNetOutput().run(graph, session())
    infer_graph(graph)
    for _ in range(2):
        InferOriginFormat().run(graph, session())
    verify(graph)


def refined(text: str, passes: Sequence[Pass] = ALL, **options: Any) -> Graph:
    """Infer ``text`` and run ``passes``; each must leave a legal graph."""
    graph = origin_graph(text)
    run(graph, passes, **options)
    return graph


def given(graph: Graph, name: str, layout: Format, *, spreads: bool = False) -> None:
    """Let the user give an input of the model, or want its result, in a layout of the hardware."""
    node = graph.find(name)
    assert node is not None
    for desc in [*node.output_descs, *node.input_descs]:
        if desc is not None:
            lay_out(desc, layout)
            desc.attrs[STORAGE_FORMAT] = int(layout)
    if spreads:
        node.attrs["_is_heavy_op"] = True
    graph.attrs[UNSETTLED] = True


def run(graph: Graph, passes: Sequence[Pass], **options: Any) -> None:
    """Run passes in one session; each must leave a legal graph."""
    current = session(**options)
    for step in passes:
        step.run(graph, current)
        verify(graph)


def layouts(graph: Graph) -> dict[str, str]:
    """What every node wants and makes, constants and borders aside: ``x filter -> y``."""
    return {node.name: layout_of(node) for part in graph.all_graphs() for node in part if _is_inner(node)}


def _is_inner(node: Node) -> bool:
    return node.type not in ("Data", "Const", "NetOutput")


def layout_of(node: Node) -> str:
    """``x filter -> y``; groups behind a colon, ND for the origin view."""
    inputs = ["_" if d is None else _shown(d.format, d.sub_format) for d in node.input_descs]
    outputs = [_shown(d.format, d.sub_format) for d in node.output_descs]
    return f"{' '.join(inputs)} -> {' '.join(outputs)}".strip()


def _shown(layout: int, groups: int) -> str:
    text = FORMAT_TEXT[layout]  # type: ignore[index]
    return f"{text}:{groups}" if groups else text


def trans_data(graph: Graph) -> list[str]:
    """``producer: NCHW -> NC1HWC0`` for every TransData that runs, weights marked by ``*``."""
    return [
        f"{before.node.name}{'*' if is_constant(before.node) else ''}: "
        f"{node.attrs['src_format']} -> {node.attrs['dst_format']}"
        for part in graph.all_graphs()
        for node in part
        if node.type == "TransData" and (before := node.input(0)) is not None
    ]


def without_names(text: str) -> str:
    """Graph text with blanks made single, for comparison."""
    return re.sub(r"\s+", " ", text).strip()
