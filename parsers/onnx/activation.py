"""Activations and dropout."""

from __future__ import annotations

from typing import Any

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows(
    {
        "Elu": Row("Elu", alpha="alpha"),
        "HardSigmoid": Row("HardSigmoid", alpha="alpha", beta="beta"),
        "HardSwish": "HardSwish",
        "LeakyRelu": Row("LeakyRelu", alpha="negative_slope"),
        "Mish": "Mish",
        "Relu": "Relu",
        "Selu": Row("Selu", alpha="_x_alpha", gamma="_x_gamma"),
        "Shrink": Row("Shrink", lambd="lambd", bias="bias"),
        "Sigmoid": "Sigmoid",
        "Softplus": "Softplus",
        "Softsign": "Softsign",
        "Swish": Row("Swish", alpha="scale"),
        "Tanh": "Tanh",
    }
)


@maps("PRelu")
def prelu(n: NodeBuilder) -> Mapped:
    """Before: PRelu(x, slope). After: PRelu; a slope of one axis counts along the last axis, as everywhere in ONNX."""
    extra: dict[str, Any] = {"_x_unidirectional": True} if len(n.shape(n.need(1))) == 1 else {}
    return n.add("PRelu", *n.inputs, **extra)


@maps("Celu")
def celu(n: NodeBuilder) -> Mapped:
    """Before: Celu(alpha). After: Celu: max(0, alpha3 * x) + min(0, alpha1 * (exp(x / alpha2) - 1))."""
    alpha = n.attr("alpha")
    return n.add("Celu", n.need(0), alpha1=alpha, alpha2=alpha)


@maps("Gelu")
def gelu(n: NodeBuilder) -> Mapped:
    """Before: Gelu. After: GeluV2."""
    return n.add("GeluV2", n.need(0), approximate=n.choice("approximate", "none", "tanh"))


@maps("ThresholdedRelu")
def thresholded_relu(n: NodeBuilder) -> Mapped:
    """Before: ThresholdedRelu. After: Greater -> SelectV2(x, 0); a product with a mask would turn -inf into NaN."""
    x = n.need(0)
    limit = n.scalar("Threshold", n.attr("alpha"), n.dtype(x))
    is_above = n.add("Greater", x, limit, role="Greater")
    return n.add("SelectV2", is_above, x, n.scalar("Zero", 0, n.dtype(x)))


@maps("Dropout")
def dropout(n: NodeBuilder) -> Mapped:
    """Before: Dropout(x, ratio, training_mode). After: Dropout(x) unless it trains; the mask, if wanted, is all true.

    In training, or where only the run will tell: XDropout(x, training_mode, ratio).
    """
    training = n.input(2)
    known = n.value(training)
    if training is not None and (known is None or known.any()):
        seed = {"seed": n.attr("seed"), "is_seeded": True} if n.has_attr("seed") else {}
        return n.add("XDropout", n.need(0), training, n.input(1), **seed)
    ratio = n.value(n.input(1))
    given = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    y = n.add("Dropout", n.need(0), dropout_ratio=n.attr("ratio", given))
    if not n.wants(1):
        return y
    ones = n.add("OnesLike", n.need(0), role="OnesLike")
    # before opset 10 the mask has the type of the data
    mask = ones.output() if n.since_version < 10 else n.cast(ones, DataType.DT_BOOL, role="Mask")
    return [y.output(), mask]
