"""The 256 bytes in front of every offline model."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from ge.errors import ReportedError

HEADER_BYTES = 256
MAGIC = 0x444F4D49  # the bytes "IMOD"
VERSION_2 = 0x20000000
OM_IR_VERSION = 2
NAME_BYTES = 32

_LAYOUT = struct.Struct("<III64sIBBBB32sI32sII20sB3sQBB62s")
assert _LAYOUT.size == HEADER_BYTES


class ModelType(IntEnum):
    """What a file holds (header field ``modeltype``)."""

    IR_MODEL = 0
    STANDARD = 1
    TINY = 2
    FLOW = 3
    LITE = 4
    BUNDLE = 5


def broken_model(source: str, reason: str) -> ReportedError:
    """Return the E10041 that every fault found while reading ``source`` becomes."""
    return ReportedError("E10041", parameter=source, reason=reason)


@dataclass(frozen=True)
class ModelFileHeader:
    """The header's fields, in file order; sizes in bytes.

    ``model_length`` counts the bytes after the header. ``length`` is its 32-bit forerunner and is 0 in current files.
    """

    model_length: int = 0
    name: str = ""
    version: int = VERSION_2
    checksum: bytes = bytes(64)
    length: int = 0
    is_encrypt: int = 0
    is_checksum: int = 0
    modeltype: int = ModelType.IR_MODEL
    genmode: int = 0
    ops: int = 0
    userdefineinfo: bytes = bytes(32)
    om_ir_version: int = OM_IR_VERSION
    model_num: int = 1
    platform_version: str = ""
    platform_type: int = 0
    need_check_os_cpu_info: int = 0
    is_unknow_model: int = 0

    @property
    def payload_length(self) -> int:
        """Bytes after the header, from whichever of the two length fields is in use."""
        return self.model_length if self.model_length != 0 else self.length

    @property
    def has_wide_table(self) -> bool:
        """Whether the partition tables have 64-bit entries."""
        return self.model_length != 0 or self.modeltype == ModelType.FLOW

    @property
    def is_dynamic(self) -> bool:
        """Whether the model has shapes that are only known when it runs."""
        return self.version >= VERSION_2 and (self.model_num > 1 or self.is_unknow_model == 1)

    def pack(self) -> bytes:
        """Return the 256 bytes; the name is cut to 31 bytes and ``platform_version`` to 19, at character borders."""
        return _LAYOUT.pack(
            MAGIC,
            HEADER_BYTES,
            self.version,
            self.checksum,
            self.length,
            self.is_encrypt,
            self.is_checksum,
            self.modeltype,
            self.genmode,
            _cut(self.name, NAME_BYTES - 1),
            self.ops,
            self.userdefineinfo,
            self.om_ir_version,
            self.model_num,
            _cut(self.platform_version, 19),
            self.platform_type,
            bytes(3),
            self.model_length,
            self.need_check_os_cpu_info,
            self.is_unknow_model,
            bytes(62),
        )

    @classmethod
    def unpack(cls, data: bytes | memoryview, file_size: int, source: str) -> ModelFileHeader:
        """Read the header of a file of ``file_size`` bytes; ``source`` names the file in errors (E10041).

        Checks magic, header size, encryption and that the payload length is exactly what follows the header.
        """
        if file_size < HEADER_BYTES or len(data) < HEADER_BYTES:
            raise broken_model(source, f"an offline model has at least {HEADER_BYTES} bytes, the file has {file_size}")
        fields = _LAYOUT.unpack_from(data)
        magic, head_size = fields[0], fields[1]
        if magic != MAGIC:
            raise broken_model(
                source, f"not an offline model: it must start with the bytes 'IMOD', it starts with {bytes(data[:4])!r}"
            )
        if head_size != HEADER_BYTES:
            raise broken_model(source, f"the header size must be {HEADER_BYTES}, the file says {head_size}")
        header = cls(
            version=fields[2],
            checksum=fields[3],
            length=fields[4],
            is_encrypt=fields[5],
            is_checksum=fields[6],
            modeltype=fields[7],
            genmode=fields[8],
            name=_text(fields[9]),
            ops=fields[10],
            userdefineinfo=fields[11],
            om_ir_version=fields[12],
            model_num=fields[13] if fields[2] >= VERSION_2 else 1,
            platform_version=_text(fields[14]),
            platform_type=fields[15],
            model_length=fields[17],
            need_check_os_cpu_info=fields[18],
            is_unknow_model=fields[19],
        )
        header._check(file_size, source)
        return header

    def _check(self, file_size: int, source: str) -> None:
        if self.is_encrypt == 1:
            raise broken_model(source, "the model is encrypted; only plain models can be read")
        if self.is_encrypt != 0:
            raise broken_model(source, f"the encryption flag must be 0 or 1, the file says {self.is_encrypt}")
        # A bundle stores the size of the whole file here, not of what follows the header.
        counted_from = 0 if self.modeltype == ModelType.BUNDLE else HEADER_BYTES
        present = file_size - counted_from
        if self.payload_length != present:
            cut = " (the file was cut short)" if self.payload_length > present else ""
            raise broken_model(source, f"the header announces {self.payload_length} bytes, {present} are present{cut}")
        if self.model_num < 1:
            raise broken_model(source, f"the number of models must be at least 1, the file says {self.model_num}")


def _cut(text: str, limit: int) -> bytes:
    """Encode as UTF-8 in at most ``limit`` bytes without splitting a character."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore").encode("utf-8")


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")
