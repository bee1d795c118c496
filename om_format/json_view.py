"""A model as JSON, for reading: the ``ModelDef`` message under its field names, without memory places and raw data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ge.graph import Graph
from ge.proto.graph_def import model_def
from om_format.reader import open_model

DROPPED = frozenset(
    {
        "bt",
        "data",
        "data_offset",
        "memory_size",
        "output",
        "quantize_factor",
        "size",
        "weight_size",
        "workspace",
        "workspace_bytes",
    }
)
"""Fields left out at any depth."""


def model_json(path: str | Path) -> str:
    """Return the JSON text of the model in ``path``. Raises E10041 for a file that is no model."""
    return message_json(open_model(path).model_def())


def graph_json(graph: Graph) -> str:
    """Return the JSON text of a graph that has not been compiled."""
    # An offset for every constant keeps its bytes, which are not shown, out of the message.
    return message_json(model_def(graph, place=lambda tensor: 0))


def message_json(message: Message) -> str:
    """Return a message as JSON: fields that are set, enums by name, maps as lists of ``{"key", "value"}``."""
    return json.dumps(_plain(message), indent=4, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(message: Message) -> dict[str, Any]:
    """Nesting is bounded by the message parser."""
    return {field.name: _field(field, value) for field, value in message.ListFields() if field.name not in DROPPED}


def _field(field: FieldDescriptor, value: Any) -> Any:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        entry = kind.fields_by_name["value"]
        return [{"key": key, "value": _scalar(entry, value[key])} for key in sorted(value)]
    if field.is_repeated:
        return [_scalar(field, item) for item in value]
    return _scalar(field, value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        # the shortest text that gives the same 32 bits; JSON has no words for what is not finite
        return float(str(np.float32(value))) if math.isfinite(value) else str(value)
    return value
