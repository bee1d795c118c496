"""Running one pass on graph text: what is left of the graph, in short."""

from __future__ import annotations

from ge.graph import Graph, Node
from ge.graph.types import FORMAT_TEXT, short_name
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from ge.verify import verify
from passes.driver import Pass
from passes.prepare.add_net_output import AddNetOutput


def session() -> CompileSession:
    return CompileSession(CompileOptions(), Environment())


def graph_of(*nodes: str, params: str = "%x: f32[4]@ND", results: str = "") -> Graph:
    """A graph of these lines; the last of them gives the result unless others are named."""
    last = nodes[-1].split("=")[0].strip() if nodes else "%x"
    lines = "\n".join(f"  {node}" for node in nodes)
    graph = parse_graph(f"graph g({params}) {{\n{lines}\n  return {results or last}\n}}")
    AddNetOutput().run(graph, session())
    return graph


def run(step: Pass, graph: Graph) -> bool:
    """Run the pass, verify what it leaves, and return whether it says that it changed something."""
    before = shown(graph)
    changed = step.run(graph, session())
    verify(graph, with_layouts=False)  # the texts are parts of networks: their results lie as tensors inside do
    assert changed == (shown(graph) != before)
    return changed


def after(step: Pass, *nodes: str, params: str = "%x: f32[4]@ND", results: str = "") -> list[str]:
    graph = graph_of(*nodes, params=params, results=results)
    run(step, graph)
    return shown(graph)


def shown(graph: Graph) -> list[str]:
    """One line per node: what it reads, what it makes in storage, and what waits for it."""
    return [_line(node) for part in graph.all_graphs() for node in part if node.type not in ("Data", "Const")]


def _line(node: Node) -> str:
    made = ", ".join(f"{short_name(d.data_type)}{d.shape}@{FORMAT_TEXT[d.format]}" for d in node.output_descs)
    read = ", ".join("_" if s is None else s.node.name + f":{s.index}" * (s.index > 0) for s in node.inputs)
    waits = f" after {', '.join(n.name for n in node.control_inputs)}" if node.control_inputs else ""
    name = "" if node.type == "NetOutput" else f"{node.name} = "
    return f"{name}{node.type}({read}){' -> ' + made if made else ''}{waits}"
