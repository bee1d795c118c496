"""Lowerings of reductions (``ge/ops/reduce.py``). What is half precision is reduced as it is: kernels sum in float."""

from __future__ import annotations

from ge.graph.types import numpy_dtype
from passes.lowering.element_types import FLOATS
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering, normalised_axes

_NARROW_ROW_BYTES = 64


def _reduce(node: NodeLowering, kind: str, x: LoopOp, axes: list[int] | None, *, is_noop: bool) -> None:
    """Reduce ``x`` over constant axes. Axes of 1 are only dropped."""
    node.require_plain()
    if axes is None:
        raise node.refusal("the axes are not constant")
    rank, keeps = len(x.dims), bool(node.op.keep_dims)
    chosen = normalised_axes(axes, rank) if axes or is_noop else list(range(rank))
    if kind == "MEAN" and node.dtype not in FLOATS:
        raise node.refusal("a mean of integers", Rule.ELEMENT_TYPE)
    if all(x.dims[axis] == 1 for axis in chosen):
        for axis in reversed([] if keeps else chosen):
            x = node.loops.squeeze(x, axis)
        node.store(x)
        return
    _check_rows(node, x.dims, chosen)
    gone = "REDUCE" if keeps else "REMOVE"
    dims = [gone if axis in chosen else "NORM" for axis in range(rank)]
    node.store_root(node.loops.store_reduction(kind, node.node.output(), x, dims))


def _check_rows(node: NodeLowering, dims: tuple[int, ...], axes: list[int]) -> None:
    """Short rows of which one end is reduced are slow on the device; the host does not care."""
    if node.strategy.allows_ours or len(dims) < 2:
        return
    last, before = len(dims) - 1 in axes, len(dims) - 2 in axes
    if last != before and dims[-1] * numpy_dtype(node.dtype).itemsize < _NARROW_ROW_BYTES:
        raise node.refusal(f"rows of {dims[-1]} elements are reduced on one side")


def _by_input(name: str, kind: str) -> None:
    @lowering(name, needs="reduce")
    def lower(node: NodeLowering) -> None:
        is_noop = bool(getattr(node.op, "noop_with_empty_axes", True))
        _reduce(node, kind, node.load("x"), node.ints("axes"), is_noop=is_noop)


def _by_attribute(name: str, kind: str) -> None:
    @lowering(name, needs="reduce")
    def lower(node: NodeLowering) -> None:
        is_noop = bool(getattr(node.op, "noop_with_empty_axes", True))
        _reduce(node, kind, node.load("x"), list(node.op.axes), is_noop=is_noop)


_by_input("ReduceSum", "SUM")
_by_input("ReduceMean", "MEAN")
_by_input("ReduceMax", "MAX")
_by_input("ReduceMin", "MIN")
_by_input("ReduceProd", "PROD")
_by_attribute("ReduceSumD", "SUM")
_by_attribute("ReduceMeanD", "MEAN")


@lowering("SquareSumV1", needs="reduce")
def square_sum(node: NodeLowering) -> None:
    x = node.load("x")
    is_noop = bool(node.op.noop_with_empty_axes)
    _reduce(node, "SUM", node.apply("Mul", x, x), list(node.op.axis), is_noop=is_noop)
