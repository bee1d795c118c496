"""A sign of life on a terminal while something long runs; nothing where output goes to a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show ``text`` with a spinner on stderr while the block runs, if stderr is a terminal.

    The block must not write to the terminal. stdout is left alone: its lines are a contract.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("dots", Text(text))
    console = Console(stderr=True)
    with Live(spinner, console=console, transient=True, redirect_stdout=False, redirect_stderr=False):
        yield
