"""Kernels against the reference semantics, computed in double precision, on poisoned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ge.graph import DataType
from ge.graph.types import FLOATING
from ge.ops import definition
from simulator.kernels.registry import KernelCompiler
from simulator.loader import ExecutionPlan, load
from tests.simulator.planned_model import PlannedModel, node_of, run_plan, single

# Most that a result may be off, relative to the largest magnitude: a few units in the last place of the stored type.
TOLERANCE = {
    np.dtype(np.float64): 1e-13,
    np.dtype(np.float32): 4e-6,
    np.dtype(np.float16): 1.5e-3,
    np.dtype(ml_dtypes.bfloat16): 1e-2,
}
FLOAT_TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]


def expected_values(model: PlannedModel, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Return what the operator means, floats in double precision."""
    node = node_of(model)
    wide = [None if x is None else x.astype(np.float64) if is_float(x) else x for x in inputs]
    types = [DataType.DT_DOUBLE if d.data_type in FLOATING else d.data_type for d in node.output_descs]
    return definition(node).evaluate(dict(node.attrs), wide, types)


def is_float(array: np.ndarray) -> bool:
    """True for real floating point types, numpy's or not."""
    return array.dtype in TOLERANCE


def check_kernel(
    type: str,
    inputs: Sequence[np.ndarray | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    kernel: str | None,
    constant: Sequence[int] = (),
    n_outputs: int = 1,
    tolerance: float | None = None,
    compiler: KernelCompiler | None = None,
) -> ExecutionPlan:
    """Hold one node to its meaning; ``kernel`` is the name of the kernel that must be chosen (``None``: any real one).

    The result may not depend on what memory held before, not even in one bit.
    """
    model = single(type, inputs, attrs, constant=constant, n_outputs=n_outputs)
    plan = load(model, compiler)
    [step] = plan.steps
    assert not step.kernel.is_reference
    assert kernel is None or step.kernel.name == kernel
    feeds = [x for slot, x in enumerate(inputs) if x is not None and slot not in constant]
    found = run_plan(plan, feeds, poison=0xFF)
    again = run_plan(plan, feeds, poison=0x00)
    assert [y.tobytes() for y in found] == [y.tobytes() for y in again]
    for y, expected in zip(found, expected_values(model, inputs), strict=True):
        assert_equal_meaning(y, expected, tolerance)
    return plan


def assert_equal_meaning(found: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> None:
    """Compare shapes, NaN and infinity exactly, floats to ``tolerance`` of the largest magnitude, others exactly."""
    assert found.shape == expected.shape
    if not is_float(found):
        np.testing.assert_array_equal(found, expected)
        return
    limit = TOLERANCE[found.dtype] if tolerance is None else tolerance
    wide = found.astype(np.float64)
    with np.errstate(over="ignore"):
        rounded = expected.astype(found.dtype).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(expected))
    infinite = np.isinf(rounded)
    np.testing.assert_array_equal(wide[infinite], rounded[infinite])
    finite = np.isfinite(rounded)
    scale = np.abs(rounded[finite]).max(initial=1e-6)
    np.testing.assert_allclose(wide[finite], rounded[finite], rtol=0, atol=limit * scale)
