"""Lowerings of Gather (``ge/ops/gather.py``)."""

from __future__ import annotations

from passes.lowering.registry import NodeLowering, lowering


@lowering("Gather", "GatherV2", needs="gather")
def gather(node: NodeLowering) -> None:
    """Elements along one axis at places that another tensor names, without batch dims."""
    node.require_plain()
    if node.op.batch_dims != 0:
        raise node.refusal("a Gather with batch dims")
    axes = [0] if node.node.type == "Gather" else node.ints("axis")
    params, indices = node.source("x"), node.source("indices")
    if not axes or params is None or indices is None:
        raise node.refusal("the axis is not constant")
    rank = len(params.desc.shape)
    axis = axes[0] % rank
    if node.strategy.gathers_tail_only and axis != rank - 1:
        raise node.refusal(f"a Gather along axis {axis} of {rank}")
    node.realize(params)
    node.realize(indices)
    node.store(node.loops.gather_load(params, indices, axis, node.dims, negative=True))
    node.is_material = True
