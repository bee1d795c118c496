"""Where values come from, and nodes that hand them on as they are."""

from __future__ import annotations

from ge.graph import DataType
from ge.graph.types import data_type_of
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import maps
from parsers.tensorflow.node_builder import NodeBuilder


@maps("Placeholder", "PlaceholderV2", inputs=0)
def placeholder(n: NodeBuilder) -> Mapped:
    """Before: Placeholder. After: Data, which is there before any node."""
    raise n.fail("only a graph itself can have inputs")


@maps("Const", "HostConst", inputs=0)
def constant(n: NodeBuilder) -> Mapped:
    """Before: Const. After: Const."""
    array = n.tensor("value")
    declared = n.attr("dtype", DataType)
    if data_type_of(array.dtype) is not declared:
        raise n.fail(f"attribute dtype is {declared.name}, but the tensor holds {array.dtype}")
    return n.const("", array)


@maps(
    *("Identity", "StopGradient", "PreventGradient", "Snapshot", "GuaranteeConst", "PlaceholderWithDefault"),
    *("CheckNumerics", "CheckNumericsV2", "EnsureShape", "RefIdentity", "DeepCopy"),
    inputs=1,
)
def identity(n: NodeBuilder) -> Mapped:
    """Before: a node that changes nothing at inference. After: Identity."""
    return n.add("Identity", n.need(0))


@maps("Print", inputs=(1, None))
def printed(n: NodeBuilder) -> Mapped:
    """Before: Print(x, texts). After: Identity(x); nothing is printed."""
    return n.add("Identity", n.need(0))


@maps("IdentityN", inputs=(1, None))
def identities(n: NodeBuilder) -> Mapped:
    """Before: IdentityN. After: IdentityN."""
    return n.add("IdentityN", *n.inputs, n_outputs=len(n.inputs))


@maps("NoOp", "ControlTrigger", inputs=0)
def nothing(n: NodeBuilder) -> Mapped:
    """Before: NoOp. After: NoOp, which others can wait for."""
    n.add("NoOp")
    return []
