"""Protobuf's text form, read ten times faster than the protobuf library does.

Dumps of large graphs have a million lines. What such files consist of (``name: scalar``, ``name {``, ``}``) is turned
into the binary form, which the library reads at once; a text with anything else in it (comments, ``[...]`` lists,
joined strings, octal numbers, faults) is left to the library's own reader, which knows the whole grammar.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf import text_encoding, text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

MessageT = TypeVar("MessageT", bound=Message)


class TextFormError(ValueError):
    """A text that is not the text form of the message; the message says where."""


def parse_message(text: str, message_type: type[MessageT]) -> MessageT:
    """Return the message that ``text`` describes; fields that the type does not know are skipped.

    Raises :class:`TextFormError`.
    """
    try:
        return message_type.FromString(_Encoder(message_type.DESCRIPTOR).encode(text))
    except (_NotPlain, DecodeError):
        pass
    try:
        return text_format.Parse(text, message_type(), allow_unknown_field=True)
    except text_format.ParseError as fault:
        raise TextFormError(str(fault)) from None
    except RecursionError:
        raise TextFormError("its messages are nested too deeply") from None
    except (ValueError, DecodeError) as fault:  # such as texts that are no UTF-8
        raise TextFormError(str(fault)) from None


class _NotPlain(Exception):
    """The text has something that is left to the library."""


_MOST_LEVELS = 90
"""The library's binary reader allows 100."""

_TOKEN = re.compile(
    r"""\s*+ (?: (?P<name> [A-Za-z_][A-Za-z0-9_]*+ ) \s*+
                (?: : \s*+ (?P<scalar> "(?:[^"\\\n]++|\\.)*+" | [A-Za-z0-9_.+-]++ )
                  | (?: : \s*+ )? (?P<open> \{ ) )
               | (?P<close> \} )
               | (?P<end> \Z )
               | (?P<other> . ) )""",
    re.X | re.S,
)
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,18})\Z")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|inf|nan)\Z")
_KEPT_TEXT = 40
"""Scalars up to this length are encoded once per field."""


class _Encoder:
    """Turns plain text into the binary form."""

    def __init__(self, root: Any) -> None:
        self._root: Descriptor = root
        self._tables: dict[str, _FieldTable] = {}

    def encode(self, text: str) -> bytes:
        table: _FieldTable | None = self._table(self._root)
        parts: list[bytes] = []
        outer: list[tuple[_FieldTable | None, list[bytes], bytes]] = []
        for match in _TOKEN.finditer(text):
            name, scalar, opening, closing, _, other = match.groups()
            if scalar is not None:
                if table is not None:
                    parts.append(table.scalar(name, scalar))
            elif opening is not None:
                if len(outer) == _MOST_LEVELS:
                    raise _NotPlain
                tag, inner = (b"", None) if table is None else table.submessage(name)
                outer.append((table, parts, tag))
                table, parts = (None if inner is None else self._table(inner)), []
            elif closing is not None:
                if not outer:
                    raise _NotPlain
                content = b"".join(parts)
                table, parts, tag = outer.pop()
                if tag:
                    parts += (tag, _varint(len(content)), content)
            elif other is not None:
                raise _NotPlain
        if outer:
            raise _NotPlain
        return b"".join(parts)

    def _table(self, descriptor: Descriptor) -> _FieldTable:
        table = self._tables.get(descriptor.full_name)
        if table is None:
            table = self._tables[descriptor.full_name] = _FieldTable(descriptor)
        return table


class _FieldTable:
    """The fields of one message by name, with what they have been found to encode to."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._fields: dict[str, FieldDescriptor] = dict(descriptor.fields_by_name)
        self._known: dict[tuple[str, str], bytes] = {}

    def scalar(self, name: str, text: str) -> bytes:
        """Return the encoded field; nothing for an unknown one."""
        known = self._known.get((name, text))
        if known is not None:
            return known
        field = self._fields.get(name)
        encoded = b"" if field is None else _encoded(field, text)
        if len(text) <= _KEPT_TEXT:
            self._known[name, text] = encoded
        return encoded

    def submessage(self, name: str) -> tuple[bytes, Descriptor | None]:
        """Return tag and type of a field that holds a message; neither for an unknown field."""
        field = self._fields.get(name)
        if field is None:
            return b"", None
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            raise _NotPlain
        return _tag(field, _DELIMITED), field.message_type


_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def _varint(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes((value,))
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _tag(field: FieldDescriptor, wire_type: int) -> bytes:
    return _varint(field.number << 3 | wire_type)


def _encoded(field: FieldDescriptor, text: str) -> bytes:
    encoder = _ENCODERS.get(field.type)
    if encoder is None:
        raise _NotPlain
    return encoder(field, text)


def _bounded_int(low: int, high: int) -> Callable[[FieldDescriptor, str], bytes]:
    def encode(field: FieldDescriptor, text: str) -> bytes:
        if not _INT.match(text) or not low <= int(text) <= high:
            raise _NotPlain
        return _tag(field, _VARINT) + _varint(int(text))

    return encode


def _bool(field: FieldDescriptor, text: str) -> bytes:
    if text not in ("true", "false"):
        raise _NotPlain
    return _tag(field, _VARINT) + _varint(int(text == "true"))


def _enum(field: FieldDescriptor, text: str) -> bytes:
    known = None if field.enum_type is None else field.enum_type.values_by_name.get(text)
    if known is None:
        raise _NotPlain
    return _tag(field, _VARINT) + _varint(known.number)


def _number(form: str, wire_type: int) -> Callable[[FieldDescriptor, str], bytes]:
    def encode(field: FieldDescriptor, text: str) -> bytes:
        if not _FLOAT.match(text):
            raise _NotPlain
        try:
            return _tag(field, wire_type) + struct.pack(form, float(text))
        except OverflowError:
            raise _NotPlain from None

    return encode


def _text(field: FieldDescriptor, text: str) -> bytes:
    if text[0] != '"':
        raise _NotPlain
    try:
        content = text_encoding.CUnescape(text[1:-1]) if "\\" in text else text[1:-1].encode()
    except (ValueError, UnicodeError):
        raise _NotPlain from None
    return _tag(field, _DELIMITED) + _varint(len(content)) + content


_ENCODERS: dict[int, Callable[[FieldDescriptor, str], bytes]] = {
    FieldDescriptor.TYPE_INT64: _bounded_int(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: _bounded_int(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT64: _bounded_int(0, 2**64 - 1),
    FieldDescriptor.TYPE_UINT32: _bounded_int(0, 2**32 - 1),
    FieldDescriptor.TYPE_BOOL: _bool,
    FieldDescriptor.TYPE_ENUM: _enum,
    FieldDescriptor.TYPE_FLOAT: _number("<f", _FIXED32),
    FieldDescriptor.TYPE_DOUBLE: _number("<d", _FIXED64),
    FieldDescriptor.TYPE_STRING: _text,
    FieldDescriptor.TYPE_BYTES: _text,
}
