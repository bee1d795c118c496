"""Writes stage dumps: decides by stage name, numbers the files, chooses the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ge.dump.settings import DumpSettings, read_settings
from ge.graph import Graph
from ge.options import Environment
from ge.plan import Plan

_FORBIDDEN = re.compile(r'[/\\:*?"<>|]')
_LONGEST_NAME = 255
_FILES = {"ge_proto": ("ge_proto", ".txt"), "onnx": ("ge_onnx", ".pbtxt"), "readable": ("ge_readable", ".txt")}


class GraphDumper:
    """Dumps of one session: one counter per format, counting what is written.

    A folder that cannot be made is replaced by the working directory, as GE does; ``warnings`` says so.
    """

    def __init__(self, settings: DumpSettings, options: Mapping[str, str]) -> None:
        self._settings = settings
        self._options = options
        self._folder: Path | None = None
        self._written = dict.fromkeys(_FILES, 0)
        self.warnings: list[str] = []

    def dump(self, graph: Graph, stage: str, plan: Plan | None = None, graph_id: int = 0) -> None:
        """Write the files of ``stage`` if the filter wants them."""
        if not self._settings.wants(stage):
            return
        for kind in self._settings.formats:
            text = self._text(kind, graph, plan)
            stem, suffix = _FILES[kind]
            number = self._written[kind]
            self._written[kind] = number + 1
            name = f"{stem}_{number:08d}_graph_{graph_id}_{_FORBIDDEN.sub('_', stage)}"
            self._write(name[: _LONGEST_NAME - len(suffix)] + suffix, text)

    def _text(self, kind: str, graph: Graph, plan: Plan | None) -> str:
        # late imports: without dumps nothing of this is paid for
        if kind == "readable":
            from ge.dump.readable import readable_text

            return readable_text(graph)
        from ge.dump.proto_text import model_message, proto_text

        if kind == "ge_proto":
            return proto_text(graph, self._settings.detail, plan, self._options)
        from ge.dump.onnx_text import onnx_text

        return onnx_text(model_message(graph, self._settings.detail, plan), self._settings.detail)

    def _write(self, name: str, text: str) -> None:
        if self._folder is None:
            self._folder = self._make_folder()
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as fault:
            self.warnings.append(f"the graph dump {path} could not be written: {fault.strerror}")

    def _make_folder(self) -> Path:
        folder = self._settings.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            self.warnings.append(f"graph dumps go to the working directory: {folder} cannot be made: {fault.strerror}")
            return Path()
        return folder


def dumper_for(environment: Environment, options: Mapping[str, str]) -> GraphDumper | None:
    """Return a dumper, ``None`` when DUMP_GE_GRAPH does not ask for dumps."""
    settings = read_settings(environment, os.getpid())
    return None if settings is None else GraphDumper(settings, options)
