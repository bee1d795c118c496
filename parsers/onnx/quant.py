"""Linear quantisation. GE has no operators with ONNX's meaning; the ones whose names begin with X are ours."""

from __future__ import annotations

from typing import Any

from parsers.onnx.conv import AUTO_PADS, check_kernel_shape, paired, spatial_attr, spatial_rank
from parsers.onnx.mapping import Mapped, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows(
    {
        "DynamicQuantizeLinear": "XDynamicQuantizeLinear",
        "MatMulInteger": "XMatMulInteger",
        "QLinearMatMul": "XQLinearMatMul",
    }
)


@maps("QuantizeLinear")
def quantize(n: NodeBuilder) -> Mapped:
    """Before: QuantizeLinear. After: XQuantizeLinear; another precision of the division is a Cast before it."""
    x, scale = n.need(0), n.need(1)
    precision = n.attr("precision", 0)
    if precision:
        width = n.element_type(precision, "precision")
        x, scale = n.cast(x, width, role="Cast_X"), n.cast(scale, width, role="Cast_Scale")
    extra: dict[str, Any] = {} if n.attr("saturate", 1) else {"saturate": False}
    return n.add("XQuantizeLinear", x, scale, n.input(2), **extra, **_layout(n))


@maps("DequantizeLinear")
def dequantize(n: NodeBuilder) -> Mapped:
    """Before: DequantizeLinear. After: XDequantizeLinear."""
    return n.add("XDequantizeLinear", *n.inputs, **_layout(n))


def _layout(n: NodeBuilder) -> dict[str, Any]:
    wanted = n.attr("output_dtype", 0)
    attrs: dict[str, Any] = {"axis": n.attr("axis", 1), "block_size": n.attr("block_size", 0)}
    return {**attrs, "dtype": n.element_type(wanted, "output_dtype")} if wanted else attrs


@maps("ConvInteger")
def conv_integer(n: NodeBuilder) -> Mapped:
    """Before: ConvInteger. After: XConvInteger."""
    return n.add("XConvInteger", *n.inputs, **_window(n, weights=1))


@maps("QLinearConv")
def qlinear_conv(n: NodeBuilder) -> Mapped:
    """Before: QLinearConv. After: XQLinearConv."""
    return n.add("XQLinearConv", *n.inputs, **_window(n, weights=3))


def _window(n: NodeBuilder, weights: int) -> dict[str, Any]:
    """Return the window's attributes, one value per spatial axis."""
    rank = spatial_rank(n, weights=weights)
    check_kernel_shape(n, rank, weights)
    auto_pad = n.choice("auto_pad", *AUTO_PADS)
    attrs: dict[str, Any] = {
        "strides": spatial_attr(n, "strides", rank, 1),
        "pads": paired(spatial_attr(n, "pads", rank, 0, per_axis=2)),
        "dilations": spatial_attr(n, "dilations", rank, 1),
        "groups": n.attr("group"),
        "data_format": ("NCW", "NCHW", "NCDHW")[rank - 1],
    }
    return attrs if auto_pad == "NOTSET" else {**attrs, "auto_pad": auto_pad, "pads": [0] * (2 * rank)}
