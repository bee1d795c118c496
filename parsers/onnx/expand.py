"""Repeating elements."""

from __future__ import annotations

from parsers.onnx.mapping import maps_rows

maps_rows(
    {
        "Expand": "Expand",
        "Tile": "Tile",
    }
)
