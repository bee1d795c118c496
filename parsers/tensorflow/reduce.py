"""Reductions over axes that are an input. No axes reduce nothing."""

from __future__ import annotations

from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows(
    {
        "All": Row("ReduceAll", keep_dims=False),
        "Any": Row("ReduceAny", keep_dims=False),
        "Max": Row("ReduceMax", keep_dims=False),
        "Min": Row("ReduceMin", keep_dims=False),
        "Prod": Row("ReduceProd", keep_dims=False),
        "Sum": Row("ReduceSum", keep_dims=False),
    }
)


@maps("Mean", inputs=2)
def mean(n: NodeBuilder) -> Mapped:
    """Before: Mean. After: ReduceMean; GE writes out what no axes mean."""
    return n.add("ReduceMean", *n.inputs, keep_dims=n.attr("keep_dims", False), noop_with_empty_axes=True)


@maps("EuclideanNorm", inputs=2)
def euclidean_norm(n: NodeBuilder) -> Mapped:
    """Before: EuclideanNorm. After: Sqrt(ReduceSum(Square(x)))."""
    squares = n.add("Square", n.need(0), role="Square")
    return n.add("Sqrt", n.add("ReduceSum", squares, n.need(1), role="ReduceSum", keep_dims=n.attr("keep_dims", False)))
