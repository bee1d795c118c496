"""Losses."""

from __future__ import annotations

from parsers.tensorflow.mapping import maps_rows

maps_rows(
    {
        "L2Loss": "L2Loss",
        "SoftmaxCrossEntropyWithLogits": "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits": "SparseSoftmaxCrossEntropyWithLogits",
    }
)
