"""What all commands do around their work: streams that never fail on odd characters, interrupts, closed pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from atc import installation

INTERRUPTED, PIPE_CLOSED = 130, 141


def show(line: str) -> None:
    """Write a line to stdout at once, as it is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show_error(line: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{line}\n")


def guarded(command: Callable[[], int], failed: int) -> int:
    """Run ``command`` and return its exit status; ``failed`` if ``ge`` is not ours, 130 and 141 as shells have them."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    foreign = installation.foreign_ge()
    if foreign:
        show_error(installation.explanation(foreign))
        return failed
    try:
        return command()
    except KeyboardInterrupt:
        show_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # the reader, such as `head`, has gone; what is still buffered must not raise again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
