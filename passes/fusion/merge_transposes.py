"""Fusion of Transposes."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.chain_fusion import ChainFusion
from passes.fusion.constants import attributes, ints_of
from passes.fusion.rewriting import Rewriting
from passes.fusion.sketch import Sketch


class MergeTransposes(ChainFusion):
    """Before: ``Transpose(Transpose(x, p), q)`` and longer runs. After: one Transpose.

    1. A run that leaves all axes where they are goes, one of a single operator too.
    2. One that moves only axes of one element becomes a Reshape, which moves nothing in memory.

    Left alone:
    3. permutations that are no constants;
    4. a result in between has other readers: the run ends there.
    """

    name: ClassVar[str] = "TransposeFusionPass"
    links: ClassVar[Collection[str]] = ("Transpose", "TransposeD")

    def slot(self, node: Node) -> int | None:
        """Return the input that is transposed."""
        return None if _permutation(node) is None else 0

    def fuse(self, chain: list[Node], source: NodeOut, rewriting: Rewriting) -> None:
        """Transpose once, or not at all."""
        order = _composed(chain)
        end = chain[-1].output()
        shape = source.desc.origin_shape
        if order == sorted(order):
            rewriting.bypass(chain, end, source)
            return
        sketch = Sketch([source])
        if not shape.is_unknown_shape() and _is_in_order([axis for axis in order if shape[axis] != 1]):
            dims = [shape[axis] for axis in order]
            sketch.finish(sketch.add("Reshape", sketch.inputs[0], sketch.ints(dims), _x_allowzero=1))
        elif len(chain) > 1:
            sketch.finish(sketch.add("Transpose", sketch.inputs[0], sketch.ints(order)))
        else:
            return
        rewriting.replace(chain, end, sketch)


def _permutation(node: Node) -> list[int] | None:
    if node.type == "TransposeD":
        return list(attributes(node).perm)
    return ints_of(node.input(1)) if node.type == "Transpose" else None


def _composed(chain: list[Node]) -> list[int]:
    """Return which axis of the first input each axis of the last result is."""
    order: list[int] | None = None
    for node in chain:
        perm = _permutation(node)
        assert perm is not None
        perm = [axis % len(perm) for axis in perm]
        order = perm if order is None else [order[axis] for axis in perm]
    assert order is not None
    return order


def _is_in_order(axes: list[int]) -> bool:
    return axes == sorted(axes)
