"""Gradient: the derivatives of one tensor by others, from the nodes between them, last to first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ge.graph import Node, NodeOut
from ge.graph.types import numpy_dtype
from parsers.onnx.arithmetic import Arithmetic
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.training import TRAINING


class _Tape:
    """The nodes that lead from the independent tensors to ``y``, and what is known of derivatives by their outputs."""

    def __init__(self, n: NodeBuilder, independent: Sequence[NodeOut], y: NodeOut) -> None:
        self.n = n
        self.maths = Arithmetic(n)
        self.derivatives: dict[NodeOut, NodeOut] = {}
        self.nodes = _between(independent, y)
        self._wanted = {*independent, *(node.output() for node in self.nodes)}

    def tell(self, source: NodeOut, derivative: NodeOut) -> None:
        """Add to the derivative by ``source``, if it matters; axes along which it was broadcast are summed up."""
        if source not in self._wanted:
            return
        fitted = self._unbroadcast(derivative, source)
        known = self.derivatives.get(source)
        self.derivatives[source] = fitted if known is None else self.maths.plus(known, fitted)

    def _unbroadcast(self, derivative: NodeOut, like: NodeOut) -> NodeOut:
        shape, wanted = self.n.shape(derivative), self.n.shape(like)
        if shape == wanted:
            return derivative
        if shape.is_unknown_shape() or wanted.is_unknown_shape():
            raise self.n.fail(f"the shape of {like} is not known, so that its derivative cannot be summed up")
        surplus = len(shape) - len(wanted)
        axes = [i for i, dim in enumerate(shape) if i < surplus or wanted[i - surplus] != dim]
        total = self.maths.op("ReduceSumD", derivative, axes=axes, keep_dims=True) if axes else derivative
        return self.maths.op("Reshape", total, self.n.int64(wanted, "Shape"))


def _between(independent: Sequence[NodeOut], y: NodeOut) -> list[Node]:
    """Return the nodes that depend on an independent tensor and that ``y`` depends on, producers first."""
    ends = set(independent)
    order: list[Node] = []
    depends: dict[Node, bool] = {}
    stack: list[tuple[Node, bool]] = [(y.node, False)] if y not in ends else []
    while stack:
        node, is_done = stack.pop()
        if node in depends and not is_done:
            continue
        sources = [source for source in node.inputs if source is not None]
        if is_done:
            depends[node] = any(source in ends or depends.get(source.node, False) for source in sources)
            if depends[node]:
                order.append(node)
            continue
        stack.append((node, True))
        stack.extend((source.node, False) for source in sources if source not in ends and source.node not in depends)
    return order


_Rule = Callable[[_Tape, Node, NodeOut], Sequence["NodeOut | None"]]
"""From a node and the derivative by its output: the derivatives by its inputs (``None``: there is none)."""


def _inputs(node: Node) -> list[NodeOut]:
    return [source for source in node.inputs if source is not None]


def _product(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    a, b = _inputs(node)
    return [t.maths.times(d, b), t.maths.times(d, a)]


def _quotient(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    by_a = t.maths.over(d, node.input(1))
    return [by_a, t.maths.op("Neg", t.maths.times(by_a, node.output()))]


def _matrices(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    """A B: dA = d B', dB = A' d; with A or B transposed before, accordingly."""
    a, b = _inputs(node)[:2]
    names = ("adj_x1", "adj_x2") if node.type == "BatchMatMulV2" else ("transpose_x1", "transpose_x2")
    flips = [bool(node.attrs.get(name, False)) for name in names]

    def times(x: NodeOut, y: NodeOut, flip_x: bool, flip_y: bool) -> NodeOut:
        return t.maths.op(node.type, x, y, **dict(zip(names, (flip_x, flip_y), strict=True)))

    by_a = times(b, d, flips[1], True) if flips[0] else times(d, b, False, not flips[1])
    by_b = times(d, a, True, flips[0]) if flips[1] else times(a, d, not flips[0], False)
    return [by_a, by_b]


def _sigmoid(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    y = node.output()
    return [t.maths.times(d, t.maths.minus(y, t.maths.times(y, y)))]


def _tanh(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    y = node.output()
    return [t.maths.minus(d, t.maths.times(d, t.maths.times(y, y)))]


def _relu(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    zero = t.n.scalar("Zero", 0, t.n.dtype(d))
    return [t.maths.op("SelectV2", t.maths.op("Greater", node.output(), zero), d, zero)]


def _power(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    """x ** e by x: e x ** (e - 1); the exponent must be known."""
    x, exponent = _inputs(node)
    value = t.n.value(exponent)
    if value is None or value.size != 1:
        raise t.n.fail(f"it leads through {node.name} (Pow), whose exponent is no known number")
    e = float(value.reshape(-1)[0])
    lower = t.maths.op("Pow", x, t.n.scalar("Exponent", e - 1, t.n.dtype(x)))
    return [t.maths.times(t.maths.times(d, lower), e), None]


def _sum(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    """Spread the derivative over the axes that were summed up; a mean shares it out."""
    x = _inputs(node)[0]
    shape = t.n.shape(x)
    axes = t.n.ints(node.input(1))
    if shape.is_unknown_shape() or axes is None:
        raise t.n.fail(f"it leads through {node.name} ({node.type}), whose shape or axes are not known")
    if not axes and not node.attrs.get("noop_with_empty_axes", True):
        axes = list(range(len(shape)))
    reduced = {axis % len(shape) for axis in axes}
    kept = [1 if i in reduced else dim for i, dim in enumerate(shape)]
    wide = t.maths.op("Reshape", d, t.n.int64(kept, "Shape"))
    spread = t.maths.op("BroadcastTo", wide, t.n.int64(shape, "Shape"))
    count = int(np.prod([shape[i] for i in reduced], dtype=np.int64))
    return [t.maths.times(spread, 1 / count if node.type == "ReduceMean" and count else 1.0), None]


def _moved(t: _Tape, node: Node, d: NodeOut) -> list[NodeOut | None]:
    """Reshape and its like: back to the shape of the input."""
    shape = t.n.shape(_inputs(node)[0])
    if shape.is_unknown_shape():
        raise t.n.fail(f"it leads through {node.name} ({node.type}), the shape of whose input is not known")
    return [t.maths.op("Reshape", d, t.n.int64(shape, "Shape"))] + [None] * (len(node.inputs) - 1)


_RULES: dict[str, _Rule] = {
    "AccumulateNV2": lambda t, node, d: [d] * len(node.inputs),
    "Add": lambda t, node, d: [d, d],
    "Adds": lambda t, node, d: [d],
    "BatchMatMulV2": _matrices,
    "Exp": lambda t, node, d: [t.maths.times(d, node.output())],
    "Flatten": _moved,
    "Identity": lambda t, node, d: [d],
    "Log": lambda t, node, d: [t.maths.over(d, node.input(0))],
    "MatMulV2": _matrices,
    "Mul": _product,
    "Muls": lambda t, node, d: [t.maths.times(d, node.attrs["value"])],
    "Neg": lambda t, node, d: [t.maths.op("Neg", d)],
    "Pow": _power,
    "RealDiv": _quotient,
    "ReduceMean": _sum,
    "ReduceSum": _sum,
    "Relu": _relu,
    "Reshape": _moved,
    "Sigmoid": _sigmoid,
    "Sqrt": lambda t, node, d: [t.maths.times(t.maths.over(d, node.output()), 0.5)],
    "Square": lambda t, node, d: [t.maths.times(t.maths.times(d, node.input(0)), 2.0)],
    "Squeeze": _moved,
    "Sub": lambda t, node, d: [d, t.maths.op("Neg", d)],
    "Tanh": _tanh,
    "Unsqueeze": _moved,
}


@maps("Gradient", domain=TRAINING)
def gradient(n: NodeBuilder) -> Mapped:
    """Before: Gradient(xs, zs; y). After: the nodes that compute dy/dx backwards, one result per x.

    The inputs must be the tensors that ``xs`` and ``zs`` name: derivatives at other values are refused.
    """
    names = [*n.attr("xs"), *n.attr("zs", [])]
    independent = [_tensor(n, name) for name in names]
    if independent != list(n.inputs):
        raise n.fail(
            f"its inputs {list(n.node.inputs)} are not the tensors {names}; derivatives elsewhere are not built"
        )
    y = _tensor(n, n.attr("y"))
    shape = n.shape(y)
    if shape.is_unknown_shape():
        raise n.fail(f"the shape of [{n.attr('y')}] is not known")
    tape = _Tape(n, independent, y)
    tape.tell(y, n.const("One", np.ones(shape, numpy_dtype(n.dtype(y)))))
    for node in reversed(tape.nodes):
        derivative = tape.derivatives.get(node.output())
        rule = _RULES.get(node.type)
        if rule is None or len(node.output_descs) != 1:
            raise n.fail(f"it leads through {node.name} ({node.type}), whose derivative is not known")
        if derivative is None:
            continue
        for source, part in zip(node.inputs, rule(tape, node, derivative), strict=True):
            if source is not None and part is not None:
                tape.tell(source, part)
    return [tape.derivatives.get(x) or _zeros(n, x) for x in independent[: len(n.attr("xs"))]]


def _tensor(n: NodeBuilder, name: str) -> NodeOut:
    source = n.scope.find(name, n.node)
    if source is None:
        raise n.fail(f"[{name}] is an argument that is absent")
    return source


def _zeros(n: NodeBuilder, x: NodeOut) -> NodeOut:
    """The derivative by a tensor that ``y`` does not depend on."""
    return n.add("ZerosLike", x, role="ZerosLike").output()
