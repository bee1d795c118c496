"""By which ONNX operators the operator of a user goes: what ``onnx=`` of a declaration says.

    onnx="acme.math::ScaledAdd"                               an operator of the domain acme.math
    onnx=("acme.math::ScaledAdd", "ai.onnx::ScaledAdd")       the same, or one of ONNX's own domain
    onnx={"acme.math::ScaledAdd": {"scale": "alpha"}}         its attribute scale is our attribute alpha
    onnx={"acme.math::ScaledAdd": scaled_add_from_onnx}       a function of the node adds what stands for it

Attributes that are not renamed keep their names; inputs and outputs keep their places. The function gets what the
mapping functions of ``parsers/onnx`` get (``n.input(0)``, ``n.attr("scale", 1.0)``, ``n.add("ScaledAdd", ...)``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_DOMAIN = "ai.onnx"


@dataclass(frozen=True)
class OnnxForm:
    """One ONNX operator. ``domain`` is empty for ONNX's own; ``attributes`` maps ONNX's names to ours."""

    domain: str
    type: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    function: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.domain or DEFAULT_DOMAIN}::{self.type}"


def onnx_forms(given: object) -> tuple[OnnxForm, ...]:
    """Read ``onnx=``. Raises ``ValueError`` and ``TypeError`` for what it cannot be."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(_form(name, how) for name, how in given.items())
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        raise TypeError(f"onnx must be a text, a list of texts or a mapping, not {type(given).__name__}")
    return tuple(_form(name, {}) for name in names)


def _form(name: object, how: object) -> OnnxForm:
    if not isinstance(name, str):
        raise TypeError(f"onnx must name operators, such as 'my.domain::MyOperator', not {name!r}")
    domain, separator, type_ = name.rpartition("::")
    if not type_.isidentifier() or (separator and not domain) or "::" in domain:
        raise ValueError(
            f"onnx names operators as 'domain::Operator' (any version of the domain) or 'Operator', not {name!r}"
        )
    own = "" if domain == DEFAULT_DOMAIN else domain
    if callable(how):
        return OnnxForm(own, type_, function=how)
    if not isinstance(how, Mapping) or not all(isinstance(part, str) for pair in how.items() for part in pair):
        raise TypeError(f"{name} must have a mapping of attribute names, or a function, not {how!r}")
    return OnnxForm(own, type_, dict(how))
