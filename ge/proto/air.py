"""Graphs as files of their own: one serialised ``ModelDef`` with all constants inside."""

from __future__ import annotations

import stat
from pathlib import Path

from google.protobuf.message import DecodeError

from ge.atomic_file import write_atomically
from ge.error import GeError
from ge.errors import ReportedError
from ge.graph.graph import Graph
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import InvalidGraphDef
from ge.proto.graph_def import graph_of, model_def

MAX_BYTES = (1 << 31) - 1
"""protobuf's limit for one message."""


def write_air(graph: Graph, path: str) -> None:
    """Write ``graph`` and its bodies. Raises ``RuntimeError`` when that cannot be done; then no file is left behind."""
    try:
        message = model_def(graph)
        if message.ByteSize() > MAX_BYTES:
            raise GeError(f"graph {graph.name} takes more than {MAX_BYTES} bytes, the most that one file can hold")
        write_atomically(path, message.SerializeToString(deterministic=True))
    except (TypeError, ValueError, ReportedError) as fault:
        raise GeError(f"graph {graph.name} cannot be saved: {fault}") from None


def read_air(path: str) -> Graph:
    """Return the graph of a file. Raises ``RuntimeError`` for a file that cannot be read or holds no legal graph."""
    try:
        status = Path(path).stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise GeError(f"file {path} cannot be read: it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise GeError(f"file {path} has {status.st_size} bytes, a graph takes at most {MAX_BYTES}")
        return graph_of(pb.ModelDef.FromString(Path(path).read_bytes()))
    except OSError as fault:
        raise GeError(f"file {path} cannot be read: {fault.strerror}") from None
    except (DecodeError, InvalidGraphDef) as fault:
        raise GeError(f"file {path} holds no graph: {fault}") from None
