"""One step of an optimiser, as elementwise nodes. Several tensors may be optimised by one ONNX node."""

from __future__ import annotations

from collections.abc import Callable

from ge.graph import NodeOut
from parsers.onnx.arithmetic import Arithmetic
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

TRAINING = "ai.onnx.preview.training"

Step = Callable[..., tuple[NodeOut, ...]]


def _each(n: NodeBuilder, n_roles: int, step: Step) -> Mapped:
    """Apply ``step`` to the tensors: the inputs behind R and T are all X, then all G, and so on, as are the outputs."""
    tensors = [n.need(i) for i in range(2, len(n.inputs))]
    count = len(tensors) // n_roles
    if not count or len(tensors) != count * n_roles:
        raise n.fail(f"it has {len(tensors)} inputs behind R and T, but {n_roles} belong to each tensor")
    results = [step(*tensors[i::count]) for i in range(count)]
    return [out for role in zip(*results, strict=True) for out in role]


def _regularized(n: NodeBuilder, maths: Arithmetic, x: NodeOut, gradient: NodeOut) -> NodeOut:
    factor = n.attr("norm_coefficient")
    return gradient if factor == 0 else maths.plus(maths.times(x, factor), gradient)


def _is_later(n: NodeBuilder, maths: Arithmetic) -> NodeOut:
    """Tell whether this is not the first step: T > 0."""
    return maths.op("Greater", n.need(1), n.scalar("Zero", 0, n.dtype(n.need(1))))


@maps("Adagrad", domain=TRAINING)
def adagrad(n: NodeBuilder) -> Mapped:
    """Before: Adagrad(R, T, X, G, H). After: H' = H + G^2; X' = X - R / (1 + T decay) G / (sqrt(H') + epsilon)."""
    maths = Arithmetic(n)

    def step(x: NodeOut, given: NodeOut, h: NodeOut) -> tuple[NodeOut, ...]:
        dtype = n.dtype(x)
        count = maths.times(n.cast(n.need(1), dtype, role="T"), n.attr("decay_factor"))
        rate = maths.over(n.cast(n.need(0), dtype, role="R"), maths.plus(count, 1.0))
        gradient = _regularized(n, maths, x, given)
        squares = maths.plus(h, maths.times(gradient, gradient))
        spread = maths.plus(maths.op("Sqrt", squares), n.attr("epsilon"))
        return maths.minus(x, maths.over(maths.times(rate, gradient), spread)), squares

    return _each(n, 3, step)


@maps("Momentum", domain=TRAINING)
def momentum(n: NodeBuilder) -> Mapped:
    """Before: Momentum(R, T, X, G, V). After: V' = alpha V + beta G; X' = X - R V', or by Nesterov's rule.

    In the first step beta counts as 1.
    """
    maths, mode, alpha = Arithmetic(n), n.choice("mode", "standard", "nesterov"), n.attr("alpha")

    def step(x: NodeOut, given: NodeOut, v: NodeOut) -> tuple[NodeOut, ...]:
        dtype = n.dtype(x)
        one, beta = n.scalar("One", 1, dtype), n.scalar("Beta", n.attr("beta"), dtype)
        gradient = _regularized(n, maths, x, given)
        weight = maths.op("SelectV2", _is_later(n, maths), beta, one)
        velocity = maths.plus(maths.times(v, alpha), maths.times(weight, gradient))
        direction = velocity if mode == "standard" else maths.plus(gradient, maths.times(velocity, alpha))
        rate = n.cast(n.need(0), dtype, role="R")
        return maths.minus(x, maths.times(rate, direction)), velocity

    return _each(n, 3, step)


@maps("Adam", domain=TRAINING)
def adam(n: NodeBuilder) -> Mapped:
    """Before: Adam(R, T, X, G, V, H). After: V' and H' average G and G^2; X' = X - R' V' / (sqrt(H') + epsilon)."""
    maths, alpha, beta = Arithmetic(n), n.attr("alpha"), n.attr("beta")

    def step(x: NodeOut, given: NodeOut, v: NodeOut, h: NodeOut) -> tuple[NodeOut, ...]:
        gradient = _regularized(n, maths, x, given)
        mean = maths.plus(maths.times(v, alpha), maths.times(gradient, 1 - alpha))
        squares = maths.plus(maths.times(h, beta), maths.times(maths.times(gradient, gradient), 1 - beta))
        spread = maths.plus(maths.op("Sqrt", squares), n.attr("epsilon"))
        moved = maths.minus(x, maths.over(maths.times(_adjusted_rate(n, maths, x), mean), spread))
        return maths.times(moved, 1 - n.attr("norm_coefficient_post")), mean, squares

    return _each(n, 4, step)


def _adjusted_rate(n: NodeBuilder, maths: Arithmetic, like: NodeOut) -> NodeOut:
    """R sqrt(1 - beta^T) / (1 - alpha^T), in the first step R."""
    dtype = n.dtype(like)
    rate, count = n.cast(n.need(0), dtype, role="R"), n.cast(n.need(1), dtype, role="T")

    def rest(name: str) -> NodeOut:
        power = maths.op("Pow", n.scalar(name, n.attr(name), dtype), count)
        return maths.plus(maths.times(power, -1.0), 1.0)

    adjusted = maths.over(maths.times(rate, maths.op("Sqrt", rest("beta"))), rest("alpha"))
    return maths.op("SelectV2", _is_later(n, maths), adjusted, rate)
