"""Runs the reader of the installed ``netron`` package, without its page, on a saved model."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("netron_reader.mjs")
ROOTS = ("base.js", "om.js", "om-proto.js")
METADATA = "om-metadata.json"


def netron_view(
    model: Path, folder: Path, script: Path = SCRIPT, roots: Sequence[str] = ROOTS, metadata: str = METADATA
) -> dict[str, Any]:
    """Return what Netron sees in ``model``; skips the test where node or netron is missing.

    ``folder`` receives the modules once: node must be told by a file beside them that they are ECMAScript modules.
    ``script`` is run with the folder and the model as arguments; ``roots`` are the modules that it loads.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: Netron's reader cannot be run")
    if not (folder / "package.json").exists():
        _copy_modules(folder, roots, metadata)
    done = subprocess.run(
        [node, str(script), str(folder), str(model)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    view: dict[str, Any] = json.loads(done.stdout)
    return view


def _copy_modules(folder: Path, roots: Sequence[str], metadata: str) -> None:
    """Copy the modules of the reader and what they import."""
    package = importlib.util.find_spec("netron")
    if package is None or package.origin is None:
        pytest.skip("the package netron is not installed: its reader cannot be run")
    source = Path(package.origin).parent
    folder.mkdir(parents=True, exist_ok=True)
    waiting, copied = list(roots), set()
    while waiting:
        name = waiting.pop()
        if name not in copied:
            copied.add(name)
            text = (source / name).read_text(encoding="utf-8")
            (folder / name).write_text(text, encoding="utf-8")
            waiting += re.findall(r"^import .* from '\./([\w-]+\.js)';", text, re.MULTILINE)
    shutil.copy(source / metadata, folder / metadata)
    (folder / "package.json").write_text('{"type": "module"}')
