"""Sampling at free coordinates."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

_MODES = {"bilinear": "bilinear", "linear": "bilinear", "bicubic": "bicubic", "cubic": "bicubic", "nearest": "nearest"}


@maps("GridSample")
def grid_sample(n: NodeBuilder) -> Mapped:
    """Before: GridSample. After: GridSampler2D or GridSampler3D."""
    rank = n.rank()
    if rank not in (4, 5):
        raise n.fail(f"its input has {rank} axes; 4 or 5 are supported")
    return n.add(
        "GridSampler2D" if rank == 4 else "GridSampler3D",
        n.need(0),
        n.need(1),
        interpolation_mode=_MODES[n.choice("mode", *_MODES)],
        padding_mode=n.choice("padding_mode", "zeros", "border", "reflection"),
        align_corners=bool(n.attr("align_corners")),
    )


@maps("AffineGrid")
def affine_grid(n: NodeBuilder) -> Mapped:
    """Before: AffineGrid(theta, size). After: AffineGrid."""
    return n.add("AffineGrid", n.need(0), n.need(1), align_corners=bool(n.attr("align_corners")))
