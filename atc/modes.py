"""What ``--mode`` does, once the options are checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from atc.check_report import Finding, findings, write_report
from ge.atomic_file import write_atomically
from ge.errors import ReportedError
from ge.options import CompileOptions, Mode
from ge.session import CompileSession

if TYPE_CHECKING:
    from om_format.offline_model import OfflineModel


def run_mode(options: CompileOptions, session: CompileSession) -> None:
    """Do what ``options.mode`` says; lines for the user go to ``session.emit``. Raises :class:`ReportedError`."""
    _ACTIONS[options.mode](options, session)


def _compile(options: CompileOptions, session: CompileSession) -> None:
    """Mode 0: write ``<output>.om``; faults of nodes also go to the check report."""
    model = _compiled(options, session)
    path = f"{options.output}.om"
    model.save(path)
    if options.display_model_info:
        _display(path, session)


def _compiled(options: CompileOptions, session: CompileSession) -> OfflineModel:
    from atc.compiler import compile_source

    try:
        return compile_source(options.model, session)
    except ReportedError as error:
        faults = findings(error)
        if faults:
            _write_report(options, session, faults)
        _add_hint_at_name(error, options.model)
        raise


def _pre_check(options: CompileOptions, session: CompileSession) -> None:
    """Mode 3: parse the model and write the check report, whatever comes out."""
    from parsers.onnx import parse

    try:
        parse(options.model, session)
    except ReportedError as error:
        _write_report(options, session, findings(error), is_failed=True)
        _add_hint_at_name(error, options.model)
        raise
    _write_report(options, session, [])
    session.emit(f"The check passed; the report is {options.check_report}")


def _write_report(
    options: CompileOptions, session: CompileSession, faults: list[Finding], *, is_failed: bool = False
) -> None:
    from parsers.onnx import precheck

    try:
        nodes = [(node.name, node.type) for node in precheck(options.model, session)]
    except ReportedError:
        nodes = []  # the file cannot be read at all, which is what the caller is about to report
    name = os.path.basename(options.model)
    write_report(options.check_report, name, nodes, faults, is_failed=is_failed)


_SUFFIXES = {
    ".pb": "TensorFlow",
    ".pbtxt": "TensorFlow (text form)",
    ".tflite": "TensorFlow Lite",
    ".prototxt": "Caffe",
    ".caffemodel": "Caffe",
    ".mindir": "MindSpore",
    ".air": "MindSpore",
    ".pt": "PyTorch",
    ".pth": "PyTorch",
    ".om": "an offline model that is compiled already",
}


def _add_hint_at_name(error: ReportedError, path: str) -> None:
    """Add to the remedy of an unreadable file what its name says about its kind."""
    kind = _SUFFIXES.get(os.path.splitext(path)[1].lower())
    if error.code in ("E13005", "E10041", "E16004") and kind:
        error.solution = f"The name of the file says {kind}, but --framework=5 says ONNX. {error.solution}"


def _to_json(options: CompileOptions, session: CompileSession) -> None:
    """Mode 1: an .om, or with ``--framework`` a model, as JSON."""
    from om_format.json_view import model_json, offline_model_json

    if "--framework" in options.command_line:
        text = model_json(_parsed(options, session))
    else:
        text = offline_model_json(options.om)
    write_atomically(options.json, text)


def _parsed(options: CompileOptions, session: CompileSession):
    from parsers.onnx import parse

    return parse(options.om, session)


def _show_offline_model(options: CompileOptions, session: CompileSession) -> None:
    """Mode 6: the display block of an .om."""
    _display(options.om, session)


def _display(path: str, session: CompileSession) -> None:
    from om_format.display import display_block

    for line in display_block(path):
        session.emit(line)


_ACTIONS: dict[Mode, Callable[[CompileOptions, CompileSession], None]] = {
    Mode.COMPILE: _compile,
    Mode.PRE_CHECK: _pre_check,
    Mode.TO_JSON: _to_json,
    Mode.DISPLAY: _show_offline_model,
}
