"""Random numbers. They have TensorFlow's distributions, not its sequences."""

from __future__ import annotations

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

_SEEDED = {"dtype": DataType, "seed": 0, "seed2": 0}

maps_rows(
    {
        "RandomStandardNormal": Row("RandomStandardNormal", **_SEEDED),
        "RandomUniform": Row("RandomUniform", **_SEEDED),
        "RandomUniformInt": Row("RandomUniformInt", seed=0, seed2=0),
        "TruncatedNormal": Row("TruncatedNormal", **_SEEDED),
    }
)


@maps("Multinomial", inputs=2)
def multinomial(n: NodeBuilder) -> Mapped:
    """Before: Multinomial with output_dtype. After: Multinomial with dtype."""
    dtype = n.attr("output_dtype", DataType.DT_INT64)
    return n.add("Multinomial", *n.inputs, dtype=dtype, seed=n.attr("seed", 0), seed2=n.attr("seed2", 0))
