"""The cases that the installed onnx package generates, in one form for all suites."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""All suites but `real`, whose models are large and have constant weights."""

Value = Any
"""A numpy array, a list of values (sequence), or None (empty optional)."""


@dataclass(frozen=True)
class Case:
    """One model with inputs and expected outputs. ``operator`` is what a node case is about, ``""`` in other suites."""

    name: str
    suite: str
    operator: str
    model: bytes
    data_sets: list[tuple[list[Value], list[Value]]]
    rtol: float
    atol: float
    only_tensors: bool

    @property
    def is_expanded(self) -> bool:
        """True when the operator is replaced by the function body that ONNX defines it by."""
        return "_expanded" in self.name


def load_cases() -> list[Case]:
    """Return all cases of all suites, in a fixed order. Takes about ten seconds: onnx computes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow and divide by zero on purpose
        cases = [case for suite in SUITES for case in _suite(suite)]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases share a name"
    return cases


def _suite(suite: str) -> Iterator[Case]:
    found = sorted(load_model_tests(kind=suite), key=lambda test: test.name)
    operators = {test.name: _first_operator(test.model) for test in found if suite == "node"}
    for test in found:
        model = test.model if test.model_dir is None else onnx.load(Path(test.model_dir, "model.onnx"))
        data_sets = test.data_sets if test.model_dir is None else _read_data_sets(Path(test.model_dir), model)
        yield Case(
            name=test.name,
            suite=suite,
            operator=operators.get(test.name.partition("_expanded")[0], ""),
            model=model.SerializeToString(),
            data_sets=[(_plain(inputs), _plain(outputs)) for inputs, outputs in data_sets],
            rtol=test.rtol,
            atol=test.atol,
            only_tensors=all(v.type.HasField("tensor_type") for v in (*model.graph.input, *model.graph.output)),
        )


def _first_operator(model: ModelProto) -> str:
    node = model.graph.node[0]
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _plain(values: Any) -> list[Value]:
    """Some generators give tensors as messages, and scalars instead of arrays."""
    return [
        numpy_helper.to_array(v)
        if isinstance(v, TensorProto)
        else v
        if v is None or isinstance(v, list | tuple)
        else np.asarray(v)
        for v in values
    ]


def _read_data_sets(folder: Path, model: ModelProto) -> Iterator[tuple[list[Value], list[Value]]]:
    for data in sorted(folder.glob("test_data_set*")):
        yield _read_values(data, "input", model.graph.input), _read_values(data, "output", model.graph.output)


def _read_values(folder: Path, kind: str, formals: Any) -> list[Value]:
    count = len(list(folder.glob(f"{kind}_*.pb")))
    return [_read_value((folder / f"{kind}_{i}.pb").read_bytes(), formals[i].type) for i in range(count)]


def _read_value(content: bytes, kind: TypeProto) -> Value:
    match kind.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
        case "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
        case "tensor_type":
            return numpy_helper.to_array(onnx.TensorProto.FromString(content))
        case other:
            raise ValueError(f"no test data of type {other} is known")
