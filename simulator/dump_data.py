"""One dumped operator as a file: uint64 length, that many bytes of ``DumpData``, then the payloads.

Payloads come in the order inputs, outputs, buffers, workspaces (which is not that of the message's fields), unpadded,
little-endian, as many bytes as the ``size`` of their description says.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from google.protobuf.message import DecodeError

from ge.errors import ReportedError
from ge.formats import RnnSizes
from ge.graph import Tensor, TensorDesc
from ge.graph.types import PROTO_DATA_TYPE, DataType, Format, byte_size
from ge.proto import dump_data_pb2 as pb
from ge.proto.tensor_bytes import chunks, string_bytes
from simulator.dump_origin import groups_of, in_origin

Array = np.ndarray[Any, np.dtype[Any]]
VERSION = "2.0"
MAX_HEADER = 64 << 20
"""Bytes of a description that are read at most; a node with 100,000 tensors takes less."""
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Origin:
    """The tensor of the user's model that a tensor stands for. An empty ``name``: there is none."""

    name: str
    index: int
    data_type: DataType
    format: Format


@dataclass(frozen=True)
class DumpedTensor:
    """A tensor to be dumped: what it is, and its memory. ``index`` is its slot among the node's inputs or outputs."""

    kind: str
    index: int
    desc: TensorDesc
    array: Array
    origin: Origin
    rnn: RnnSizes | None = None
    """Sizes that its layout depends on, if it is a weight of a recurrent operator."""

    def in_origin(self) -> Array:
        """Return the tensor in its origin format. Raises :class:`ge.formats.LayoutError`."""
        return in_origin(self.array, self.desc, self.rnn)

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        if self.array.dtype.hasobject:
            return len(string_bytes(self.array))
        return byte_size(self.data_type, self.array.size)

    @property
    def data_type(self) -> DataType:
        """Type of the elements in memory."""
        return self.desc.data_type

    def payload(self) -> Iterator[bytes | memoryview]:
        """Yield the payload in pieces."""
        if self.array.dtype.hasobject:
            yield string_bytes(self.array)
        else:
            yield from (piece.data for piece in chunks(Tensor.of(self.array)))


def header(op_name: str, stamp: int, tensors: Sequence[DumpedTensor]) -> pb.DumpData:
    """Return the description of an operator; ``stamp`` are microseconds since 1970."""
    message = pb.DumpData(version=VERSION, dump_time=stamp, op_name=_utf8(op_name))
    for tensor in tensors:
        if tensor.kind == "input":
            described: Any = message.input.add()
        else:
            described = message.output.add()
            described.original_op.name = _utf8(tensor.origin.name)
            described.original_op.output_index = tensor.origin.index
            described.original_op.data_type = PROTO_DATA_TYPE.get(tensor.origin.data_type, 0)
            described.original_op.format = int(tensor.origin.format)
        described.data_type = PROTO_DATA_TYPE[tensor.data_type]
        described.format = int(tensor.desc.format)
        described.shape.dim.extend(tensor.array.shape)
        known = not tensor.desc.origin_shape.is_unknown_shape()
        described.original_shape.dim.extend(tensor.desc.origin_shape if known else tensor.array.shape)
        described.sub_format = groups_of(tensor.desc)
        described.size = tensor.size
        described.arg_index = tensor.index
    return message


def _utf8(text: str) -> str:
    """Names that come from files may hold characters that UTF-8 cannot say."""
    return text.encode(errors="backslashreplace").decode()


def write(file: BinaryIO, op_name: str, stamp: int, tensors: Sequence[DumpedTensor]) -> list[int]:
    """Write the file of an operator, whose inputs must come first, and return the CRC-32 of each payload."""
    described = header(op_name, stamp, tensors).SerializeToString(deterministic=True)
    file.write(_LENGTH.pack(len(described)))
    file.write(described)
    sums = []
    for tensor in tensors:
        total = 0
        for piece in tensor.payload():
            total = zlib.crc32(piece, total)
            file.write(piece)
        sums.append(total)
    return sums


@dataclass(frozen=True)
class DumpFile:
    """A dump file that has been read: its description, and payloads by order in the file."""

    data: pb.DumpData
    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]
    buffers: tuple[bytes, ...]
    workspaces: tuple[bytes, ...]


def read(path: str | os.PathLike[str]) -> DumpFile:
    """Read a dump file. Raises R1045 for what is none or not whole."""
    try:
        with open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if length <= _LENGTH.size:
                raise _damaged(path, f"it has {length} bytes, the length of its description alone takes {_LENGTH.size}")
            [described] = _LENGTH.unpack(file.read(_LENGTH.size))
            rest = length - _LENGTH.size - described
            if described > MAX_HEADER or rest < 0:
                raise _damaged(path, f"its description would take {described} of its {length} bytes")
            message = _parsed(path, file.read(described))
            parts = (message.input, message.output, message.buffer, message.space)
            needed = sum(one.size for part in parts for one in part)
            if needed != rest:
                raise _damaged(path, f"its payloads take {needed} bytes, {rest} are there")
            return DumpFile(message, *(tuple(file.read(one.size) for one in part) for part in parts))
    except OSError as fault:
        raise _damaged(path, fault.strerror or str(fault)) from fault


def _parsed(path: str | os.PathLike[str], content: bytes) -> pb.DumpData:
    try:
        return pb.DumpData.FromString(content)
    except DecodeError as fault:
        raise _damaged(path, "its description is no message of the type DumpData") from fault


def _damaged(path: str | os.PathLike[str], reason: str) -> ReportedError:
    return ReportedError("R1045", file=os.fspath(path), reason=reason)
