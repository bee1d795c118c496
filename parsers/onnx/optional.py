"""Optional types, as far as they are settled when the model is compiled: an optional that is there is its element."""

from __future__ import annotations

import numpy as np

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("Optional", "OptionalGetElement")
def element(n: NodeBuilder) -> Mapped:
    """Before: Optional(x), OptionalGetElement(x). After: Identity."""
    return n.add("Identity", n.need(0))


@maps("OptionalHasElement")
def has_element(n: NodeBuilder) -> Mapped:
    """Before: OptionalHasElement(x). After: Const, whether there is an input."""
    return n.const("", np.asarray(n.input(0) is not None))
