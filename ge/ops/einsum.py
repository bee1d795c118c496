"""Einstein summation. Floats are multiplied and summed in float32 at least, integers in their own type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.inference import common_type
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator

ELLIPSIS = "..."


def _terms(equation: str, count: int) -> tuple[list[str], str | None]:
    """Return the operands' labels and the result's (``None`` when the equation leaves them open)."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    for term in (*terms, output):
        labels = term.replace(ELLIPSIS, "", 1)
        if not all(label.isascii() and label.isalpha() for label in labels):
            raise Misfit(f"equation {equation!r} is malformed at {term!r}")
    if len(terms) != count:
        raise Misfit(f"equation {equation!r} has {len(terms)} operands, the node has {count}")
    return terms, output if arrow else None


def _fill_in_output(terms: Sequence[str]) -> str:
    """Return the result of an equation without one: the ellipsis, then labels that occur once, sorted."""
    labels = "".join(terms).replace(ELLIPSIS, "")
    once = sorted(label for label in set(labels) if labels.count(label) == 1)
    return (ELLIPSIS if any(ELLIPSIS in term for term in terms) else "") + "".join(once)


def _joint(known: int, dim: int, label: str) -> int:
    if known == 1 or (known == -1 and dim not in (-1, 1)):
        return dim
    if dim not in (known, 1, -1):
        raise Misfit(f"label {label} stands for dims {known} and {dim}")
    return known


def summed_shape(equation: str, shapes: Sequence[Shape]) -> list[int]:
    """Return the shape of the result; -1 and ``[-2]`` where the operands' are unknown. Raises ``Misfit``."""
    terms, output = _terms(equation, len(shapes))
    output = _fill_in_output(terms) if output is None else output
    sizes: dict[str, int] = {}
    spread: list[int] = []
    for term, shape in zip(terms, shapes, strict=True):
        if shape.is_unknown_rank():
            if ELLIPSIS in output:
                return [-2]
            for label in term.replace(ELLIPSIS, ""):
                sizes.setdefault(label, -1)
            continue
        before, has_spread, after = term.partition(ELLIPSIS)
        extra = len(shape) - len(before) - len(after)
        if extra < 0 or (extra and not has_spread):
            raise Misfit(f"operand {term!r} of equation {equation!r} does not fit shape {shape}")
        own = shape[len(before) : len(before) + extra]
        spread = [1] * (len(own) - len(spread)) + spread
        for at, dim in enumerate(own, start=len(spread) - len(own)):
            spread[at] = _joint(spread[at], dim, ELLIPSIS)
        for label, dim in zip(before + after, (*shape[: len(before)], *shape[len(before) + extra :]), strict=True):
            sizes[label] = _joint(sizes.get(label, 1), dim, label)
    before, has_spread, after = output.partition(ELLIPSIS)
    for label in before + after:
        if label not in sizes or (before + after).count(label) > 1:
            raise Misfit(f"label {label} of the result of equation {equation!r} is new or there twice")
    return [*(sizes[label] for label in before), *(spread if has_spread else []), *(sizes[label] for label in after)]


def _einsum(ctx: InferContext) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    dtype = common_type(ctx, descs)
    return [(summed_shape(ctx.op.equation, [desc.origin_shape for desc in descs]), dtype)]


@operator("Einsum(x*) [equation:s! N:i!]", infer=_einsum)
def einsum(op: Any, x: list[Any]) -> Any:
    summed_shape(op.equation, [Shape(operand.shape) for operand in x])
    return np.einsum(op.equation.replace(" ", ""), *x, optimize="greedy")
