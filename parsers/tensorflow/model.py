"""Reading frozen graphs: binary and text form, and saying what a file is that is something else."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from ge.dump.protobuf_text import TextFormError, parse_message
from ge.errors import ReportedError
from parsers.model_file import INNER_DAMAGE, check_size, first_damage, is_tensorflow_graph, mapped_file, resemblance
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.wire import BYTES, VARINT, BrokenWireError, Field, Layout, Pieces, fields, without_large_data

Source = str | os.PathLike[str] | bytes | pb.GraphDef

_LAYOUT: Layout = {
    "graph": {1: "node", 2: "library"},
    "library": {1: "function"},
    "function": {3: "node", 5: "attribute"},
    "node": {5: "attribute"},
    "attribute": {2: "value"},
    "value": {1: "list", 8: "tensor", 10: "call"},
    "call": {2: "attribute"},
    "list": {8: "tensor"},
    "tensor": {4: "data"},
}
"""Where tensor data lies in a GraphDef."""

HOW_TO_FREEZE = (
    "Freeze it: with TensorFlow 2 by convert_variables_to_constants_v2 of a concrete function, with TensorFlow 1 by "
    "tf.compat.v1.graph_util.convert_variables_to_constants; write the GraphDef and give that file."
)
_CAN_BE_FROZEN = ("SavedModel", "TensorFlow checkpoint", "Keras", ".keras")
"""What a frozen graph can be made of, as messages name it."""
_TEXT_SIGNS = (
    ("ir_version", "an ONNX model in text form; convert it to the binary form and compile it with --framework=5"),
    ("saved_model_schema_version", "a SavedModel in text form"),
    ("meta_graphs", "a SavedModel in text form"),
    ("model_checkpoint_path", "the index of a TensorFlow checkpoint"),
)
_KINDS_IN_FOLDERS: tuple[tuple[str, str], ...] = (
    ("saved_model.pb", "a SavedModel"),
    ("saved_model.pbtxt", "a SavedModel"),
    ("keras_metadata.pb", "a Keras model"),
    ("checkpoint", "a TensorFlow checkpoint"),
)
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89HDF", "a Keras model (HDF5)"),
    (
        0,
        b"PK\x03\x04",
        "a zip archive, as .keras files are",
    ),
    (4, b"TFL3", "a TensorFlow Lite model. Give the frozen graph that it was converted from, or convert it to ONNX"),
)
_TABLE_MAGIC = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"
"""How the files end that TensorFlow keeps the index of a checkpoint in."""


@dataclass(frozen=True)
class LoadedModel:
    """A parsed graph. ``pieces`` hold large tensor data for which ``proto`` has tokens."""

    proto: pb.GraphDef
    file: str
    pieces: Pieces = field(default_factory=Pieces)


def load_model(source: Source) -> LoadedModel:
    """Read a graph from a path or from bytes, in binary or in text form, or take a parsed one.

    Raises E13000, E13026, E13001, E13015 for a path that cannot be read, E13005 for content that is no GraphDef; the
    reason names what it looks like, and what to do about it.
    """
    if isinstance(source, pb.GraphDef):
        return LoadedModel(source, "model in memory")
    if isinstance(source, bytes):
        return _parse(source, "model in memory")
    path = os.fspath(source)
    if path and os.path.isdir(path):
        raise _refuse_folder(path)
    return _parse(mapped_file(path), path)


def is_frozen_graph(content: bytes | memoryview) -> bool:
    """True for what begins like a GraphDef with nodes, in binary or in text form."""
    if _is_text(content):
        return re.search(rb"\bnode\s*:?\s*{", bytes(content[: 1 << 16])) is not None
    return is_tensorflow_graph(content)


def kind_of_folder(path: str) -> str:
    """Return what a directory is that TensorFlow wrote; empty for any other."""
    return next((kind for name, kind in _KINDS_IN_FOLDERS if Path(path, name).exists()), "")


def _parse(data: bytes | memoryview, file: str) -> LoadedModel:
    check_size(len(data), file)
    if _is_text(data):
        return LoadedModel(_parse_text(data, file), file)
    reason = _resemblance(data)
    if reason:
        remedy = HOW_TO_FREEZE if any(kind in reason for kind in _CAN_BE_FROZEN) else None
        raise ReportedError("E13005", file=file, reason=reason, solution=remedy)
    try:
        slim, pieces = without_large_data(data, _LAYOUT, "graph")
        proto = pb.GraphDef.FromString(slim)
    except (BrokenWireError, DecodeError) as fault:
        raise ReportedError("E13005", file=file, reason=first_damage(data) or INNER_DAMAGE) from fault
    if not proto.node:
        raise ReportedError("E13005", file=file, reason="there is no node in it")
    return LoadedModel(proto, file, pieces)


# -- text form ---------------------------------------------------------------------------------------------------------
_TEXT_STARTS = (b"node", b"library", b"versions", b"version", b"#")
_BLANKS = b" \t\r\n"


def _is_text(data: bytes | memoryview) -> bool:
    """True for what begins like the text form of a GraphDef: a field's name, then blanks, a brace or a colon."""
    head = bytes(data[:4096]).removeprefix(b"\xef\xbb\xbf").lstrip(_BLANKS)
    while head.startswith(b"#"):
        _, _, head = head.partition(b"\n")
        head = head.lstrip(_BLANKS)
    word = next((start for start in _TEXT_STARTS if head.startswith(start)), b"")
    return bool(word) and head[len(word) :].lstrip(_BLANKS)[:1] in (b"{", b":")


