"""Which operators the front end knows, and that everything it emits is defined."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from onnx import defs

from ge.ops import lookup
from parsers.onnx import front_end
from parsers.onnx.opset import NEWEST_OPSET, OLDEST_OPSET
from parsers.onnx.precheck import is_supported

LEFT_OUT = {"ImageDecoder": "compressed image files are read before a model runs, not by it"}


@pytest.mark.parametrize("opset", range(OLDEST_OPSET, NEWEST_OPSET + 1))
def test_operators_of_the_default_domain(opset: int) -> None:
    names = {s.name for s in defs.get_all_schemas_with_history() if s.domain == "" and s.since_version <= opset}
    assert {name for name in names if not is_supported("", name, opset)} == names & set(LEFT_OUT)


def emitted_types() -> dict[str, str]:
    """Return the GE types that mappings name: first arguments of ``n.add`` and ``Row``, values of tables of rows."""
    found = {}
    for path in sorted(Path(front_end.__file__).parent.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            values = call.args[:1] if name in ("add", "Row") else []
            if name == "maps_rows" and isinstance(call.args[0], ast.Dict):
                values = call.args[0].values
            found |= dict.fromkeys((text for expression in values for text in literals(expression)), path.name)
    return found


def literals(expression: ast.AST | None) -> list[str]:
    """Return the strings that an expression can be, as far as they stand in it."""
    if isinstance(expression, ast.IfExp):
        return literals(expression.body) + literals(expression.orelse)
    return [expression.value] if isinstance(expression, ast.Constant) and isinstance(expression.value, str) else []


def test_everything_emitted_is_defined() -> None:
    types = emitted_types()
    assert len(types) > 150
    assert {name: file for name, file in types.items() if lookup(name) is None} == {}


def test_families_hold_all_mappings() -> None:
    folder = Path(front_end.__file__).parent
    texts = {path.stem: path.read_text() for path in folder.glob("*.py") if path.stem != "mapping"}
    families = {name for name, text in texts.items() if "\n@maps(" in text or "\nmaps_rows(" in text}
    assert families == {module.__name__.rpartition(".")[2] for module in front_end.FAMILIES}
