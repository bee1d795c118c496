"""Files of users that extend the program: where they are looked for, and how they are executed.

A file becomes a module ``<prefix><stem>_<hash of its path>``, so it never takes the name of another module. Its folder
is on Python's path while it is executed, so that it can import its neighbours; such modules do not stay in
``sys.modules``.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ge.user_code import text_of

MAX_BYTES = 16 << 20
"""Largest file that is executed."""
PREFIX = "_ge_py_"
"""What the names of all modules begin with that are made from files of users."""

Around = Callable[[str], AbstractContextManager[object]]
"""What is done around the execution of a file, given its path."""


class PluginFault(ImportError):
    """A file that cannot be executed; what it raised is the cause of this exception."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}", path=str(path))
        self.file = path
        self.reason = reason


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Reads the source every time: folders of users may be read-only, and nothing is written into them."""

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("no bytecode is kept")


def execute(path: Path, resolved: Path, prefix: str) -> None:
    """Execute a file, or the ``__init__.py`` of a package, as a module. Raises :class:`PluginFault`."""
    _check_is_source(path)
    is_package = path.name == "__init__.py"
    stem = resolved.parent.name if is_package else resolved.stem
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16]
    name = f"{prefix}{stem}_{digest}"
    spec = importlib.util.spec_from_file_location(
        name,
        path,
        loader=_SourceLoader(name, str(path)),
        submodule_search_locations=[str(path.parent)] if is_package else None,
    )
    assert spec is not None
    assert spec.loader is not None
    for old in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[old]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        sys.modules.pop(name, None)
        raise PluginFault(path, located(fault, path)) from fault


def _check_is_source(path: Path) -> None:
    """Raise :class:`PluginFault` for what can never be read to its end: a pipe, a device, a file beyond all bounds."""
    try:
        status = path.stat()
    except OSError as fault:
        raise PluginFault(path, f"{type(fault).__name__}: {fault.strerror or fault}") from fault
    if not stat.S_ISREG(status.st_mode):
        raise PluginFault(path, "it is not a regular file")
    if status.st_size > MAX_BYTES:
        raise PluginFault(path, f"it has {status.st_size} bytes, more than {MAX_BYTES}")


def located(fault: BaseException, path: Path) -> str:
    """Return what went wrong in a file, and in which line of it."""
    if isinstance(fault, OSError) and not fault.__traceback__:
        return fault.strerror or text_of(fault)
    line = fault.lineno if isinstance(fault, SyntaxError) and fault.filename == str(path) else None
    if line is None:
        frames = traceback.extract_tb(fault.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    text = fault.msg if isinstance(fault, SyntaxError) else text_of(fault)
    reason = f"{type(fault).__name__}: {text}"
    return reason if line is None else f"line {line}: {reason}"


@contextmanager
def neighbours(folder: Path) -> Iterator[None]:
    """Let imports find the files of ``folder`` inside the block; forget the modules that came from there."""
    place = str(folder.resolve())
    is_new = place not in sys.path
    known = set(sys.modules)
    if is_new:
        sys.path.append(place)
    try:
        yield
    finally:
        if is_new and place in sys.path:
            sys.path.remove(place)
        for name in sys.modules.keys() - known:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and not name.startswith(PREFIX) and Path(origin).resolve().is_relative_to(place):
                del sys.modules[name]


@dataclass(frozen=True)
class FoundFiles:
    """What folders of plugins hold, by vendor and name."""

    python: tuple[Path, ...] = ()
    native: tuple[Path, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Folders that could not be listed, with the reasons."""


def files_in(folder: Path) -> FoundFiles:
    """List the ``.py`` and ``.so`` files of a folder by name.

    Names that begin with ``_`` and sub-folders are left out, links are followed.
    """
    return _listed([folder], [])


def files_of_vendors(opp: Path, folder: str) -> FoundFiles:
    """List the files of the folders ``<opp>/vendors/<vendor>/<folder>``, vendors by name; see :func:`files_in`."""
    unreadable: list[str] = []
    return _listed([vendor / folder for vendor in _children(opp / "vendors", unreadable)], unreadable)


def _listed(folders: list[Path], unreadable: list[str]) -> FoundFiles:
    found: dict[str, list[Path]] = {".py": [], ".so": []}
    for folder in folders:
        for path in _children(folder, unreadable):
            stem, suffix = os.path.splitext(path.name)
            if suffix in found and not stem.startswith("_") and not path.is_dir():
                found[suffix].append(path)
    return FoundFiles(tuple(found[".py"]), tuple(found[".so"]), tuple(unreadable))


def _children(folder: Path, unreadable: list[str]) -> list[Path]:
    if not folder.is_dir():
        return []
    try:
        return sorted(folder.iterdir(), key=lambda item: item.name)
    except OSError as fault:
        unreadable.append(f"{folder}: {fault.strerror or fault}")
        return []
