"""What the command line does around a user's pass: it limits its time, and puts back what is the whole process's."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from ge.errors import ReportedError

MAX_FRAMES = 12
"""Frames of the stack that are shown: the innermost ones."""
ALARM_DELAY = 1
"""Seconds by which the signal comes after the thread that should have ended the process."""


class Watchdog:
    """Watches what runs in a ``with`` block: after ``seconds`` (0: never) ``expired`` gets the error.

    Behind the block working directory, streams and recursion limit are those from before.

    ``expired`` is called on a thread of its own, while the block goes on; it is to end the process.
    """

    def __init__(self, seconds: int, expired: Callable[[ReportedError], None]) -> None:
        self._seconds = seconds
        self._expired = expired

    @contextmanager
    def __call__(self, code: str, name: str) -> Iterator[None]:
        """Watch the block. ``code`` is E13028 for a pass called ``name``, E13029 for a file."""
        with _undisturbed(), self._timed(code, name):
            yield

    @contextmanager
    def _timed(self, code: str, name: str) -> Iterator[None]:
        if not self._seconds:
            yield
            return
        timer = threading.Timer(self._seconds, self._expire, (code, name, threading.get_ident()))
        timer.daemon = True
        timer.start()
        try:
            with self._alarm(code, name):
                yield
        finally:
            timer.cancel()

    @contextmanager
    def _alarm(self, code: str, name: str) -> Iterator[None]:
        """Watch by a signal as well: a regular expression that never ends lets no other thread run, but takes those."""
        is_usable = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGALRM")
        if not is_usable or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
            yield
            return
        thread = threading.get_ident()
        signal.signal(signal.SIGALRM, lambda number, frame: self._expire(code, name, thread))
        signal.setitimer(signal.ITIMER_REAL, self._seconds + ALARM_DELAY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _expire(self, code: str, name: str, thread: int) -> None:
        reason = (
            f"it did not end within {self._seconds} seconds. It was at\n{_stack(sys._current_frames().get(thread))}"
        )
        self._expired(
            ReportedError(
                code,
                passname=name,
                passlibname=name,
                retcode="TIMEOUT",
                reason=reason,
                solution="Mend the pass, take it out of the pass folder, or give it more time with --pass_timeout.",
            )
        )


def _stack(frame: FrameType | None) -> str:
    frames = traceback.extract_stack(frame)[-MAX_FRAMES:] if frame is not None else []
    return "\n".join(f"          {entry.filename}, line {entry.lineno}, in {entry.name}" for entry in frames)


@contextmanager
def _undisturbed() -> Iterator[None]:
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
