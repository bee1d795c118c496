"""Running lowering on graph text in tests, and showing what became of the graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ge.ascir import AscGraph, print_asc_graph
from ge.graph import Graph, Node, Tensor
from ge.graph_inference import infer_graph
from ge.text import parse_graph
from ge.verify import verify
from passes.lowering.fused_nodes import FusedGraph, Kernel
from passes.lowering.lower_model import lower_model
from passes.lowering.strategy import LoweringStrategy, profile

CANN = profile("cann")
HOST = profile("host")


def cann(*passes: str, **changes: Any) -> LoweringStrategy:
    """The `cann` profile with these loop passes on."""
    return replace(CANN, passes=frozenset(passes), **changes)


def graph_of(text: str, constants: dict[str, Any] | None = None) -> Graph:
    """Parse graph text; inputs named in `constants` become Const nodes; results of nodes are inferred."""
    graph = parse_graph(text)
    for name, value in (constants or {}).items():
        data = graph.find(name)
        assert data is not None
        made = graph.add_const(f"{name}_fixed", Tensor.of(np.asarray(value)))
        graph.replace_uses(data.output(), made)
        graph.remove_unread(data)
        graph.rename(made.node, name)
    for place, data in enumerate(graph.data_nodes()):
        data.attrs["index"] = place
    infer_graph(graph)
    return graph


def living(graph: Graph) -> list[Node]:
    """The operators that results need, in topological order."""
    found: set[Node] = set()
    waiting = [source.node for source in graph.outputs]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.predecessors()
    return [node for node in graph.topological_order() if node in found and node.type not in ("Data", "Const")]


def wiring(graph: Graph) -> list[str]:
    """One line per operator that results need: `name = Type(inputs) after(control inputs)`; the results at the end."""
    lines = []
    for node in living(graph):
        read = ", ".join("_" if s is None else s.node.name + (f":{s.index}" if s.index else "") for s in node.inputs)
        after = [before.name for before in node.control_inputs]
        lines.append(f"{node.name} = {node.type}({read}){f' after({chr(44).join(after)})' if after else ''}")
    return lines


@dataclass
class Lowered:
    """A graph after lowering and after lifting, as :func:`wiring` shows it, with its kernels before lifting."""

    graph: Graph
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    kept: list[Kernel] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    kernel_rules: list[str] = field(default_factory=list)

    def programs(self) -> list[str]:
        """What each kernel computes before lifting, as `fuse type[operators of the program]`."""
        return [f"{k.fuse_type.name.lower()}[{','.join(k.graph.types())}]" for k in self.kernels]

    def program(self, index: int = 0) -> AscGraph:
        """The AscGraph of one kernel before lifting."""
        return self.kernels[index].graph

    def text(self, index: int = 0) -> str:
        """The text of it, without origins."""
        graph = self.program(index)
        ops = tuple(replace(op, origins=()) for op in graph.ops)
        return print_asc_graph(replace(graph, ops=ops))


def lowered(
    graph: Graph | str,
    strategy: LoweringStrategy = CANN,
    constants: dict[str, Any] | None = None,
    *,
    fuses_kernels: bool = False,
) -> Lowered:
    """Lower a graph and lift it; kernels are fused with each other only if asked for."""
    target = graph_of(graph, constants) if isinstance(graph, str) else graph
    result = Lowered(target)

    def look(stage: str, fused: FusedGraph) -> None:
        if stage == "AutoFuser_AfterLowering":
            result.before = wiring(target)
            result.kernels = [replace(kernel) for kernel in fused.kernels.values()]

    [fused] = lower_model(target, strategy, fuses_kernels=fuses_kernels, after_stage=look)
    verify(target)
    result.after = wiring(target)
    result.kept = list(fused.kernels.values())
    result.rules = [str(stop) for stop in fused.stops]
    result.kernel_rules = [str(stop) for stop in fused.kernel_stops]
    return result


def chain(*types: str, shape: Iterable[int] = (2, 3, 5), dtype: str = "f32") -> str:
    """Text of operators one after the other, named n0, n1, ..."""
    dims = ",".join(map(str, shape))
    lines = [f"%n{k} = {name}(%{f'n{k - 1}' if k else 'x'})" for k, name in enumerate(types)]
    return "\n".join([f"graph net(%x: {dtype}[{dims}]@ND) {{", *lines, f"return %n{len(types) - 1}", "}"])
