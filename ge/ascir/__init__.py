"""AscGraph: the program of a fused loop kernel, as data.

``asc_graph`` holds the dataclasses, ``op_types`` what each operator takes and means, ``check`` what a legal graph is,
``text`` the canonical text that an .om carries. Nothing here executes anything.
"""

from ge.ascir.asc_graph import AscGraph, AscOp, AscTensor, Axis, Schedule
from ge.ascir.check import AscGraphFault, check
from ge.ascir.op_types import OP_TYPES, ComputeType, OpType
from ge.ascir.text import MAX_TEXT_BYTES, AscTextError, parse_asc_graph, print_asc_graph

__all__ = [
    "MAX_TEXT_BYTES",
    "OP_TYPES",
    "AscGraph",
    "AscGraphFault",
    "AscOp",
    "AscTensor",
    "AscTextError",
    "Axis",
    "ComputeType",
    "OpType",
    "Schedule",
    "check",
    "parse_asc_graph",
    "print_asc_graph",
]
