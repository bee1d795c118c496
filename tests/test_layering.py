"""The rules of the house, read off the sources: who may import whom, how files are named, how large they are."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# room -> the rooms it may import besides itself
MAY_IMPORT = {
    "ge": set(),
    "parsers": {"ge"},
    "passes": {"ge"},
    "om_format": {"ge"},
    "simulator": {"ge", "om_format"},
    "atc": {"ge", "parsers", "passes", "om_format", "simulator"},
}
OUTSIDE = {"models", "bench", "tests"}
# library -> the folders that may import it
CONFINED = {
    "onnx": ("parsers/onnx/", "ge/dump/"),
    "llvmlite": ("simulator/codegen/",),
    "click": ("atc/",),
    "rich": ("atc/",),
    # what the tests compare with must not be part of the product
    "onnxruntime": (),
    "netron": (),
    "sklearn": (),
}
ENVIRONMENT_READER = "ge/options.py"
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
# an import path of CANN's own Python package
CANN_PATHS = {"ge/utils", "ge/utils.py"}
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the repository, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def room(self) -> str:
        return self.path.split("/", 1)[0]

    @property
    def is_table(self) -> bool:
        return re.search(r"\btables?\b", ast.get_docstring(self.tree) or "", re.IGNORECASE) is not None

    def imports(self, *, for_types_only: bool = True) -> Iterator[tuple[int, str]]:
        """Line and full module name of every import, also inside functions; on demand without those for types only."""
        left_out = set() if for_types_only else set(self._nodes_for_types_only())
        for node in ast.walk(self.tree):
            if node in left_out:
                continue
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.lineno, self._absolute(node)
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                    yield node.lineno, node.args[0].value

    def _nodes_for_types_only(self) -> Iterator[ast.AST]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
                for statement in node.body:
                    yield from ast.walk(statement)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        package = self.path.split("/")[: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])


def layering_faults(source: Source) -> list[str]:
    """Imports that go upwards or sideways between the rooms, or leave the product."""
    forbidden = (set(MAY_IMPORT) | OUTSIDE) - MAY_IMPORT[source.room] - {source.room}
    return [
        f"{source.path}:{line} imports {module}"
        for line, module in source.imports()
        if module.split(".")[0] in forbidden
    ]


def confinement_faults(source: Source) -> list[str]:
    """Imports of libraries outside the folders that may know them; naming one of their types costs nothing."""
    return [
        f"{source.path}:{line} imports {module}"
        for line, module in source.imports(for_types_only=False)
        if module.split(".")[0] in CONFINED and not source.path.startswith(CONFINED[module.split(".")[0]])
    ]


def environment_faults(source: Source) -> list[str]:
    """Reads of the environment outside the one module that may."""
    if source.path == ENVIRONMENT_READER:
        return []
    names = {"environ", "environb", "getenv", "getenvb"}

    def reads(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr in names and getattr(node.value, "id", "") == "os"
        return isinstance(node, ast.ImportFrom) and node.module == "os" and any(a.name in names for a in node.names)

    return [f"{source.path}:{node.lineno} reads the environment" for node in ast.walk(source.tree) if reads(node)]


def name_faults(source: Source) -> list[str]:
    """Folders and modules whose name says nothing."""
    parts = source.path.removesuffix(".py").split("/")
    prefixes = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    vague = [prefix for prefix in prefixes if prefix.split("/")[-1] in VAGUE_NAMES and prefix not in CANN_PATHS]
    return [f"{prefix} is named vaguely" for prefix in vague]


def size_faults(source: Source) -> list[str]:
    """Files and functions too long to be read at a sitting; a module whose docstring says `table` may be long."""
    if source.is_table:
        return []
    faults = []
    lines = source.text.count("\n")
    if lines > MAX_FILE_LINES:
        faults.append(f"{source.path} has {lines} lines")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                faults.append(f"{source.path}:{node.lineno} {node.name} has {length} lines")
    return faults


def product_sources() -> list[Source]:
    paths = sorted(path for room in MAY_IMPORT for path in (ROOT / room).rglob("*.py"))
    written = [path for path in paths if not path.stem.endswith("_pb2")]
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in written]


RULES = [layering_faults, confinement_faults, environment_faults, name_faults, size_faults]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_sources_obey(rule) -> None:
    sources = product_sources()
    assert len(sources) > 20, "the sources were not found"
    assert [fault for source in sources for fault in rule(source)] == []


def test_every_package_folder_has_an_init() -> None:
    folders = {path.parent for room in MAY_IMPORT for path in (ROOT / room).rglob("*.py")}
    missing = [folder.relative_to(ROOT).as_posix() for folder in folders if not (folder / "__init__.py").exists()]
    assert sorted(missing) == []


def test_the_wheel_holds_exactly_the_rooms() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    include = project["tool"]["setuptools"]["packages"]["find"]["include"]
    assert set(include) == {pattern for room in MAY_IMPORT for pattern in (room, f"{room}.*")}


@pytest.mark.parametrize(
    ("rule", "path", "text", "faulty"),
    [
        (layering_faults, "ge/graph/node.py", "import parsers.onnx", True),
        (layering_faults, "ge/graph/node.py", "from ge.ops import registry", False),
        (layering_faults, "passes/pipeline.py", "def f():\n    from simulator import session", True),
        (layering_faults, "passes/infer/shapes.py", "from ..driver import Pass", False),
        (layering_faults, "simulator/loader.py", "import importlib\nimportlib.import_module('passes')", True),
        (layering_faults, "simulator/loader.py", "from om_format import reader", False),
        (layering_faults, "atc/command.py", "from models import materialise_light", True),
        (confinement_faults, "parsers/onnx/model.py", "import onnx", False),
        (confinement_faults, "parsers/__init__.py", "from onnx import helper", True),
        (
            confinement_faults,
            "atc/compiler.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from onnx import ModelProto",
            False,
        ),
        (
            layering_faults,
            "ge/session.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from atc import compiler",
            True,
        ),
        (confinement_faults, "ge/text.py", "from rich.table import Table", True),
        (confinement_faults, "atc/report.py", "from rich.table import Table", False),
        (confinement_faults, "simulator/kernels/conv.py", "import onnxruntime", True),
        (environment_faults, "ge/options.py", "import os\nos.environ['X']", False),
        (environment_faults, "atc/command.py", "import os\nos.environ.get('X')", True),
        (environment_faults, "atc/command.py", "from os import getenv", True),
        (environment_faults, "atc/command.py", "import os\nos.getpid()", False),
        (name_faults, "passes/utils.py", "", True),
        (name_faults, "passes/common/shapes.py", "", True),
        (name_faults, "ge/utils/__init__.py", "", False),
        (size_faults, "ge/a.py", "x = 1\n" * 601, True),
        (size_faults, "ge/a.py", '"""The table of x."""\n' + "x = 1\n" * 601, False),
        (size_faults, "ge/a.py", "def f():\n" + "    x = 1\n" * 60, True),
        (size_faults, "ge/a.py", "def f():\n" + "    x = 1\n" * 59, False),
    ],
)
def test_rules_catch_what_they_should(rule, path: str, text: str, faulty: bool) -> None:
    assert bool(rule(Source(path, text))) == faulty
