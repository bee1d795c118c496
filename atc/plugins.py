"""The custom operators and passes of a compile: where they come from, and what is said about them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from ge.custom_ops import OPERATOR_FOLDER, load_operator_files
from ge.errors import ReportedError
from ge.passes.base import FusionBasePass
from ge.passes.bootstrap import LoadedFile, LoadFault, PassFiles, load_path_list, vendor_files
from ge.passes.registry import RegistrationFault
from ge.plugin_files import FoundFiles, files_of_vendors
from ge.session import CompileSession
from parsers.onnx import check_onnx_names

logger = logging.getLogger("atc")

OWN_OPP = Path(__file__).resolve().parent.parent / "opp"
"""The folder of passes and operators that belongs to this installation, if there is one."""


def load_operators(session: CompileSession) -> None:
    """Fill ``session.operators`` from the files of vendors. To be called before passes are loaded, which use them.

    Raises E13029 for a file that cannot be loaded, E13030 for an operator that cannot be declared or whose name in
    ONNX is taken.
    """
    found = files_of_vendors(opp_folder(session), OPERATOR_FOLDER)
    _say_what_is_left_out(found, "operators", session)
    for file in load_operator_files(found.python, session.operators, lambda path: session.watch("E13029", path)):
        session.emit(str(file))
    check_onnx_names(session.operators)


def load_passes(session: CompileSession, classes: Iterable[type[FusionBasePass]] = ()) -> None:
    """Fill ``session.passes``: files of vendors, then those of ASCEND_GE_PY_PASS_PATH, then ``classes``.

    Raises E13029 for a file that cannot be loaded, E13030 for a registration that fails.
    """
    files = PassFiles(session.passes, lambda path: session.watch("E13029", path))
    opp = opp_folder(session)
    found = vendor_files(opp)
    _mention_neglected(opp, session)
    _say_what_is_left_out(found, "passes", session)
    for path in found.python:
        load_pass_file(path, files, session)
    path_list = session.environment.python_pass_path
    try:
        _announce(load_path_list(path_list, files), session)
    except LoadFault as fault:
        raise _load_error(fault) from fault
    except (OSError, ValueError) as fault:
        raise ReportedError("E13029", passlibname=path_list, reason=str(fault)) from fault
    for cls in classes:
        try:
            session.passes.add_class(cls)
        except RegistrationFault as fault:
            raise ReportedError("E13030", passname=fault.pass_name, reason=str(fault)) from fault


def _say_what_is_left_out(found: FoundFiles, kind: str, session: CompileSession) -> None:
    for text in found.unreadable:
        logger.warning("folder %s is left out", text)
    if found.native:
        names = ", ".join(map(str, found.native))
        session.warn(f"native {kind} need CANN and are left out: {names}")


def opp_folder(session: CompileSession) -> Path:
    """Return the folder of passes and operators: ``--opp``, else ASCEND_OPP_PATH, else the installation's own."""
    named = session.options.opp or session.environment.opp_path
    return Path(named) if named else OWN_OPP


def _mention_neglected(opp: Path, session: CompileSession) -> None:
    """Nothing is loaded from the working directory by itself, but a folder there that looks as if is mentioned."""
    local = Path("opp")
    if (local / "vendors").is_dir() and local.resolve() != opp.resolve():
        session.emit("The folder ./opp is not used; --opp=opp would load its passes and operators")


def load_pass_file(path: Path, files: PassFiles, session: CompileSession) -> None:
    """Load one file and say so. Raises E13029 and E13030."""
    try:
        loaded = files.load(path)
    except LoadFault as fault:
        raise _load_error(fault) from fault
    _announce([] if loaded is None else [loaded], session)


def _announce(loaded: list[LoadedFile], session: CompileSession) -> None:
    for file in loaded:
        names = ", ".join(file.passes)
        session.emit(f"Loaded {file.path}: {f'custom passes {names}' if names else 'no custom passes'}")


def _load_error(fault: LoadFault) -> ReportedError:
    if fault.pass_name:
        return ReportedError("E13030", passname=fault.pass_name, reason=f"{fault.file}, {fault.reason}")
    return ReportedError("E13029", passlibname=fault.file, reason=fault.reason)
