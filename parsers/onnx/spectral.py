"""Fourier transforms and mel spectra."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("DFT")
def dft(n: NodeBuilder) -> Mapped:
    """Before: DFT(x, length, axis). After: XDFT; the attribute axis of opset 17 becomes a Const."""
    axis = n.index("Const", n.attr("axis")) if n.since_version < 20 else n.input(2)
    return n.add(
        "XDFT", n.need(0), n.input(1), axis, inverse=bool(n.attr("inverse")), onesided=bool(n.attr("onesided"))
    )


@maps("STFT")
def stft(n: NodeBuilder) -> Mapped:
    """Before: STFT. After: XSTFT."""
    return n.add("XSTFT", *n.inputs, onesided=bool(n.attr("onesided")))


@maps("MelWeightMatrix")
def mel_weight_matrix(n: NodeBuilder) -> Mapped:
    """Before: MelWeightMatrix. After: XMelWeightMatrix."""
    dtype = n.element_type(n.attr("output_datatype"), "output_datatype")
    return n.add("XMelWeightMatrix", *n.inputs, dtype=dtype)
