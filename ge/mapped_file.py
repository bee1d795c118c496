"""Files whose bytes serve as memory: weights are views of them and are never read as a whole."""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ge.errors import ReportedError

Array = np.ndarray[Any, np.dtype[Any]]

RELEASE_BYTES = 64 << 20
"""Bytes that may be looked at before the memory of their pages goes back to the system."""
_CAN_RELEASE = hasattr(mmap, "MADV_DONTNEED")


def why_unreadable(path: str | Path) -> str:
    """Return what keeps ``path`` from being read as a file; empty if nothing can be seen that does."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "the file does not exist"
    except (OSError, ValueError) as fault:
        return (fault.strerror if isinstance(fault, OSError) else None) or "no file can have this name"
    if not stat.S_ISREG(mode):
        return "it is a directory, not a file" if stat.S_ISDIR(mode) else "it is not a regular file"
    return "" if os.access(path, os.R_OK) else "the file may not be read"


class NotMappableError(OSError):
    """The path leads to something that is not a regular file; ``strerror`` says so."""


class MappedFile(mmap.mmap):
    """A regular file, mapped read-only. Arrays over it know it (:meth:`behind`) and keep it open.

    Another file under the same name does no harm to what is mapped. Bytes that change, or a file that is cut, do:
    :meth:`check_unchanged`. ``needed_by`` names the first thing that lies in it, for messages.
    """

    path: str
    needed_by: str
    _identity: tuple[int, int]
    _state: tuple[int, int]
    _seen: int

    @classmethod
    def open(cls, path: str | Path, needed_by: str = "") -> MappedFile | None:
        """Map the file; ``None`` for an empty one, which cannot be mapped. Raises ``OSError``."""
        # without waiting for the other end of a pipe
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise NotMappableError(0, "it is not a regular file", os.fspath(path))
            return cls._of(descriptor, os.fspath(path), needed_by) if status.st_size else None
        finally:
            os.close(descriptor)

    @classmethod
    def holding(cls, array: Array) -> Array:
        """Return the elements of ``array`` (C order, read-only) in a temporary file that nobody else can find.

        It is gone with the last array over it. Raises ``OSError`` when there is no room for it.
        """
        with tempfile.TemporaryFile() as file:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.flush()
            mapped = cls._of(file.fileno(), "", "")
        return np.frombuffer(mapped, array.dtype).reshape(array.shape)

    @classmethod
    def _of(cls, descriptor: int, path: str, needed_by: str) -> MappedFile:
        status = os.fstat(descriptor)
        mapped = cls(descriptor, status.st_size, access=mmap.ACCESS_READ)
        mapped.path, mapped.needed_by, mapped._seen = path, needed_by, 0
        mapped._identity, mapped._state = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        return mapped

    @classmethod
    def behind(cls, array: Array) -> MappedFile | None:
        """Return the file of which ``array`` is a view; ``None`` for memory of another kind."""
        owner: object = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, memoryview):
            owner = owner.obj
        return owner if isinstance(owner, cls) else None

    def check_unchanged(self) -> None:
        """Raise E13026 when the file was written to or cut since it was mapped."""
        try:
            status = os.stat(self.path)
        except OSError:
            return  # deleted: what is mapped stays as it is
        is_same_file = (status.st_dev, status.st_ino) == self._identity
        if is_same_file and (status.st_size, status.st_mtime_ns) != self._state:
            needed = f"; {self.needed_by} needs it" if self.needed_by else ""
            reason = f"its content was changed after it had been opened{needed}"
            raise ReportedError(
                "E13026", pathname=self.path, reason=reason, solution="Start again when nothing writes to the file."
            )

    def note_read(self, n_bytes: int) -> None:
        """Be told that ``n_bytes`` were looked at. Now and then all pages go back to the system.

        They are read again when they are needed, so this costs little; without it a large file fills the memory of
        the process for as long as it is mapped.
        """
        self._seen += n_bytes
        if self._seen >= RELEASE_BYTES and _CAN_RELEASE:
            self._seen = 0
            self.madvise(mmap.MADV_DONTNEED)


def note_read(array: Array) -> None:
    """Tell the mapped file behind ``array``, if there is one, that all of it was looked at."""
    mapped = MappedFile.behind(array)
    if mapped is not None:
        mapped.note_read(array.nbytes)
