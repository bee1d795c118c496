"""The table from ONNX operators to GE nodes.

An operator that has a GE counterpart is a row of its family's table (``"Softplus": "Softplus"``, or with renamed
attributes ``"Elu": Row("Elu", alpha="alpha")``). Any other is a small function over a :class:`NodeBuilder`:

    @maps("Flatten")
    def flatten(n: NodeBuilder) -> Mapped:
        return n.add("Flatten", n.input(0), axis=n.attr("axis"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ge.ops import lookup
from parsers.ge_nodes import Mapped
from parsers.onnx.custom import custom_mapping

if TYPE_CHECKING:
    from parsers.onnx.node_builder import NodeBuilder

MapFunction = Callable[["NodeBuilder"], Mapped | None]
"""``None`` as a result: there is no direct form, take the smaller operators by which ONNX defines the operator."""


class Row:
    """A one-to-one mapping. Keywords: ONNX attribute = GE attribute; schema defaults are written out."""

    def __init__(self, type: str, /, **attributes: str) -> None:
        self.type = type
        self.attributes = attributes

    def __call__(self, n: NodeBuilder) -> Mapped:
        """Add the node."""
        values = {ge_name: n.attr(onnx_name) for onnx_name, ge_name in self.attributes.items()}
        return n.add(self.type, *n.inputs, **{name: v for name, v in values.items() if v is not None})


_MAPPINGS: dict[tuple[str, str], MapFunction] = {}


def maps(*op_types: str, domain: str = "") -> Callable[[MapFunction], MapFunction]:
    """Register a function for ONNX operators. A second registration is a programming error."""

    def decorate(function: MapFunction) -> MapFunction:
        for op_type in op_types:
            if (domain, op_type) in _MAPPINGS:
                raise ValueError(f"{op_type} of domain [{domain}] is mapped twice")
            _MAPPINGS[domain, op_type] = function
        return function

    return decorate


def maps_rows(rows: Mapping[str, str | Row], domain: str = "") -> None:
    """Register a table of one-to-one operators."""
    for op_type, row in rows.items():
        maps(op_type, domain=domain)(Row(row) if isinstance(row, str) else row)


def find_mapping(domain: str, op_type: str) -> MapFunction | None:
    """Return the mapping of an operator; ``None`` when there is none or its GE operator is not defined.

    Operators of users come last: they add to what there is.
    """
    if (domain, op_type) in _MAPPINGS:
        return built_in_mapping(domain, op_type)
    return custom_mapping(domain, op_type)


def built_in_mapping(domain: str, op_type: str) -> MapFunction | None:
    """Like ``find_mapping``, without operators of users."""
    found = _MAPPINGS.get((domain, op_type))
    return None if isinstance(found, Row) and lookup(found.type) is None else found


def mapped_operators() -> list[tuple[str, str]]:
    """Return all mapped (domain, type), sorted."""
    return sorted(_MAPPINGS)
