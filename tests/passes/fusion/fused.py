"""Running built-in fusions on graph text in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atc.compiler import compile_graph
from ge.fusion_switches import FusionSwitches
from ge.graph import Graph, Node, Tensor
from ge.graph_inference import infer_graph
from ge.options import CompileOptions, Environment
from ge.passes.origins import PASS_NAMES
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST
from ge.text import parse_graph, print_graph
from ge.verify import verify
from passes.custom.settle_rewrites import SettleRewrites
from passes.fusion.fuse_graph import run_fusion
from passes.fusion.graph_fusion import GraphFusion
from simulator import InferSession

Array = np.ndarray[Any, Any]
ALL_OFF = {"ALL": False}


def graph_of(text: str, constants: Mapping[str, Array] | None = None, at_load: Iterable[str] = ()) -> Graph:
    """Parse ``text`` and infer it, so that it need not say what its nodes give out.

    Inputs named in ``constants`` become Const nodes; those in ``at_load`` too become constants that are computed at
    load, from others.
    """
    graph = parse_graph(text)
    for name, value in (constants or {}).items():
        _fix(graph, name, value, is_at_load=name in set(at_load))
    for place, data in enumerate(graph.data_nodes()):
        data.attrs["index"] = place
    infer_graph(graph)
    verify(graph)
    return graph


def _fix(graph: Graph, name: str, value: Array, *, is_at_load: bool) -> None:
    data = graph.find(name)
    assert data is not None
    if is_at_load:
        negated = graph.add_const(graph.unique_name(f"{name}_negated"), Tensor.of(-value))
        made = graph.add_node("Neg", f"{name}_made", [negated], {LOAD_TIME_CONST: True}).output()
    else:
        made = graph.add_const(f"{name}_fixed", Tensor.of(value))
    made.desc.format = made.desc.origin_format = data.output_descs[0].format
    graph.replace_uses(data.output(), made)
    graph.remove_unread(data)
    graph.rename(made.node, name)


@dataclass
class Fused:
    """What a fusion made of a graph."""

    graph: Graph
    session: CompileSession
    name: str

    @property
    def times(self) -> tuple[int, int]:
        """Matches, and those with effect."""
        found = self.session.fusion.graph_fusion.get(self.name)
        return (0, 0) if found is None else (found.match, found.effect)

    @property
    def reasons(self) -> list[str]:
        """Why parts were left alone."""
        return [refusal.reason for refusal in self.session.fusion.refusals]

    def text(self) -> str:
        """The graph, without what a rewrite notes on new nodes and outputs, and without constants that nobody reads."""
        for node in self.graph:
            if node.type == "Const" and not self.graph.is_read(node):
                self.graph.remove_unread(node)
            for attrs in (node.attrs, *(desc.attrs for desc in node.output_descs)):
                for name in [name for name in attrs if name.startswith("_datadump_") or name == PASS_NAMES]:
                    del attrs[name]
        return print_graph(self.graph)

    def types(self) -> list[str]:
        """The operator types, in order, without inputs and constants."""
        idle = ("Data", "Const", "NetOutput")
        return [n.type for n in self.graph if n.type not in idle and not n.attrs.get(LOAD_TIME_CONST)]

    def only(self, type: str) -> Node:
        """The node of a type of which there must be one."""
        [node] = self.graph.nodes_of_type(type)
        return node

    def constant(self, node: Node, slot: int) -> Array:
        """The value of a constant that a node reads."""
        source = node.input(slot)
        assert source is not None
        value: Array = source.node.attrs["value"].array
        return value


def fused(fusion: type[GraphFusion], graph: Graph | str, switches: FusionSwitches | None = None) -> Fused:
    """Run one fusion on a graph and verify what it leaves."""
    options = CompileOptions() if switches is None else CompileOptions(fusion_switches=switches)
    session = CompileSession(options, Environment())
    target = graph_of(graph) if isinstance(graph, str) else graph
    session.is_rewritten = run_fusion(fusion, target, session)
    assert session.warnings == []  # what raises inside a fusion is one, and the match is left alone
    verify(target)
    return Fused(target, session, fusion.name)


def settled(result: Fused) -> Fused:
    """Do what follows on fusions: fold constants, sweep."""
    SettleRewrites().run(result.graph, result.session)
    verify(result.graph)
    return result


def left_alone(fusion: type[GraphFusion], graph: Graph | str) -> list[str]:
    """Check that a fusion changes nothing, and return its reasons."""
    target = graph_of(graph) if isinstance(graph, str) else graph
    before = print_graph(target)
    result = fused(fusion, target)
    assert print_graph(result.graph) == before
    assert result.times[1] == 0
    return result.reasons


def run_model(graph: Graph, session: CompileSession, inputs: Sequence[Array]) -> list[Array]:
    """Compile a graph (it is consumed) with the options of ``session``, run it, and return the results."""
    return list(InferSession(0, compile_graph(graph, session)).infer(list(inputs)))


def results(fusion: type[GraphFusion] | None, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Compile and run a graph with one fusion alone, which must find something, or with none."""
    switches = FusionSwitches(graph=ALL_OFF if fusion is None else ALL_OFF | {fusion.name: True})
    session = CompileSession(CompileOptions(fusion_switches=switches), Environment())
    found = run_model(graph, session, inputs)
    assert session.warnings == []
    effects = {name: times.effect for name, times in session.fusion.graph_fusion.items()}
    if fusion is None:
        assert not effects
    else:
        assert effects.get(fusion.name, 0) > 0, [refusal.reason for refusal in session.fusion.refusals]
    return found
