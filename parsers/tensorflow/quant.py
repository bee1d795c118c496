"""Quantisation that is only pretended, as training aware of it leaves it behind."""

from __future__ import annotations

from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

_OPTIONS = {"num_bits": 8, "narrow_range": False}

maps_rows(
    {
        "FakeQuantWithMinMaxVars": Row("FakeQuantWithMinMaxVars", **_OPTIONS),
        "FakeQuantWithMinMaxVarsPerChannel": Row("FakeQuantWithMinMaxVarsPerChannel", **_OPTIONS),
    }
)


@maps("FakeQuantWithMinMaxArgs", inputs=1)
def fake_quant_by_attributes(n: NodeBuilder) -> Mapped:
    """Before: FakeQuantWithMinMaxArgs. After: FakeQuantWithMinMaxVars with constant limits."""
    limits = [n.scalar(role, n.attr(name, default), n.dtype(n.need(0))) for role, name, default in _LIMITS]
    options = {name: n.attr(name, default) for name, default in _OPTIONS.items()}
    return n.add("FakeQuantWithMinMaxVars", n.need(0), *limits, **options)


_LIMITS = (("Min", "min", -6.0), ("Max", "max", 6.0))