def _parse_text(data: bytes | memoryview, file: str) -> pb.GraphDef:
    try:
        proto = parse_message(bytes(data).decode("utf-8-sig"), pb.GraphDef)
    except (TextFormError, UnicodeDecodeError) as fault:
        raise ReportedError("E13005", file=file, reason=f"its text form is broken: {fault}") from fault
    if not proto.node:
        raise ReportedError("E13005", file=file, reason="there is no node in it")
    return proto


# -- what a wrong file looks like --------------------------------------------------------------------------------------
def _refuse_folder(path: str) -> ReportedError:
    found = kind_of_folder(path)
    if not found:
        return ReportedError("E13026", pathname=path, reason="it is a directory")
    reason = f"it is the directory of {found}, which is no frozen graph"
    return ReportedError("E13026", pathname=path, reason=reason, solution=HOW_TO_FREEZE)


def _resemblance(data: bytes | memoryview) -> str:
    """Return ``it looks like ...`` for content that is something else; empty for what may be a GraphDef."""
    for offset, magic, meaning in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return f"it looks like {meaning}"
    if data[-len(_TABLE_MAGIC) :] == _TABLE_MAGIC:
        return "it looks like the index of a TensorFlow checkpoint"
    if is_tensorflow_graph(data):
        return ""
    return resemblance(data, _TEXT_SIGNS) or _other_message(data)


def _other_message(data: bytes | memoryview) -> str:
    """Recognise other protobuf messages by their first fields."""
    try:
        first = list(itertools.islice(fields(data, 0, len(data)), 8))
    except BrokenWireError:
        return ""
    if _begins_like_saved_model(data, first):
        return "it looks like a SavedModel (saved_model.pb), whose variables lie beside it"
    kinds = {(entry.number, entry.kind) for entry in first}
    # ModelProto: ir_version (1) is a number, the graph is field 7; producer_name (2) and opset_import (8) are messages
    if (1, VARINT) in kinds and kinds & {(7, BYTES), (8, BYTES)}:
        return "it looks like an ONNX model; compile it with --framework=5"
    return ""


def _begins_like_saved_model(data: bytes | memoryview, first: Sequence[Field]) -> bool:
    """True for saved_model_schema_version (1, a number) and meta_graphs (2), of which the first holds messages."""
    if [(entry.number, entry.kind) for entry in first[:2]] != [(1, VARINT), (2, BYTES)]:
        return False
    try:
        inner = next(fields(data, first[1].content, first[1].end), None)
    except BrokenWireError:
        return False
    return inner is not None and (inner.number, inner.kind) in ((1, BYTES), (2, BYTES))
