"""``compile_model``: what a program calls, with the options of the command line as keywords."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from atc.checks import Given, check
from atc.fusion_result import write_fusion_result
from atc.lexer import read_value
from ge.option_table import OPTIONS, Option
from ge.options import CompileOptions, Environment
from ge.session import CompileSession

if TYPE_CHECKING:
    from onnx import ModelProto

    from ge.passes import FusionBasePass
    from om_format.offline_model import OfflineModel

logger = logging.getLogger("atc")

# what concerns files and the screen of the command line has no meaning here
_COMMAND_LINE_ONLY = frozenset(
    {"help", "mode", "model", "weight", "om", "json", "log", "check_report", "display_model_info", "pass_timeout"}
)


def compile_model(
    model: str | os.PathLike[str] | bytes | ModelProto,
    *,
    passes: Iterable[type[FusionBasePass]] = (),
    **options: Any,
) -> OfflineModel:
    """Compile a model (path, file content or message) and return the offline model; ``.save(path)`` writes it.

    It is an ONNX model, or with ``framework=3`` a frozen TensorFlow graph.

    ``options`` are named as on the command line, ``soc_version`` is required. Values are texts as there, or natural
    ones: numbers, booleans, ``input_shape={"x": (1, 3)}``, ``out_nodes=["relu:0"]``,
    ``is_output_adjust_hw_layout=[True]``. Warnings go to the logger ``atc``. ``passes`` are classes that were
    registered with ``ge.passes``; they join those of the pass folder (``opp``), and no other compile sees either.
    Nothing is written unless ``export_compile_stat`` asks for fusion_result.json. Raises
    :class:`ge.errors.ReportedError` for faults of model and options, ``TypeError`` for unknown names.
    """
    from atc.compiler import compile_source

    environment = Environment.read()
    source = os.fspath(model) if isinstance(model, os.PathLike) else model
    compile_options = options_from(options, environment, source if isinstance(source, str) else "")
    session = CompileSession(compile_options, environment, _log)
    compiled = compile_source(source, session, passes)
    if compile_options.export_compile_stat:
        write_fusion_result(session)
    return compiled


def _log(line: str) -> None:
    logger.log(logging.WARNING if line.startswith("WARNING: ") else logging.INFO, line)


def options_from(keywords: Mapping[str, object], environment: Environment, model_path: str = "") -> CompileOptions:
    """Check ``keywords`` as the command line does and return the typed options."""
    values = {name: _text(_option(name), value) for name, value in keywords.items() if value is not None}
    values = {name: read_value(OPTIONS[name], text) for name, text in values.items() if text}
    values.setdefault("framework", "5")
    if model_path:
        values["model"] = model_path
    return check(Given(values, environment, logger.warning, is_library_call=True))


def _option(name: str) -> Option:
    option = OPTIONS.get(name)
    if option is None or name in _COMMAND_LINE_ONLY:
        near = difflib.get_close_matches(name, OPTIONS.keys() - _COMMAND_LINE_ONLY, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"compile_model() has no option {name!r}{hint}")
    return option


def _dims(value: object) -> str:
    """Return dims, or the one number or the text that stands for them, as they would be written."""
    return ",".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else str(value)


def _text(option: Option, value: object) -> str:
    """Return ``value`` as it would be written on the command line."""
    match value:
        case str():
            return value
        case bool():
            return str(int(value)) if "1" in option.rule.values else str(value).lower()
        case IntEnum() | int():
            return str(int(value))
        case os.PathLike():
            return os.fspath(value)
        case Mapping():
            return ";".join(f"{name}:{_dims(dims)}" for name, dims in value.items())
        case Sequence() if value and all(isinstance(item, bool) for item in value):
            return ",".join(str(item).lower() for item in value)
        case Sequence():
            return ";".join(map(str, value))
    raise TypeError(f"option {option.name!r} cannot be a {type(value).__name__}")
