"""What ``--mode`` does, once the options are checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from atc.check_report import Finding, findings, write_report
from atc.fusion_result import write_fusion_result
from atc.progress import working
from ge.atomic_file import write_atomically
from ge.errors import ReportedError
from ge.ops import using
from ge.options import CompileOptions, Framework, Mode
from ge.session import CompileSession

if TYPE_CHECKING:
    from om_format.offline_model import OfflineModel


def run_mode(options: CompileOptions, session: CompileSession) -> None:
    """Do what ``options.mode`` says; lines for the user go to ``session.emit``. Raises :class:`ReportedError`."""
    with using(session.operators):
        _ACTIONS[options.mode](options, session)


def _compile(options: CompileOptions, session: CompileSession) -> None:
    """Mode 0: write the .om, named after the machine if it is dynamic; faults of nodes also go to the check report."""
    model = _compiled(options, session)
    if options.export_compile_stat == 2:
        write_fusion_result(session)
    path = model.file_path(options.output)
    if not model.plan.is_static:
        session.warn(f"the file of a dynamic model is for one kind of machine ({model.host}): {path}")
    model.save(path)
    session.info(f"{path} is written, {os.path.getsize(path)} bytes")
    if options.export_compile_stat == 1:
        write_fusion_result(session)
    if options.display_model_info:
        _display(path, session)


def _compiled(options: CompileOptions, session: CompileSession) -> OfflineModel:
    from atc.compiler import compile_source

    try:
        with nullcontext() if options.log != "null" else working(f"compiling {options.model}"):
            return compile_source(options.model, session)
    except ReportedError as error:
        faults = findings(error)
        if faults:
            _report_failure(error, faults, options, session)
        _add_hint_at_name(error, options.model, options)
        raise


def _pre_check(options: CompileOptions, session: CompileSession) -> None:
    """Mode 3: parse the model and write the check report, whatever comes out."""
    from atc.plugins import load_operators
    from parsers.front_ends import parse_model

    try:
        load_operators(session)
        parse_model(options.model, session)
    except ReportedError as error:
        _report_failure(error, findings(error), options, session)
        _add_hint_at_name(error, options.model, options)
        raise
    _write_report(options, session, [])
    session.emit(f"The check passed; the report is {options.check_report}")


def _report_failure(
    error: ReportedError, faults: list[Finding], options: CompileOptions, session: CompileSession
) -> None:
    """Write the report of a failed check; if that fails too, ``error`` stays the first fault."""
    try:
        _write_report(options, session, faults, is_failed=True)
    except ReportedError as second:
        error.also = (*error.also, second)


def _write_report(
    options: CompileOptions, session: CompileSession, faults: list[Finding], *, is_failed: bool = False
) -> None:
    from parsers.front_ends import precheck_model

    try:
        nodes = [(node.name, node.type) for node in precheck_model(options.model, session)]
    except ReportedError:
        nodes = []  # the file cannot be read at all, which is what the caller is about to report
    name = os.path.basename(options.model)
    write_report(options.check_report, name, nodes, faults, is_failed=is_failed)


def _add_hint_at_name(error: ReportedError, path: str, options: CompileOptions) -> None:
    """Add to the remedy of an unreadable .pb what else it may be, unless its content says more."""
    is_recognised = "it looks like" in error.message
    if options.framework is not Framework.ONNX:
        return
    if error.code in ("E13005", "E10041", "E16004") and path.lower().endswith(".pb") and not is_recognised:
        error.solution = f"The name of the file may say TensorFlow, but --framework=5 says ONNX. {error.solution}"


def _to_json(options: CompileOptions, session: CompileSession) -> None:
    """Mode 1: an .om, or with ``--framework`` a model, as JSON."""
    from om_format import graph_json, model_json

    if options.om_is_source:
        from atc.plugins import load_operators
        from parsers.front_ends import parse_model

        load_operators(session)
        try:
            text = graph_json(parse_model(options.om, session))
        except ReportedError as error:
            _add_hint_at_name(error, options.om, options)
            raise
    else:
        try:
            text = model_json(options.om)
        except ReportedError as error:
            if options.om.endswith(".onnx"):
                error.solution = "Add --framework=5 to write an ONNX model as JSON."
            elif options.om.endswith(".pb"):
                error.solution = "Add --framework=3 to write a frozen TensorFlow graph as JSON."
            raise
    write_atomically(options.json, text)


def _show_offline_model(options: CompileOptions, session: CompileSession) -> None:
    """Mode 6: the display block of an .om."""
    _display(options.om, session)


def _display(path: str, session: CompileSession) -> None:
    from om_format import display_block

    for line in display_block(path):
        session.emit(line)


_ACTIONS: dict[Mode, Callable[[CompileOptions, CompileSession], None]] = {
    Mode.COMPILE: _compile,
    Mode.PRE_CHECK: _pre_check,
    Mode.TO_JSON: _to_json,
    Mode.DISPLAY: _show_offline_model,
}
