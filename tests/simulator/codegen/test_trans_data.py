"""Compiled TransData against the index formulas, applied element by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.formats import AXES
from ge.graph import Graph, TensorDesc
from ge.graph.types import FORMAT_TEXT, Format, data_type_of
from simulator.loader import load
from tests.ge.formats.index_formulas import lay_out
from tests.simulator.codegen.compilers import LEVELS, compiler
from tests.simulator.planned_model import plan_model, run_plan

NCHW, NHWC, NC1HWC0 = Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_NC1HWC0


def trans_data(source: np.ndarray, before: TensorDesc, after: TensorDesc, level: str) -> np.ndarray:
    """Run one TransData on poisoned memory."""
    graph = Graph("trans_data")
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[before.copy()]).output()
    attrs = {"src_format": FORMAT_TEXT[before.format], "dst_format": FORMAT_TEXT[after.format]}
    node = graph.add_node("TransData", "node", [x], attrs, output_descs=[after.copy()])
    plan = load(plan_model(graph, [node.output()]), compiler(level))
    assert plan.steps[0].kernel.name == "llvm-trans-data"
    [found] = run_plan(plan, [source], poison=0xFF)
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
@pytest.mark.parametrize("c", [1, 3, 15, 16, 17, 33])
@pytest.mark.parametrize("origin", [NCHW, NHWC])
def test_there_and_back(origin: Format, c: int, dtype: Any, level: str) -> None:
    for n, h, w in [(1, 1, 1), (2, 3, 5), (1, 4, 4), (3, 1, 17), (1, 15, 35), (2, 16, 16)]:
        sizes = {"N": n, "C": c, "H": h, "W": w}
        shape = tuple(sizes[axis] for axis in AXES[origin])
        x = np.random.default_rng(list(shape)).integers(1, 100, shape).astype(dtype)
        expected = lay_out(x, FORMAT_TEXT[origin], "NC1HWC0", 16)
        plain = TensorDesc(shape, origin, data_type_of(x.dtype))
        stored = TensorDesc(expected.shape, NC1HWC0, data_type_of(x.dtype), shape, origin)
        assert trans_data(x, plain, stored, level).tobytes() == expected.tobytes()
        is_there = lay_out(np.ones(shape, bool), FORMAT_TEXT[origin], "NC1HWC0", 16)
        garbage = np.where(is_there, expected, np.full((), 99).astype(dtype))
        assert trans_data(garbage, stored, plain, level).tobytes() == x.tobytes()
