"""Convolution, its gradient with respect to the input (a transposed convolution), bias.

Attributes keep TensorFlow's order, that of ``data_format``. SAME and VALID stay in ``padding`` and are resolved when
shapes are inferred; explicit paddings become ``pads``, begin and end per spatial axis. Filters are HWCN (DHWCN)
whatever the data's format is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder, Source

PLANAR = ("NHWC", "NCHW")
SPATIAL = ("NDHWC", "NCDHW")


def per_axis(n: NodeBuilder, name: str, data_format: str, default: list[int] | type = list) -> list[int]:
    """Return a list attribute with one value for each axis of ``data_format``; batch and channels must have 1."""
    values = n.numbers(name, default)
    if len(values) != len(data_format):
        raise n.fail(f"attribute {name} is {values}, but {data_format} needs {len(data_format)} values")
    beside_space = [values[data_format.index(axis)] for axis in "NC"]
    if beside_space != [1, 1]:
        raise n.fail(f"attribute {name} is {values}; over batch and channels it must be 1")
    return values


def padding_attributes(n: NodeBuilder, data_format: str) -> dict[str, Any]:
    """Return ``padding`` and, per spatial axis, ``pads``."""
    padding = n.choice("padding", "VALID", "SAME", "EXPLICIT")
    n_spatial = len(data_format) - 2
    if padding != "EXPLICIT":
        return {"padding": padding, "pads": [0] * 2 * n_spatial}
    given = n.numbers("explicit_paddings")
    if len(given) != 2 * len(data_format) or min(given) < 0:
        raise n.fail(f"attribute explicit_paddings is {given}, but {data_format} needs begin and end for each axis")
    pairs = {axis: given[2 * i : 2 * i + 2] for i, axis in enumerate(data_format)}
    if any(pairs["N"]) or any(pairs["C"]):
        raise n.fail(f"attribute explicit_paddings is {given}; batch and channels cannot be padded")
    return {"padding": padding, "pads": [width for axis in data_format if axis not in "NC" for width in pairs[axis]]}


def conv_attributes(n: NodeBuilder, formats: Sequence[str]) -> dict[str, Any]:
    """Return the attributes that all convolutions share; ``formats`` are those of the data, the default first."""
    data_format = n.choice("data_format", *formats)
    n_axes = len(data_format)
    attrs = {
        "strides": per_axis(n, "strides", data_format),
        "dilations": per_axis(n, "dilations", data_format, [1] * n_axes),
        "data_format": data_format,
        **padding_attributes(n, data_format),
    }
    if data_format.startswith("NC"):
        attrs["_x_filter_format"] = "HWCN" if n_axes == 4 else "DHWCN"
    return attrs


def conv_groups(n: NodeBuilder, x: Source, filter: Source, data_format: str) -> int:
    """Return how many groups there are: the filter tells how many channels one of them has."""
    data, weights = n.shape(x), n.shape(filter)
    if data.is_unknown_rank() or weights.is_unknown_rank() or len(data) != len(data_format) or len(weights) < 2:
        return 1
    channels, per_group = data[data_format.index("C")], weights[-2]
    return channels // per_group if per_group > 0 and channels > 0 and channels % per_group == 0 else 1


@maps("Conv2D", inputs=2)
def conv2d(n: NodeBuilder) -> Mapped:
    """Before: Conv2D. After: Conv2D, with the groups that the channels of data and filter make."""
    attrs = conv_attributes(n, PLANAR)
    groups = conv_groups(n, n.need(0), n.need(1), attrs["data_format"])
    return n.add("Conv2D", n.need(0), n.need(1), groups=groups, offset_x=0, **attrs)


@maps("Conv3D", inputs=2)
def conv3d(n: NodeBuilder) -> Mapped:
    """Before: Conv3D. After: Conv3D."""
    attrs = conv_attributes(n, SPATIAL)
    groups = conv_groups(n, n.need(0), n.need(1), attrs["data_format"])
    return n.add("Conv3D", n.need(0), n.need(1), groups=groups, offset_x=0, **attrs)


@maps("DepthwiseConv2dNative", inputs=2)
def depthwise_conv(n: NodeBuilder) -> Mapped:
    """Before: DepthwiseConv2dNative. After: DepthwiseConv2D."""
    return n.add("DepthwiseConv2D", n.need(0), n.need(1), offset_x=0, **conv_attributes(n, PLANAR))


@maps("Conv2DBackpropInput", inputs=3)
def conv2d_backprop_input(n: NodeBuilder) -> Mapped:
    """Before: Conv2DBackpropInput(input_sizes, filter, out_backprop). After: Conv2DBackpropInput."""
    return n.add("Conv2DBackpropInput", *n.inputs, groups=1, **conv_attributes(n, PLANAR))


@maps("Conv3DBackpropInputV2", inputs=3)
def conv3d_backprop_input(n: NodeBuilder) -> Mapped:
    """Before: Conv3DBackpropInputV2(input_sizes, filter, out_backprop). After: Conv3DTranspose."""
    sizes, weights, data = n.inputs
    return n.add("Conv3DTranspose", sizes, data, weights, groups=1, **conv_attributes(n, SPATIAL))


@maps("BiasAdd", inputs=2)
def bias_add(n: NodeBuilder) -> Mapped:
    """Before: BiasAdd. After: BiasAdd."""
    return n.add("BiasAdd", *n.inputs, data_format=n.choice("data_format", *PLANAR, *SPATIAL))


@maps("BiasAddV1", inputs=2)
def old_bias_add(n: NodeBuilder) -> Mapped:
    """Before: BiasAddV1, along the last axis. After: BiasAdd."""
    return n.add("BiasAdd", *n.inputs, data_format="NHWC")
