"""Values of attributes: what the pass API may set, and what an operator's signature lets an attribute hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ge.error import GeError
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import TensorDesc
from ge.graph.types import DataType

if TYPE_CHECKING:
    from ge.ops.signature import AttrSpec

_KIND_NAMES = {
    "i": "an int",
    "f": "a float",
    "b": "a bool",
    "s": "a str",
    "t": "a DataType",
    "I": "a list of int",
    "F": "a list of float",
    "B": "a list of bool",
    "S": "a list of str",
    "II": "a list of lists of int",
    "tensor": "a Tensor",
}


def checked_key(key: object, what: str = "attribute name") -> str:
    """Return ``key``. Raises ``TypeError`` unless it is a string, ``ValueError`` if no file can hold it."""
    if not isinstance(key, str):
        raise TypeError(f"{what} must be a str, not {type(key).__name__}")
    return _text(key, what)


def _text(value: str, what: str = "text") -> str:
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise ValueError(f"{what} {_described(value)} holds half a character: {fault.reason}") from None
    return value


def settable(value: object) -> Any:
    """Return ``value`` as it is stored: a scalar or a list of equal elements, copied.

    Legal are str, bool, int, float, DataType, Tensor, and lists of str, bool, int or float. Raises ``ValueError`` for
    an empty list, whose element type nobody knows, and ``TypeError`` for everything else.

    GE quirk, custom_passes.md 1.5: a list of DataType is stored as a list of ints.
    """
    if isinstance(value, list):
        return _settable_list(value)
    if isinstance(value, Tensor):
        return value.view()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool | DataType):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return _whole(value)
    raise TypeError(
        "an attribute holds str, bool, int, float, DataType, Tensor, or a list of str, bool, int or float, "
        f"not {type(value).__name__}"
    )


def _settable_list(values: list[Any]) -> list[Any]:
    if not values:
        raise ValueError("an attribute cannot be set to an empty list: its element type is not known")
    if all(isinstance(v, float) for v in values):
        return [float(v) for v in values]
    if all(isinstance(v, bool) for v in values):
        return list(values)
    if all(isinstance(v, int) for v in values):
        return [_whole(v) for v in values]
    if all(isinstance(v, str) for v in values):
        return [_text(v) for v in values]
    found = ", ".join(sorted({type(v).__name__ for v in values}))
    raise TypeError(f"a list attribute holds only str, only bool, only int or only float, not {found}")


def _whole(value: int) -> int:
    if not _fits(value):
        raise ValueError(f"{value} does not fit into 64 bits")
    return int(value)


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def conform(spec: AttrSpec, value: Any, owner: str) -> Any:
    """Return ``value`` in the kind that the operator's signature declares. ``owner`` names the operator in errors.

    An int becomes a float where a float is declared, a DataType and its number become each other, a tuple becomes a
    list, an empty list is legal. Raises ``TypeError`` for a value of another kind.
    """
    element = spec.kind[0] if spec.kind != "tensor" else "tensor"
    depth = {"I": 1, "F": 1, "B": 1, "S": 1, "II": 2}.get(spec.kind, 0)
    converted = _converted(element.lower(), depth, value)
    if converted is None:
        raise TypeError(
            f"attribute {spec.name} of {owner} must be {_KIND_NAMES[spec.kind]}, "
            f"not {_described(value)} of type {type(value).__name__}"
        )
    return converted


def _converted(kind: str, depth: int, value: Any) -> Any:
    """Return the converted value; ``None`` when it has another kind."""
    if depth:
        if not isinstance(value, list | tuple):
            return None
        items = [_converted(kind, depth - 1, v) for v in value]
        return None if any(item is None for item in items) else items
    if kind == "i":
        return int(value) if isinstance(value, int) and _fits(value) else None
    if kind == "f":
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind == "b":
        return bool(value) if isinstance(value, bool) or (type(value) is int and value in (0, 1)) else None
    if kind == "s":
        return value if isinstance(value, str) else None
    if kind == "t":
        known = isinstance(value, int) and not isinstance(value, bool) and value in _DATA_TYPES
        return DataType(value) if known else None
    return value.view() if isinstance(value, Tensor) else None


_DATA_TYPES = frozenset(int(t) for t in DataType)


def _described(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def shown(value: Any) -> Any:
    """Return a copy of a stored value: changing it leaves the graph alone."""
    if isinstance(value, list):
        return [shown(v) for v in value]
    if isinstance(value, Tensor):
        return value.view()
    return value.copy() if isinstance(value, TensorDesc) else value


def found(attrs: dict[str, Any], key: str, owner: str) -> Any:
    """Return a copy of ``attrs[key]``. Raises ``RuntimeError`` that names ``owner`` when there is none."""
    value = attrs.get(checked_key(key))
    if value is None:
        raise GeError(f"{owner} has no attribute {key}")
    return shown(value)
