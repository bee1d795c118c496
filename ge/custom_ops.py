"""Custom operators: files of users that declare operators, and how they are loaded.

    @operator("ScaledAdd(x, y) -> z [alpha:f=1]", infer=broadcast("x", "y"), onnx="acme.math::ScaledAdd")
    def scaled_add(op, x, y):
        return x + op.alpha * y

It is the decorator of :mod:`ge.ops.registry`; ``onnx`` is explained in :mod:`ge.ops.onnx_form`. The files lie in
``<opp>/vendors/<vendor>/custom_ops``; each becomes a module ``_ge_py_op_<stem>_<hash of its path>``, loaded as pass
files are (:mod:`ge.plugin_files`). What a file declares is known to the compile, or the session, that loaded it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ge.errors import ReportedError
from ge.ops import OperatorSet, using
from ge.ops.operator_set import DeclarationFault
from ge.ops.signature import SignatureFault
from ge.passes.registry import PassRegistry, registering_in
from ge.plugin_files import PREFIX, Around, FoundFiles, PluginFault, execute, files_in, files_of_vendors, neighbours

MODULE_PREFIX = f"{PREFIX}op_"
OPERATOR_FOLDER = "custom_ops"


@dataclass(frozen=True)
class OperatorFile:
    """A file that was executed, and the types of the operators that it declares."""

    path: Path
    types: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.types)
        return f"Loaded {self.path}: {f'custom operators {names}' if names else 'no custom operators'}"


def load_operator_files(
    paths: Iterable[Path], operators: OperatorSet, around: Around = lambda path: nullcontext()
) -> Iterator[OperatorFile]:
    """Execute files one by one, each resolved path once, and yield those that were; ``operators`` gets what they
    declare.

    Raises E13029 for a file that cannot be loaded, E13030 for an operator that cannot be declared.
    """
    loaded: set[Path] = set()
    for path in paths:
        resolved = path.resolve()
        if resolved not in loaded:
            loaded.add(resolved)
            yield _load(path, resolved, operators, around)


def _load(path: Path, resolved: Path, operators: OperatorSet, around: Around) -> OperatorFile:
    known, passes = len(operators), PassRegistry()
    try:
        with around(str(path)), operators.declaring(path), registering_in(passes), neighbours(path.parent):
            execute(path, resolved, MODULE_PREFIX)
    except PluginFault as fault:
        cause = fault.__cause__
        if isinstance(cause, DeclarationFault | SignatureFault):
            raise ReportedError(
                "E13030",
                passname=cause.optype,
                reason=f"{path}, {fault.reason}",
                solution="Correct the declaration, or take the file out of its folder.",
            ) from fault
        raise ReportedError("E13029", passlibname=path, reason=fault.reason) from fault
    names = ", ".join(descriptor.pass_name for descriptor in passes)
    if names:
        reason = f"it registers passes ({names}), whose place is the folder custom_fusion_passes"
        raise ReportedError("E13029", passlibname=path, reason=reason)
    return OperatorFile(path, tuple(operators.types()[known:]))


def operator_files(place: str | os.PathLike[str]) -> FoundFiles:
    """List the operator files of ``place``: a folder that holds them, or one that holds ``vendors`` (an opp folder).

    Raises E13029 for a place that is no folder or cannot be listed.
    """
    folder = Path(place)
    if not folder.is_dir():
        reason = "it is no folder" if folder.exists() else "it does not exist"
        raise ReportedError("E13029", passlibname=folder, reason=reason, solution="Name a folder with operator files.")
    is_opp = (folder / "vendors").is_dir()
    found = files_of_vendors(folder, OPERATOR_FOLDER) if is_opp else files_in(folder)
    if found.unreadable:
        raise ReportedError("E13029", passlibname=folder, reason=f"cannot be listed: {found.unreadable[0]}")
    return found


def load_custom_ops(place: str | os.PathLike[str], announce: Callable[[str], None] = lambda line: None) -> OperatorSet:
    """Load the operator files of a folder, see :func:`operator_files`; ``announce`` gets a line per file.

    Raises E13029 and E13030.
    """
    operators, found = OperatorSet(), operator_files(place)
    for path in found.native:
        announce(f"Left out {path}: native operators need CANN")
    for file in load_operator_files(found.python, operators):
        announce(str(file))
    return operators


@contextmanager
def custom_operators(place: str | os.PathLike[str]) -> Iterator[OperatorSet]:
    """Load the operator files of a folder and let their operators be known in the block: for tests of operators and
    of passes that use them."""
    with using(load_custom_ops(place)) as operators:
        yield operators
