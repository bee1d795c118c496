"""Lists of tensors: TensorList, and TensorArray, whose flow is what carries its content.

A TensorArray of TensorFlow is changed where it stands, in the order that its flow tells. Here the flow is the list
itself, so writing gives a new one; the handle only says where it began.
"""

from __future__ import annotations

import numpy as np

from ge.graph import DataType, NodeOut
from ge.graph.types import has_numpy_dtype
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder


def _element(n: NodeBuilder, name: str = "element_dtype") -> DataType:
    dtype: DataType = n.attr(name, DataType)
    if not has_numpy_dtype(dtype):
        raise n.fail(f"attribute {name} is {dtype.name}, of which there are no lists")
    return dtype


def _shape_type(n: NodeBuilder) -> DataType:
    return n.attr("shape_type", DataType.DT_INT32)


def _element_shape(n: NodeBuilder, name: str = "element_shape") -> NodeOut:
    """Return an attribute that is a shape as a Const: a vector, or a scalar -1 for an unknown rank."""
    value = n.node.attributes.get(name)
    if value is None or value.WhichOneof("value") != "shape" or value.shape.unknown_rank:
        return n.const("Element_Shape", np.int32(-1))
    return n.index("Element_Shape", [max(dim.size, -1) for dim in value.shape.dim])


def _told(n: NodeBuilder, source: NodeOut, role: str) -> NodeOut:
    """Return a number or shape as a Const where its value is known: that is where what a list holds is looked up."""
    value = n.value(source)
    return source if value is None or source.node.type == "Const" else n.const(role, value)


# -- TensorList --------------------------------------------------------------------------------------------------------
@maps("TensorListReserve", "EmptyTensorList", inputs=2)
@maps("TensorListFromTensor", inputs=2)
@maps("TensorListSplit", inputs=3)
@maps("TensorListScatterV2", inputs=4)
def new_list(n: NodeBuilder) -> Mapped:
    """Before: TensorListReserve, FromTensor, Split, ScatterV2, EmptyTensorList. After: the same in GE."""
    first = 0 if n.op_type in ("TensorListReserve", "EmptyTensorList") else 1  # others begin with a tensor
    sources = n.sources()
    sources[first:] = [_told(n, source, f"Known_{k}") for k, source in enumerate(sources[first:])]
    return n.add(n.op_type, *sources, element_dtype=_element(n), shape_type=_shape_type(n))


@maps("TensorListScatter", inputs=3)
def scattered(n: NodeBuilder) -> Mapped:
    """Before: TensorListScatter(tensor, indices, element_shape). After: TensorListScatterV2, as long as need be."""
    count = n.const("Length", np.int32(-1))
    return n.add("TensorListScatterV2", *n.inputs, count, element_dtype=_element(n), shape_type=_shape_type(n))


@maps("TensorListGetItem", "TensorListScatterIntoExistingList", "TensorListGather", inputs=3)
@maps("TensorListPushBack", "TensorListPopBack", "TensorListConcatLists", inputs=2)
def with_items(n: NodeBuilder) -> Mapped:
    """Before: TensorListGetItem, Gather, PushBack, PopBack and so on. After: the same in GE."""
    return n.add(n.op_type, *n.inputs, element_dtype=_element(n))


@maps("TensorListSetItem", inputs=3)
def set_item(n: NodeBuilder) -> Mapped:
    """Before: TensorListSetItem. After: TensorListSetItem."""
    grows = n.attr("resize_if_index_out_of_bounds", False)
    return n.add("TensorListSetItem", *n.inputs, element_dtype=_element(n), resize_if_index_out_of_bounds=grows)


@maps("TensorListStack", inputs=2)
def stack(n: NodeBuilder) -> Mapped:
    """Before: TensorListStack. After: TensorListStack."""
    return n.add("TensorListStack", *n.inputs, element_dtype=_element(n), num_elements=n.attr("num_elements", -1))


@maps("TensorListLength", inputs=1)
@maps("TensorListResize", inputs=2)
def plain(n: NodeBuilder) -> Mapped:
    """Before: TensorListLength, TensorListResize. After: the same in GE."""
    return n.add(n.op_type, *n.inputs)


