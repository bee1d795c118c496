"""One case of control flow: a model, feeds that take different ways through it, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper

from tests.parsers.onnx_models import graph, value

Array = np.ndarray[Any, np.dtype[Any]]
I64, BOOL, F32 = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
COUNT, GOING = value("m", [], I64), value("c", [], BOOL)
TURN, GO = value("i", [], I64), value("go", [], BOOL)
VECTOR = np.float32([0.5, -2, 3])


@dataclass(frozen=True)
class Case:
    """A model, and the feeds to run it with. ``given`` are the results, by feeds, where onnxruntime has none."""

    model: ModelProto
    feeds: Sequence[dict[str, Array]]
    given: Sequence[list[Array]] = ()

    def expected(self) -> list[list[Array]]:
        """Return the results for each of the feeds."""
        if self.given:
            return list(self.given)
        made = with_identities(self.model).SerializeToString()
        runner = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
        return [runner.run(None, feeds) for feeds in self.feeds]


def with_identities(source: ModelProto) -> ModelProto:
    """Let every result of a nested graph come from a node of its own.

    onnxruntime refuses captured tensors as results, and gives wrong numbers for some results that are given twice or
    are inputs of the body.
    """
    copy = ModelProto()
    copy.CopyFrom(source)
    waiting = [copy.graph]
    while waiting:
        found = [a.g for made in waiting.pop().node for a in made.attribute if a.type == AttributeProto.GRAPH]
        waiting.extend(found)
        for nested in found:
            for k, output in enumerate(nested.output):
                nested.node.append(helper.make_node("Identity", [output.name], [f"{output.name}_result_{k}"]))
                output.name = f"{output.name}_result_{k}"
    return copy


def numbers(*counts: int, **others: Any) -> list[dict[str, Array]]:
    """Return feeds that differ in the trip count ``m``."""
    return [{"m": np.array(count, np.int64), **arrays(**others)} for count in counts]


def arrays(**values: Any) -> dict[str, Array]:
    return {name: np.asarray(v) for name, v in values.items()}


def body(nodes: list[Any], inputs: list[Any], outputs: list[Any], **initializers: Any) -> GraphProto:
    return graph(nodes, inputs, outputs, initializers, name="body")
