"""Damaged loops, branches, functions and lists: compiled or refused with a code, never a surprise."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from ge.errors import ReportedError
from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.tensorflow.list_models import dynamic_rnn, keras_rnn
from tests.parsers.tensorflow.programs import new_graph, old_graph, random_program
from tests.parsers.tensorflow.tf_models import Func, Type, attr_value, parsed

W, U = np.zeros((3, 4), np.float32), np.zeros((4, 4), np.float32)
OPS = [
    *("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "_SwitchN", "If", "While", "Case"),
    *("Identity", "Const", "NoOp", "AddV2", "PartitionedCall", "TensorListSetItem", "TensorListGetItem"),
    *("TensorArrayV3", "TensorArrayReadV3", "TensorListStack"),
]
VALUES = [
    *(attr_value(value) for value in (Func("part_0"), Func("gone"), 3, -1, "text", True, Type(999))),
    pb.AttrValue(placeholder="T"),
    pb.AttrValue(),
]
MODELS: dict[str, Callable[[random.Random], pb.GraphDef]] = {
    "old": lambda source: old_graph(random_program(source, 3, 2, 2), 3),
    "new": lambda source: new_graph(random_program(source, 3, 2, 2), 3),
    "arrays": lambda source: dynamic_rnn([2, 2, 3], W, U),
    "lists": lambda source: keras_rnn([2, 2, 3], W, U),
}


def damage(model: pb.GraphDef, source: random.Random) -> None:
    pools = [pool for pool in (model.node, *(part.node_def for part in model.library.function)) if len(pool)]
    pool = source.choice(pools)
    node, other = source.choice(pool), source.choice(pool)
    match source.randrange(8):
        case 0 if node.input:
            node.input[source.randrange(len(node.input))] = other.name + source.choice(["", ":1", ":output:0", ":x"])
        case 1 if node.input:
            del node.input[source.randrange(len(node.input))]
        case 2:
            node.op = source.choice(OPS)
        case 3:
            pool.remove(node)
        case 4 if node.attr:
            del node.attr[source.choice(sorted(node.attr))]
        case 5 if node.attr:
            node.attr[source.choice(sorted(node.attr))].CopyFrom(source.choice(VALUES))
        case 6 if model.library.function:
            part = source.choice(model.library.function)
            part.ret[source.choice(sorted(part.ret))] = source.choice(["v0", "gone:y:0", "a:b:c:d", ""])
        case 7 if model.library.function:
            del source.choice(model.library.function).signature.input_arg[:1]
        case _:
            node.input.append(source.choice(["", "^"]) + other.name)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("first", [0, 100])
def test_damage_is_refused_with_a_code(kind: str, first: int) -> None:
    for seed in range(first, first + 100):
        source = random.Random(seed)
        model = MODELS[kind](source)
        for _ in range(source.randint(1, 3)):
            damage(model, source)
        with suppress(ReportedError):
            parsed(model)
