"""What a data dump holds, and where it goes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum


class DumpMode(Enum):
    """Which tensors of an operator are dumped."""

    INPUT = "input"
    OUTPUT = "output"
    ALL = "all"


@dataclass(frozen=True)
class DumpSettings:
    """What is dumped, and where to.

    ``layers`` are names of compiled operators or of nodes of the original model; empty: all operators. ``extra`` adds
    what has no task of its own: inputs, constants, views. ``steps`` are numbers of runs, first and last of each range;
    empty: all runs.
    """

    path: str | os.PathLike[str]
    mode: DumpMode = DumpMode.ALL
    layers: tuple[str, ...] = ()
    extra: bool = False
    steps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, dump: DumpSettings | str | os.PathLike[str]) -> DumpSettings:
        """Return ``dump``, or the settings that dump everything to the folder of this name."""
        return dump if isinstance(dump, DumpSettings) else cls(dump)
