"""Pooling. Over one spatial axis: Unsqueeze(axis 3) -> two-dimensional pooling -> Squeeze."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph import Node, NodeOut
from ge.graph.types import numpy_dtype
from parsers.onnx.conv import AUTO_PADS, paired, spatial_attr, spatial_rank, widened
from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder, Source

maps_rows(
    {
        "GlobalAveragePool": "GlobalAveragePool",
        "GlobalLpPool": Row("GlobalLpPool", p="p"),
    }
)

_OLD_SOCS = frozenset(
    {"Ascend310", "Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7", "Ascend610"}
    | {f"Ascend910{variant}" for variant in ("", "A", "B", "ProA", "ProB", "PremiumA")}
)
"""Chips whose MaxPoolV3 has no kernel beyond 255 elements and no stride beyond 63."""
_MAX_KERNEL_AREA = 255
_MAX_STRIDE = 63

_GE_MODES = {"NOTSET": "CALCULATED", "VALID": "VALID", "SAME_UPPER": "SAME", "SAME_LOWER": "SAME"}


class _Pooling:
    """The attributes of a pooling node, per spatial axis, one axis widened to two."""

    def __init__(self, n: NodeBuilder) -> None:
        self.rank = rank = spatial_rank(n, weights=None)
        self.auto_pad = n.choice("auto_pad", *AUTO_PADS)
        pads = spatial_attr(n, "pads", rank, 0, per_axis=2)
        given_pads = pads if self.auto_pad == "NOTSET" else [0] * len(pads)
        self.pads = widened(paired(given_pads), rank, 0, per_axis=2, dummy_first=False)
        self.kernel = self._values(n, "kernel_shape")
        self.strides = self._values(n, "strides")
        self.dilations = self._values(n, "dilations")
        self.ceil_mode = bool(n.attr("ceil_mode", 0))

    def _values(self, n: NodeBuilder, name: str) -> list[int]:
        return widened(spatial_attr(n, name, self.rank, 1), self.rank, 1, dummy_first=False)

    @property
    def extra(self) -> dict[str, Any]:
        """Meaning that GE's operators lack."""
        extra: dict[str, Any] = {}
        if any(d != 1 for d in self.dilations):
            extra["_x_dilations"] = self.dilations
        if self.auto_pad == "SAME_LOWER" or (self.auto_pad != "NOTSET" and self.rank == 3):
            extra["_x_auto_pad"] = self.auto_pad
        return extra

    def planar(self) -> dict[str, Any]:
        """Attributes of MaxPoolV3 and AvgPoolV2."""
        return {
            "ksize": [1, 1, *self.kernel],
            "strides": [1, 1, *self.strides],
            "padding_mode": _GE_MODES[self.auto_pad],
            "pads": self.pads,
            "ceil_mode": self.ceil_mode,
            "data_format": "NCHW",
            **self.extra,
        }

    def spatial(self) -> dict[str, Any]:
        """Attributes that MaxPool3D and AvgPool3D share."""
        return {
            "ksize": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "data_format": "NCDHW",
            **self.extra,
        }


def _flat(n: NodeBuilder, pooling: _Pooling, type: str, x: Source, role: str, **attrs: Any) -> Node:
    """Add a two-dimensional pooling; one axis gets a width of 1 before and loses it behind."""
    attrs = {**pooling.planar(), **attrs}
    if pooling.rank == 2:
        return n.add(type, x, role=role, **attrs)
    wide = n.add("Unsqueeze", x, role="Unsqueeze", axes=[3])
    pooled = n.add(type, wide, role=type, **attrs)
    return n.add("Squeeze", pooled, role=role and f"{role}_Squeeze", axis=[3])


@maps("AveragePool")
def average_pool(n: NodeBuilder) -> Mapped:
    """Before: AveragePool. After: AvgPoolV2 or AvgPool3D."""
    return _average(n, _Pooling(n), n.need(0), counts_padding=bool(n.attr("count_include_pad", 0)))


def _average(
    n: NodeBuilder, pooling: _Pooling, x: Source, counts_padding: bool, divisor: int = 0, role: str = ""
) -> Node:
    extra = {"divisor_override": divisor} if divisor else {}
    if pooling.rank == 3:
        attrs = {**pooling.spatial(), "ceil_mode": pooling.ceil_mode, "count_include_pad": counts_padding, **extra}
        return n.add("AvgPool3D", x, role=role, **attrs)
    return _flat(n, pooling, "AvgPoolV2", x, role, exclusive=not counts_padding, **extra)


