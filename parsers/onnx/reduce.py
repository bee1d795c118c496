"""Reductions over axes.

Axes given as an attribute become an int32 Const, axes given as an input (since opset 13 or 18) are wired. No axes at
all are a Const without elements, and ``noop_with_empty_axes`` says what that means. ONNX's composed reductions still do
their elementwise steps over no axes.
"""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder, Source


class _Axes:
    """The axes of a reduction: ``ints`` where known, ``source`` as an input of a GE node."""

    def __init__(self, n: NodeBuilder) -> None:
        self._n = n
        self._input = n.input(1)
        given = n.attr("axes")
        self.ints: list[int] | None
        if self._input is not None:
            self.ints = n.ints(self._input)
        else:
            self.ints = [] if given is None else [int(v) for v in given]
        self.keep_dims = bool(n.attr("keepdims"))
        self.is_noop = bool(n.attr("noop_with_empty_axes", 0))

    @property
    def source(self) -> Source:
        """An input of a GE node."""
        if self._input is not None:
            return self._input
        assert self.ints is not None
        return self._n.index("Const", self.ints)

    @property
    def is_over_nothing(self) -> bool:
        """True when the reduction itself does nothing."""
        return self.ints == [] and self.is_noop


def _reduce(n: NodeBuilder, type: str, x: Source, axes: _Axes, role: str = "") -> Source:
    return n.add(type, x, axes.source, role=role, keep_dims=axes.keep_dims, noop_with_empty_axes=axes.is_noop)


@maps("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceLogSumExp")
def reduction(n: NodeBuilder) -> Mapped:
    """Before: Reduce*(x, axes). After: the same with its axes as an input."""
    result = _reduce(n, n.op_type, n.need(0), _Axes(n))
    assert result is not None
    return result


@maps("ReduceLogSum")
def log_sum(n: NodeBuilder) -> Mapped:
    """Before: ReduceLogSum. After: ReduceSum -> Log."""
    return n.add("Log", _reduce(n, "ReduceSum", n.need(0), _Axes(n), role="ReduceSum"))


@maps("ReduceL1")
def l1_norm(n: NodeBuilder) -> Mapped:
    """Before: ReduceL1. After: LpNormV2(p 1); with computed axes Abs -> ReduceSum."""
    axes = _Axes(n)
    if axes.ints is None:
        magnitude = n.add("Abs", n.need(0), role="Abs")
        return _result(_reduce(n, "ReduceSum", magnitude, axes))
    return _norm(n, axes, 1.0)


@maps("ReduceL2")
def l2_norm(n: NodeBuilder) -> Mapped:
    """Before: ReduceL2. After: LpNormV2(p 2); with computed axes Square -> ReduceSum -> Sqrt."""
    axes = _Axes(n)
    if axes.ints is None:
        squares = n.add("Square", n.need(0), role="Square")
        return n.add("Sqrt", _reduce(n, "ReduceSum", squares, axes, role="ReduceSum"))
    return _norm(n, axes, 2.0)


def _norm(n: NodeBuilder, axes: _Axes, p: float) -> Mapped:
    if axes.is_over_nothing:
        return n.add("Abs", n.need(0))
    return n.add("LpNormV2", n.need(0), p=p, axes=axes.ints, keepdim=axes.keep_dims)


@maps("ReduceSumSquare")
def sum_of_squares(n: NodeBuilder) -> Mapped:
    """Before: ReduceSumSquare. After: SquareSumV1(axis attribute); with computed axes Square -> ReduceSum."""
    axes = _Axes(n)
    if axes.is_over_nothing:
        return n.add("Square", n.need(0))
    if axes.ints is None:
        squares = n.add("Square", n.need(0), role="Square")
        return _result(_reduce(n, "ReduceSum", squares, axes))
    which = axes.ints if axes.ints else list(range(n.rank()))
    return n.add("SquareSumV1", n.need(0), axis=which, keep_dims=axes.keep_dims)


def _result(source: Source) -> Mapped:
    assert source is not None
    return source
