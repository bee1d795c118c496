"""Python's collector of cyclic garbage, at rest while a model is built.

Graphs are made of many small objects that stay, and the collector looks through all of them again and again: a
quarter of the time of a large compile, half of that of loading. Nothing is lost: what passes leave behind is freed
without it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the collector from running inside the block; afterwards it is as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
