"""Which kernels may become one: the strategies of their fuse types. The codes are those of CANN's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ge.ascir import ComputeType
from passes.lowering.fused_nodes import Kernel
from passes.lowering.kernel_box import FuseType
from passes.lowering.strategy import LoweringStrategy


class NotFused(Enum):
    """Why two kernels stay apart."""

    NO_SHARED_DATA = "NF1001"
    CYCLE = "NF1002"
    MEMORY = "NF1003"
    STRATEGY = "NF1005"
    AXIS_MAPPING = "NF1006"
    INPUTS = "NF1007"
    AXIS_GROUP = "NF1009"
    SIZE = "NF1010"
    REDUCE_HORIZONTAL = "NF1021"
    REDUCE_BACKWARD = "NF1031"
    CORE_NUMBER = "NF1025"


@dataclass(frozen=True)
class Verdict:
    """Whether two kernels may be fused; ``code`` is ``None`` if so."""

    code: NotFused | None = None
    detail: str = ""

    @property
    def code_text(self) -> str:
        """The code as CANN's log has it."""
        return self.code.value if self.code is not None else ""

    def __bool__(self) -> bool:
        return self.code is None


YES = Verdict()
MAX_ELEMENTWISE_AFTER_REDUCE = 3
MAX_OUTPUT_BYTES = 13 << 30


@dataclass(frozen=True)
class Pair:
    """Two kernels; in a vertical pair ``second`` reads what ``first`` makes, in a horizontal one they read the same."""

    first: Kernel
    second: Kernel
    is_vertical: bool
    strategy: LoweringStrategy

    def has(self, kind: FuseType) -> bool:
        """Tell whether one of them is of a kind."""
        return kind in self.first.fuse_types or kind in self.second.fuse_types


def strategies_allow(pair: Pair) -> Verdict:
    """Ask the strategies of all fuse types that the kernels have."""
    for kind in sorted(pair.first.fuse_types | pair.second.fuse_types):
        rule = _STRATEGIES.get(kind)
        verdict = YES if rule is None else rule(pair)
        if not verdict:
            return verdict
    return YES


def _reduce(pair: Pair) -> Verdict:
    if not pair.is_vertical:
        return Verdict(NotFused.REDUCE_HORIZONTAL, "a reduction beside another kernel")
    if FuseType.REDUCE not in pair.first.fuse_types:
        return YES
    if not pair.second.fuse_types <= {FuseType.POINTWISE, FuseType.RESHAPE}:
        return Verdict(NotFused.REDUCE_BACKWARD, "what follows a reduction is not elementwise")
    if is_norm_like(pair.first, pair.second):
        return YES
    count = sum(op.compute_type is ComputeType.ELEWISE for op in pair.second.graph.ops)
    if count > MAX_ELEMENTWISE_AFTER_REDUCE and not pair.strategy.allows_ours:
        return Verdict(NotFused.REDUCE_BACKWARD, f"{count} elementwise operators follow a reduction")
    return YES


def is_norm_like(first: Kernel, second: Kernel) -> bool:
    """Tell whether what follows a reduction reads what was reduced, too: a softmax, a normalisation."""
    return not set(first.sources).isdisjoint(second.sources)


def _never_merged(name: str) -> Callable[[Pair], Verdict]:
    return lambda pair: Verdict(NotFused.AXIS_GROUP, f"the loops of a {name} merge with no others")


def _slice(pair: Pair) -> Verdict:
    if not pair.is_vertical:
        return Verdict(NotFused.STRATEGY, "a slice beside another kernel")
    if FuseType.SLICE in pair.second.fuse_types and FuseType.SLICE not in pair.first.fuse_types:
        return Verdict(NotFused.STRATEGY, "what a slice reads is made once, not for a part of it")
    return YES


def _gather(pair: Pair) -> Verdict:
    is_legal = pair.is_vertical and pair.second.fuse_types <= {FuseType.POINTWISE}
    if not is_legal or len(pair.first.graph.axes) != len(pair.second.graph.axes):
        return Verdict(NotFused.STRATEGY, "a gather goes with elementwise operators behind it only")
    return YES


def _transpose(pair: Pair) -> Verdict:
    other = (pair.first.fuse_types | pair.second.fuse_types) - {FuseType.TRANSPOSE}
    if not pair.is_vertical or not other <= {FuseType.POINTWISE}:
        return Verdict(NotFused.STRATEGY, "a transposition goes with elementwise operators only")
    return YES


def _reshape(pair: Pair) -> Verdict:
    if pair.first.fuse_types == pair.second.fuse_types == {FuseType.RESHAPE}:
        return Verdict(NotFused.STRATEGY, "two reshapes")
    return YES


_STRATEGIES: dict[FuseType, Callable[[Pair], Verdict]] = {
    FuseType.REDUCE: _reduce,
    FuseType.CONCAT: _never_merged("concat"),
    FuseType.SPLIT: _never_merged("split"),
    FuseType.CUBE: _never_merged("product"),
    FuseType.SLICE: _slice,
    FuseType.GATHER: _gather,
    FuseType.TRANSPOSE: _transpose,
    FuseType.RESHAPE: _reshape,
}


def priority(pair: Pair) -> int:
    """Return which pairs come first: 0 splits, 1 a split, 2 a concat or gather, 3 others, 4 products."""
    if FuseType.SPLIT in pair.first.fuse_types and FuseType.SPLIT in pair.second.fuse_types:
        return 0
    if pair.has(FuseType.SPLIT):
        return 1
    if pair.has(FuseType.CONCAT) or pair.has(FuseType.GATHER):
        return 2
    return 4 if pair.has(FuseType.CUBE) else 3
