"""Protobuf's wire format, as far as it is needed before parsing: large tensor data is taken out of a model's bytes.

The protobuf library copies every bytes field twice. A model is mostly weights, so they are cut out first: the library
parses the rest, and weights stay views of the file's bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MIN_PIECE = 4096
"""Smaller data is left where it is."""
_MAX_DEPTH = 40

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}

Layout = Mapping[str, Mapping[int, str]]
"""Message kind: field number -> kind of the messages in it; ``"data"`` is what is taken out."""


class BrokenWireError(ValueError):
    """The bytes are no protobuf message. ``at`` is where the broken field starts."""

    def __init__(self, at: int, reason: str) -> None:
        self.at = at
        super().__init__(reason)


class Field(NamedTuple):
    """One field: its number and kind, where it starts, where its content starts, where it ends."""

    number: int
    kind: int
    start: int
    content: int
    end: int


def fields(data: bytes | memoryview, start: int, end: int) -> Iterator[Field]:
    """Iterate over the fields of the message at ``start:end``. Raises :class:`BrokenWireError`."""
    at = start
    while at < end:
        tag, content = varint(data, at, end)
        kind = tag & 7
        if content == 0 or tag >> 3 == 0 or kind not in (VARINT, BYTES, *_FIXED_SIZES):
            raise BrokenWireError(at, f"byte {at} starts no protobuf field")
        if kind == VARINT:
            _, stop = varint(data, content, end)
        elif kind == BYTES:
            length, content = varint(data, content, end)
            stop = content + length if content else 0
        else:
            stop = content + _FIXED_SIZES[kind]
        if not 0 < stop <= end:
            lack = f"needs {stop - end} bytes more" if stop else "has no whole length"
            raise BrokenWireError(at, f"the file is cut short: field {tag >> 3}, which starts at byte {at}, {lack}")
        yield Field(tag >> 3, kind, at, content, stop)
        at = stop


def varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the number at ``at`` and the offset behind it; offset 0 when there is none before ``end``."""
    value = shift = 0
    for position in range(at, min(at + 10, end)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    return 0, 0


def encoded_varint(value: int) -> bytes:
    """Return the encoding of a number that is not negative."""
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


class Pieces:
    """Tensor data taken out of a model. In its place stands a token that no file can forge."""

    def __init__(self) -> None:
        self._secret = os.urandom(16)
        self._found: list[memoryview] = []

    def put(self, data: memoryview) -> bytes:
        """Keep ``data`` and return the token for it."""
        self._found.append(data)
        return self._secret + (len(self._found) - 1).to_bytes(8, "little")

    def get(self, raw_data: bytes) -> bytes | memoryview:
        """Return the data behind a token; anything else is data itself."""
        if len(raw_data) != len(self._secret) + 8 or not raw_data.startswith(self._secret):
            return raw_data
        return self._found[int.from_bytes(raw_data[len(self._secret) :], "little")]


def without_large_data(data: bytes | memoryview, layout: Layout, kind: str) -> tuple[bytes, Pieces]:
    """Return a model's bytes with tokens in place of large tensor data; ``kind`` is that of the whole message.

    Raises :class:`BrokenWireError`.
    """
    pieces = Pieces()
    whole = memoryview(data)
    chunks = _slim(whole, 0, len(whole), layout, kind, pieces, 0)
    return b"".join(chunks), pieces


def _slim(
    data: memoryview, start: int, end: int, layout: Layout, kind: str, pieces: Pieces, depth: int
) -> list[bytes | memoryview]:
    chunks: list[bytes | memoryview] = []
    content = layout[kind]
    copied = start
    for field in fields(data, start, end):
        inner = content.get(field.number)
        if inner is None or field.kind != BYTES or field.end - field.content < MIN_PIECE or depth > _MAX_DEPTH:
            continue
        if inner == "data":
            replaced: list[bytes | memoryview] = [pieces.put(data[field.content : field.end])]
        else:
            replaced = _slim(data, field.content, field.end, layout, inner, pieces, depth + 1)
        chunks.append(data[copied : field.start])
        chunks.append(encoded_varint(field.number << 3 | BYTES) + encoded_varint(sum(map(len, replaced))))
        chunks.extend(replaced)
        copied = field.end
    chunks.append(data[copied:end])
    return chunks
