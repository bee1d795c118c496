"""Lowerings of views that keep the order of elements, and of repetition (``ge/ops/reshape.py``, ``expand.py``)."""

from __future__ import annotations

from passes.lowering.registry import NodeLowering, lowering


@lowering("Reshape")
def reshape(node: NodeLowering) -> None:
    """Only dims of 1 come and go: what divides or joins dims stays, it costs nothing."""
    node.require_plain()
    x = node.load("x")
    if node.op.axis != 0 or node.op.num_axes != -1:
        raise node.refusal("a Reshape of some axes")
    if [d for d in x.dims if d != 1] != [d for d in node.dims if d != 1]:
        raise node.refusal(f"{list(x.dims)} to {list(node.dims)} divides or joins dims")
    node.store_reshape(node.loops.reshape(x, node.dims))


@lowering("Squeeze", "Unsqueeze", "ExpandDims")
def unit_dims(node: NodeLowering) -> None:
    node.require_plain()
    node.store(node.loops.reshape(node.load("x"), node.dims))


@lowering("SqueezeV3", "UnsqueezeV3", is_ours=True)
def unit_dims_by_input(node: NodeLowering) -> None:
    unit_dims(node)


@lowering("BroadcastTo")
def broadcast_to(node: NodeLowering) -> None:
    _repeat(node)


@lowering("Expand", is_ours=True)
def expand(node: NodeLowering) -> None:
    _repeat(node)


@lowering("Tile", "TileD")
def tile(node: NodeLowering) -> None:
    """Repetition of dims of 1 is a broadcast; other dims would be read more than once in turn."""
    _repeat(node)


def _repeat(node: NodeLowering) -> None:
    node.require_plain()
    node.store(node.loops.broadcast(node.load("x"), node.dims))


@lowering("Transpose", "TransposeD", needs="transpose")
def transpose(node: NodeLowering) -> None:
    node.require_plain()
    x = node.load("x")
    order = list(node.op.perm) if node.node.type == "TransposeD" else node.ints("perm")
    if order is None:
        raise node.refusal("the order of axes is not constant")
    order = [axis % len(x.dims) for axis in order if -len(x.dims) <= axis < len(x.dims)]
    if not 2 <= len(x.dims) <= node.strategy.max_transposed_rank:
        raise node.refusal(f"a Transpose of rank {len(x.dims)}")
    node.store(node.loops.transpose(x, order))
    node.is_material = True
