"""``fusion_result.json``: which fusions matched in a compile, and how often."""

from __future__ import annotations

import os
from pathlib import Path

from ge.atomic_file import write_atomically
from ge.errors import ReportedError
from ge.session import CompileSession

NAME = "fusion_result.json"


def result_path(work_path: str) -> Path:
    """Return where the file goes: the working directory, or a folder of this process below ``work_path``."""
    return Path(work_path) / "FE" / str(os.getpid()) / NAME if work_path else Path(NAME)


def write_fusion_result(session: CompileSession) -> None:
    """Write the counts of the compile. Without any there is no file, and an older one is emptied.

    A file that cannot be written is a warning: it is no part of the model.
    """
    path = result_path(session.environment.work_path)
    if not (session.fusion.graph_fusion or session.fusion.ub_fusion or path.exists()):
        return
    try:
        write_atomically(path, session.fusion.as_json())
    except ReportedError as fault:
        session.warn(f"{NAME} is not written: {fault.message}")
