"""Convolution and its transpose.

Strides and dilations get two leading ones, pads change from all begins, all ends to pairs per axis. A convolution over
one spatial axis becomes one over two, with a height of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph import NodeOut
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def spatial_rank(n: NodeBuilder, data: int = 0, weights: int | None = 1) -> int:
    """Return the number of spatial axes, from the data or the filter, whichever is known; 1 to 3 are supported."""
    sources = [n.need(data)] + ([] if weights is None else [n.need(weights)])
    ranks = [len(n.shape(s)) for s in sources if not n.shape(s).is_unknown_rank()]
    if not ranks:
        n.rank(data)
    if not 3 <= ranks[0] <= 5:
        raise n.fail(f"its input has {ranks[0]} axes; 3 to 5 are supported")
    return ranks[0] - 2


def spatial_attr(n: NodeBuilder, name: str, rank: int, default: int, per_axis: int = 1) -> list[int]:
    """Return a list attribute with ``per_axis`` values for each spatial axis."""
    found = n.attr(name)
    values = [default] * (rank * per_axis) if not found else [int(v) for v in found]
    if len(values) != rank * per_axis:
        raise n.fail(f"attribute {name} has {len(values)} values, but {rank} spatial axes need {rank * per_axis}")
    return values


def paired(pads: Sequence[int]) -> list[int]:
    """Change all begins, all ends into begin and end per axis."""
    half = len(pads) // 2
    return [value for pair in zip(pads[:half], pads[half:], strict=True) for value in pair]


def widened(values: list[int], rank: int, fill: int, per_axis: int = 1, *, dummy_first: bool = True) -> list[int]:
    """Give one-dimensional values a dummy second axis: height (in front) or width (behind)."""
    dummy = [fill] * per_axis
    return values if rank > 1 else [*dummy, *values] if dummy_first else [*values, *dummy]


def _window(n: NodeBuilder, rank: int) -> dict[str, Any]:
    auto_pad = n.choice("auto_pad", *AUTO_PADS)
    pads = spatial_attr(n, "pads", rank, 0, per_axis=2)
    if auto_pad != "NOTSET":
        pads = [0] * len(pads)
    attrs: dict[str, Any] = {
        "strides": [1, 1, *widened(spatial_attr(n, "strides", rank, 1), rank, 1)],
        "pads": widened(paired(pads), rank, 0, per_axis=2),
        "dilations": [1, 1, *widened(spatial_attr(n, "dilations", rank, 1), rank, 1)],
        "groups": n.attr("group"),
        "data_format": "NCDHW" if rank == 3 else "NCHW",
    }
    return attrs if auto_pad == "NOTSET" else {**attrs, "auto_pad": auto_pad}


def check_kernel_shape(n: NodeBuilder, rank: int, weights: int = 1) -> None:
    """Raise E11010 when the attribute kernel_shape is not the shape of the filter, input ``weights``."""
    given = n.attr("kernel_shape")
    kernel = n.shape(n.need(weights))
    if not given or kernel.is_unknown_rank():
        return
    if len(given) != rank or any(k != f and f != -1 for k, f in zip(given, kernel[2:], strict=True)):
        raise n.fail(f"attribute kernel_shape is {list(given)}, but the filter has the shape {kernel}")


def with_height(n: NodeBuilder, source: NodeOut, role: str) -> NodeOut:
    """Insert a height of 1 in front of the only spatial axis."""
    return n.add("Unsqueeze", source, role=role, axes=[2]).output()


@maps("Conv")
def conv(n: NodeBuilder) -> Mapped:
    """Before: Conv. After: Conv2D, Conv3D; over one axis: Unsqueeze x 2 -> Conv2D -> Squeeze."""
    rank = spatial_rank(n)
    check_kernel_shape(n, rank)
    attrs = _window(n, rank)
    x, weights, bias = n.need(0), n.need(1), n.input(2)
    if rank == 1:
        x, weights = with_height(n, x, "Unsqueeze_X"), with_height(n, weights, "Unsqueeze_W")
        result = n.add("Conv2D", x, weights, bias, role="Conv2D", **attrs)
        return n.add("Squeeze", result, axis=[2])
    return n.add("Conv3D" if rank == 3 else "Conv2D", x, weights, bias, **attrs)


@maps("DeformConv")
def deform_conv(n: NodeBuilder) -> Mapped:
    """Before: DeformConv(x, W, offset, B, mask). After: XDeformConv."""
    rank = spatial_rank(n)
    if rank != 2:
        raise n.fail(f"it has {rank} spatial axes; 2 are supported")
    check_kernel_shape(n, rank)
    return n.add(
        "XDeformConv",
        n.need(0),
        n.need(1),
        n.need(2),
        n.input(3),
        n.input(4),
        strides=[1, 1, *spatial_attr(n, "strides", rank, 1)],
        pads=paired(spatial_attr(n, "pads", rank, 0, per_axis=2)),
        dilations=[1, 1, *spatial_attr(n, "dilations", rank, 1)],
        groups=n.attr("group"),
        data_format="NCHW",
        deformable_groups=n.attr("offset_group"),
    )


@maps("ConvTranspose")
def conv_transpose(n: NodeBuilder) -> Mapped:
    """Before: ConvTranspose. After: Const(input_size 0) -> Conv2DTranspose, Conv3DTranspose; over one axis wrapped."""
    rank = spatial_rank(n)
    check_kernel_shape(n, rank)
    attrs = _window(n, rank)
    attrs["output_padding"] = [0, 0, *widened(spatial_attr(n, "output_padding", rank, 0), rank, 0)]
    output_shape = n.attr("output_shape")
    if output_shape:
        wanted = [int(v) for v in output_shape][-rank:]  # some exporters give batch and channels too
        if len(wanted) != rank:
            raise n.fail(f"attribute output_shape is {list(output_shape)}, but there are {rank} spatial axes")
        attrs["_x_output_shape"] = widened(wanted, rank, 1)
    x, weights = n.need(0), n.need(1)
    bias, size = n.input(2), n.const("InputSize", np.zeros(max(rank, 2) + 2, np.int64))
    if rank == 1:
        x, weights = with_height(n, x, "Unsqueeze_X"), with_height(n, weights, "Unsqueeze_W")
        result = n.add("Conv2DTranspose", size, x, weights, bias, role="Conv2DTranspose", **attrs)
        return n.add("Squeeze", result, axis=[2])
    return n.add("Conv3DTranspose" if rank == 3 else "Conv2DTranspose", size, x, weights, bias, **attrs)
