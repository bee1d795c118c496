"""Type stubs of the plugin modules, written from the operator registry: ``python -m ge.es.stubs [--check]``.

Editors and type checkers read ``all.pyi``, ``math.pyi`` and ``nn.pyi``; at run time the functions are made on demand.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

from ge.es.op_function import Parameters, output_name
from ge.es.plugins import offered
from ge.graph.types import DataType
from ge.ops import lookup
from ge.ops.signature import Arity, Signature

_FOLDER = Path(__file__).resolve().parent
_WIDTH = 120
_ALL_HEAD = '''"""All operator functions. Written by ge.es.stubs from the registry; not to be edited."""

from ge.es.graph_builder import GraphBuilder
from ge.es.tensor_holder import TensorHolder
from ge.es.tensor_like import TensorLike
from ge.graph.graph import Graph
from ge.graph.tensor import Tensor
from ge.graph.types import DataType
'''
_OTHER = '''"""The same operator functions as ge.es.all. Written by ge.es.stubs; not to be edited."""

from ge.es.all import *  # noqa: F403
'''
_CUSTOM = '''"""Functions of custom operators: which there are is known when they are registered."""

from typing import Any

def __getattr__(name: str) -> Any: ...
'''


def stub_texts() -> dict[str, str]:
    """Return the text of each stub by file name."""
    parts = [_ALL_HEAD]
    for type_ in offered("all"):
        definition = lookup(type_)
        assert definition is not None
        if definition.plugin != "custom":
            parts.append(_stub(definition.signature))
    return {"all.pyi": "\n".join([*parts, ""]), "math.pyi": _OTHER, "nn.pyi": _OTHER, "custom.pyi": _CUSTOM}


def _stub(formal: Signature) -> str:
    returns, lines = _returns(formal)
    lines += _definition(formal.type, Parameters.of(formal).signature(inspect.Signature.empty), returns)
    return "\n".join(lines)


def _returns(formal: Signature) -> tuple[str, list[str]]:
    """Return the result's type and the lines that define it."""
    outputs = formal.outputs
    kinds = ["list[TensorHolder]" if p.arity is Arity.DYNAMIC else "TensorHolder" for p in outputs]
    if len(outputs) <= 1:
        return (kinds[0] if kinds else "TensorHolder"), []
    name = f"{formal.type}Output"
    fields = [f"    {output_name(port, formal)}: {kind}" for port, kind in zip(outputs, kinds, strict=True)]
    return name, ["", f"class {name}:", *fields, ""]


def _definition(name: str, signature: inspect.Signature, returns: str) -> list[str]:
    texts, is_keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword_only:
            texts.append("*")
            is_keyword_only = True
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_literal(parameter.default)}"
        texts.append(f"{parameter.name}: {parameter.annotation}{default}")
    line = f"def {name}({', '.join(texts)}) -> {returns}: ..."
    if len(line) <= _WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {text}," for text in texts), f") -> {returns}: ..."]


def _literal(value: object) -> str:
    if isinstance(value, DataType):
        return f"DataType.{value.name}"
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if value is None or isinstance(value, int | float) else "..."


def main(arguments: list[str]) -> int:
    """Write the stubs, or with ``--check`` tell by the exit status whether they are up to date."""
    texts = stub_texts()
    stale = [name for name, text in texts.items() if _read(_FOLDER / name) != text]
    if arguments != ["--check"]:
        for name in stale:
            (_FOLDER / name).write_text(texts[name], encoding="utf-8")
        return 0
    return 1 if stale else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
