"""Pooling. Attributes keep TensorFlow's order, that of ``data_format``."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.conv import PLANAR, SPATIAL, padding_attributes, per_axis
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder


def _window(n: NodeBuilder, data_format: str) -> dict[str, Any]:
    sizes = {name: per_axis(n, name, data_format) for name in ("ksize", "strides")}
    return {"ksize": sizes["ksize"], "strides": sizes["strides"], "data_format": data_format}


@maps("MaxPool", inputs=1)
def max_pool(n: NodeBuilder) -> Mapped:
    """Before: MaxPool. After: MaxPool; with explicit paddings MaxPoolV3."""
    data_format = n.choice("data_format", *PLANAR)
    window, padding = _window(n, data_format), padding_attributes(n, data_format)
    if padding["padding"] == "EXPLICIT":
        return n.add("MaxPoolV3", n.need(0), padding_mode="CALCULATED", pads=padding["pads"], **window)
    return n.add("MaxPool", n.need(0), padding=padding["padding"], **window)


@maps("MaxPoolV2", inputs=3)
def max_pool_by_inputs(n: NodeBuilder) -> Mapped:
    """Before: MaxPoolV2(x, ksize, strides), sizes that are constants. After: MaxPool."""
    data_format = n.choice("data_format", *PLANAR)
    ksize, strides = n.ints(n.need(1)), n.ints(n.need(2))
    if ksize is None or strides is None:
        raise n.fail("its window and strides must be constants")
    for name, values in (("ksize", ksize), ("strides", strides)):
        if len(values) != 4 or [values[data_format.index(axis)] for axis in "NC"] != [1, 1]:
            raise n.fail(f"{name} is {values}, but four values are needed, with 1 for batch and channels")
    padding = n.choice("padding", "VALID", "SAME")
    return n.add("MaxPool", n.need(0), ksize=ksize, strides=strides, padding=padding, data_format=data_format)


@maps("AvgPool", inputs=1)
def average_pool(n: NodeBuilder) -> Mapped:
    """Before: AvgPool. After: AvgPool, which does not count padding."""
    data_format = n.choice("data_format", *PLANAR)
    padding = n.choice("padding", "VALID", "SAME")
    return n.add("AvgPool", n.need(0), padding=padding, **_window(n, data_format))


@maps("MaxPool3D", inputs=1)
def max_pool_3d(n: NodeBuilder) -> Mapped:
    """Before: MaxPool3D. After: MaxPool3D."""
    padding = n.choice("padding", "VALID", "SAME")
    return n.add("MaxPool3D", n.need(0), padding=padding, pads=[0] * 6, **_window(n, n.choice("data_format", *SPATIAL)))


@maps("AvgPool3D", inputs=1)
def average_pool_3d(n: NodeBuilder) -> Mapped:
    """Before: AvgPool3D. After: AvgPool3D, which does not count padding."""
    padding = n.choice("padding", "VALID", "SAME")
    attrs: dict[str, Any] = {"padding": padding, "pads": [0] * 6, "count_include_pad": False}
    return n.add("AvgPool3D", n.need(0), **attrs, **_window(n, n.choice("data_format", *SPATIAL)))


@maps("MaxPoolWithArgmax", inputs=1)
def max_pool_with_argmax(n: NodeBuilder) -> Mapped:
    """Before: MaxPoolWithArgmax. After: MaxPoolWithArgmax."""
    return n.add(
        "MaxPoolWithArgmax",
        n.need(0),
        padding=n.choice("padding", "VALID", "SAME"),
        Targmax=int(n.attr("Targmax", DataType.DT_INT64)),
        include_batch_in_index=n.attr("include_batch_in_index", False),
        **_window(n, "NHWC"),
    )
