"""Operators that TensorFlow's own graph optimizer fuses: taken apart again, so that all fusions here see the parts.

Attribute ``fused_ops`` lists what happens to the result of the first operator, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ge.graph import NodeOut
from parsers.ge_nodes import Mapped
from parsers.tensorflow.conv import PLANAR, conv_attributes, conv_groups
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder, Source

_Step = Callable[[NodeBuilder, NodeOut, Iterator[NodeOut], str], Source]


def _bias(n: NodeBuilder, x: NodeOut, arguments: Iterator[NodeOut], role: str) -> Source:
    data_format = n.choice("data_format", *PLANAR)
    return n.add("BiasAdd", x, next(arguments), role=role, data_format=data_format)


def _batch_norm(n: NodeBuilder, x: NodeOut, arguments: Iterator[NodeOut], role: str) -> Source:
    parts = [next(arguments) for _ in range(4)]
    attrs: dict[str, Any] = {"epsilon": n.attr("epsilon", 1e-4), "is_training": False}
    return n.add("BatchNorm", x, *parts, role=role, data_format=n.choice("data_format", *PLANAR), **attrs)


def _add(n: NodeBuilder, x: NodeOut, arguments: Iterator[NodeOut], role: str) -> Source:
    return n.add("Add", x, next(arguments), role=role)


def _leaky_relu(n: NodeBuilder, x: NodeOut, arguments: Iterator[NodeOut], role: str) -> Source:
    return n.add("LeakyRelu", x, role=role, negative_slope=n.attr("leakyrelu_alpha", 0.2))


def _activation(type: str, **attrs: Any) -> _Step:
    return lambda n, x, arguments, role: n.add(type, x, role=role, **attrs)


_STEPS: dict[str, _Step] = {
    "BiasAdd": _bias,
    "FusedBatchNorm": _batch_norm,
    "Add": _add,
    "LeakyRelu": _leaky_relu,
    "GeluApproximate": _activation("GeluV2", approximate="tanh"),
    "GeluExact": _activation("GeluV2", approximate="none"),
    **{kind: _activation(kind) for kind in ("Elu", "Relu", "Relu6", "Sigmoid", "Tanh")},
}


def _with_steps(n: NodeBuilder, first: Callable[[str], Source]) -> Mapped:
    """Add the first operator and those of ``fused_ops``; the last one has the node's name."""
    names: list[Any] = n.attr("fused_ops", [])
    unknown = [name for name in names if name not in _STEPS]
    if unknown:
        raise n.fail(f"attribute fused_ops names {unknown[0]}, which is not supported")
    arguments = (n.need(slot) for slot in range(2, len(n.inputs)))
    made = first("" if not names else n.op_type.removeprefix("_Fused"))
    for place, name in enumerate(names):
        assert made is not None
        source = made if isinstance(made, NodeOut) else made.output()
        try:
            made = _STEPS[name](n, source, arguments, "" if place == len(names) - 1 else f"{name}_{place}")
        except StopIteration:
            raise n.fail(f"it has {len(n.inputs)} inputs, too few for {', '.join(names)}") from None
    assert made is not None
    return made


@maps("_FusedConv2D", inputs=(2, None))
def fused_conv(n: NodeBuilder) -> Mapped:
    """Before: _FusedConv2D. After: Conv2D, then BiasAdd, BatchNorm, Add and activations as fused_ops has them."""
    attrs = conv_attributes(n, PLANAR)
    groups = conv_groups(n, n.need(0), n.need(1), attrs["data_format"])
    return _with_steps(n, lambda role: n.add("Conv2D", n.need(0), n.need(1), role=role, groups=groups, **attrs))


@maps("_FusedDepthwiseConv2dNative", inputs=(2, None))
def fused_depthwise_conv(n: NodeBuilder) -> Mapped:
    """Before: _FusedDepthwiseConv2dNative. After: DepthwiseConv2D, then what fused_ops lists."""
    attrs = conv_attributes(n, PLANAR)
    return _with_steps(n, lambda role: n.add("DepthwiseConv2D", n.need(0), n.need(1), role=role, **attrs))


@maps("_FusedMatMul", inputs=(2, None))
def fused_matmul(n: NodeBuilder) -> Mapped:
    """Before: _FusedMatMul. After: MatMulV2, then what fused_ops lists."""
    attrs = {"transpose_x1": n.attr("transpose_a", False), "transpose_x2": n.attr("transpose_b", False)}
    return _with_steps(n, lambda role: n.add("MatMulV2", n.need(0), n.need(1), role=role, **attrs))


@maps("_FusedBatchNormEx", inputs=(5, 6))
def fused_batch_norm(n: NodeBuilder) -> Mapped:
    """Before: _FusedBatchNormEx. After: BatchNorm, then Add of the side input and Relu where there are such."""
    if n.attr("is_training", True):
        raise n.fail("it is in training")
    side, mode = n.input(5), n.choice("activation_mode", "Identity", "Relu")
    is_plain = side is None and mode == "Identity"
    attrs: dict[str, Any] = {"epsilon": n.attr("epsilon", 1e-4), "is_training": False}
    data_format = n.choice("data_format", *PLANAR)
    role = "" if is_plain else "BatchNorm"
    norm = n.add("BatchNorm", *n.inputs[:5], role=role, data_format=data_format, **attrs)
    made = norm.output()
    if side is not None:
        made = n.add("Add", made, side, role="" if mode == "Identity" else "Add").output()
    if mode == "Relu":
        made = n.add("Relu", made).output()
    return [made, *list(norm.outputs())[1:]]
