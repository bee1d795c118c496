"""Graphs that are not written as usual: what is compiled means what TensorFlow's executor does, or it is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops.registry import Misfit
from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.evaluation import evaluate
from tests.parsers.tensorflow.programs import execute, old_graph, random_program
from tests.parsers.tensorflow.test_programs import PROGRAMS, VALUES
from tests.parsers.tensorflow.tf_models import parsed
from tests.parsers.tensorflow.token_machine import DEAD, Endless, TokenMachine


def feeds(values: tuple[int, ...]) -> dict[str, int]:
    return {f"v{k}": value for k, value in enumerate(values)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_machine_runs_programs_as_python_does(name: str) -> None:
    for values in VALUES:
        found = TokenMachine(old_graph(PROGRAMS[name], 3)).run(feeds(values))
        assert [found[f"y{k}"] for k in range(3)] == execute(PROGRAMS[name], values)


def change(model: pb.GraphDef, source: random.Random) -> None:
    """Change one node: what it reads, what it waits for, or its type."""
    node = source.choice([node for node in model.node if node.op not in ("Placeholder", "Const")])
    other = source.choice(model.node)
    output = source.choice(["", ":1"]) if other.op in ("Switch", "Merge") else ""
    kind = source.randrange(4)
    if kind < 2:
        node.input[source.randrange(len(node.input))] = other.name + output
    elif kind == 2:
        node.input.append(f"^{other.name}")
    elif node.op == "Enter":
        node.attr["is_constant"].b = not node.attr["is_constant"].b
    else:
        node.op = source.choice(["Identity", "AddV2", "Switch", "Merge"])


def outcome(model: pb.GraphDef, values: tuple[int, ...]) -> dict[str, Any] | None:
    """Return what the compiled graph gives; ``None`` when there is nothing to compare: it is refused or stops."""
    try:
        found = parsed(model)
        results = evaluate(found, [np.array(values[int(data.name[1:])], np.int32) for data in found.data_nodes()])
    except (ReportedError, Misfit):
        return None
    return {name.removesuffix(":0"): int(result) for name, result in zip(found.output_names, results, strict=True)}


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_changed_programs_mean_the_same_or_are_refused(first: int) -> None:
    for seed in range(first, first + 20):
        source = random.Random(seed)
        model = old_graph(random_program(source, 3, source.randint(1, 2), source.randint(1, 2)), 3)
        for _ in range(source.randint(1, 2)):
            change(model, source)
        values = source.choice(VALUES)
        try:
            expected = TokenMachine(model).run(feeds(values))
        except (Endless, ZeroDivisionError, TypeError, LookupError):
            continue  # it never ends, or is no graph at all
        found = outcome(model, values)
        if found is not None:
            assert found == {name: "dead" if expected.get(name, DEAD) is DEAD else expected[name] for name in found}, (
                seed
            )
