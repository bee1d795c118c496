"""Nodes for which an operator of the user stands: one of the same name, to which their attributes are copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ge.graph import DataType, Tensor
from ge.graph.attributes import conform
from ge.ops import OpDef, current_operators
from ge.ops.signature import Arity, AttrSpec
from parsers.ge_nodes import Mapped

if TYPE_CHECKING:
    from parsers.tensorflow.node_builder import NodeBuilder

_KINDS: dict[str, type] = {"i": int, "f": float, "b": bool, "s": str, "t": DataType}
_COUNTS = ("N", "num", "num_split", "num_outputs")
_TYPE_LISTS = ("Tout", "T", "output_types")
"""Attributes that say how many outputs a node has, as numbers and as lists of types."""


def custom_operator(op: str) -> OpDef | None:
    """Return the operator of the user for nodes of a type; ``None`` when there is none."""
    return current_operators().find(op)


def map_custom(n: NodeBuilder) -> Mapped:
    """Before: a node. After: the operator of the same name."""
    definition = current_operators().find(n.op_type)
    assert definition is not None
    values: dict[str, Any] = {}
    for name, spec in definition.signature.attrs.items():
        if n.has_attr(name):
            values[name] = _value(n, name, spec)
        elif spec.is_required:
            raise n.fail(f"attribute {name} is missing")
    return n.add(n.op_type, *n.inputs, n_outputs=_n_outputs(n, definition), **values)


def _value(n: NodeBuilder, name: str, spec: AttrSpec) -> Any:
    if spec.kind == "tensor":
        return Tensor.of(n.tensor(name))
    try:
        return conform(spec, n.attr(name, _KINDS.get(spec.kind, list)), n.op_type)
    except TypeError as fault:
        raise n.fail(str(fault)) from fault


def _n_outputs(n: NodeBuilder, definition: OpDef) -> int:
    """Return how many outputs there are; where the operator leaves it open, the attributes say it."""
    outputs = definition.signature.outputs
    fixed = sum(port.arity is not Arity.DYNAMIC for port in outputs)
    if not definition.signature.has_dynamic_output:
        return fixed
    for name in _COUNTS:
        if n.has_attr(name):
            return fixed + max(0, min(n.attr(name, int), 1 << 16))
    for name in _TYPE_LISTS:
        if n.has_attr(name) and n.node.attributes[name].WhichOneof("value") == "list":
            return fixed + len(n.attr(name, list))
    return fixed + 1