@maps("TensorListElementShape", inputs=1)
def element_shape(n: NodeBuilder) -> Mapped:
    """Before: TensorListElementShape. After: TensorListElementShape."""
    return n.add("TensorListElementShape", n.need(0), shape_type=_shape_type(n))


@maps("TensorListConcatV2", inputs=3)
def concat(n: NodeBuilder) -> Mapped:
    """Before: TensorListConcatV2. After: TensorListConcatV2."""
    return n.add("TensorListConcatV2", *n.inputs, element_dtype=_element(n), shape_type=_shape_type(n))


@maps("TensorListConcat", inputs=1)
def old_concat(n: NodeBuilder) -> Mapped:
    """Before: TensorListConcat. After: TensorListConcatV2."""
    return _concatenated(n, n.need(0), _element_shape(n), _element(n))


def _concatenated(n: NodeBuilder, handle: NodeOut, shape: NodeOut, dtype: DataType) -> Mapped:
    leading = n.int64([], "Leading_Dims")
    return n.add("TensorListConcatV2", handle, shape, leading, element_dtype=dtype)


# -- TensorArray -------------------------------------------------------------------------------------------------------
@maps("TensorArrayV3", inputs=1)
def tensor_array(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayV3(size). After: TensorListReserve, as handle and as flow."""
    made = n.add(
        "TensorListReserve",
        _element_shape(n),
        _told(n, n.need(0), "Size"),
        element_dtype=_element(n, "dtype"),
        dynamic_size=n.attr("dynamic_size", False),
    ).output()
    return [made, made]


@maps("TensorArrayWriteV3", inputs=4)
def write(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayWriteV3(handle, index, value, flow). After: TensorListSetItem(flow, index, value)."""
    return n.add("TensorListSetItem", n.need(3), n.need(1), n.need(2), element_dtype=n.dtype(n.need(2)))


@maps("TensorArrayReadV3", inputs=3)
def read(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayReadV3(handle, index, flow). After: TensorListGetItem(flow, index, unknown shape)."""
    shape = n.const("Element_Shape", np.int32(-1))
    return n.add("TensorListGetItem", n.need(2), n.need(1), shape, element_dtype=_element(n, "dtype"))


@maps("TensorArrayScatterV3", inputs=4)
def scatter(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayScatterV3(handle, indices, value, flow). After: TensorListScatterIntoExistingList."""
    value = n.need(2)
    return n.add("TensorListScatterIntoExistingList", n.need(3), value, n.need(1), element_dtype=n.dtype(value))


@maps("TensorArrayGatherV3", inputs=3)
def gather(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayGatherV3(handle, indices, flow). After: TensorListGather(flow, indices, element_shape)."""
    return n.add("TensorListGather", n.need(2), n.need(1), _element_shape(n), element_dtype=_element(n, "dtype"))


@maps("TensorArraySplitV3", inputs=4)
def split(n: NodeBuilder) -> Mapped:
    """Before: TensorArraySplitV3(handle, value, lengths, flow). After: TensorListSplit, without what was there."""
    shape = n.const("Element_Shape", np.int32(-1))
    value = n.need(1)
    return n.add("TensorListSplit", value, shape, n.need(2), element_dtype=n.dtype(value))


@maps("TensorArrayConcatV3", inputs=2)
def concat_array(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayConcatV3(handle, flow). After: TensorListConcatV2."""
    shape = n.const("Element_Shape", np.int32(-1))
    value = n.node.attributes.get("element_shape_except0")
    if value is not None and value.WhichOneof("value") == "shape" and not value.shape.unknown_rank:
        shape = n.index("Item_Shape", [-1, *(max(dim.size, -1) for dim in value.shape.dim)])
    return _concatenated(n, n.need(1), shape, _element(n, "dtype"))


@maps("TensorArraySizeV3", inputs=2)
def size(n: NodeBuilder) -> Mapped:
    """Before: TensorArraySizeV3(handle, flow). After: TensorListLength(flow)."""
    return n.add("TensorListLength", n.need(1))


@maps("TensorArrayCloseV3", inputs=1)
def close(n: NodeBuilder) -> Mapped:
    """Before: TensorArrayCloseV3. After: nothing: a list is gone when nobody reads it."""
    return []
