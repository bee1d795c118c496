"""Operators of opsets 1 to 6, said in terms of opset 7, so that the mappings need to know only what came later."""

from __future__ import annotations

import math
from collections.abc import Callable

from onnx import TensorProto

from parsers.onnx.node_builder import NodeBuilder

FIRST_MODERN = 7
"""From this opset on operands are broadcast as numpy does, and nothing needs to be renewed."""

_Renewal = Callable[[NodeBuilder], None]


def renew(n: NodeBuilder) -> None:
    """Change inputs and attributes of an old node to what they are called in opset 7."""
    if n.since_version < FIRST_MODERN and n.op_type in _RENEWALS:
        _RENEWALS[n.op_type](n)


def _broadcast(n: NodeBuilder) -> None:
    """The second operand lies at ``axis`` of the first if ``broadcast`` is set: it gets axes behind it."""
    first, second = n.shape(n.need(0)), n.shape(n.need(1))
    axis = n.attr("axis")
    if not n.attr("broadcast"):
        is_known = not (first.is_unknown_shape() or second.is_unknown_shape())
        if is_known and first != second:
            raise n.fail(f"its operands have the shapes {first} and {second}, but it sets no attribute broadcast")
    elif axis is not None:
        rank, own = n.rank(0), n.rank(1)
        behind = rank - n.axis(axis, rank) - own
        if behind < 0:
            raise n.fail(f"its second operand of shape {second} does not fit at axis {axis} of {first}")
        if behind:
            axes = list(range(own, own + behind))
            n.inputs[1] = n.add("Unsqueeze", n.need(1), role="Unsqueeze", axes=axes).output()


def _slope(n: NodeBuilder) -> None:
    """A slope of one axis counts along the channels."""
    if len(n.shape(n.need(1))) == 1 and n.shape(n.need(1))[0] != 1 and n.rank(0) > 2:
        axes = list(range(1, n.rank(0) - 1))
        n.inputs[1] = n.add("Unsqueeze", n.need(1), role="Unsqueeze", axes=axes).output()


def _statistics(n: NodeBuilder) -> None:
    if not n.attr("is_test"):
        n.set_attr("training_mode", 1)


def _type_by_name(n: NodeBuilder) -> None:
    name = n.attr("to")
    if not isinstance(name, str):
        return
    if name not in TensorProto.DataType.keys():  # noqa: SIM118 - it is no dict
        raise n.fail(f"attribute to is {name}, which is no element type")
    n.set_attr("to", TensorProto.DataType.Value(name))


def _open_limits(n: NodeBuilder) -> None:
    for name, limit in (("min", -math.inf), ("max", math.inf)):
        if n.attr(name) is None:
            n.set_attr(name, limit)


def _default(name: str, value: object) -> _Renewal:
    def fill(n: NodeBuilder) -> None:
        if n.attr(name) is None:
            n.set_attr(name, value)

    return fill


def _whole_exponent(n: NodeBuilder) -> None:
    n.set_attr("p", int(n.attr("p", 2)))


def _paddings(n: NodeBuilder) -> None:
    if n.has_attr("paddings"):
        n.set_attr("pads", n.attr("paddings"))


def _shape_attribute(n: NodeBuilder) -> None:
    if len(n.inputs) == 1:
        n.inputs.append(n.int64(n.attr("shape", []), "Shape"))


def _tiled_axis(n: NodeBuilder) -> None:
    """Tile(x, count, axis) repeats along one axis."""
    if len(n.inputs) < 3:
        return
    count, axis = n.ints(n.need(1)), n.ints(n.need(2))
    if count is None or axis is None or len(count) != 1 or len(axis) != 1:
        raise n.fail("its inputs tiles and axis must be constant numbers")
    repeats = [1] * n.rank(0)
    repeats[n.axis(axis[0], len(repeats))] = count[0]
    n.inputs[1:] = [n.int64(repeats, "Repeats")]


def _planar_scales(n: NodeBuilder) -> None:
    if n.has_attr("width_scale"):
        n.set_attr("scales", [1.0, 1.0, n.attr("height_scale"), n.attr("width_scale")])
        n.set_attr("mode", {"bilinear": "linear"}.get(n.attr("mode"), n.attr("mode")))


def _direction(n: NodeBuilder) -> None:
    # the first schema of GRU misspells its default
    if n.attr("direction") == "foward":
        n.set_attr("direction", "forward")


_RENEWALS: dict[str, _Renewal] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"), _broadcast),
    "BatchNormalization": _statistics,
    "Cast": _type_by_name,
    "Clip": _open_limits,
    "Concat": _default("axis", 1),
    "GRU": _direction,
    "GlobalLpPool": _whole_exponent,
    "LpPool": _whole_exponent,
    "PRelu": _slope,
    "Pad": _paddings,
    "Reshape": _shape_attribute,
    "Split": _default("axis", 0),
    "Tile": _tiled_axis,
    "Upsample": _planar_scales,
}
