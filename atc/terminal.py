"""What all commands do around their work: streams that may be closed or full or take few characters, and signals."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from atc import installation

if TYPE_CHECKING:
    from ge.errors import ReportedError

INTERRUPTED, PIPE_CLOSED = 130, 141
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_TIME_TO_END = 2.0
"""Seconds in which a command that is ended must be done with putting things in order."""


class StdoutLostError(BrokenPipeError):
    """Nothing more can be shown: the reader has gone (``errno`` is EPIPE), or there is no room for it."""


class _Terminated(KeyboardInterrupt):
    """A signal asks the process to end. No ``Exception``: nothing but cleaning up may stand in its way."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def show(line: str) -> None:
    """Write a line to stdout at once; what a terminal would obey is escaped. Raises :class:`StdoutLostError`."""
    try:
        _write(sys.stdout, line)
    except OSError as fault:
        raise StdoutLostError(fault.errno or errno.EPIPE, fault.strerror or str(fault)) from fault
    except ValueError as fault:  # a stream that a custom pass has closed
        raise StdoutLostError(errno.EBADF, "a custom pass or operator has closed it") from fault


def show_error(line: str) -> None:
    """Write a line to stderr. One that cannot be written is lost: there is no other place to say so."""
    try:
        _write(sys.stderr, line)
    except (OSError, ValueError):
        _silence(sys.stderr)


def _write(stream: TextIO, line: str) -> None:
    from ge.errors import printable  # not before it is known whose package ge is

    stream.write(f"{printable(line)}\n")
    stream.flush()


def guarded(command: Callable[[], int], failed: int) -> int:
    """Run ``command`` and return its exit status.

    It is ``failed`` where ``ge`` is not ours or stdout cannot be written; where the reader of stdout has gone, or a
    signal came, it is what shells have: 141, or 128 and the number of the signal.
    """
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    foreign = installation.foreign_ge()
    if foreign:
        with suppress(OSError):
            sys.stderr.write(f"{installation.explanation(foreign)}\n")
        return failed
    try:
        with _orderly_end():
            return command()
    except _Terminated as end:
        show_error(f"ended by {signal.Signals(end.number).name}")
        return 128 + end.number
    except KeyboardInterrupt:
        show_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError as fault:
        _silence(sys.stdout)  # what is still buffered must not raise again at exit
        if fault.errno in (None, errno.EPIPE):
            return PIPE_CLOSED
        return _report_lost_stdout(fault, failed)


def program_fault(fault: Exception, subject: str) -> ReportedError:
    """Return the E19999 for a fault of the program itself, or for memory that does not suffice for ``subject``."""
    from ge.errors import ReportedError

    if isinstance(fault, MemoryError):
        reason = f"There is not enough memory for {subject}."
        return ReportedError("E19999", reason=reason, solution="Free memory or use a larger machine.")
    return ReportedError("E19999", reason=where_raised(fault))


def where_raised(fault: Exception) -> str:
    """Return what is known of a fault of the program: its type, the function that raised it, its text."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__} in {frame.name}: {fault}"


def _report_lost_stdout(fault: OSError, failed: int) -> int:
    from ge.errors import ReportedError

    solution = "Give stdout a file or pipe with room; what had been written before is complete."
    for line in ReportedError("E13004", file="stdout", errmsg=fault.strerror, solution=solution).lines():
        show_error(line)
    return failed


def _open_missing_streams() -> None:
    """Lead streams that are closed (``>&-``) nowhere; otherwise the next file that is opened would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open as long as the process runs


def _silence(stream: TextIO) -> None:
    with suppress(OSError, ValueError, io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Make exceptions of the signals that end a process, so that unfinished files are removed.

    The first one counts: others are ignored for as long as it takes to put things in order (but not for ever, since
    Python drops exceptions that come while it is inside of a callback), and afterwards they end the process without a
    word. A signal that is ignored from outside, as by ``nohup``, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, object] = {}
    came: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if came and now - came[-1] < _TIME_TO_END:
            return
        came.append(now)
        raise KeyboardInterrupt if number == signal.SIGINT else _Terminated(number)

    for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if came else handler)  # type: ignore[arg-type]
