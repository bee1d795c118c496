"""The commands as processes: streams that are closed or full, odd characters, signals in the middle of the work."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import atc
from atc.command import START
from ge.errors import ReportedError, printable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and the shell lines are POSIX")
ROOT = Path(atc.__file__).parents[1]
# per command: its failing status, and arguments for work that succeeds
COMMANDS = {
    "atc.command": (255, "--model={digits} --framework=5 --soc_version=Ascend310P3 --output=m --export_compile_stat=0"),
    "atc.run_command": (1, "--help"),
    "atc.opt": (1, "{digits} --passes infer-shape"),
}


def line_of(module: str, digits: Path) -> str:
    return f"{shlex.quote(sys.executable)} -m {module} {COMMANDS[module][1].format(digits=shlex.quote(str(digits)))}"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", COMMANDS)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_matter(module: str, closed: str, digits_model: Path, tmp_path: Path) -> None:
    done = shell(f"{line_of(module, digits_model)} {closed}", tmp_path)
    assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (0, False)
    assert os.listdir(tmp_path) == (["m.om"] if module == "atc.command" else [])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("module", ["atc.command", "atc.run_command"])
def test_a_full_stdout_is_reported(module: str, digits_model: Path, tmp_path: Path) -> None:
    done = shell(f"{line_of(module, digits_model)} >/dev/full", tmp_path)
    assert done.returncode == COMMANDS[module][0]
    message, remedy = done.stderr.splitlines()
    assert message == "E13004: The file [stdout] cannot be written. Reason: No space left on device"
    assert remedy.startswith("        Solution: ")


# a save that has begun and does not end: the temporary file is there
ENDLESS = """
import sys, time
from atc.command import main
from om_format.offline_model import OfflineModel
from ge.atomic_file import atomic_file

def save(model, path):
    with atomic_file(path) as file:
        file.write(b"half")
        file.flush()
        print("writing", flush=True)
        time.sleep(60)

OfflineModel.save = save
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_file(number: signal.Signals, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "m.om").write_bytes(b"old")
    arguments = shlex.split(COMMANDS["atc.command"][1].format(digits=digits_model))
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert [child.stdout.readline() for _ in range(2)] == [f"{START}\n", "writing\n"]
    assert len(os.listdir(tmp_path)) == 2
    child.send_signal(number)
    output, errors = child.communicate(timeout=20)
    assert (child.returncode, output) == (128 + number, "")
    assert errors in ("interrupted\n", f"ended by {number.name}\n")
    assert os.listdir(tmp_path) == ["m.om"]
    assert (tmp_path / "m.om").read_bytes() == b"old"


def test_an_ignored_signal_stays_ignored(digits_model: Path, tmp_path: Path) -> None:
    line = line_of("atc.command", digits_model)
    done = shell(
        f"trap '' HUP; {line} & child=$!; for i in 1 2 3 4 5 6; do kill -HUP $child; sleep 0.02; done; wait $child",
        tmp_path,
    )
    assert done.returncode == 0
    assert os.listdir(tmp_path) == ["m.om"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 名字 é", "plain 名字 é"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nE19999: forged", "a\\nE19999: forged"),
        ("a\r\n b", "a\\r\n b"),
        ("\udcff\u202e", "\\udcff\\u202e"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert ReportedError("E10016", opname=text, parameter="--out_nodes").message.startswith(f"Name [{shown}] in")


def test_long_values_are_shortened() -> None:
    message = ReportedError("E10016", opname="x" * 100_000, parameter="--out_nodes").message
    assert len(message) < 1100
    assert "(100000 characters)" in message


def test_a_name_cannot_forge_a_line(tmp_path: Path) -> None:
    done = shell(
        f"{shlex.quote(sys.executable)} -m atc.command --model=$'no\\nATC run success' --framework=5 "
        "--soc_version=Ascend310P3 --output=m",
        tmp_path,
    )
    assert done.returncode == 255
    assert "\nATC run success" not in done.stdout
    assert "[no\\nATC run success]" in done.stdout
