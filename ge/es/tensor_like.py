"""What stands for a tensor: holders, numbers, nested lists of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

from ge.es.tensor_holder import TensorHolder

if TYPE_CHECKING:
    from ge.es.graph_builder import GraphBuilder

TensorLike: TypeAlias = Union[int, float, "list[Any]"]
"""An int becomes an int64 scalar, a float a float scalar, nested lists a constant: float if any element is a float,
int64 otherwise."""


def convert_to_tensor_holder(
    value: TensorHolder | TensorLike | None, owner_builder: GraphBuilder
) -> TensorHolder | None:
    """Return a holder for ``value``: itself, a new constant of ``owner_builder``, or ``None`` for an absent input.

    Raises ``TypeError`` for anything else, ``ValueError`` for ragged lists.
    """
    if value is None or isinstance(value, TensorHolder):
        return value
    if isinstance(value, int):
        return owner_builder.create_scalar_int64(value)
    if isinstance(value, float):
        return owner_builder.create_scalar_float(value)
    if not isinstance(value, list):
        raise TypeError(f"a tensor is a TensorHolder, a number or nested lists of numbers, not {type(value).__name__}")
    elements: list[int | float] = []
    shape = _flatten(value, elements)
    if any(isinstance(v, float) for v in elements):
        return owner_builder.create_const_float(list(elements), shape)
    return owner_builder.create_const_int64([int(v) for v in elements], shape)


def _flatten(value: Any, elements: list[int | float]) -> list[int]:
    """Append the numbers of nested lists to ``elements`` and return the lists' shape."""
    if isinstance(value, int | float):
        elements.append(value)
        return []
    if not isinstance(value, list):
        raise TypeError(f"nested lists hold numbers, not {type(value).__name__}")
    if not value:
        return [0]
    shapes = [_flatten(item, elements) for item in value]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("nested lists are ragged: lists of one level must have equal lengths")
    return [len(value), *shapes[0]]


def resolve_builder(*values: object) -> GraphBuilder:
    """Return the builder of the first holder, or the first builder, among ``values`` (lists are looked into).

    Raises ``ValueError`` when there is none, or when holders belong to different builders.
    """
    from ge.es.graph_builder import GraphBuilder  # it imports this module

    found: GraphBuilder | None = None
    for value in values:
        for item in value if isinstance(value, list | tuple) else [value]:
            builder = item if isinstance(item, GraphBuilder) else None
            if isinstance(item, TensorHolder):
                builder = item.get_owner_builder()
            if builder is not None and found is not None and builder is not found:
                raise ValueError(f"tensors of two builders, {found.name} and {builder.name}, cannot be put together")
            found = builder if found is None else found
    if found is None:
        raise ValueError("no builder is known: one input must be a TensorHolder, or a GraphBuilder must be given")
    return found
