"""``--log``: the log lines of all rooms on the screen, in the form that Ascend's logs have."""

from __future__ import annotations

import errno
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from atc.terminal import StdoutLostError
from ge.errors import printable

_ROOMS = ("atc", "parsers", "passes", "om_format", "simulator", "ge")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _AscendFormatter(logging.Formatter):
    """``[LEVEL] MODULE(pid,process):yyyy-mm-dd-hh:mm:ss.mmm.uuu [file:line]text``."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(record.created))
        microseconds = int(record.created * 1e6) % 1_000_000
        clock = f"{moment}.{microseconds // 1000:03d}.{microseconds % 1000:03d}"
        room = record.name.partition(".")[0].upper()
        origin = f"[{record.filename}:{record.lineno}]"
        text = f"[{record.levelname}] {room}({record.process},atc):{clock} {origin}{printable(record.getMessage())}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _ScreenHandler(logging.StreamHandler[TextIO]):
    """Lets the command know that stdout takes no more; lines that stderr does not take are lost."""

    def handleError(self, record: logging.LogRecord) -> None:
        fault = sys.exc_info()[1]
        if not isinstance(fault, OSError):
            raise
        if self.stream is sys.stdout:
            raise StdoutLostError(fault.errno or errno.EPIPE, fault.strerror or str(fault)) from fault


@contextmanager
def screen_log(level: str, *, on_stdout: bool = False) -> Iterator[None]:
    """Show log lines from ``level`` on (``null``: none) while the block runs, on stderr unless ``on_stdout``."""
    if level not in _LEVELS:
        yield
        return
    handler = _ScreenHandler(sys.stdout if on_stdout else sys.stderr)
    handler.setFormatter(_AscendFormatter())
    loggers = [logging.getLogger(room) for room in _ROOMS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(_LEVELS[level])
    try:
        yield
    finally:
        for logger, old in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(old)
