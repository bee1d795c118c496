"""What each precision mode makes of the floating inputs of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ge.graph import DataType
from ge.ops.precision import MixColour

FP32, FP16, BF16 = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16
CONCERNED = frozenset({FP32, FP16, BF16})
"""Element types that a mode may change; integers, bool, double and the rest stay."""


@dataclass(frozen=True)
class Situation:
    """A floating input of a node. ``before`` is the type that the node before makes now, ``None``: there is none."""

    model: DataType
    """Type that the model gives the input."""
    is_cube: bool
    has_wide_result: bool
    """Whether the node can give fp32 sums for fp16 operands."""
    colour: MixColour
    before: DataType | None
    has_bf16: bool
    """Whether the chip computes in bf16."""


Rule = Callable[[Situation], DataType]


def _origin(at: Situation) -> DataType:
    return at.model


def _half(at: Situation) -> DataType:
    return FP16


def _cube_half(at: Situation) -> DataType:
    return FP16 if at.has_wide_result else FP32


def _without_bf16(at: Situation) -> DataType:
    """All kernels have fp32, so only bf16 on a chip without it has to go elsewhere."""
    return FP32 if at.model is BF16 and not at.has_bf16 else at.model


def _cube_to_half(at: Situation) -> DataType:
    return FP16 if at.is_cube and at.model is FP32 else _without_bf16(at)


def _mixed(target: DataType, lowered: frozenset[DataType]) -> Rule:
    def rule(at: Situation) -> DataType:
        if at.model not in lowered:
            return at.model
        follows = at.colour is MixColour.GRAY and at.before is target
        return target if follows or at.colour is MixColour.WHITE else at.model

    return rule


RULES: Mapping[str, Rule] = {
    "origin": _origin,
    "fp16": _half,
    "cube_fp16in_fp32out": _cube_half,
    "allow_fp32_to_fp16": _cube_to_half,
    "allow_fp32_to_bf16": _without_bf16,
    "mixed_float16": _mixed(FP16, frozenset({FP32, BF16})),
    "mixed_bfloat16": _mixed(BF16, frozenset({FP32})),
}
"""The modes by their name in ``--precision_mode_v2``, or in ``--precision_mode`` if they have no newer one."""
