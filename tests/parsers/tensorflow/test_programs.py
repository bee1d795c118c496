"""Branches and loops as both generations of TensorFlow write them, against Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.evaluation import evaluate
from tests.parsers.tensorflow.programs import (
    Assign,
    Branch,
    Repeat,
    Statement,
    execute,
    new_graph,
    old_graph,
    random_program,
)
from tests.parsers.tensorflow.tf_models import parsed

ADD, MULTIPLY, SWAP = Assign(0, "AddV2", 0, 1), Assign(1, "Mul", 1, 0), Assign(2, "Sub", 0, 2)

PROGRAMS: dict[str, tuple[Statement, ...]] = {
    "straight": (ADD, MULTIPLY),
    "branch": (Branch(0, 1, (ADD,), (MULTIPLY, SWAP)),),
    "branch_that_passes_on": (Branch(0, 1, (ADD,), ()),),
    "branches_in_branch": (Branch(0, 1, (Branch(1, 2, (ADD,), (SWAP,)), MULTIPLY), (Branch(2, 0, (), (ADD,)),)),),
    "branches_behind_each_other": (Branch(0, 1, (ADD,), (SWAP,)), Branch(0, 1, (MULTIPLY,), (ADD,))),
    "loop": (Repeat(0, (ADD, MULTIPLY)),),
    "loop_that_does_nothing": (Repeat(0, ()),),
    "loop_in_loop": (Repeat(0, (ADD, Repeat(1, (MULTIPLY, SWAP)))),),
    "loops_three_deep": (Repeat(0, (Repeat(1, (Repeat(2, (ADD, SWAP)), MULTIPLY)), SWAP)),),
    "branch_in_loop": (Repeat(0, (Branch(0, 1, (SWAP,), (ADD,)), MULTIPLY)),),
    "loop_in_branch": (Branch(0, 1, (Repeat(2, (ADD, MULTIPLY)),), (Repeat(1, (SWAP,)), ADD)),),
    "all_in_all": (Repeat(0, (Branch(1, 2, (Repeat(1, (Branch(0, 2, (ADD,), (SWAP,)),)),), (MULTIPLY,)),)), SWAP),
}
WRITERS = {"old": old_graph, "new": new_graph}
VALUES = [(0, 0, 0), (1, 5, 2), (5, 1, 3), (3, 2, 7), (2, 11, 1), (7, 3, 96)]


def assert_computes(program: tuple[Statement, ...], model: pb.GraphDef) -> None:
    found = parsed(model)
    assert not {"Switch", "Merge", "Enter", "Exit"} & {n.type for part in found.all_graphs() for n in part}
    for values in VALUES:
        feeds = [np.array(values[int(data.name[1:])], np.int32) for data in found.data_nodes()]
        results = evaluate(found, feeds)
        outputs = dict(zip(found.output_names, (int(result) for result in results), strict=True))
        expected = {f"y{k}:0": value for k, value in enumerate(execute(program, values))}
        assert {name: outputs[name] for name in expected} == expected  # values that nobody reads are outputs too


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(program: tuple[Statement, ...], write: Callable) -> None:
    assert_computes(program, write(program, 3))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int, write: Callable) -> None:
    program = random_program(random.Random(seed), 3)
    assert_computes(program, write(program, 3))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_file_means_nothing(seed: int) -> None:
    program = PROGRAMS["all_in_all"]
    model = old_graph(program, 3)
    shuffled = list(model.node)
    random.Random(seed).shuffle(shuffled)
    del model.node[:]
    model.node.extend(shuffled)
    assert_computes(program, model)
