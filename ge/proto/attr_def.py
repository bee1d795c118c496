"""Attributes <-> ``AttrDef``, tensor descriptors <-> ``TensorDescriptor``, tensors <-> ``TensorDef``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ge.formats import GROUPED_FORMATS, PackedFormat
from ge.graph.node import AttrValue
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import (
    DATA_TYPE_BY_PROTO,
    FORMAT_BY_TEXT,
    FORMAT_TEXT,
    PROTO_DATA_TYPE,
    DataType,
    Format,
    Placement,
    bit_width,
    byte_size,
    has_numpy_dtype,
)
from ge.proto import ge_ir_pb2 as pb
from ge.proto.tensor_bytes import Array, array_of, stored_bytes
from ge.tensor_memory import MAX_RANK, shape_fault

ListValue = pb.AttrDef.ListValue
Place = Callable[[Tensor], int | None]
"""Gives a constant its offset in the weights pool, or ``None`` to keep its bytes in the message."""


class InvalidGraphDef(ValueError):
    """A message that is no legal graph; the text says where, what was expected and what was found."""


# -- attributes ----------------------------------------------------------------------------------------------------
# Attribute kind of an operator signature -> val_type of a list without elements.
_EMPTY_LIST_TYPE = {"F": ListValue.VT_LIST_FLOAT, "B": ListValue.VT_LIST_BOOL, "S": ListValue.VT_LIST_STRING}
# val_type -> field of ListValue, for the kinds that have a counterpart here.
_LIST_FIELD = {
    ListValue.VT_LIST_STRING: "s",
    ListValue.VT_LIST_INT: "i",
    ListValue.VT_LIST_FLOAT: "f",
    ListValue.VT_LIST_BOOL: "b",
    ListValue.VT_LIST_BYTES: "bt",
    ListValue.VT_LIST_TENSOR_DESC: "td",
    ListValue.VT_LIST_TENSOR: "t",
    ListValue.VT_LIST_DATA_TYPE: "dt",
}
_FIELDS_IN_ORDER = ("s", "i", "f", "b", "bt", "td", "t", "g", "na", "dt")


def write_attr(target: pb.AttrDef, value: AttrValue, kind: str = "") -> None:
    """Store ``value``. ``kind`` is the attribute's kind in its operator's signature; it decides between equal looks.

    Raises ``TypeError`` for values that no attribute can hold.
    """
    if isinstance(value, bool | np.bool_):
        target.b = bool(value)
    elif isinstance(value, int | np.integer):
        _write_number(target, value, kind)
    elif isinstance(value, float | np.floating):
        target.f = float(value)
    elif isinstance(value, str):
        target.s = value.encode()
    elif isinstance(value, bytes):
        target.bt = value
    elif isinstance(value, Tensor):
        write_tensor(target.t, value)
    elif isinstance(value, TensorDesc):
        write_desc(target.td, value)
    elif isinstance(value, list | tuple):
        _write_list(target, value, kind)
    else:
        raise TypeError(f"an attribute cannot hold {type(value).__name__}")


def _write_number(target: pb.AttrDef, value: Any, kind: str) -> None:
    if kind == "f":
        target.f = float(value)
    elif kind == "t" or (isinstance(value, DataType) and kind != "i"):
        target.dt = int(value)
    else:
        target.i = int(value)


def _write_list(target: pb.AttrDef, values: Sequence[Any], kind: str) -> None:
    if values and all(isinstance(v, list | tuple) for v in values):
        if any(isinstance(x, float | np.floating) for v in values for x in v):
            target.list_list_float.list_list_f.extend(
                pb.AttrDef.ListListFloat.ListFloat(list_f=map(float, v)) for v in values
            )
        else:
            target.list_list_int.list_list_i.extend(pb.AttrDef.ListListInt.ListInt(list_i=map(int, v)) for v in values)
        return
    stored = target.list
    if not values:
        stored.val_type = _EMPTY_LIST_TYPE.get(kind, ListValue.VT_LIST_INT)
    elif all(isinstance(v, str) for v in values):
        stored.s.extend(v.encode() for v in values)
        stored.val_type = ListValue.VT_LIST_STRING
    elif all(isinstance(v, bytes) for v in values):
        stored.bt.extend(values)
        stored.val_type = ListValue.VT_LIST_BYTES
    elif all(isinstance(v, bool | np.bool_) for v in values):
        stored.b.extend(map(bool, values))
        stored.val_type = ListValue.VT_LIST_BOOL
    elif all(isinstance(v, DataType) for v in values):
        stored.dt.extend(map(int, values))
        stored.val_type = ListValue.VT_LIST_DATA_TYPE
    elif kind != "F" and all(isinstance(v, int | np.integer) for v in values):
        stored.i.extend(map(int, values))
        stored.val_type = ListValue.VT_LIST_INT
    elif all(isinstance(v, int | float | np.integer | np.floating) for v in values):
        stored.f.extend(map(float, values))
        stored.val_type = ListValue.VT_LIST_FLOAT
    else:
        _write_list_of_tensors(stored, values)


def _write_list_of_tensors(stored: pb.AttrDef.ListValue, values: Sequence[Any]) -> None:
    if all(isinstance(v, Tensor) for v in values):
        for v in values:
            write_tensor(stored.t.add(), v)
        stored.val_type = ListValue.VT_LIST_TENSOR
    elif all(isinstance(v, TensorDesc) for v in values):
        for v in values:
            write_desc(stored.td.add(), v)
        stored.val_type = ListValue.VT_LIST_TENSOR_DESC
    else:
        raise TypeError(f"a list attribute cannot hold {sorted({type(v).__name__ for v in values})} together")


def read_attr(stored: pb.AttrDef, where: str) -> AttrValue:
    """Return the value. Raises :class:`InvalidGraphDef`; ``where`` names the attribute in it."""
    field = stored.WhichOneof("value")
    if field in ("i", "f", "b", "bt"):
        return getattr(stored, field)
    if field == "s":
        return _text(stored.s, where)
    if field == "dt":
        return _data_type(stored.dt, where)
    if field == "list":
        return _read_list(stored.list, where)
    if field == "list_list_int":
        return [list(v.list_i) for v in stored.list_list_int.list_list_i]
    if field == "list_list_float":
        return [list(v.list_f) for v in stored.list_list_float.list_list_f]
    if field == "t":
        return read_tensor(stored.t, where)
    if field == "td":
        return read_desc(stored.td, where)
    raise InvalidGraphDef(f"{where} has a value of the kind {field or 'none'}, which cannot be read")


def _read_list(stored: pb.AttrDef.ListValue, where: str) -> list[Any]:
    used = [name for name in _FIELDS_IN_ORDER if len(getattr(stored, name))]
    if not used:
        return []
    expected = _LIST_FIELD.get(stored.val_type) if stored.val_type else used[0]
    if used != [expected]:
        raise InvalidGraphDef(f"{where} is a list of the type {stored.val_type} but holds the fields {', '.join(used)}")
    values = getattr(stored, used[0])
    if expected in ("i", "f", "b", "bt"):
        return list(values)
    if expected == "s":
        return [_text(v, where) for v in values]
    if expected == "dt":
        return [_data_type(v, where) for v in values]
    if expected == "td":
        return [read_desc(v, where) for v in values]
    if expected == "t":
        return [read_tensor(v, where) for v in values]
    raise InvalidGraphDef(f"{where} is a list of the kind {expected}, which cannot be read")


def read_attrs(stored: Mapping[str, pb.AttrDef], where: str, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the attributes of a map in the order of their names, those in ``skip`` left out."""
    return {
        name: read_attr(stored[name], f"{where}, attribute {name}")
        for name in sorted(stored)
        if name not in skip and stored[name].WhichOneof("value") != "expression"
    }


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidGraphDef(f"{where} is not UTF-8 text") from None


