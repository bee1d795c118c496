"""The switches of stage dumps, as the environment gives them.

DUMP_GE_GRAPH is the detail (1 everything, 2 without weights, 3 links only; anything else: no dumps), DUMP_GRAPH_LEVEL
the stages, DUMP_GRAPH_FORMAT the files, NPU_COLLECT_PATH, ASCEND_DUMP_PATH, DUMP_GRAPH_PATH and ASCEND_WORK_PATH, in
this order, the folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from ge.options import Environment

ALL_FORMATS = ("ge_proto", "onnx", "readable")
DEFAULT_FORMATS = ("ge_proto", "onnx")

_HIDDEN = ("partition", "OptimizeSubGraph", "Aicpu", "sub_graph")
_WHITELIST = frozenset(
    {
        "PreRunBegin",
        "PreRunAfterNormalizeGraph",
        "AfterInfershape",
        "PreRunAfterPrepare",
        "PreRunAfterOptimizeOriginalGraph",
        "PreRunAfterOptimizeAfterStage1",
        "PreRunAfterOptimizeSubgraph",
        "PreRunAfterOptimizeGraphBeforeBuild",
        "Build",
        "ComputeGraphBeforeLowering",
        "ExeGraphBeforeOptimize",
        "ExecuteGraphAfterSplit",
    }
)
_WHITELIST_PARTS = ("AutoFuseBeforeOptimize", "AutoFuseAfterOptimize", "RunCustomPass")


class Detail(IntEnum):
    """How much of a graph a dump holds."""

    FULL = 1
    WITHOUT_WEIGHTS = 2
    LINKS_ONLY = 3


@dataclass(frozen=True)
class DumpSettings:
    """What to dump and where. ``folder`` is relative to the working directory unless absolute."""

    detail: Detail
    level: str
    formats: tuple[str, ...]
    folder: Path

    def wants(self, stage: str) -> bool:
        """Tell whether the filter lets ``stage`` through."""
        if not stage or stage.isdecimal():
            return False
        if self.level == "3":
            return stage == "Build"
        if self.level == "4":
            return stage == "PreRunBegin"
        if self.level in ("1", "2"):
            if any(part in stage for part in _HIDDEN):
                return False
            listed = stage in _WHITELIST or any(part in stage for part in _WHITELIST_PARTS)
            return self.level == "1" or listed
        if self.level.isdecimal():
            return False
        return any(part in stage for part in self.level.split("|") if part)


def read_settings(environment: Environment, pid: int, device: int = 0) -> DumpSettings | None:
    """Return the settings, ``None`` when dumps are off."""
    text = environment.dump_ge_graph.strip()
    if not (text.isascii() and text.isdecimal()) or text.lstrip("0") not in ("1", "2", "3"):
        return None
    level = environment.dump_graph_level.strip()
    return DumpSettings(
        detail=Detail(int(text)),
        level=(level.lstrip("0") if level.isdecimal() else level) if level else "2",
        formats=_formats(environment.dump_graph_format),
        folder=dump_folder(environment, pid, device),
    )


def faults_of(environment: Environment) -> list[str]:
    """Return what is wrong with the settings: values that mean no dumps without saying so."""
    text, level = environment.dump_ge_graph.strip(), environment.dump_graph_level.strip()
    if text and not _is_whole(text):
        return [f"no graph is dumped: DUMP_GE_GRAPH is {text!r}, not 1 (everything), 2 (no weights) or 3 (links)"]
    if read_settings(environment, 0) is None:
        is_off = not text or int(text) <= 0
        return [] if is_off else [f"no graph is dumped: DUMP_GE_GRAPH is {text}, not 1, 2 or 3"]
    parts = [part.strip() for part in level.split("|")]
    if level and (not any(parts) or (_is_whole(level) and level.lstrip("0") not in ("1", "2", "3", "4"))):
        return [f"no graph is dumped: DUMP_GRAPH_LEVEL is {level!r}, neither 1 to 4 nor parts of names of stages"]
    return []


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 20


def _formats(text: str) -> tuple[str, ...]:
    parts = [part.strip().lower() for part in text.split("|")]
    if not any(parts):
        return DEFAULT_FORMATS
    return tuple(name for name in ALL_FORMATS if any(name in part for part in parts))


def dump_folder(environment: Environment, pid: int, device: int = 0) -> Path:
    """Return the folder of dumps, relative to the working directory unless absolute."""
    if environment.npu_collect_path:
        return Path(environment.npu_collect_path) / "extra-info" / "graph" / f"{pid}_{device}"
    for base in (environment.dump_path, environment.dump_graph_path):
        if base:
            return Path(base) / f"pid_{pid}_deviceid_{device}"
    return Path(environment.work_path) if environment.work_path else Path()
