"""Nodes for which custom operators stand: found by the name of the type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ge.custom_ops import custom_operators
from ge.errors import ReportedError
from tests.parsers.tensorflow.tf_models import graph, node, parsed, placeholder, run

X = np.float32([[1, -2, 3], [4, 5, -6]])
FILE = """
import numpy as np
from ge.ops import operator
from ge.ops.inference import same_as


@operator("ScaledShift(x) [scale:f! shift:i=2 mode:s=add]", infer=same_as("x"))
def scaled_shift(op, x):
    return x * np.float32(op.scale) + (op.shift if op.mode == "add" else -op.shift)


@operator("Halves(x) -> y* []", infer=lambda ctx: [(ctx.shape("x"), ctx.dtype("x"))] * ctx.n_outputs)
def halves(op, x):
    return tuple(x / 2 for _ in range(op.n_outputs))
"""


@pytest.fixture
def operators(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def test_attributes_are_copied_and_defaults_count(operators: Path) -> None:
    with custom_operators(operators):
        model = graph(placeholder("x", [2, 3]), node("ScaledShift", "y", "x", scale=2.0, mode="sub", other=1))
        np.testing.assert_array_equal(run(model, {"x": X})[0], X * 2 - 2)
        assert "other" not in parsed(model).find("y").attrs  # type: ignore[union-attr]


@pytest.mark.parametrize(("attrs", "told"), [({}, "scale is missing"), ({"scale": "a"}, "scale must be a number")])
def test_attributes_that_are_wrong(operators: Path, attrs: dict[str, str], told: str) -> None:
    with custom_operators(operators), pytest.raises(ReportedError) as caught:
        parsed(graph(placeholder("x", [2, 3]), node("ScaledShift", "y", "x", **attrs)))
    assert told in caught.value.message


def test_the_number_of_outputs_is_an_attribute(operators: Path) -> None:
    with custom_operators(operators):
        found = run(graph(placeholder("x", [2, 3]), node("Halves", "y", "x", N=3)), {"x": X})
    assert len(found) == 3
    np.testing.assert_array_equal(found[2], X / 2)


def test_outside_they_are_unknown() -> None:
    with pytest.raises(ReportedError) as caught:
        parsed(graph(placeholder("x", [2, 3]), node("ScaledShift", "y", "x", scale=2.0)))
    assert caught.value.code == "E10501"
