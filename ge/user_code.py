"""What is done around files and functions of users, which may do anything to the process that runs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MAX_TEXT = 4000
"""Characters of an exception's text that are shown."""


def text_of(fault: BaseException) -> str:
    """Return what an exception says, shortened if it says very much; also if it fails to say it."""
    try:
        text = str(fault)
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)"
    except KeyboardInterrupt:
        raise
    except BaseException as second:  # noqa: BLE001 - a __str__ of the user
        return f"(its text cannot be made: {type(second).__name__})"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put back what user code may have changed for the whole process: working directory, streams, recursion limit."""
    folder, streams, limit = _working_directory(), (sys.stdout, sys.stderr), sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        if sys.getrecursionlimit() != limit:
            with suppress(RecursionError):
                sys.setrecursionlimit(limit)
        if folder is not None and _working_directory() != folder:
            with suppress(OSError):
                os.chdir(folder)


def _working_directory() -> str | None:
    with suppress(OSError):
        return os.getcwd()
    return None
