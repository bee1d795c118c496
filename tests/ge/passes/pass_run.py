"""Running passes on graph text in tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ge.graph import Graph, Node
from ge.passes import DecomposePass, MatchResult, PassContext, PatternFusionPass, PatternMatcherConfig
from ge.passes.engine import run_pass
from ge.passes.origins import IS_MULTI_OP, ORIGIN_NAMES, ORIGIN_TYPES, OUTPUT_ATTRS, PASS_NAMES
from ge.passes.pattern import Pattern, PatternInputs
from ge.text import parse_graph, print_graph
from ge.verify import verify

Expression = Callable[[PatternInputs], Any]


@dataclass
class Run:
    """What a pass did. ``matches`` are the names of the matched nodes, each time that it was asked."""

    graph: Graph
    changed: bool
    context: PassContext
    warnings: list[str]
    matches: list[list[str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The graph without the attributes that a rewrite leaves on new nodes."""
        for part in self.graph.all_graphs():
            for node in part:
                forget_origins(node)
        return print_graph(self.graph)

    @property
    def times(self) -> tuple[int, int]:
        """Matches, and those with effect."""
        found = self.context.statistics.graph_fusion.get(self.context.get_pass_name())
        return (0, 0) if found is None else (found.match, found.effect)

    def types(self) -> list[str]:
        """The operator types of the root graph, sorted, without inputs and constants."""
        return sorted(n.type for n in self.graph if n.type not in ("Data", "Const", "NetOutput"))


def forget_origins(node: Node) -> None:
    """Remove what a rewrite notes on new nodes and their outputs."""
    for name in (ORIGIN_NAMES, ORIGIN_TYPES, IS_MULTI_OP, PASS_NAMES):
        node.attrs.pop(name, None)
    for desc in node.output_descs:
        for name in OUTPUT_ATTRS:
            desc.attrs.pop(name, None)


def run(cls: type, graph: Graph | str, name: str = "P") -> Run:
    """Run a pass on a graph (text is parsed), verify what it leaves, and return what happened."""
    target = parse_graph(graph) if isinstance(graph, str) else graph
    warnings: list[str] = []
    context = PassContext(name, warn=warnings.append)
    changed = run_pass(cls, target, context)
    verify(target)
    return Run(target, changed, context, warnings)


def fusion(
    *patterns: Expression | Callable[[], Pattern],
    into: Expression | None = None,
    config: PatternMatcherConfig | None = None,
    meets: Callable[[MatchResult], bool] = lambda match: True,
) -> tuple[type[PatternFusionPass], list[list[str]]]:
    """Return a pattern pass, and the list to which it adds the names of the nodes of each match.

    Without ``into`` it only looks: no match meets its requirements.
    """
    seen: list[list[str]] = []

    class Fusion(PatternFusionPass):
        def __init__(self) -> None:
            super().__init__(config)

        def patterns(self) -> list[Pattern]:
            return [written(f"pattern{i}", pattern) for i, pattern in enumerate(patterns)]

        def meet_requirements(self, match_result: MatchResult) -> bool:
            seen.append([node.name for node in match_result.get_matched_nodes()])
            return into is not None and meets(match_result)

        def replacement(self, inputs: PatternInputs) -> Any:
            assert into is not None
            return into(inputs)

    return Fusion, seen


def written(name: str, expression: Expression) -> Pattern:
    """Return the pattern that an expression stands for; inputs, then outputs are captured."""
    from ge.es import GraphBuilder, TensorHolder

    builder = GraphBuilder(name)
    inputs = PatternInputs(builder)
    result = expression(inputs)
    outputs: Sequence[TensorHolder] = list(result) if isinstance(result, list | tuple) else [result]
    pattern = Pattern(builder.build_and_reset(list(outputs)))
    for tensor in (*inputs.created(), *outputs):
        pattern.capture_tensor(tensor)
    return pattern


def matches(graph: Graph | str, *patterns: Expression, config: PatternMatcherConfig | None = None) -> list[list[str]]:
    """Return the names of the nodes of each match; the graph is left alone."""
    cls, seen = fusion(*patterns, config=config)
    run(cls, graph)
    return seen


def decompose(
    *op_types: str,
    into: Callable[[Node], Graph],
    meets: Callable[[Node], bool] = lambda node: True,
) -> type[DecomposePass]:
    """Return a decompose pass."""

    class Decompose(DecomposePass):
        def meet_requirements(self, node: Node) -> bool:
            return meets(node)

        def replacement(self, node: Node) -> Graph:
            return into(node)

    Decompose.op_types = list(op_types)
    return Decompose