@maps("LpPool")
def lp_pool(n: NodeBuilder) -> Mapped:
    """Before: LpPool(p). After: Abs -> Power(p) -> AvgPool with divisor 1, a sum -> Power(1/p)."""
    pooling, p = _Pooling(n), float(n.attr("p"))
    magnitude = n.add("Abs", n.need(0), role="Abs")
    powers = n.add("Power", magnitude, role="Power", power=p)
    summed = _average(n, pooling, powers, counts_padding=True, divisor=1, role="Sum")
    return n.add("Power", summed, power=1 / p)


@maps("MaxPool")
def max_pool(n: NodeBuilder) -> Mapped:
    """Before: MaxPool. After: MaxPoolV3 or MaxPool3D; with the output Indices XMaxPoolWithIndices.

    Kernels too big for MaxPoolV3 on older chips: TransposeD -> [PadV2] -> MaxPool(NHWC, VALID) -> TransposeD.
    """
    pooling = _Pooling(n)
    if n.wants(1):
        return _with_indices(n, pooling)
    x = n.need(0)
    if pooling.rank == 3:
        mode = _GE_MODES[pooling.auto_pad]
        ceil_mode = int(pooling.ceil_mode)
        return n.add("MaxPool3D", x, padding=mode, ceil_mode=ceil_mode, **pooling.spatial())
    if pooling.rank == 2 and _is_too_big(n, pooling):
        return _transposed(n, pooling)
    return _flat(n, pooling, "MaxPoolV3", x, "")


def _is_too_big(n: NodeBuilder, pooling: _Pooling) -> bool:
    area = pooling.kernel[0] * pooling.kernel[1]
    is_big = area > _MAX_KERNEL_AREA or max(pooling.strides) > _MAX_STRIDE
    is_plain = not pooling.ceil_mode and not pooling.extra and pooling.auto_pad in ("NOTSET", "VALID")
    return is_big and is_plain and n.builder.session.options.soc_version in _OLD_SOCS


def _transposed(n: NodeBuilder, pooling: _Pooling) -> Mapped:
    x: Source = n.add("TransposeD", n.need(0), role="TransposeD", perm=[0, 2, 3, 1])
    if any(pooling.pads):
        top, bottom, left, right = pooling.pads
        paddings = n.const("Paddings", np.asarray([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        x = n.add("PadV2", x, paddings, _lowest(n), role="PadV2")
    ksize, strides = [1, *pooling.kernel, 1], [1, *pooling.strides, 1]
    y = n.add("MaxPool", x, role="MaxPool", ksize=ksize, strides=strides, padding="VALID", data_format="NHWC")
    return n.add("TransposeD", y, perm=[0, 3, 1, 2])


def _lowest(n: NodeBuilder) -> NodeOut:
    """Add a Const that no element is below: padding that a maximum ignores."""
    dtype = numpy_dtype(n.dtype(n.need(0)))
    return n.const("Lowest", np.asarray(np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf, dtype))


def _with_indices(n: NodeBuilder, pooling: _Pooling) -> Mapped:
    rank = pooling.rank
    extra: dict[str, Any] = {} if pooling.auto_pad == "NOTSET" else {"_x_auto_pad": pooling.auto_pad}
    return n.add(
        "XMaxPoolWithIndices",
        n.need(0),
        ksize=pooling.kernel[:rank],
        strides=pooling.strides[:rank],
        dilations=pooling.dilations[:rank],
        pads=pooling.pads[: 2 * rank],
        ceil_mode=pooling.ceil_mode,
        storage_order=n.attr("storage_order"),
        **extra,
    )


@maps("MaxUnpool")
def max_unpool(n: NodeBuilder) -> Mapped:
    """Before: MaxUnpool(x, indices, output_shape). After: XMaxUnpool."""
    rank = spatial_rank(n, weights=None)
    return n.add(
        "XMaxUnpool",
        *n.inputs,
        ksize=spatial_attr(n, "kernel_shape", rank, 1),
        strides=spatial_attr(n, "strides", rank, 1),
        pads=paired(spatial_attr(n, "pads", rank, 0, per_axis=2)),
    )


@maps("GlobalMaxPool")
def global_max_pool(n: NodeBuilder) -> Mapped:
    """Before: GlobalMaxPool. After: ReduceMax over the spatial axes."""
    axes = n.index("Const", range(2, n.rank()))
    return n.add("ReduceMax", n.need(0), axes, keep_dims=True, noop_with_empty_axes=True)
