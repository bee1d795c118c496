"""Lowerings of normalisation (``ge/ops/norm.py``): moments along the last axis, repeated, are values like others."""

from __future__ import annotations

from ge.formats import AXES
from ge.graph import DataType
from ge.ops.layout import channel_axis
from passes.lowering.element_types import FLOATS
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Rule
from passes.lowering.registry import NodeLowering, lowering
from passes.lowering.storage_axes import divided_axes


@lowering("BNInfer")
def batch_norm(node: NodeLowering) -> None:
    _batch_norm(node, str(node.op.get("_x_data_format", "")))


@lowering("BatchNorm", is_ours=True)
def batch_norm_of_inference(node: NodeLowering) -> None:
    """Where only the normalised tensor is read: the other outputs are the statistics that were given."""
    read = [tensor for tensor in node.node.outputs() if tensor.index and node.is_read(tensor)]
    if node.op.is_training or read:
        raise node.refusal("a BatchNorm in training, or whose statistics are read")
    _batch_norm(node, str(node.op.data_format))


def _batch_norm(node: NodeLowering, data_format: str) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, all of them numbers per channel."""
    rank = len(node.node.output_descs[0].origin_shape)
    axis = channel_axis(data_format, rank)
    x = _wide(node, node.operand(node.input_named("x")))
    scale, offset, mean, variance = (
        _wide(node, _per_channel(node, name, axis)) for name in ("scale", "offset", "mean", "variance")
    )
    epsilon = node.number(node.op.epsilon, x.dtype)
    factor = node.apply("TrueDiv", scale, node.apply("Sqrt", node.apply("Add", variance, epsilon)))
    shift = node.apply("Sub", offset, node.apply("Mul", mean, factor))
    node.store(node.apply("Add", node.apply("Mul", x, factor), shift))


@lowering("BiasAdd")
def bias_add(node: NodeLowering) -> None:
    node.require_plain()
    rank = len(node.dims)
    axis = rank - 1 if str(node.op.data_format).endswith("C") else min(1, rank - 1)
    bias = _along(node, node.load("bias"), axis)
    node.store(node.apply("Add", node.load("x"), bias))


def _per_channel(node: NodeLowering, name: str, axis: int) -> LoopOp:
    """Repeat a vector of the channels over all dims of the output, as it is stored.

    Where the layout divides channels into blocks, they must fill them: a vector has no padding.
    """
    value, desc = node.load(name), node.node.output_descs[0]
    divided = divided_axes(desc)
    if not divided:
        node.require_plain()
        return _along(node, value, axis)
    [blocks] = divided
    if AXES.get(desc.origin_format, "")[axis : axis + 1] != "C" or blocks.is_padded or len(value.dims) != 1:
        raise node.refusal("channels that do not fill the blocks of the layout", Rule.LAYOUT)
    dims = [1] * len(desc.shape)
    dims[blocks.outer], dims[blocks.inner] = blocks.extent // blocks.length, blocks.length
    pair = node.loops.reshape(value, [dims[blocks.outer], blocks.length])
    return node.loops.broadcast(node.loops.reshape(pair, dims), desc.shape)


def _along(node: NodeLowering, value: LoopOp, axis: int) -> LoopOp:
    """Repeat a vector over all dims of the output but one."""
    if value.type == "Scalar":
        return value
    if len(value.dims) != 1:
        raise node.refusal(f"{list(value.dims)} is no vector")
    dims = [value.dims[0] if k == axis else 1 for k in range(len(node.dims))]
    return node.loops.broadcast(node.loops.reshape(value, dims), node.dims)


def _wide(node: NodeLowering, value: LoopOp) -> LoopOp:
    if value.dtype not in FLOATS:
        raise node.refusal("a normalisation of integers", Rule.ELEMENT_TYPE)
    return value if value.dtype is DataType.DT_DOUBLE else node.loops.cast(value, DataType.DT_FLOAT)


@lowering("LayerNorm", "LayerNormV3", "LayerNormV4", is_ours=True, needs="reduce")
def layer_norm(node: NodeLowering) -> None:
    """Over the last axis, where only the normalised tensor is read."""
    x = _rows(node, _begin(node))
    mean = node.loops.reduce_then_broadcast("MEAN", x, len(x.dims) - 1)
    centred = node.apply("Sub", x, mean)
    y = node.apply("TrueDiv", centred, _root_of_mean_square(node, centred))
    gamma, beta = (_parameter(node, name) for name in ("gamma", "beta"))
    if gamma is not None:
        y = node.apply("Mul", y, gamma)
    if beta is not None:
        y = node.apply("Add", y, beta)
    node.store(y)
    node.is_material = True


@lowering("RmsNorm", is_ours=True, needs="reduce")
def rms_norm(node: NodeLowering) -> None:
    gamma_source = node.source("gamma")
    count = 0 if gamma_source is None else len(gamma_source.desc.shape)
    x = _rows(node, len(node.dims) - count)
    gamma = _parameter(node, "gamma")
    assert gamma is not None
    node.store(node.apply("Mul", node.apply("TrueDiv", x, _root_of_mean_square(node, x)), gamma))
    node.is_material = True


def _begin(node: NodeLowering) -> int:
    """Return the first normalised axis."""
    rank = len(node.dims)
    if node.node.type == "LayerNormV4":
        source = node.source("normalized_shape")
        return rank - (source.desc.shape.elements if source is not None else 0)
    begin, params = int(node.op.begin_norm_axis) % rank, int(node.op.begin_params_axis) % rank
    if begin != params:
        raise node.refusal("gamma and beta have other axes than the moments")
    return begin


def _rows(node: NodeLowering, begin: int) -> LoopOp:
    node.require_plain()
    unread = [tensor for tensor in node.node.outputs() if tensor.index and not node.is_read(tensor)]
    if len(unread) != len(node.node.output_descs) - 1:
        raise node.refusal("its moments are read")
    x = node.load("x")
    if begin != len(x.dims) - 1 or x.dims[-1] < 2:
        raise node.refusal("more than the last axis is normalised, or an axis of 1")
    return _wide(node, x)


def _parameter(node: NodeLowering, name: str) -> LoopOp | None:
    if node.source(name) is None:
        return None
    value = _wide(node, node.load(name))
    return _along(node, value, len(node.dims) - 1)


def _root_of_mean_square(node: NodeLowering, x: LoopOp) -> LoopOp:
    mean = node.loops.reduce_then_broadcast("MEAN", node.apply("Mul", x, x), len(x.dims) - 1)
    return node.apply("Sqrt", node.apply("Add", mean, node.number(node.op.epsilon, x.dtype)))