def _data_type(number: int, where: str) -> DataType:
    try:
        return DataType(number)
    except ValueError:
        raise InvalidGraphDef(f"{where} has the unknown data type {number}") from None


# -- descriptors ---------------------------------------------------------------------------------------------------
_FORMAT_BITS = (1 << 28) - 1
_DESC_ATTRS = frozenset(
    {
        "format_for_int",
        "origin_format",
        "origin_format_for_int",
        "origin_shape",
        "origin_shape_initialized",
        "shape_range",
    }
)


def write_desc(target: pb.TensorDescriptor, desc: TensorDesc, *, is_brief: bool = False) -> None:
    """Store a descriptor; a brief one without what readers take for granted where both views are one."""
    target.name = desc.name
    target.dtype = PROTO_DATA_TYPE[desc.data_type]  # type: ignore[assignment]
    target.shape.SetInParent()  # readers expect it for scalars too
    target.shape.dim.extend(desc.shape)
    target.layout = FORMAT_TEXT[desc.format]
    target.device_type = "NPU"
    target.size = desc_bytes(desc)
    attr = target.attr
    for name, value in desc.attrs.items():
        write_attr(attr[name], value)
    if not (is_brief and _is_plain(desc)):
        _write_views(attr, desc)
    if desc.shape_range:
        write_attr(attr["shape_range"], desc.shape_range)


def _is_plain(desc: TensorDesc) -> bool:
    """Tell whether both views are one: what readers take a descriptor for that says no more."""
    return desc.format == desc.origin_format and desc.origin_shape == desc.shape and not desc.sub_format


def _write_views(attr: MutableMapping[str, pb.AttrDef], desc: TensorDesc) -> None:
    attr["origin_format"].s = FORMAT_TEXT[desc.origin_format].encode()
    attr["origin_format_for_int"].i = desc.origin_format
    attr["format_for_int"].i = int(PackedFormat(desc.format, desc.sub_format))
    attr["origin_shape_initialized"].b = True
    origin = attr["origin_shape"].list
    origin.i.extend(desc.origin_shape)
    origin.val_type = ListValue.VT_LIST_INT


