"""Reading ONNX model files: size limits, protobuf parsing, and saying what a wrong file looks like."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from ge.errors import ReportedError
from parsers.model_file import INNER_DAMAGE, check_size, first_damage, is_tensorflow_graph, mapped_file, resemblance
from parsers.wire import BrokenWireError, Layout, Pieces, without_large_data

Source = str | os.PathLike[str] | bytes | ModelProto

_LAYOUT: Layout = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph"},
    "tensor": {9: "data"},
}
"""Where tensor data lies in a ModelProto."""
_TEXT_SIGNS = (
    ("ir_version", "an ONNX model in text form; convert it to the binary form"),
    ("node {", "a graph in protobuf's text form (TensorFlow .pbtxt); compile it with --framework=3"),
)


@dataclass(frozen=True)
class LoadedModel:
    """A parsed model.

    ``folder`` is where its external data lies; ``None`` for a model without a file. ``pieces`` hold large tensor data
    for which ``proto`` has tokens.
    """

    proto: ModelProto
    file: str
    folder: Path | None
    pieces: Pieces = field(default_factory=Pieces)


def load_model(source: Source) -> LoadedModel:
    """Read a model from a path, from bytes, or take a parsed one.

    Raises E13000, E13026, E13001, E13015 for a path that cannot be read, E13005 for content that is no protobuf of
    this kind (the reason names what it looks like), E16004 for a model without a graph.
    """
    if isinstance(source, ModelProto):
        loaded = LoadedModel(source, "model in memory", None)
    elif isinstance(source, bytes):
        loaded = _parse(source, "model in memory", None)
    else:
        path = os.fspath(source)
        loaded = _parse(mapped_file(path), path, Path(os.path.realpath(path)).parent)
    if not loaded.proto.HasField("graph"):
        raise ReportedError("E16004")
    return loaded


def _parse(data: bytes | memoryview, file: str, folder: Path | None) -> LoadedModel:
    check_size(len(data), file)
    try:
        slim, pieces = without_large_data(data, _LAYOUT, "model")
        model = ModelProto.FromString(slim)
    except (BrokenWireError, DecodeError) as fault:
        reason = _resemblance(data) or first_damage(data) or INNER_DAMAGE
        raise ReportedError("E13005", file=file, reason=reason) from fault
    if not model.HasField("graph"):
        reason = _resemblance(data)
        if reason:
            raise ReportedError("E13005", file=file, reason=reason)
    return LoadedModel(model, file, folder, pieces)


def _resemblance(data: bytes | memoryview) -> str:
    """Return ``it looks like ...`` for content that is something else; empty when nothing is recognised."""
    found = resemblance(data, _TEXT_SIGNS)
    if not found and is_tensorflow_graph(data):
        return "it looks like a TensorFlow GraphDef (frozen .pb); compile it with --framework=3"
    return found
