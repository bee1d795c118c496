"""The list of supported operators, made from the table of mappings: ``python -m parsers.tensorflow.operator_list``."""

from __future__ import annotations

import inspect
from pathlib import Path

from parsers.tensorflow.families import FAMILIES
from parsers.tensorflow.mapping import MapFunction, Row, find_mapping, mapped_operators

__all__ = ["FAMILIES", "main", "page"]

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "tensorflow_operators.md"
_HEAD = """# TensorFlow operators

What `--framework=3` compiles: {count} operators of frozen TensorFlow graphs, and what becomes of them. A node of
another type is reported (E10501), together with all others of the model.

This page is made by `python -m parsers.tensorflow.operator_list`; a test holds it to the table of mappings.

| TensorFlow | becomes |
|---|---|
"""


def page() -> str:
    """Return the text of the page: a line per operator."""
    operators = mapped_operators()
    lines = []
    for op in operators:
        entry = find_mapping(op)
        assert entry is not None
        lines.append(f"| {op} | {_becomes(entry.function)} |\n")
    return _HEAD.format(count=len(operators)) + "".join(lines)


def _becomes(function: MapFunction) -> str:
    """Return the GE operator of a row, or what a mapping's docstring says behind ``After:``."""
    if isinstance(function, Row):
        return function.type
    summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    return summary.partition("After:")[2].strip().rstrip(".").replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
