"""Writes stage dumps: decides by stage name, numbers the files, chooses the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ge.dump.settings import ALL_FORMATS, DumpSettings, read_settings
from ge.graph import Graph
from ge.options import Environment
from ge.plan import Plan

_FORBIDDEN = re.compile(r'[/\\:*?"<>|\0]')
_LONGEST_NAME = 255
_FILES = {"ge_proto": ("ge_proto", ".txt"), "onnx": ("ge_onnx", ".pbtxt"), "readable": ("ge_readable", ".txt")}


class GraphDumper:
    """Dumps of one session: one counter per format, counting what is written.

    A folder that cannot be made or written is replaced by the working directory, as GE does. After a file that cannot
    be written no further ones are tried. ``warnings`` says so, each fault once.
    """

    def __init__(self, settings: DumpSettings, options: Mapping[str, str]) -> None:
        self._settings = settings
        self._options = options
        self._folder: Path | None = None
        self._has_failed = False
        self._written = dict.fromkeys(_FILES, 0)
        self.warnings: list[str] = []
        if not settings.formats:
            known = ", ".join(ALL_FORMATS)
            self.warnings.append(f"no graph is dumped: DUMP_GRAPH_FORMAT names none of the formats {known}")

    def dump(self, graph: Graph, stage: str, plan: Plan | None = None, graph_id: int = 0) -> None:
        """Write the files of ``stage`` if the filter wants them."""
        if self._has_failed or not self._settings.wants(stage):
            return
        for kind, text in self._texts(graph, plan):
            stem, suffix = _FILES[kind]
            number = self._written[kind]
            self._written[kind] = number + 1
            self._write(file_name(f"{stem}_{number:08d}_graph_{graph_id}_{stage}", suffix), text)

    def _texts(self, graph: Graph, plan: Plan | None) -> Iterator[tuple[str, str]]:
        # late imports: without dumps nothing of this is paid for
        formats, detail = self._settings.formats, self._settings.detail
        if "ge_proto" in formats or "onnx" in formats:
            from ge.dump.proto_text import model_message, proto_text

            message = model_message(graph, detail, plan)
            if "onnx" in formats:
                from ge.dump.onnx_text import onnx_text

                yield "onnx", onnx_text(message, detail)
            if "ge_proto" in formats:
                yield "ge_proto", proto_text(message, detail, self._options)
        if "readable" in formats:
            from ge.dump.readable import readable_text

            yield "readable", readable_text(graph)

    def _write(self, name: str, text: str) -> None:
        if self._has_failed:
            return
        if self._folder is None:
            self._folder = self._make_folder()
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                os.fchmod(descriptor, 0o600)  # the file may be an older one
                file.write(text)
        except OSError as fault:
            self._has_failed = True
            self.warnings.append(
                f"the graph dump {path} could not be written ({fault.strerror}); no further ones are tried"
            )

    def _make_folder(self) -> Path:
        folder = self._settings.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            reason = fault.strerror
        else:
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
            reason = "it may not be written"
        self.warnings.append(f"graph dumps go to the working directory: {folder} cannot be used ({reason})")
        return Path()


def file_name(stem: str, suffix: str) -> str:
    """Return ``stem`` without characters that file names cannot have, cut so that ``suffix`` fits behind it."""
    clean = _FORBIDDEN.sub("_", stem).encode(errors="replace")
    return clean[: _LONGEST_NAME - len(suffix)].decode(errors="ignore") + suffix


def dumper_for(environment: Environment, options: Mapping[str, str]) -> GraphDumper | None:
    """Return a dumper, ``None`` when DUMP_GE_GRAPH does not ask for dumps."""
    settings = read_settings(environment, os.getpid())
    return None if settings is None else GraphDumper(settings, options)
