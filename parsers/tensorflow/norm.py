"""Normalisation."""

from __future__ import annotations

from parsers.ge_nodes import Mapped
from parsers.tensorflow.conv import PLANAR, SPATIAL
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows(
    {
        # no operators of TensorFlow's own: what others fuse graphs into has these names
        "InstanceNorm": Row("InstanceNorm", data_format="NHWC", epsilon=1e-6),
        "LayerNorm": Row("LayerNorm", begin_norm_axis=0, begin_params_axis=0, epsilon=1e-7),
    }
)

_N_OUTPUTS = {"FusedBatchNorm": 5, "FusedBatchNormV2": 5, "FusedBatchNormV3": 6}


@maps(*_N_OUTPUTS, inputs=(3, 5))
def fused_batch_norm(n: NodeBuilder) -> Mapped:
    """Before: FusedBatchNorm(x, scale, offset, mean, variance). After: BatchNorm.

    In training, mean and variance are those of the batch; the inputs are left out unless old ones are averaged in.
    """
    is_training, factor = n.attr("is_training", True), n.attr("exponential_avg_factor", 1.0)
    n_inputs = 3 if is_training and factor == 1.0 else 5
    if len(n.inputs) < n_inputs:
        raise n.fail("its inputs mean and variance are missing")
    node = n.add(
        "BatchNorm",
        *n.inputs[:n_inputs],
        epsilon=n.attr("epsilon", 1e-4),
        data_format=n.choice("data_format", *PLANAR, *SPATIAL),
        is_training=is_training,
        exponential_avg_factor=factor,
    )
    return list(node.outputs())[: _N_OUTPUTS[n.op_type]]


@maps("BatchNormWithGlobalNormalization", inputs=5)
def batch_norm_with_global_normalization(n: NodeBuilder) -> Mapped:
    """Before: BatchNormWithGlobalNormalization(x, mean, variance, beta, gamma). After: BatchNorm."""
    x, mean, variance, beta, gamma = n.inputs
    if not n.attr("scale_after_normalization", True):
        gamma = n.add("OnesLike", gamma, role="OnesLike").output()
    epsilon = n.attr("variance_epsilon", float)
    attrs = {"epsilon": epsilon, "data_format": "NHWC", "is_training": False}
    return n.add("BatchNorm", x, gamma, beta, mean, variance, **attrs).output()


@maps("LRN", inputs=1)
def local_response_norm(n: NodeBuilder) -> Mapped:
    """Before: LRN. After: LRN over the last axis."""
    return n.add(
        "LRN",
        n.need(0),
        depth_radius=n.attr("depth_radius", 5),
        bias=n.attr("bias", 1.0),
        alpha=n.attr("alpha", 1.0),
        beta=n.attr("beta", 0.5),
        _x_data_format="NHWC",
    )
