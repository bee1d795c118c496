"""The example of docs/dumps.md does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Step:
    """A command of the example and the lines that it prints."""

    command: str
    output: list[str]


def steps() -> list[Step]:
    section = (ROOT / "docs" / "dumps.md").read_text(encoding="utf-8").partition("## Looking at the graph")[2]
    found: list[Step] = []
    for block in re.findall(r"(?:^(?: {4}.*)?\n)+", section, re.MULTILINE):
        lines = [line[4:] for line in block.strip("\n").splitlines()]
        while lines:
            line = lines.pop(0)
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1] + lines.pop(0).strip()
                found.append(Step(command, []))
            elif found:
                found[-1].output.append(line)
    return found


def without_count(line: str) -> str:
    """How many nodes stay the same depends on the passes, which are not what the example is about."""
    return re.sub(r"^(  same\s+)\d+$", r"\1N", line)


def test_the_example(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "atc"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m atc.command "$@"\n')
    command.chmod(0o755)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DUMP_", "ASCEND_", "NPU_"))
    }
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    assert len(steps()) == 4
    for step in steps():
        done = subprocess.run(
            ["bash", "-c", step.command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        assert done.returncode == (1 if " graph diff " in step.command else 0)
        while step.output and not step.output[-1]:
            step.output.pop()
        assert list(map(without_count, done.stdout.splitlines())) == list(map(without_count, step.output))
    assert "<html" in (tmp_path / "build" / "changes.html").read_text()
