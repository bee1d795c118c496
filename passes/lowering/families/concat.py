"""Lowerings of what joins tensors (``ge/ops/concat.py``)."""

from __future__ import annotations

from ge.graph import NodeOut
from passes.lowering.registry import NodeLowering, lowering


@lowering("ConcatD", "Concat", "ConcatV2", needs="concat")
def concat(node: NodeLowering) -> None:
    node.require_plain()
    given = [int(node.op.concat_dim)] if node.node.type == "ConcatD" else node.ints("concat_dim")
    if not given:
        raise node.refusal("the axis is not constant")
    sources = node.sources("x")
    axis = given[0] % len(node.dims)
    if len(sources) == 1:
        node.disables_lifting = True
        node.store(node.loops.load(sources[0]))
        return
    _check_count(node, sources)
    shapes = {tuple(source.desc.shape) for source in sources}
    is_repeated = len(set(sources)) == 1 and len(sources) >= 6 and {s[axis] for s in shapes} == {1}
    if is_repeated and node.strategy.concat_algorithm == 1:
        node.disables_lifting = True
        node.store(node.loops.broadcast(node.loops.load(sources[0]), node.dims))
        return
    parts = [node.realize(source) for source in sources]
    node.store_root(node.loops.store_concat(node.node.output(), parts, axis))


@lowering("Pack", needs="concat")
def pack(node: NodeLowering) -> None:
    """Join along a new axis; behind the last one up to 16 tensors."""
    node.require_plain()
    sources = node.sources("x")
    rank = len(node.dims)
    axis = int(node.op.axis) % rank
    if rank == 1:
        raise node.refusal("a Pack of scalars")
    if axis == rank - 1 and len(sources) > 16:
        raise node.refusal(f"a Pack of {len(sources)} tensors behind the last axis")
    _check_count(node, sources)
    parts = [node.realize(source) for source in sources]
    node.store_root(node.loops.store_pack(node.node.output(), parts, axis))


def _check_count(node: NodeLowering, sources: list[NodeOut]) -> None:
    """More inputs than an operator can have are the reason to make a kernel, but there is a limit for that, too."""
    if len(sources) > 1000:
        raise node.refusal(f"{len(sources)} inputs")
