"""Recurrent layers. GE's CommonLSTM and CommonGRU take ONNX's weights; RNN, which GE lacks, is XCommonRNN."""

from __future__ import annotations

from typing import Any

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder

DIRECTIONS = ("forward", "reverse", "bidirectional")


def _attributes(n: NodeBuilder) -> dict[str, Any]:
    """Return what all kinds share; what the node leaves to its defaults is left to GE's, which are the same."""
    recurrent = n.shape(n.need(2))
    hidden = n.attr("hidden_size")
    if hidden is None:
        hidden = recurrent[-1] if len(recurrent) == 3 else 0
    attrs: dict[str, Any] = {"direction": n.choice("direction", *DIRECTIONS), "hidden_size": hidden}
    for name in ("activations", "activation_alpha", "activation_beta", "clip"):
        if n.has_attr(name):
            attrs[name] = n.attr(name)
    if n.attr("layout", 0):
        attrs["_x_layout"] = 1
    return attrs


@maps("LSTM")
def lstm(n: NodeBuilder) -> Mapped:
    """Before: LSTM. After: CommonLSTM."""
    return n.add("CommonLSTM", *n.inputs, input_forget=n.attr("input_forget"), **_attributes(n))


@maps("GRU")
def gru(n: NodeBuilder) -> Mapped:
    """Before: GRU. After: CommonGRU."""
    return n.add("CommonGRU", *n.inputs, linear_before_reset=n.attr("linear_before_reset"), **_attributes(n))


@maps("RNN")
def rnn(n: NodeBuilder) -> Mapped:
    """Before: RNN. After: XCommonRNN."""
    return n.add("XCommonRNN", *n.inputs, **_attributes(n))
