"""Operators that change the shape or read it."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

INT64 = int(DataType.DT_INT64)

maps_rows(
    {
        "Flatten": Row("Flatten", axis="axis"),
        "Identity": "Identity",
    }
)


@maps("Reshape")
def reshape(n: NodeBuilder) -> Mapped:
    """Before: Reshape(x, shape). After: Reshape; a literal 0 in the shape is marked with ``_x_allowzero``."""
    extra: dict[str, Any] = {"_x_allowzero": 1} if n.attr("allowzero", 0) else {}
    return n.add("Reshape", n.need(0), n.need(1), **extra)


@maps("Squeeze")
def squeeze(n: NodeBuilder) -> Mapped:
    """Before: Squeeze. After: Squeeze(axis attribute) before opset 13, SqueezeV3(x, axes) since."""
    if n.since_version < 13:
        return n.add("Squeeze", n.need(0), axis=n.attr("axes", []))
    return n.add("SqueezeV3", *n.inputs)


@maps("Unsqueeze")
def unsqueeze(n: NodeBuilder) -> Mapped:
    """Before: Unsqueeze. After: Unsqueeze(axes attribute) before opset 13, UnsqueezeV3(x, axes) since."""
    if n.since_version < 13:
        return n.add("Unsqueeze", n.need(0), axes=n.attr("axes"))
    return n.add("UnsqueezeV3", *n.inputs)


@maps("Shape")
def shape(n: NodeBuilder) -> Mapped:
    """Before: Shape(start, end). After: Shape(dtype int64), the range in ``_x_start``, ``_x_end``."""
    extra: dict[str, Any] = {f"_x_{name}": n.attr(name) for name in ("start", "end") if n.has_attr(name)}
    return n.add("Shape", n.need(0), dtype=INT64, **extra)


@maps("Size")
def size(n: NodeBuilder) -> Mapped:
    """Before: Size. After: Size(dtype int64)."""
    return n.add("Size", n.need(0), dtype=INT64)
