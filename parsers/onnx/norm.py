"""Normalisation."""

from __future__ import annotations

import numpy as np

from ge.graph import DataType, NodeOut, Shape
from ge.graph.types import numpy_dtype
from parsers.onnx.arithmetic import Arithmetic
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder, Source


@maps("BatchNormalization")
def batch_normalization(n: NodeBuilder) -> Mapped:
    """Before: BatchNormalization(x, scale, B, mean, var). After: BatchNorm.

    In training mode the statistics are those of the batch, and ``_x_momentum`` says how the running ones follow.
    With statistics per activation (spatial = 0, before opset 9): Sub -> Mul -> Mul -> Add.
    """
    is_training = bool(n.attr("training_mode", 0)) or any(n.wants(j) for j in range(1, len(n.outputs)))
    if not n.attr("spatial", 1):
        if is_training:
            raise n.fail("it trains with statistics per activation (spatial = 0); only inference is supported")
        return _per_activation(n)
    extra = {"_x_momentum": n.attr("momentum")} if is_training else {}
    node = n.add(
        "BatchNorm",
        *n.inputs,
        epsilon=n.attr("epsilon"),
        data_format="NCHW",
        is_training=is_training,
        onnx="onnx",
        **extra,
    )
    return [node.output(j) for j in range(min(len(n.outputs), 5))]


def _per_activation(n: NodeBuilder) -> Mapped:
    maths = Arithmetic(n)
    deviation = maths.op("Rsqrt", maths.plus(n.need(4), n.attr("epsilon")))
    centred = maths.minus(n.need(0), n.need(3))
    return n.add("Add", maths.times(maths.times(centred, deviation), n.need(1)), n.need(2))


@maps("InstanceNormalization")
def instance_normalization(n: NodeBuilder) -> Mapped:
    """Before: InstanceNormalization(x, scale, B). After: InstanceNorm."""
    return n.add("InstanceNorm", *n.inputs, data_format="NCHW", epsilon=n.attr("epsilon")).output()


@maps("GroupNormalization")
def group_normalization(n: NodeBuilder) -> Mapped:
    """Before: GroupNormalization(x, scale, bias). After: GroupNorm.

    In opset 18 scale and bias are per group: they are repeated for each channel.
    """
    groups = n.attr("num_groups")
    parameters: list[Source] = [n.need(1), n.need(2)]
    if n.since_version < 21:
        parameters = [_per_channel(n, i, groups) for i in (1, 2)]
    return n.add(
        "GroupNorm",
        n.need(0),
        *parameters,
        num_groups=groups,
        data_format="NCHW",
        eps=n.attr("epsilon"),
        is_training=True,
    ).output()


def _per_channel(n: NodeBuilder, index: int, groups: int) -> Source:
    shape = n.shape(n.need(0))
    if len(shape) < 2 or shape[1] < 0 or groups < 1 or shape[1] % groups:
        raise n.fail(f"its input of shape {shape} has no known number of channels that {groups} groups can share")
    role = "Scale" if index == 1 else "Bias"
    column = n.add("Unsqueeze", n.need(index), role=f"{role}_Unsqueeze", axes=[1])
    repeated = n.add("TileD", column, role=f"{role}_Tile", multiples=[1, shape[1] // groups])
    return n.add("Reshape", repeated, n.int64([shape[1]], f"{role}_Shape"), role=f"{role}_Reshape")


@maps("LayerNormalization")
def layer_normalization(n: NodeBuilder) -> Mapped:
    """Before: LayerNormalization(x, scale, B). After: LayerNorm; InvStdDev, if wanted, is Adds(epsilon) -> Rsqrt.

    A scale or bias that spans fewer axes than are normalised is repeated (BroadcastTo).
    """
    x, epsilon = n.need(0), n.attr("epsilon")
    axis = n.axis(n.attr("axis"), n.rank())
    wanted = Shape(n.shape(x)[axis:])
    gamma = spread(n, n.need(1), wanted, axis, "Scale")
    beta = n.input(2)
    if beta is None:
        beta = n.const(
            "Bias", np.zeros(n.shape(gamma) if n.shape(gamma).elements >= 0 else (1,), numpy_dtype(n.dtype(x)))
        )
    node = n.add(
        "LayerNorm",
        x,
        gamma,
        spread(n, beta, wanted, axis, "Bias"),
        begin_norm_axis=axis,
        begin_params_axis=axis,
        epsilon=epsilon,
    )
    results: list[NodeOut | None] = [node.output()]
    if n.wants(1) or n.wants(2):
        stash = _stash_type(n)
        results.append(n.cast(node.output(1), stash, role="Mean"))
        variance = n.cast(node.output(2), stash, role="Variance")
        shifted = n.add("Adds", variance, role="Adds", value=epsilon)
        results.append(n.add("Rsqrt", shifted, role="Rsqrt").output())
    return results


def _stash_type(n: NodeBuilder) -> DataType:
    return DataType.DT_BF16 if n.attr("stash_type") == 16 else DataType.DT_FLOAT


def spread(n: NodeBuilder, source: NodeOut, wanted: Shape, axis: int, role: str) -> NodeOut:
    """Return ``source`` broadcast to the shape ``wanted``, which is that of the input from ``axis`` on."""
    found = n.shape(source)
    if found == wanted:
        return source
    if wanted.is_unknown_shape():
        size = n.add("Shape", n.need(0), role=f"{role}_Shape", dtype=int(DataType.DT_INT64), _x_start=axis).output()
    else:
        size = n.int64(wanted, f"{role}_Shape")
    return n.add("BroadcastTo", source, size, role=f"{role}_BroadcastTo").output()


@maps("RMSNormalization")
def rms_normalization(n: NodeBuilder) -> Mapped:
    """Before: RMSNormalization(x, scale). After: RmsNorm; a scale of fewer axes is repeated (BroadcastTo)."""
    x = n.need(0)
    axis = n.axis(n.attr("axis"), n.rank())
    gamma = spread(n, n.need(1), Shape(n.shape(x)[axis:]), axis, "Scale")
    return n.add("RmsNorm", x, gamma, epsilon=n.attr("epsilon")).output()


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


@maps("LpNormalization")
def lp_normalization(n: NodeBuilder) -> Mapped:
    """Before: LpNormalization. After: LpNormV2 -> Maximum(tiny) -> RealDiv: zeros stay zeros."""
    x = n.need(0)
    norm = n.add("LpNormV2", x, role="LpNormV2", p=float(n.attr("p")), axes=[n.attr("axis")], keepdim=True)
    least = n.const("Least", np.asarray(np.finfo(numpy_dtype(n.dtype(x))).tiny, numpy_dtype(n.dtype(x))))
    return n.add("RealDiv", x, n.add("Maximum", norm, least, role="Maximum"))


@maps("MeanVarianceNormalization")
def mean_variance_normalization(n: NodeBuilder) -> Mapped:
    """Before: MeanVarianceNormalization. After: MVNV2."""
    return n.add("MVNV2", n.need(0), axes=n.attr("axes"), eps=1e-9)
