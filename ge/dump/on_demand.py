"""Graphs that a pass asks to see: as text, or as files beside the stage dumps."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ge.atomic_file import write_atomically
from ge.dump.dumper import file_name
from ge.dump.settings import Detail, dump_folder
from ge.error import GeError
from ge.errors import ReportedError
from ge.graph.graph import DumpFormat, Graph
from ge.options import Environment

_FILES = {
    DumpFormat.kOnnx: ("ge_onnx", ".pbtxt"),
    DumpFormat.kTxt: ("ge_proto", ".txt"),
    DumpFormat.kReadable: ("ge_readable", ".txt"),
}


def graph_text(graph: Graph, format: DumpFormat) -> str:
    """Return ``graph`` and its bodies in one of the forms of a stage dump, without the bytes of constants."""
    # late imports: each form needs a library that nobody else pays for
    if format is DumpFormat.kReadable:
        from ge.dump.readable import readable_text

        return readable_text(graph)
    from ge.dump.proto_text import model_message, proto_text

    message = model_message(graph, Detail.WITHOUT_WEIGHTS)
    if format is DumpFormat.kTxt:
        return proto_text(message, Detail.WITHOUT_WEIGHTS)
    from ge.dump.onnx_text import onnx_text

    return onnx_text(message, Detail.WITHOUT_WEIGHTS)


def write_graph_text(graph: Graph, format: DumpFormat, suffix: str) -> None:
    """Write :func:`graph_text` to ``ge_<form>_<number>_graph_0[_<suffix>]`` in the folder of stage dumps.

    The number, of five digits, is the first one that the folder has no file of this form for: nothing is overwritten.
    Raises ``RuntimeError`` when the file cannot be written.
    """
    stem, ending = _FILES[format]
    tail = f"_graph_0_{suffix}" if suffix else "_graph_0"
    try:
        folder = dump_folder(Environment.read(), os.getpid())
        number = _first_free(folder, stem)
        write_atomically(folder / file_name(f"{stem}_{number:05d}{tail}", ending), graph_text(graph, format))
    except OSError as fault:
        raise GeError(f"folder {folder} cannot be read: {fault.strerror}") from None
    except ReportedError as fault:
        raise GeError(f"graph {graph.name} cannot be written: {fault.message}") from None


def _first_free(folder: Path, stem: str) -> int:
    numbered = re.compile(rf"{stem}_(\d{{5}})_graph_")
    if not folder.exists():
        return 0
    matches = (numbered.match(entry.name) for entry in os.scandir(folder))
    taken = {int(match[1]) for match in matches if match is not None}
    return next(n for n in range(len(taken) + 1) if n not in taken)
