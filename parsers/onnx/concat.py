"""Joining tensors and splitting them."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("Concat")
def concat(n: NodeBuilder) -> Mapped:
    """Before: Concat. After: ConcatD; Identity for one input."""
    if len(n.inputs) == 1:
        return n.add("Identity", *n.inputs)
    return n.add("ConcatD", *n.inputs, concat_dim=n.attr("axis"), N=len(n.inputs))


@maps("Split")
def split(n: NodeBuilder) -> Mapped:
    """Before: Split. After: Const(split_dim) -> Split into equal parts, or SplitV with sizes as Const or input."""
    count = len(n.outputs)
    wanted = n.attr("num_outputs", count)
    if wanted != count:
        raise n.fail(f"attribute num_outputs is {wanted}, but the node has {count} outputs")
    axis = n.index("Const", n.attr("axis"))
    sizes = n.input(1)
    given = n.attr("split")
    if sizes is None and given is not None:
        sizes = n.const("Sizes", np.asarray(given, np.int64))
    if sizes is None:
        extra: dict[str, Any] = {"_x_num_outputs": count} if n.has_attr("num_outputs") else {}
        return n.add("Split", axis, n.need(0), n_outputs=count, num_split=count, **extra)
    return n.add("SplitV", n.need(0), sizes, axis, n_outputs=count, num_split=count)
