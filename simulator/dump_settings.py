"""What a data dump holds, and where it goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ge.errors import ReportedError

STATISTICS = ("Max", "Min", "Mean", "Nan", "Positive Inf", "Negative Inf", "L2norm")
"""What ``stats`` may ask for: extremes, mean and Euclidean norm of all finite values, counts of the others."""


class DumpMode(Enum):
    """Which tensors of an operator are dumped."""

    INPUT = "input"
    OUTPUT = "output"
    ALL = "all"


@dataclass(frozen=True)
class LeftOut:
    """Tensors that are not dumped: number ``index`` of the inputs or outputs (``kind``) of a type or an operator."""

    name: str
    is_type: bool
    kind: str
    index: int


@dataclass(frozen=True)
class DumpSettings:
    """What is dumped, and where to. Raises R1001 for values that mean nothing.

    ``layers`` are names of compiled operators or of nodes of the original model, ``ranges`` the first and the last of
    operators in the order in which they run; without both all are dumped. ``left_out`` are tensors that are not.
    ``extra`` adds what has no task of its own: inputs, constants, views. ``steps`` are numbers of runs, first and last
    of each range; empty: all runs. ``stats``, of :data:`STATISTICS`, are written in place of the tensors.
    """

    path: str | os.PathLike[str]
    mode: DumpMode = DumpMode.ALL
    layers: Sequence[str] = ()
    extra: bool = False
    steps: Sequence[tuple[int, int]] = ()
    ranges: Sequence[tuple[str, str]] = ()
    left_out: Sequence[LeftOut] = ()
    stats: Sequence[str] = ()

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "mode", DumpMode(self.mode))
        except ValueError:
            reason = "it must be input, output or all"
            raise ReportedError("R1001", value=self.mode, parameter="mode", reason=reason) from None
        if isinstance(self.layers, str):
            raise ReportedError("R1001", value=self.layers, parameter="layers", reason="it must be a list of names")
        for name in self.stats:
            if name not in STATISTICS:
                reason = f"it must be one of {', '.join(STATISTICS)}"
                raise ReportedError("R1001", value=name, parameter="stats", reason=reason)

    @classmethod
    def of(cls, dump: DumpSettings | str | os.PathLike[str]) -> DumpSettings:
        """Return ``dump``, or the settings that dump everything to the folder of this name."""
        return dump if isinstance(dump, DumpSettings) else cls(dump)
