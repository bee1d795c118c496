"""Execution plans: data that passes build, om_format stores and the simulator runs.

Offsets and sizes are bytes. Every graph of a model (root and bodies) has its own arena with its own task list; the
arena of a body lies in the workspace of the node that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

ALIGNMENT = 512
"""Arena placement and weights are multiples of this."""


def align(size: int, to: int = ALIGNMENT) -> int:
    """Round ``size`` up to a multiple of ``to``."""
    return -(-size // to) * to


class TaskType(IntEnum):
    """``TaskDef.type``."""

    KERNEL = 0
    EVENT_RECORD = 1
    EVENT_WAIT = 2
    MEMCPY_ASYNC = 13
    MODEL_END_GRAPH = 26


@dataclass(frozen=True)
class Task:
    """One step: run the kernel of ``node`` on ``stream``."""

    node: str
    type: TaskType = TaskType.KERNEL
    stream: int = 0


@dataclass(frozen=True)
class Block:
    """A byte range of an arena."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """First byte behind the block."""
        return self.offset + self.size


@dataclass
class GraphPlan:
    """Tasks in order, and where each tensor lies: ``blocks[(node name, output index)]``.

    Tensors that are not in the arena (Const, load-time constants) have no block. Tensors that share memory on purpose
    (Reshape, in-place operators) have the same offset. ``workspaces`` holds the extra blocks of a node.
    """

    tasks: list[Task] = field(default_factory=list)
    blocks: dict[tuple[str, int], Block] = field(default_factory=dict)
    workspaces: dict[str, list[Block]] = field(default_factory=dict)
    arena_size: int = 0
    bound: int = 0
    """Lower bound of ``arena_size``: the most bytes live at one step (each tensor rounded to 512)."""
    naive_size: int = 0
    """Bytes without any reuse."""


@dataclass
class Plan:
    """Plans of the root graph (key: its name) and of all bodies. ``is_static`` False: no arena, shapes at run time."""

    graphs: dict[str, GraphPlan] = field(default_factory=dict)
    streams: int = 1
    events: int = 0
    is_static: bool = True
