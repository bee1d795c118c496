"""Activation functions, softmax, dropout that is switched off."""

from __future__ import annotations

from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows(
    {
        "Elu": "Elu",
        "LeakyRelu": Row("LeakyRelu", {"alpha": "negative_slope"}, alpha=0.2),
        "Relu": "Relu",
        "Relu6": "Relu6",
        "Selu": "Selu",
        "Sigmoid": "Sigmoid",
        "Softplus": "Softplus",
        "Softsign": "Softsign",
        "Tanh": "Tanh",
    }
)


@maps("Softmax", inputs=1)
def softmax(n: NodeBuilder) -> Mapped:
    """Before: Softmax over the last axis, or over attribute axis. After: SoftmaxV2."""
    return n.add("SoftmaxV2", n.need(0), axes=[n.attr("axis", -1)])


@maps("LogSoftmax", inputs=1)
def log_softmax(n: NodeBuilder) -> Mapped:
    """Before: LogSoftmax over the last axis, or over attribute axis. After: LogSoftmaxV2."""
    return n.add("LogSoftmaxV2", n.need(0), axes=[n.attr("axis", -1)])
