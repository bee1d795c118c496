"""Compiled functions kept for the next process, in a folder that belongs to the user alone.

What lies there is executed. So the folder must be the user's own and closed to others, no file is followed through a
link, and every file tells the digest of what it holds. A file that does not fit is dropped and made again; a folder
that cannot be used is left alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger("simulator")

MAGIC = b"ATCOBJ1\n"
MAX_BYTES = 1 << 22
"""Largest file that is read; functions take some kilobytes."""
MAX_FILES = 2048
"""When there are more, the older half is removed."""
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class ObjectCache:
    """Bytes by key. Never raises: what cannot be kept is compiled again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.is_usable = self._prepare()

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key (hexadecimal digits); ``None`` if nothing fits."""
        if not self.is_usable:
            return None
        path = self.folder / key
        try:
            content = _read(path)
        except OSError:
            return None
        found = _unpacked(key, content)
        if found is None:
            self._remove(path)
        return found

    def put(self, key: str, content: bytes) -> None:
        """Keep bytes under a key."""
        if not self.is_usable:
            return
        digest = hashlib.sha256(key.encode() + content).digest()
        try:
            self._write(key, MAGIC + digest + content)
            self._thin_out()
        except OSError as fault:
            self._give_up(fault)

    def drop(self, key: str) -> None:
        """Forget what is kept under a key."""
        if self.is_usable:
            self._remove(self.folder / key)

    def _prepare(self) -> bool:
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            status = os.lstat(self.folder)
            if not stat.S_ISDIR(status.st_mode):
                raise OSError(f"{self.folder} is no folder")
            if hasattr(os, "getuid"):
                if status.st_uid != os.getuid():
                    raise OSError(f"{self.folder} belongs to another user")
                if status.st_mode & 0o077:
                    raise OSError(f"{self.folder} is open to other users")
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise OSError(f"{self.folder} cannot be written")
        except (OSError, ValueError) as fault:
            self._give_up(fault)
            return False
        return True

    def _give_up(self, fault: Exception) -> None:
        self.is_usable = False
        logger.info("compiled kernels are not kept for the next process: %s", fault)

    def _write(self, key: str, content: bytes) -> None:
        """Let a file appear whole. It need not be flushed: one that a crash cut off does not fit its digest."""
        temporary = self.folder / f".{secrets.token_hex(8)}.tmp"
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            os.replace(temporary, self.folder / key)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _remove(self, path: Path) -> None:
        try:
            path.unlink()
        except OSError as fault:
            logger.debug("%s stays: %s", path, fault)

    def _thin_out(self) -> None:
        with os.scandir(self.folder) as entries:
            files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        if len(files) <= MAX_FILES:
            return
        files.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
        for entry in files[: len(files) // 2]:
            self._remove(Path(entry.path))


def _read(path: Path) -> bytes:
    descriptor = os.open(path, _OPEN)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return b""
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return b""
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _unpacked(key: str, content: bytes) -> bytes | None:
    start = len(MAGIC) + 32
    body = content[start:]
    is_whole = content.startswith(MAGIC) and hashlib.sha256(key.encode() + body).digest() == content[len(MAGIC) : start]
    return body if is_whole and body else None
