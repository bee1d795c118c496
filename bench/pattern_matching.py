"""Matching time: 20 patterns over a graph of 20,000 nodes.

    python -m bench.pattern_matching [--nodes 20000] [--runs 5] [--json FILE]

The graph is a chain of blocks as networks have them: products with bias, a Gelu written out, normalisation, a fan that
comes together again, Reshapes in a row, numbers added. Of the patterns some are found in every block, some never, some
only look as if; they have one output or two, compare constants or attributes. Measured are: 20 passes that look and
leave everything alone; one pass with all patterns that replaces what it finds; the same inside a compile, where the
graph is verified and inferred behind the pass. It is processor time, since all of it is one thread of Python, and other
work on the machine would only blur it. The goal, for each of the first two: at most 2 seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.measurement import Times, machine, write_json
from ge.collector import collector_at_rest
from ge.es import GraphBuilder
from ge.es.all import (
    Abs,
    Add,
    Ceil,
    Div,
    Erf,
    Exp,
    MatMul,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Relu,
    Reshape,
    Sigmoid,
    Sub,
    Tanh,
)
from ge.graph import Graph, NodeOut, Tensor, TensorDesc
from ge.options import CompileOptions, Environment
from ge.passes import (
    PassContext,
    PassStage,
    Pattern,
    PatternFusionPass,
    PatternMatcherConfigBuilder,
    register_fusion_pass,
)
from ge.passes.engine import run_pass
from ge.passes.pattern import PatternInputs
from ge.passes.registry import registering_in
from ge.session import CompileSession
from passes.custom.stage import BeforeInferShape

GOAL = 2.0
WIDTH = 8
Expression = Callable[[PatternInputs], Any]


# -- the graph -------------------------------------------------------------------------------------------------------
def build_graph(count: int) -> Graph:
    """Return a graph of about ``count`` nodes."""
    graph = Graph("blocks")
    shape = [WIDTH, WIDTH]

    def add(type: str, *inputs: NodeOut) -> NodeOut:
        name = f"{type.lower()}_{len(graph)}"
        return graph.add_node(type, name, list(inputs), output_descs=[TensorDesc(shape)]).output()

    def constant(value: Any, dtype: Any = np.float32) -> NodeOut:
        return graph.add_const(f"const_{len(graph)}", Tensor.of(np.asarray(value, dtype)))

    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[TensorDesc(shape)]).output()
    while len(graph) < count - 1:
        x = add("Add", add("MatMul", x, constant(np.eye(WIDTH))), constant(np.zeros(WIDTH)))
        inner = add("Add", add("Erf", add("Div", x, constant(np.sqrt(2.0)))), constant(1.0))
        x = add("Mul", add("Mul", x, inner), constant(0.5))
        fan = add("Abs", x)
        x = add("Sub", add("Exp", add("Neg", fan)), add("Relu", fan))
        x = add(
            "Add",
            add("Reshape", add("Reshape", x, constant(shape, np.int64)), constant(shape, np.int64)),
            constant(0.0),
        )
        x = add("Mul", add("Sigmoid", x), add("Tanh", x))
    graph.outputs = [x]
    graph.add_node("NetOutput", "out", [x], output_descs=[])
    return graph


# -- the patterns ----------------------------------------------------------------------------------------------------
def gelu(i: PatternInputs) -> Any:
    x = i[0]
    return (x * (Erf(x / i[1]) + i[2])) * i[3]


def fan(i: PatternInputs) -> Any:
    shared = Abs(i[0])
    return Exp(Neg(shared)), Relu(shared)


def swish_of_two(i: PatternInputs) -> Any:
    return Sigmoid(i[0]), Tanh(i[0])


FOUND: list[Expression] = [
    lambda i: MatMul(i[0], i[1]) + i[2],
    gelu,
    fan,
    lambda i: Reshape(Reshape(i[0], i[1]), i[2]),
    lambda i: i[0] + 0.0,
    swish_of_two,
]
NEVER: list[Expression] = [
    lambda i: MatMul(Relu(i[0]), i[1]),
    lambda i: Add(Add(i[0], i[1]), i[2]),
    lambda i: Mul(Mul(Mul(i[0], i[1]), i[2]), i[3]),
    lambda i: Sub(Exp(Abs(i[0])), i[1]),
    lambda i: (Exp(Abs(i[0])), Relu(Abs(i[0]))),
    lambda i: Maximum(Minimum(i[0], i[1]), i[2]),
    lambda i: Div(Mul(i[0], i[1]), i[2]),
    lambda i: Relu(Relu(i[0])),
    lambda i: Reshape(Add(i[0], i[1]), i[2]),
    lambda i: Tanh(Sigmoid(i[0])),
    lambda i: Sigmoid(i[0]) * i[0],
    lambda i: (Abs(i[0]), Sub(i[0], i[1])),
    lambda i: Add(Mul(Erf(i[0]), i[1]), i[2]),
    lambda i: i[0] + 7.5,
]
PATTERNS = [*FOUND, *NEVER]
CONFIGS = [
    None,
    PatternMatcherConfigBuilder().enable_ir_attr_match().build(),
    PatternMatcherConfigBuilder().enable_const_value_match().enable_ir_attr_match().build(),
]


def written(name: str, expression: Expression) -> Pattern:
    builder = GraphBuilder(name)
    result = expression(PatternInputs(builder))
    return Pattern(builder.build_and_reset(list(result) if isinstance(result, tuple) else [result]))


def looking(number: int) -> type[PatternFusionPass]:
    """Return a pass that looks for one pattern and leaves everything alone."""

    class Looking(PatternFusionPass):
        def __init__(self) -> None:
            super().__init__(CONFIGS[number % len(CONFIGS)])

        def patterns(self) -> list[Pattern]:
            return [written(f"p{number}", PATTERNS[number])]

        def meet_requirements(self, match_result: Any) -> bool:
            return False

    return Looking


class Replacing(PatternFusionPass):
    """Looks for all patterns and replaces each output of what it finds by a Ceil of the first input."""

    def patterns(self) -> list[Pattern]:
        return [written(f"p{number}", pattern) for number, pattern in enumerate(PATTERNS)]

    def replacement(self, match_result: Any) -> Graph:
        boundary = match_result._boundary()
        builder = GraphBuilder("r")
        inputs = builder.create_inputs(len(boundary.inputs))
        return builder.build_and_reset([Ceil(inputs[0]) for _ in boundary.outputs])


def main() -> None:
    parser = argparse.ArgumentParser(description="20 patterns over a graph.")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    graph = build_graph(arguments.nodes)
    fresh = [build_graph(arguments.nodes) for _ in range(2 * (arguments.runs + 1))]
    context = PassContext("Bench", warn=lambda line: None)

    # as in a compile, the collector of cyclic garbage rests
    def look() -> None:
        with collector_at_rest():
            for number in range(len(PATTERNS)):
                run_pass(looking(number), graph, context)

    def replace() -> None:
        with collector_at_rest():
            run_pass(Replacing, fresh.pop(), PassContext("Bench"))

    def compile_stage() -> None:
        session = CompileSession(CompileOptions(), Environment())
        with registering_in(session.passes):
            register_fusion_pass(name="Bench", stage=PassStage.BEFORE_INFER_SHAPE)(Replacing)
        with collector_at_rest():
            BeforeInferShape().run(fresh.pop(), session)

    candidates = {"20 passes look": look, "1 pass replaces": replace, "with the checks": compile_stage}
    times = {name: measured(run, arguments.runs) for name, run in candidates.items()}
    report(len(graph), context, times)
    write_json(arguments.json, {"nodes": len(graph), "patterns": len(PATTERNS), "times": times, "goal": GOAL})


def measured(run: Callable[[], object], runs: int) -> Times:
    """Return the processor time of ``runs`` runs; one more warms up."""
    seconds = []
    for _ in range(runs + 1):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return Times.of(seconds[1:])


def report(nodes: int, context: PassContext, times: dict[str, Times]) -> None:
    counts = PassContext("Once")
    run_pass(Replacing, build_graph(nodes), counts)
    replaced = counts.statistics.graph_fusion["Once"].effect
    print(f"{len(PATTERNS)} patterns over {nodes} nodes, {replaced} matches replaced")
    print(machine("numpy"))
    for name, value in times.items():
        print(f"  {name:<16} {value}")
    slowest = max(times[name].median for name in ("20 passes look", "1 pass replaces"))
    print(f"  slower of the first two {slowest:.2f} s (goal: at most {GOAL:g} s)")


if __name__ == "__main__":
    main()
