"""Model files whatever their kind: paths, size limits, and saying what a wrong file looks like."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Sequence

from ge.errors import ReportedError
from ge.mapped_file import MappedFile
from parsers.wire import BYTES, BrokenWireError, fields

MAX_MODEL_BYTES = 2**31 - 1
"""Largest protobuf message, hence largest model file."""

INNER_DAMAGE = (
    "a message inside it is damaged, or messages are nested deeper than protobuf reads (about 30 graphs within each "
    "other)"
)
"""The reason for content whose top level is sound."""


def mapped_file(path: str) -> memoryview:
    """Return the content of a model file as a view of its map.

    Raises E13000, E13026, E13001, E13015 for a path that cannot be read.
    """
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
    check_size(status.st_size, path)
    try:
        mapped = MappedFile.open(path)
    except OSError as fault:
        raise ReportedError("E13001", file=path, errmsg=fault.strerror or str(fault)) from fault
    if mapped is None:
        raise _wrong_size(0, path)
    return memoryview(mapped)


def check_size(size: int, file: str) -> None:
    """Raise E13015 for content that is empty or larger than a protobuf message can be."""
    if not 0 < size <= MAX_MODEL_BYTES:
        raise _wrong_size(size, file)


def _wrong_size(size: int, file: str) -> ReportedError:
    return ReportedError("E13015", file=file, size=size, maxsize=MAX_MODEL_BYTES)


# -- what a wrong file looks like ----------------------------------------------------------------------------------
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
    ("layer {", "a Caffe prototxt"),
    ("{", "JSON"),
)


def resemblance(data: bytes | memoryview, text_signs: Sequence[tuple[str, str]] = ()) -> str:
    """Return ``it looks like ...`` for content that is no protobuf message; empty when nothing is recognised.

    ``text_signs`` are pieces of text (lower case) and what they give away, tried before those that all readers share.
    """
    for offset, magic, meaning in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return f"it looks like {meaning}"
    head = bytes(data[:4096])
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        text = head.decode("ascii").lower()
        meaning = next((m for sign, m in (*text_signs, *_TEXT_SIGNS) if sign in text), "plain text")
        return f"it looks like {meaning}"
    return ""


def is_tensorflow_graph(data: bytes | memoryview) -> bool:
    """True when the first field is a NodeDef: a message in field 1 that begins with the strings name (1) and op (2)."""
    try:
        first = next(fields(data, 0, len(data)), None)
        if first is None or (first.number, first.kind) != (1, BYTES):
            return False
        inner = list(itertools.islice(fields(data, first.content, first.end), 2))
    except BrokenWireError:
        return False
    return [(field.number, field.kind) for field in inner] == [(1, BYTES), (2, BYTES)]


def first_damage(data: bytes | memoryview) -> str:
    """Return what is wrong with the first broken top-level field; empty when the top level is sound."""
    try:
        for _ in fields(data, 0, len(data)):
            pass
    except BrokenWireError as broken:
        return str(broken)
    return ""
