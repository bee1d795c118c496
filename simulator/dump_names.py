"""Names of dump files: ``{operator type}.{operator name}.{task}.{stream}.{time stamp}``, without a suffix."""

from __future__ import annotations

import hashlib
import re
import time

MAX_NAME = 254
"""Longest name that a file keeps; readers of dumps look names of 255 characters and more up in mapping.csv."""
_OTHERS = re.compile(r"[^A-Za-z0-9_-]")
_SHORT = 32


def sanitised(text: str) -> str:
    """Return ``text`` with ``_`` for everything but letters, digits, ``_`` and ``-``."""
    return _OTHERS.sub("_", text)


def file_name(optype: str, name: str, task: int, stream: int, stamp: int) -> str:
    """Return the full name of the file of an operator; ``stamp`` are microseconds since 1970."""
    return f"{sanitised(optype)}.{sanitised(name)}.{task}.{stream}.{stamp:016d}"


class ShortNames:
    """Names that files can have, and what those that are not what was asked for stand for."""

    def __init__(self) -> None:
        self._replaced: dict[str, str] = {}

    def fitting(self, name: str, suffix: str = "") -> str:
        """Return ``name`` and ``suffix``, or 32 characters and the suffix where that is too long for a file."""
        if len(name) + len(suffix) <= MAX_NAME:
            return name + suffix
        short = hashlib.sha256(name.encode()).hexdigest()[:_SHORT]
        self._replaced[short + suffix] = name + suffix
        return short + suffix

    def mapping(self) -> str:
        """Return the lines ``new,old`` of mapping.csv; empty when all names are what was asked for."""
        return "".join(f"{new},{old}\n" for new, old in self._replaced.items())


class Clock:
    """Time stamps in microseconds, each larger than the one before: readers take the last file of an operator."""

    def __init__(self) -> None:
        self._last = 0

    def stamp(self) -> int:
        """Return the time now, or the microsecond after the last stamp."""
        self._last = max(time.time_ns() // 1000, self._last + 1)
        return self._last
