"""Fusion of operators that only change the shape."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from ge.graph import Node, NodeOut
from passes.fusion.chain_fusion import ChainFusion
from passes.fusion.rewriting import Rewriting
from passes.fusion.sketch import Sketch, is_alike


class MergeReshapes(ChainFusion):
    """Before: ``Reshape(Squeeze(Reshape(x)))`` and the like. After: ``Reshape(x)`` to the last shape.

    1. A run that ends in the shape in which it begins goes, one of a single operator too.

    Left alone:
    2. more than one dim of the last shape is not known;
    3. a shape in between has other readers: the run ends there.
    """

    name: ClassVar[str] = "ReshapeFusionPass"
    links: ClassVar[Collection[str]] = frozenset(
        {"ExpandDims", "Flatten", "FlattenV2", "Reshape", "Squeeze", "SqueezeV2", "SqueezeV3"}
        | {"Unsqueeze", "UnsqueezeV2", "UnsqueezeV3"}
    )

    def slot(self, node: Node) -> int | None:
        """Return the input that is reshaped."""
        return 0 if node.type in self.links else None

    def fuse(self, chain: list[Node], source: NodeOut, rewriting: Rewriting) -> None:
        """Reshape once, or not at all."""
        end = chain[-1].output()
        if is_alike(source.desc, end.desc):
            rewriting.bypass(chain, end, source)
        elif len(chain) > 1:
            dims = list(end.desc.origin_shape)
            if dims == [-2] or dims.count(-1) > (0 not in dims):
                rewriting.refuse(chain, f"the shape {dims} in the end is not known well enough")
                return
            sketch = Sketch([source])
            sketch.finish(sketch.add("Reshape", sketch.inputs[0], sketch.ints(dims), _x_allowzero=1))
            rewriting.replace(chain, end, sketch)
