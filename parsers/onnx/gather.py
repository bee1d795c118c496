"""Reading elements by index, and writing them."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

REDUCTIONS = ("none", "add", "mul", "max", "min")

maps_rows(
    {
        "GatherElements": Row("GatherElements", axis="dim"),
    }
)


@maps("Gather")
def gather(n: NodeBuilder) -> Mapped:
    """Before: Gather(x, indices, axis attribute). After: Const(axis) -> GatherV2."""
    axis = n.index("Const", n.attr("axis"))
    return n.add("GatherV2", n.need(0), n.need(1), axis, negative_index_support=True)


@maps("GatherND")
def gather_nd(n: NodeBuilder) -> Mapped:
    """Before: GatherND. After: GatherNd; batch axes in ``_x_batch_dims``."""
    batch_dims = n.attr("batch_dims", 0)
    extra = {"_x_batch_dims": batch_dims} if batch_dims else {}
    return n.add("GatherNd", n.need(0), n.need(1), negative_index_support=True, **extra)


@maps("Scatter", "ScatterElements")
def scatter_elements(n: NodeBuilder) -> Mapped:
    """Before: ScatterElements, or Scatter before opset 11. After: ScatterElements."""
    reduction = n.choice("reduction", *REDUCTIONS) if n.has_attr("reduction") else "none"
    return n.add("ScatterElements", *n.inputs, axis=n.attr("axis"), reduction=reduction)


_SCATTERS = {"add": "ScatterNdAdd", "max": "ScatterNdMax", "min": "ScatterNdMin", "mul": "XScatterNdMul"}


@maps("ScatterND")
def scatter_nd(n: NodeBuilder) -> Mapped:
    """Before: ScatterND. After: TensorScatterUpdate; with a reduction TensorMove -> ScatterNdAdd and its like."""
    reduction = n.choice("reduction", *REDUCTIONS) if n.has_attr("reduction") else "none"
    if reduction == "none":
        return n.add("TensorScatterUpdate", *n.inputs)
    copy = n.add("TensorMove", n.need(0), role="TensorMove")
    return n.add(_SCATTERS[reduction], copy, n.need(1), n.need(2))
