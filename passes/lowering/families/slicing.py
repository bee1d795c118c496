"""Lowerings of what takes regions out of tensors (``ge/ops/slicing.py``, ``concat.py``)."""

from __future__ import annotations

from collections.abc import Sequence

from ge.ops.slicing import index_of
from passes.lowering.loop_ir import LoopOp
from passes.lowering.registry import NodeLowering, lowering


def _sliced_source(node: NodeLowering, name: str) -> LoopOp:
    """Return the tensor that is sliced: in memory, unless it is a slice itself."""
    source = node.source(name)
    if source is None:
        raise node.refusal(f"input {name} is not connected")
    return node.loops.load(source) if "Slice" in source.node.type else node.realize(source)


def _store_slice(
    node: NodeLowering, x: LoopOp, begin: Sequence[int], stride: Sequence[int], dims: Sequence[int]
) -> LoopOp:
    if dims and dims[-1] == 1 and not node.strategy.slices_last_unit:
        raise node.refusal("a slice of one element of the last axis")
    if tuple(dims) == x.dims and set(begin) <= {0} and set(stride) <= {1}:
        node.disables_lifting = True
        return x
    return node.loops.strided_slice(x, begin, stride, dims)


@lowering("Slice", needs="slice")
def slice_by_size(node: NodeLowering) -> None:
    node.require_plain()
    begin = node.ints("offsets")
    if begin is None:
        raise node.refusal("the offsets are not constant")
    x = _sliced_source(node, "x")
    node.store(_store_slice(node, x, begin, [1] * len(begin), node.dims))


@lowering("StridedSlice", "StridedSliceV2", needs="slice")
def strided_slice(node: NodeLowering) -> None:
    """Regions of a constant begin and step; steps go forward, the last axis is read without gaps."""
    node.require_plain()
    x = _sliced_source(node, "x")
    begin, stride, taken, kept = [], [], [], []
    for axis, item in enumerate(_regions(node, x)):
        first, last, step = item.indices(x.dims[axis])
        if step < 1:
            raise node.refusal("a region is read backwards")
        begin.append(first)
        stride.append(step)
        taken.append(len(range(first, last, step)))
        kept.append(axis)
    if stride and stride[-1] != 1 and not node.strategy.allows_ours:
        raise node.refusal("the last axis is read with gaps")
    if 0 in taken:
        raise node.refusal("nothing is taken")
    value = _store_slice(node, x, begin, stride, taken)
    node.store(node.loops.reshape(value, node.dims))


def _regions(node: NodeLowering, x: LoopOp) -> list[slice]:
    begin, end = node.ints("begin"), node.ints("end")
    has = {name: name in ("begin", "end") or node.source(name) is not None for name in ("axes", "strides")
           if name == "strides" or node.node.type == "StridedSliceV2"}  # fmt: skip
    strides = node.ints("strides") if has["strides"] else None
    axes = node.ints("axes") if has.get("axes") else None
    is_open = begin is None or end is None or (has["strides"] and strides is None) or (has.get("axes") and axes is None)
    if is_open:
        raise node.refusal("begin, end, axes or strides are not constant")
    assert begin is not None
    assert end is not None
    items = [item for item in index_of(node.op, len(x.dims), begin, end, strides, axes) if item is not None]
    return [slice(item % dim, item % dim + 1) if isinstance(item, int) else item
            for item, dim in zip(items, x.dims, strict=True)]  # fmt: skip


# -- split -------------------------------------------------------------------------------------------------------------
@lowering("Split", "SplitD", "SplitV", "SplitVD", needs="split")
def split(node: NodeLowering) -> None:
    """Parts are slices, or where the platform splits, parts of one group."""
    node.require_plain()
    given = node.ints("split_dim") if node.node.type in ("Split", "SplitV") else [int(node.op.split_dim)]
    source = node.source("x")
    if not given or source is None:
        raise node.refusal("the axis is not constant")
    outputs = node.node.output_descs
    axis = given[0] % len(outputs[0].shape)
    parts = [desc.shape[axis] for desc in outputs]
    starts = [sum(parts[:k]) for k in range(len(parts))]
    if not node.strategy.splits_are_slices and len(parts) >= 512:
        raise node.refusal(f"a Split into {len(parts)} parts")
    x = node.realize(source)
    for place, start in enumerate(starts):
        dims = tuple(outputs[place].shape)
        if node.strategy.splits_are_slices:
            begin = [start if k == axis else 0 for k in range(len(dims))]
            node.store(_store_slice(node, x, begin, [1] * len(dims), dims), place)
        else:
            group = node.loops.group_of(node.node)
            node.store_root(node.loops.store_split(node.node.output(place), x, axis, start, place, group), place)
