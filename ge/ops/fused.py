"""Operators that lowering makes: their meaning is the program that they carry (``ge/ascir``), over memory as it lies.

AscBackendNoKernelOp has nothing to compute: its results have no elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from ge.ops.registry import InferContext, OpDef, OutputSpec, register
from ge.ops.signature import parse_signature

FUSED_TYPES = ("AscBackend", "AscBackendNoKernelOp")


def _declared(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(desc.origin_shape, desc.data_type) for desc in ctx.node.output_descs]


for _type in FUSED_TYPES:
    register(OpDef(parse_signature(f"{_type}(inputs*) -> outputs* [asc_graph:s!]"), _declared, None))
