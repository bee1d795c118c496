"""Normalisation."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows(
    {
        "MeanVarianceNormalization": Row("MVNV2", axes="axes"),
    }
)


@maps("BatchNormalization")
def batch_normalization(n: NodeBuilder) -> Mapped:
    """Before: BatchNormalization(x, scale, B, mean, var). After: BatchNorm with the statistics it is given."""
    if n.attr("training_mode", 0) or any(n.wants(j) for j in range(1, len(n.outputs))):
        raise n.fail("it is in training mode; a compiled model only infers")
    y = n.add("BatchNorm", *n.inputs, epsilon=n.attr("epsilon"), data_format="NCHW", is_training=False, onnx="onnx")
    return y.output()


@maps("InstanceNormalization")
def instance_normalization(n: NodeBuilder) -> Mapped:
    """Before: InstanceNormalization(x, scale, B). After: InstanceNorm."""
    return n.add("InstanceNorm", *n.inputs, data_format="NCHW", epsilon=n.attr("epsilon")).output()


@maps("LRN")
def local_response_normalization(n: NodeBuilder) -> Mapped:
    """Before: LRN(size, alpha). After: LRN(depth_radius = (size - 1) / 2, alpha / size); even sizes: ``_x_size``."""
    size = n.attr("size")
    if size < 1:
        raise n.fail(f"attribute size is {size}, but must be positive")
    extra = {} if size % 2 else {"_x_size": size}
    return n.add(
        "LRN",
        n.need(0),
        depth_radius=(size - 1) // 2,
        alpha=n.attr("alpha") / size,
        beta=n.attr("beta"),
        bias=n.attr("bias"),
        norm_region="ACROSS_CHANNELS",
        **extra,
    )
