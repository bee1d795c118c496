"""What fusions have in common that fold a factor or an addend into the constants of the operator before it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Protocol, TypeVar

from ge.graph import Node, NodeOut
from passes.fusion import affine
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.pair_fusion import Pair, PairFusion
from passes.fusion.sketch import Sketch


class Linear(Protocol):
    """An operator that is linear in a constant, and may have a bias."""

    def obstacle(self) -> str: ...
    def obstacle_to_scaling(self, factor: Constant) -> str: ...


Target = TypeVar("Target", bound=Linear)


class AffineFusion(PairFusion, Generic[Target]):
    """The producer does what its only reader did: its constants are scaled, its bias shifted."""

    @abstractmethod
    def target(self, producer: Node) -> Target:
        """Return the producer as what it is."""

    @abstractmethod
    def own(self, target: Target, sketch: Sketch) -> affine.Affine:
        """Return what the producer itself does to its product: add its bias."""

    @abstractmethod
    def absorbed(self, target: Target, result: affine.Affine) -> NodeOut:
        """Draw the producer with new constants."""

    @abstractmethod
    def misfit(self, target: Target, result: affine.Affine, pair: Pair) -> str:
        """Return why the producer cannot hold the numbers of ``result``; empty if it can."""

    def obstacle(self, pair: Pair) -> str:
        """Look at the reader, the producer, the numbers, and who else reads what would be scaled."""
        target = self.target(pair.producer)
        reason = affine.obstacle(pair.reader, pair.slot) or target.obstacle()
        if reason:
            return reason
        result = self._result(target, pair, pair.sketch())
        reason = self.misfit(target, result, pair)
        return reason if reason or result.scale is None else target.obstacle_to_scaling(result.scale)

    def fused(self, pair: Pair, sketch: Sketch) -> NodeOut:
        """Draw the producer with new constants."""
        target = self.target(pair.producer)
        return self.absorbed(target, self._result(target, pair, sketch))

    def _result(self, target: Target, pair: Pair, sketch: Sketch) -> affine.Affine:
        return self.own(target, sketch).after(pair.reader, pair.slot)
