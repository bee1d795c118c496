"""The committed stubs say what the operator functions take and give."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from ge.es import all as every
from ge.es import stubs
from ge.es.plugins import offered

FOLDER = Path(stubs.__file__).parent


def committed(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(stubs.stub_texts()))
def test_stubs_are_in_step_with_the_registry(name: str) -> None:
    assert committed(name) == stubs.stub_texts()[name], "run `python -m ge.es.stubs` and commit what it writes"


def definitions() -> dict[str, Any]:
    tree = ast.parse(committed("all.pyi"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_stubs_define_every_operator_and_its_outputs() -> None:
    results = {str(inspect.signature(getattr(every, name)).return_annotation.__name__) for name in offered("all")}
    assert set(definitions()) == set(offered("all")) | {name for name in results if name.endswith("Output")}


@pytest.mark.parametrize("name", ["MatMul", "Split", "Conv2D", "If", "NoOp", "SelectV2", "TopK", "ScatterNdAdd"])
def test_stubs_show_the_parameters_of_the_functions(name: str) -> None:
    stub = definitions()[name].args
    parameters = inspect.signature(getattr(every, name)).parameters
    assert [a.arg for a in (*stub.args, *stub.kwonlyargs)] == list(parameters)
    assert [a.arg for a in stub.kwonlyargs] == [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert [ast.unparse(a.annotation) for a in (*stub.args, *stub.kwonlyargs)] == [
        p.annotation for p in parameters.values()
    ]


def test_check_tells_whether_stubs_are_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stubs, "_FOLDER", tmp_path)
    assert stubs.main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert stubs.main([]) == 0
    assert stubs.main(["--check"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["all.pyi", "custom.pyi", "math.pyi", "nn.pyi"]