def desc_bytes(desc: TensorDesc) -> int:
    """Return the stored bytes of a tensor; 0 when a dim is unknown or elements have no fixed size."""
    elements = desc.shape.elements
    if elements < 0 or not has_numpy_dtype(desc.data_type) or bit_width(desc.data_type) == 0:
        return 0
    return byte_size(desc.data_type, elements)


def read_desc(stored: pb.TensorDescriptor, where: str) -> TensorDesc:
    """Return the descriptor. Raises :class:`InvalidGraphDef`."""
    attr = stored.attr
    if stored.dtype not in DATA_TYPE_BY_PROTO:
        raise InvalidGraphDef(f"{where} has the unknown data type {stored.dtype}")
    tensor_format = _format(attr, "format_for_int", stored.layout, Format.FORMAT_ND, where)
    origin_text = _text(attr["origin_format"].s, where) if "origin_format" in attr else ""
    desc = TensorDesc(
        _shape(stored.shape.dim, where),
        tensor_format,
        DATA_TYPE_BY_PROTO[stored.dtype],
        _shape(attr["origin_shape"].list.i, where) if "origin_shape" in attr else None,
        _format(attr, "origin_format_for_int", origin_text, tensor_format, where),
    )
    desc.name = stored.name
    desc.sub_format = _groups(attr, tensor_format)
    if "shape_range" in attr:
        desc.shape_range = [_range(v.list_i, where) for v in attr["shape_range"].list_list_int.list_list_i]
    desc.attrs = read_attrs(attr, where, skip=_DESC_ATTRS)
    return desc


def _shape(dims: Sequence[int], where: str) -> Shape:
    fault = shape_fault(dims)
    if fault:
        raise InvalidGraphDef(f"{where}: {list(dims[:MAX_RANK])} is not the shape of a tensor: {fault}")
    if any(d < -1 for d in dims) and list(dims) != [-2]:
        raise InvalidGraphDef(f"{where}: {list(dims)} is not a shape")
    return Shape(dims)


def _range(bounds: Sequence[int], where: str) -> tuple[int, int]:
    if len(bounds) != 2:
        raise InvalidGraphDef(f"{where}: the range of a dim has two bounds, {list(bounds)} is given")
    return bounds[0], bounds[1]


def _format(attr: Mapping[str, pb.AttrDef], key: str, text: str, default: Format, where: str) -> Format:
    """The number wins over the text; bits above the lowest eight say how a format is cut and are not the format."""
    if key in attr and attr[key].WhichOneof("value") == "i":
        try:
            return Format(attr[key].i & 0xFF)
        except ValueError:
            raise InvalidGraphDef(f"{where} has the unknown format {attr[key].i}") from None
    if not text:
        return default
    if text not in FORMAT_BY_TEXT:
        raise InvalidGraphDef(f"{where} has the unknown format {text!r}")
    return FORMAT_BY_TEXT[text]


def _groups(attr: Mapping[str, pb.AttrDef], tensor_format: Format) -> int:
    """Return the sub-format; a block length beside it must be that of the element type anyway and is not kept."""
    if tensor_format not in GROUPED_FORMATS or "format_for_int" not in attr:
        return 0
    return PackedFormat.unpack(attr["format_for_int"].i & _FORMAT_BITS).groups


# -- tensors -------------------------------------------------------------------------------------------------------
def write_tensor(target: pb.TensorDef, tensor: Tensor, place: Place | None = None) -> None:
    """Store a tensor, its bytes included unless ``place`` puts them into the weights pool."""
    write_desc(target.desc, tensor.desc)
    if tensor.placement is not Placement.PLACEMENT_HOST:
        target.desc.attr["placement"].i = tensor.placement
    offset = None if place is None else place(tensor)
    if offset is None:
        target.data = stored_bytes(tensor)
        target.desc.weight_size = len(target.data)
    else:
        target.desc.data_offset = offset
        target.desc.weight_size = tensor.nbytes


def read_tensor(stored: pb.TensorDef, where: str, pool: Array | None = None) -> Tensor:
    """Return the tensor: a view of ``pool`` (the weights partition as uint8) when it is placed there.

    Raises :class:`InvalidGraphDef`.
    """
    offset, size = stored.desc.data_offset, stored.desc.weight_size
    if stored.data or offset == 0:
        data = np.frombuffer(stored.data, np.uint8)
    elif pool is None:
        raise InvalidGraphDef(f"{where} lies in the weights at offset {offset}, but there are no weights")
    elif offset < 0 or size < 0 or size > pool.size - offset:
        raise InvalidGraphDef(
            f"{where} takes the bytes {offset} to {offset + size} of the weights, which have {pool.size}"
        )
    else:
        data = pool[offset : offset + size]
    desc = read_desc(stored.desc, where)
    try:
        tensor = Tensor.of(array_of(data, desc.data_type, desc.shape))
    except ValueError as fault:
        raise InvalidGraphDef(f"{where}: {fault}") from None
    tensor.desc = desc
    placement = desc.attrs.pop("placement", Placement.PLACEMENT_HOST)
    tensor.placement = Placement.PLACEMENT_DEVICE if placement == 1 else Placement.PLACEMENT_HOST
    return tensor
