"""Tensors from nothing but numbers: constants, filled tensors, ranges, diagonals."""

from __future__ import annotations

import numpy as np

from parsers.onnx.mapping import Mapped, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows({"Range": "Range"})

_SCALARS_AND_VECTORS = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


@maps("Constant")
def constant(n: NodeBuilder) -> Mapped:
    """Before: Constant in any of its forms. After: Const."""
    forms = ["value", "sparse_value", *_SCALARS_AND_VECTORS, "value_string", "value_strings"]
    given = [name for name in forms if n.has_attr(name)]
    if len(given) != 1:
        raise n.fail(f"exactly one of its value attributes must be given, not {given}")
    name = given[0]
    value = n.attr(name)
    if name.startswith("value_string"):
        texts = value if isinstance(value, list) else [value]
        array = np.empty(len(texts), np.object_)
        array[:] = [text.encode() for text in texts]
        return n.const("", array if name == "value_strings" else array.reshape(()))
    return n.const("", np.asarray(value, _SCALARS_AND_VECTORS.get(name)))


@maps("ConstantOfShape")
def constant_of_shape(n: NodeBuilder) -> Mapped:
    """Before: ConstantOfShape(shape, value). After: Const(value) -> Fill(shape, value)."""
    value = n.attr("value")
    if value is None:
        value = np.zeros(1, np.float32)
    if value.size != 1:
        raise n.fail(f"attribute value has {value.size} elements, but must have one")
    return n.add("Fill", n.need(0), n.const("Const", value.reshape(())))
