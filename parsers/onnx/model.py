"""Reading ONNX model files: size limits, protobuf parsing, and saying what a wrong file looks like."""

from __future__ import annotations

import itertools
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from ge.errors import ReportedError
from ge.mapped_file import MappedFile
from parsers.onnx.wire import BYTES, BrokenWireError, Pieces, fields, without_large_data

MAX_MODEL_BYTES = 2**31 - 1
"""Largest protobuf message, hence largest model file."""

Source = str | os.PathLike[str] | bytes | ModelProto


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
        loaded = _parse(_mapped(path), path, Path(os.path.realpath(path)).parent)
    if not loaded.proto.HasField("graph"):
        raise ReportedError("E16004")
    return loaded


def _mapped(path: str) -> memoryview:
    if not path:
        raise ReportedError("E13000", path=path, errmsg="no file name is given")
    try:
        status = os.stat(path)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise ReportedError("E13026", pathname=path, reason=reason) from fault
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ReportedError("E13026", pathname=path, reason=f"it is {kind}")
    _check_size(status.st_size, path)
    try:
        mapped = MappedFile.open(path)
    except OSError as fault:
        raise ReportedError("E13001", file=path, errmsg=fault.strerror or str(fault)) from fault
    if mapped is None:
        raise _wrong_size(0, path)
    return memoryview(mapped)


def _check_size(size: int, file: str) -> None:
    if not 0 < size <= MAX_MODEL_BYTES:
        raise _wrong_size(size, file)


def _wrong_size(size: int, file: str) -> ReportedError:
    return ReportedError("E13015", file=file, size=size, maxsize=MAX_MODEL_BYTES)


def _parse(data: bytes | memoryview, file: str, folder: Path | None) -> LoadedModel:
    _check_size(len(data), file)
    try:
        slim, pieces = without_large_data(data)
        model = ModelProto.FromString(slim)
    except (BrokenWireError, DecodeError) as fault:
        reason = _resemblance(data) or _first_damage(data) or _INNER_DAMAGE
        raise ReportedError("E13005", file=file, reason=reason) from fault
    if not model.HasField("graph"):
        reason = _resemblance(data)
        if reason:
            raise ReportedError("E13005", file=file, reason=reason)
    return LoadedModel(model, file, folder, pieces)


# -- what a wrong file looks like ----------------------------------------------------------------------------------
_INNER_DAMAGE = (
    "a message inside it is damaged, or graphs are nested deeper than protobuf reads (about 30 within each other)"
)
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"version https://git-lfs", "a Git LFS pointer; fetch the file itself with 'git lfs pull'"),
    (0, b"IMOD", "an offline model (.om)"),
    (0, b"PK\x03\x04", "a zip archive, for example a PyTorch checkpoint"),
    (0, b"\x80\x02", "a Python pickle, for example an old PyTorch checkpoint"),
    (0, b"\x89HDF", "an HDF5 file, for example a Keras model"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"\x93NUMPY", "a numpy array"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (4, b"ORTM", "a model in onnxruntime's own format"),
    (0, b"\x7fELF", "a program or a library"),
)
_TEXT_SIGNS: tuple[tuple[str, str], ...] = (
    ("<!doctype", "an HTML page, perhaps the error page of a download"),
    ("<html", "an HTML page, perhaps the error page of a download"),
    ("ir_version", "an ONNX model in text form; convert it to the binary form"),
    ("node {", "a graph in protobuf's text form (TensorFlow .pbtxt); the binary form is needed"),
    ("layer {", "a Caffe prototxt"),
    ("{", "JSON"),
)


def _resemblance(data: bytes | memoryview) -> str:
    """Return ``it looks like ...`` for content that is something else; empty when nothing is recognised."""
    for offset, magic, meaning in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return f"it looks like {meaning}"
    head = bytes(data[:4096])
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        text = head.decode("ascii").lower()
        meaning = next((m for sign, m in _TEXT_SIGNS if sign in text), "plain text")
        return f"it looks like {meaning}"
    if _is_tensorflow_graph(data):
        return "it looks like a TensorFlow GraphDef (frozen .pb); compile it with --framework=3"
    return ""


def _is_tensorflow_graph(data: bytes | memoryview) -> bool:
    """True when the first field is a NodeDef: a message in field 1 that begins with the strings name (1) and op (2)."""
    try:
        first = next(fields(data, 0, len(data)), None)
        if first is None or (first.number, first.kind) != (1, BYTES):
            return False
        inner = list(itertools.islice(fields(data, first.content, first.end), 2))
    except BrokenWireError:
        return False
    return [(field.number, field.kind) for field in inner] == [(1, BYTES), (2, BYTES)]


def _first_damage(data: bytes | memoryview) -> str:
    """Return what is wrong with the first broken top-level field; empty when the top level is sound."""
    try:
        for _ in fields(data, 0, len(data)):
            pass
    except BrokenWireError as broken:
        return str(broken)
    return ""
