"""The table from TensorFlow's operators to GE nodes.

An operator that has a GE counterpart is a row of its family's table: ``"Softplus": "Softplus"``, or with the attributes
that are copied and their defaults, renamed where GE calls them otherwise:

    "LeakyRelu": Row("LeakyRelu", {"alpha": "negative_slope"}, alpha=0.2)

Any other is a small function over a :class:`NodeBuilder`:

    @maps("LogicalXor", inputs=2)
    def exclusive_or(n: NodeBuilder) -> Mapped:
        return n.add("NotEqual", *n.inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ge.ops import lookup
from parsers.ge_nodes import Mapped
from parsers.tensorflow.custom import custom_operator, map_custom

if TYPE_CHECKING:
    from parsers.tensorflow.node_builder import NodeBuilder

MapFunction = Callable[["NodeBuilder"], Mapped]
Arity = int | tuple[int, int | None]
"""How many data inputs a node has: exactly so many, or from .. to (``None``: any number)."""


@dataclass(frozen=True)
class Entry:
    """How one operator is mapped; ``least`` and ``most`` are how many data inputs it takes."""

    function: MapFunction
    least: int
    most: int | None


class Row:
    """A one-to-one mapping. ``renamed`` gives GE's names of attributes, the keywords TensorFlow's with their defaults.

    A default is never ``None``; its type is that of the attribute.
    """

    def __init__(self, type: str, renamed: Mapping[str, str] | None = None, /, **defaults: Any) -> None:
        self.type = type
        self.renamed = {} if renamed is None else renamed
        self.defaults = defaults

    def __call__(self, n: NodeBuilder) -> Mapped:
        """Add the node."""
        values = {self.renamed.get(name, name): n.attr(name, default) for name, default in self.defaults.items()}
        return n.add(self.type, *n.inputs, **values)

    def arity(self) -> Arity:
        """Return how many inputs the GE operator takes."""
        definition = lookup(self.type)
        if definition is None:
            raise ValueError(f"there is no operator {self.type}")
        return definition.signature.min_inputs, definition.signature.max_inputs


_MAPPINGS: dict[str, Entry] = {}


def maps(*ops: str, inputs: Arity) -> Callable[[MapFunction], MapFunction]:
    """Register a function for operators. A second registration is a programming error."""
    least, most = (inputs, inputs) if isinstance(inputs, int) else inputs

    def decorate(function: MapFunction) -> MapFunction:
        for op in ops:
            if op in _MAPPINGS:
                raise ValueError(f"{op} is mapped twice")
            _MAPPINGS[op] = Entry(function, least, most)
        return function

    return decorate


def maps_rows(rows: Mapping[str, str | Row]) -> None:
    """Register a table of one-to-one operators."""
    for op, given in rows.items():
        row = Row(given) if isinstance(given, str) else given
        maps(op, inputs=row.arity())(row)


def find_mapping(op: str) -> Entry | None:
    """Return how an operator is mapped; ``None`` when it is not. Operators of users add to what there is."""
    found = _MAPPINGS.get(op)
    if found is not None:
        return found
    custom = custom_operator(op)
    return None if custom is None else Entry(map_custom, custom.signature.min_inputs, custom.signature.max_inputs)


def mapped_operators() -> list[str]:
    """Return all mapped operators, sorted."""
    return sorted(_MAPPINGS)
