"""Operator definitions, one module per family. Importing the package registers them all."""

from ge.ops import boundary
from ge.ops.registry import (
    InferContext,
    OpDef,
    const_value,
    definition,
    infer_node,
    lookup,
    operator,
    register,
    registered_types,
)

FAMILIES = (boundary,)

__all__ = [
    "FAMILIES",
    "InferContext",
    "OpDef",
    "const_value",
    "definition",
    "infer_node",
    "lookup",
    "operator",
    "register",
    "registered_types",
]
