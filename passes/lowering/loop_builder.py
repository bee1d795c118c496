"""Building Loop IR: dims and element types are checked, and a :class:`Refusal` is raised for what has no meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ge.graph import DataType, Node, NodeOut, Tensor
from ge.graph.types import short_name
from passes.lowering.element_types import INTEGERS, castable, kernel_type, result_type, takes
from passes.lowering.kernel_box import KernelBox
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Refusal, Rule

DT = DataType
_SCALARS = frozenset(
    {DT.DT_FLOAT, DT.DT_INT8, DT.DT_INT32, DT.DT_UINT8, DT.DT_BOOL, DT.DT_INT16, DT.DT_UINT16, DT.DT_UINT32}
)
"""Constants of these types and rank 0 become numbers in the kernel."""
_REDUCTIONS = {"SUM": "Sum", "MEAN": "Mean", "MAX": "Max", "MIN": "Min", "PROD": "Prod", "ANY": "Any", "ALL": "All"}
BoxOf = Callable[[NodeOut], KernelBox | None]


def number_text(value: float | int) -> str:
    """Return the text of a number in a kernel: 20 digits in scientific notation, or a whole number."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return f"{value:.20e}"


class LoopBuilder:
    """Makes operators, numbered in the order in which they are made. ``origin`` is the node that is being lowered."""

    def __init__(self, platform: str, box_of: BoxOf) -> None:
        self.platform = platform
        self.origin = ""
        self._box_of = box_of
        self._numbers = count()
        self._groups: dict[str, int] = {}

    def _make(
        self,
        name: str,
        inputs: Sequence[LoopOp],
        dims: Sequence[int],
        dtype: DataType,
        anchor: NodeOut | None = None,
        sources: Sequence[NodeOut] = (),
        **attrs: Any,
    ) -> LoopOp:
        number = next(self._numbers)
        return LoopOp(number, name, tuple(inputs), tuple(dims), dtype, self.origin, attrs, anchor, tuple(sources))

    def group_of(self, node: Node) -> int:
        """Return the number that the parts of one split share."""
        return self._groups.setdefault(node.name, len(self._groups))

    # -- leaves -------------------------------------------------------------------------------------------------------
    def load(self, source: NodeOut) -> LoopOp:
        """Read a tensor: a number if it is a constant of rank 0, what its box computes, or its memory."""
        scalar = self._constant(source)
        if scalar is not None:
            return scalar
        box = self._box_of(source)
        expression = None if box is None else box.expression()
        return self.load_memory(source) if expression is None else expression

    def load_memory(self, source: NodeOut) -> LoopOp:
        """Read a tensor from memory, whatever its box is."""
        dtype = source.desc.data_type
        self._check("Load", dtype)
        return self._make("Load", (), source.desc.shape, dtype, source)

    def _constant(self, source: NodeOut) -> LoopOp | None:
        value = source.node.attrs.get("value") if source.node.type in ("Const", "Constant") else None
        if not isinstance(value, Tensor):
            return None
        dtype, array = source.desc.data_type, value.array
        is_known = dtype in _SCALARS and array.shape == ()
        if self.platform == "host":
            is_known = array.size == 1 and takes("host", "Where", dtype)
        if not is_known:
            return None
        number = array.reshape(()).item() if array.dtype.kind in "biuf" else float(np.asarray(array, np.float32).item())
        return self.scalar(number, dtype)

    def scalar(self, value: float | int, dtype: DataType) -> LoopOp:
        """Make a number."""
        whole = kernel_type(dtype) in INTEGERS
        return self._make("Scalar", (), (), dtype, value=number_text(int(value) if whole else float(value)))

    def gather_load(self, params: NodeOut, indices: NodeOut, axis: int, dims: Sequence[int], negative: bool) -> LoopOp:
        """Read elements of ``params`` along ``axis`` at the places in ``indices``."""
        dtype = params.desc.data_type
        self._check("Gather", dtype)
        if indices.desc.data_type not in (DT.DT_INT32, DT.DT_INT64):
            raise Refusal(Rule.ELEMENT_TYPE, f"places of type {short_name(indices.desc.data_type)}")
        return self._make("LoadGather", (), dims, dtype, None, (params, indices), axis=axis, negative=negative)

    def _check(self, functor: str, dtype: DataType) -> None:
        if not takes(self.platform, functor, dtype):
            raise Refusal(Rule.ELEMENT_TYPE, f"{functor} does not take {short_name(dtype)} on {self.platform}")

    # -- computing ----------------------------------------------------------------------------------------------------
    def functor(self, name: str, *values: LoopOp, **attrs: Any) -> LoopOp:
        """Apply an elementwise operator to values of equal dims; numbers go with all dims."""
        shapes = {value.dims for value in values if value.type != "Scalar"}
        if len(shapes) > 1:
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"{name} of dims {' and '.join(str(list(s)) for s in sorted(shapes))}")
        dtype = result_type(self.platform, name, [value.dtype for value in values])
        return self._make(name, values, next(iter(shapes), ()), dtype, **attrs)

    def cast(self, value: LoopOp, dtype: DataType) -> LoopOp:
        """Convert the element type; nothing to do where the kernel holds both alike."""
        if value.dtype is dtype:
            return value
        if not castable(self.platform, value.dtype, dtype):
            raise Refusal(Rule.ELEMENT_TYPE, f"no Cast of {short_name(value.dtype)} to {short_name(dtype)}")
        return self._make("Cast", (value,), value.dims, dtype)

    def reduce_then_broadcast(self, kind: str, value: LoopOp, dim: int) -> LoopOp:
        """Reduce along one dim and repeat the result along it."""
        if value.dims[dim] == 1:
            return value
        dtype = result_type(self.platform, _REDUCTIONS[kind], [value.dtype])
        return self._make("ReduceThenBroadcast", (value,), value.dims, dtype, kind=_REDUCTIONS[kind], dim=dim)

    # -- views --------------------------------------------------------------------------------------------------------
    def broadcast(self, value: LoopOp, dims: Sequence[int]) -> LoopOp:
        """Repeat a value to ``dims`` as numpy does."""
        new = len(dims) - len(value.dims)
        if new < 0:
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"{list(value.dims)} cannot be repeated to {list(dims)}")
        kinds = ["NEW_AXIS"] * new
        for have, want in zip(value.dims, dims[new:], strict=True):
            if have not in (1, want):
                raise Refusal(Rule.NOT_EXPRESSIBLE, f"{list(value.dims)} cannot be repeated to {list(dims)}")
            kinds.append("NORMAL" if have == want else "BROADCAST")
        if all(kind == "NORMAL" for kind in kinds):
            return value
        if value.type != "Scalar":
            self._check("Broadcast", value.dtype)
        return self._make("Broadcast", (value,), dims, value.dtype, kinds=tuple(kinds))

    def permute(self, value: LoopOp, order: Sequence[int]) -> LoopOp:
        """Reorder dims: dim i of the result is dim ``order[i]`` of the value."""
        if sorted(order) != list(range(len(value.dims))):
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"{list(order)} is no order of {len(value.dims)} dims")
        return self._make("Permute", (value,), [value.dims[k] for k in order], value.dtype, order=tuple(order))

    def transpose(self, value: LoopOp, order: Sequence[int]) -> LoopOp:
        """Like ``permute``; where only dims of 1 move, they are dropped and put in again."""
        moved = [k for k in order if value.dims[k] != 1]
        if moved != sorted(moved):
            return self.permute(value, order)
        result = value
        for dim in reversed(range(len(value.dims))):
            if value.dims[dim] == 1:
                result = self.squeeze(result, dim)
        for place, dim in enumerate(order):
            if value.dims[dim] == 1:
                result = self.unsqueeze(result, place)
        return result

    def squeeze(self, value: LoopOp, dim: int) -> LoopOp:
        """Drop a dim of 1; ``dim`` may count from the end."""
        at = dim % len(value.dims)
        if value.dims[at] != 1:
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"dim {at} of {list(value.dims)} is not 1")
        return self._make("Squeeze", (value,), (*value.dims[:at], *value.dims[at + 1 :]), value.dtype, dim=at)

    def unsqueeze(self, value: LoopOp, dim: int) -> LoopOp:
        """Put in a dim of 1 at ``dim`` of the result, which may count from the end."""
        at = dim % (len(value.dims) + 1)
        return self._make("Unsqueeze", (value,), (*value.dims[:at], 1, *value.dims[at:]), value.dtype, dim=at)

    def reshape(self, value: LoopOp, dims: Sequence[int]) -> LoopOp:
        """Add and drop dims of 1, or divide one dim into two, or join two."""
        source, target = list(value.dims), list(dims)
        if [d for d in source if d != 1] == [d for d in target if d != 1]:
            return self._with_unit_dims(value, target)
        longer, shorter = (source, target) if len(source) > len(target) else (target, source)
        if len(longer) == len(shorter) + 1:
            for at, whole in enumerate(shorter):
                outer, inner = longer[at : at + 2]
                if outer * inner == whole and [*longer[:at], whole, *longer[at + 2 :]] == shorter:
                    return self._make("Reshape", (value,), target, value.dtype, at=at, inner=inner)
        raise Refusal(Rule.NOT_EXPRESSIBLE, f"{source} to {target} is more than one dim divided or joined")

    def _with_unit_dims(self, value: LoopOp, target: list[int]) -> LoopOp:
        result = value
        for dim in reversed(range(len(value.dims))):
            if value.dims[dim] == 1:
                result = self.squeeze(result, dim)
        for place, dim in enumerate(target):
            if dim == 1:
                result = self.unsqueeze(result, place)
        return result

    def strided_slice(self, value: LoopOp, begin: Sequence[int], stride: Sequence[int], dims: Sequence[int]) -> LoopOp:
        """Take ``dims`` elements from ``begin`` on, ``stride`` apart."""
        for have, first, step, want in zip(value.dims, begin, stride, dims, strict=True):
            if first < 0 or step < 1 or (want and first + (want - 1) * step >= have):
                raise Refusal(Rule.NOT_EXPRESSIBLE, f"{want} elements from {first} on, {step} apart, of {have}")
        attrs: dict[str, Any] = {"begin": tuple(begin), "stride": tuple(stride)}
        return self._make("StoreStridedSlice", (value,), dims, value.dtype, **attrs)

    # -- roots --------------------------------------------------------------------------------------------------------
    def store(self, target: NodeOut, value: LoopOp) -> LoopOp:
        """Write a value as a tensor, in the tensor's type."""
        return self._stored("Store", target, value)

    def store_reshape(self, target: NodeOut, value: LoopOp) -> LoopOp:
        """Like ``store``, for a tensor that only has another shape."""
        return self._stored("StoreReshape", target, value)

    def _stored(self, name: str, target: NodeOut, value: LoopOp) -> LoopOp:
        desc = target.desc
        if tuple(desc.shape) != value.dims and not (value.type == "Scalar"):
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"{list(value.dims)} computed for a tensor of {desc.shape}")
        self._check("Store", desc.data_type)
        same = kernel_type(value.dtype) is kernel_type(desc.data_type)
        typed = value if same else self.cast(value, desc.data_type)
        return self._make(name, (typed,), desc.shape, desc.data_type, target)

    def store_reduction(self, kind: str, target: NodeOut, value: LoopOp, dims: Sequence[str]) -> LoopOp:
        """Reduce and write. ``dims`` says per dim of the value NORM (kept), REDUCE (becomes 1) or REMOVE."""
        reduced = _REDUCTIONS[kind]
        dtype = result_type(self.platform, reduced, [value.dtype])
        left = [1 if d == "REDUCE" else n for n, d in zip(value.dims, dims, strict=True) if d != "REMOVE"]
        if tuple(left) != tuple(target.desc.shape) or dtype is not target.desc.data_type:
            raise Refusal(Rule.NOT_EXPRESSIBLE, f"{left} reduced for a tensor of {target.desc.shape}")
        return self._make("StoreReduction", (value,), left, dtype, target, kind=reduced, fates=tuple(dims))

    def store_concat(self, target: NodeOut, values: Sequence[LoopOp], dim: int) -> LoopOp:
        """Write values one behind the other along ``dim``."""
        desc = target.desc
        self._check("Concat", desc.data_type)
        if any(value.dtype is not desc.data_type for value in values):
            raise Refusal(Rule.ELEMENT_TYPE, "the parts of a Concat differ in their types")
        return self._make("StoreConcat", values, desc.shape, desc.data_type, target, dim=dim)

    def store_pack(self, target: NodeOut, values: Sequence[LoopOp], dim: int) -> LoopOp:
        """Like ``store_concat`` after putting in a dim of 1."""
        parts = [self.unsqueeze(value, dim) for value in values]
        made = self.store_concat(target, parts, dim)
        return self._make("StorePack", made.inputs, made.dims, made.dtype, target, dim=dim)

    def store_split(self, target: NodeOut, value: LoopOp, dim: int, start: int, index: int, group: int) -> LoopOp:
        """Write a part along ``dim``; parts of one tensor share ``group``."""
        desc = target.desc
        self._check("Split", desc.data_type)
        attrs: dict[str, Any] = {"dim": dim, "start": start, "index": index, "gid": group}
        return self._make("StoreSplit", (value,), desc.shape, desc.data_type, target, **attrs)

    def store_cube(self, name: str, target: NodeOut, values: Sequence[LoopOp], functor: str, **attrs: Any) -> LoopOp:
        """Write a matrix product (StoreMatMul) or a convolution (StoreConv2D) of tensors."""
        desc = target.desc
        for value in values[:2]:
            self._check(functor, value.dtype)
        return self._make(name, values, desc.shape, desc.data_type, target, functor=functor, **attrs)
