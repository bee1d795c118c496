"""docs/custom_passes.md: its listings are the files of docs/examples, and its commands print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "custom_passes.md"
EXAMPLES = ROOT / "docs" / "examples"
COMMANDS = f"""
atc() {{ "{sys.executable}" -m atc.command "$@"; }}
om-run() {{ "{sys.executable}" -m atc.run_command "$@"; }}
ge-opt() {{ "{sys.executable}" -c 'from atc.opt import entry; entry()' "$@"; }}
python() {{ "{sys.executable}" "$@"; }}
"""
MARK = "-- end of command, status "


def blocks(text: str) -> list[str]:
    """The indented blocks of a page, without their indentation."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in found]


@dataclass(frozen=True)
class Shown:
    """A command of a page, and what the page says that it prints; ``...`` stands for anything."""

    command: str
    output: str

    @property
    def status(self) -> int:
        """1 for errors, and for graphs that differ."""
        is_error = re.search(r"^[ER]\d{4,5}: ", self.output, re.MULTILINE) is not None
        return int(is_error or self.command.startswith("atc graph diff"))

    def fits(self, printed: str) -> bool:
        if not self.output:
            return True
        parts = (re.escape(part.strip("\n")) for part in re.split(r"\.\.\.", self.output))
        return re.fullmatch(r"\s*.*?\s*".join(parts), printed.strip("\n"), re.DOTALL) is not None


def session(text: str) -> list[Shown]:
    """The commands of a page in order; comments behind them are left out."""
    commands = []
    for block in blocks(text):
        if block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                commands.append(Shown(re.sub(r"\s{2,}# .*", "", command), output.rstrip("\n")))
    return commands


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_listings_are_the_files(page) -> None:
    listed = re.findall(r"\(\[[\w.]+\]\((examples/[\w./]+)\)\):\n\n((?:    .*\n|\n(?=    |\n))+)", page)
    assert [name for name, _ in listed] == [
        "examples/opp/vendors/acme/custom_fusion_passes/leaky_from_max.py",
        "examples/test_leaky_from_max.py",
        "examples/opp/vendors/acme/custom_ops/soft_clip.py",
    ]
    for name, listing in listed:
        assert textwrap.dedent(listing).strip() == (PAGE.parent / name).read_text(encoding="utf-8").strip(), name


def test_links_lead_somewhere(page) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page)
    assert [target for target in targets if not (PAGE.parent / target).exists()] == []
    headings = {re.sub(r"\W+", "-", line[3:].lower()) for line in page.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands of the page are for bash")
def test_commands_print_what_is_shown(page, tmp_path) -> None:
    """The page is followed in a copy of the examples, in one shell."""
    shown = session(page)
    assert len(shown) > 12
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    script = COMMANDS + "".join(f"{{ {one.command}; }} 2>&1\necho '{MARK}'$?\n" for one in shown)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND_", "DUMP_", "NPU_"))}
    variables |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    run = subprocess.run(["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    printed = re.findall(rf"(.*?){MARK}(\d+)\n", run.stdout, re.DOTALL)
    assert (len(printed), run.stderr) == (len(shown), "")
    for one, (text, status) in zip(shown, printed, strict=True):
        assert one.fits(text), f"$ {one.command}\n{text}\n-- the page says --\n{one.output}"
        assert int(status) == one.status, f"$ {one.command}\n{text}"


@pytest.mark.parametrize(
    ("output", "printed", "fits"),
    [
        ("", "anything\n", True),
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\nc\n", False),
        ("...\nb\n...", "a\nb\nc\n", True),
        ("...\nb\n...", "b\n", True),
        ("...\nb", "a\nb\nc\n", False),
        ("13 passed in ...", "13 passed in 0.5s\n", True),
        ("13 passed in ...", "12 passed in 0.5s\n", False),
    ],
)
def test_how_outputs_are_compared(output, printed, fits) -> None:
    assert Shown("", output).fits(printed) == fits
