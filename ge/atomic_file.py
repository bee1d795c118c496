"""Files that appear whole or not at all.

The bytes go to a temporary name in the target's folder, are flushed to the disk, and are renamed onto the target. A
fault on the way leaves nothing behind, neither the temporary file nor folders made for it, and an older file under the
target's name stays as it was.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ge.errors import ReportedError


@contextmanager
def atomic_file(path: str | Path, *, code: str = "E13004") -> Iterator[BinaryIO]:
    """Give a seekable binary file that becomes ``path`` when the block ends without a fault.

    Missing folders are made. A fault of the file system is reported as ``code`` (fields ``file`` and ``errmsg``); any
    other fault passes through unchanged.
    """
    check_writable(path, code=code)
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    made: list[Path] = []
    try:
        _make_folders(target.parent, made)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as fault:
        with suppress(OSError):
            temporary.unlink()
        with suppress(OSError):
            for folder in reversed(made):
                folder.rmdir()
        if isinstance(fault, OSError) and _concerns(fault, temporary, target):
            raise _cannot_write(path, code, fault.strerror or str(fault)) from fault
        raise


def write_atomically(path: str | Path, content: bytes | str, *, code: str = "E13004") -> None:
    """Write ``content`` to ``path``, whole or not at all.

    Text becomes UTF-8; what that cannot say (odd bytes of file names arrive as lone surrogates) is escaped as in JSON.
    """
    with atomic_file(path, code=code) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def check_writable(path: str | Path, *, code: str = "E13004") -> None:
    """Report as ``code`` a ``path`` that can be seen to be unwritable, without touching the disk."""
    try:
        target = os.path.realpath(path)
    except OSError as fault:
        raise _cannot_write(path, code, "the working directory is gone") from fault
    except ValueError as fault:
        raise _cannot_write(path, code, "no file can have this name") from fault
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        pass
    except OSError as fault:
        raise _cannot_write(path, code, fault.strerror or str(fault)) from fault
    else:
        if stat.S_ISDIR(mode):
            raise _cannot_write(path, code, "it is a directory")
        if not stat.S_ISREG(mode):
            raise _cannot_write(path, code, "it is not a regular file")
        if not os.access(target, os.W_OK):
            raise _cannot_write(path, code, "the existing file is read-only")
    folder = os.path.dirname(target)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise _cannot_write(path, code, f"'{folder}' is not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _cannot_write(path, code, f"the directory '{folder}' may not be written")


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make ``folder`` and its missing parents; add those made to ``made``, outermost first."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        try:
            parent.mkdir()
        except FileExistsError:
            continue  # somebody else made it meanwhile
        made.append(parent)


def _concerns(fault: OSError, temporary: Path, target: Path) -> bool:
    """Tell a fault of writing from one of another file that the block was reading; ENOSPC and the like name no file."""
    if fault.filename is None:
        return True
    return Path(os.fsdecode(fault.filename)) in (temporary, target, *target.parents)


def _cannot_write(path: str | Path, code: str, errmsg: str) -> ReportedError:
    return ReportedError(code, file=str(path), errmsg=errmsg)
