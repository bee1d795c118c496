"""Loading pass files.

Each file becomes a module ``_ge_py_pass_<stem>_<hash of its path>``; classes register while it is executed. The folder
of a file is on Python's path meanwhile, so that files can import their neighbours; such modules do not stay in
``sys.modules``.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ge.options import Environment
from ge.passes.registry import (
    PassDescriptor,
    PassRegistry,
    RegistrationFault,
    current_registry,
    get_registered_passes,
    registering_in,
)

__all__ = ["LoadFault", "LoadedFile", "get_registered_passes", "load_pass_plugins", "load_path_list", "vendor_files"]

MODULE_PREFIX = "_ge_py_pass_"
PASS_FOLDER = "custom_fusion_passes"

Around = Callable[[str], AbstractContextManager[object]]
"""What is done around the execution of a file, given its path."""


class LoadFault(ImportError):
    """A pass file that cannot be loaded. ``pass_name`` is set when a registration in it failed."""

    def __init__(self, path: Path, reason: str, pass_name: str = "") -> None:
        super().__init__(f"{path}: {reason}", path=str(path))
        self.file = path
        self.reason = reason
        self.pass_name = pass_name


@dataclass(frozen=True)
class LoadedFile:
    """A file that was executed, and the passes that it registered."""

    path: Path
    passes: tuple[str, ...]


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Reads the source every time: pass folders may be read-only, and nothing is written into them."""

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("no bytecode is kept")


class PassFiles:
    """Loads files into a registry, each resolved path once."""

    def __init__(self, registry: PassRegistry, around: Around = lambda path: nullcontext()) -> None:
        self._registry = registry
        self._around = around
        self._loaded: set[Path] = set()

    def load(self, path: Path) -> LoadedFile | None:
        """Load a file, or the ``__init__.py`` of a package; ``None`` if that was done. Raises :class:`LoadFault`."""
        resolved = path.resolve()
        if resolved in self._loaded:
            return None
        self._loaded.add(resolved)
        before = {descriptor.descriptor_key for descriptor in self._registry}
        with self._around(str(path)), registering_in(self._registry), _neighbours(path.parent):
            _execute(path, resolved)
        added = [d.pass_name for d in self._registry if d.descriptor_key not in before]
        return LoadedFile(path, tuple(added))


def _execute(path: Path, resolved: Path) -> None:
    is_package = path.name == "__init__.py"
    stem = resolved.parent.name if is_package else resolved.stem
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:16]
    name = f"{MODULE_PREFIX}{stem}_{digest}"
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
    except (Exception, SystemExit) as fault:
        sys.modules.pop(name, None)
        pass_name = fault.pass_name if isinstance(fault, RegistrationFault) else ""
        raise LoadFault(path, _located(fault, path), pass_name) from fault


def _located(fault: BaseException, path: Path) -> str:
    """Return what went wrong in a file, and in which line of it."""
    if isinstance(fault, OSError) and not fault.__traceback__:
        return fault.strerror or str(fault)
    line = fault.lineno if isinstance(fault, SyntaxError) and fault.filename == str(path) else None
    if line is None:
        frames = traceback.extract_tb(fault.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    text = fault.msg if isinstance(fault, SyntaxError) else str(fault)
    reason = f"{type(fault).__name__}: {text}"
    return reason if line is None else f"line {line}: {reason}"


@contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
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
            is_own = name.startswith(MODULE_PREFIX)
            if origin and not is_own and Path(origin).resolve().is_relative_to(place):
                del sys.modules[name]


# -- where files are looked for ----------------------------------------------------------------------------------------
def load_path_list(text: str, files: PassFiles) -> list[LoadedFile]:
    """Load what a list of paths in the form of ASCEND_GE_PY_PASS_PATH names.

    Raises ``FileNotFoundError`` for a path that is not there, ``ValueError`` for a file that is no .py file,
    :class:`LoadFault` for one that cannot be executed.
    """
    loaded: list[LoadedFile | None] = []
    for part in filter(None, (item.strip() for item in text.split(os.pathsep))):
        path = Path(part)
        if not path.exists():
            raise FileNotFoundError(f"python pass path does not exist: {path}")
        if path.is_file():
            if path.suffix != ".py":
                raise ValueError(f"python pass file must end with .py: {path}")
            loaded.append(files.load(path))
        else:
            with _neighbours(path):
                loaded += [files.load(child) for child in _in_folder(path)]
    return [file for file in loaded if file is not None]


def _in_folder(folder: Path) -> Iterable[Path]:
    for child in sorted(folder.iterdir(), key=lambda item: item.name):
        if child.name.startswith("_"):
            continue
        if child.is_file() and child.suffix == ".py":
            yield child
        elif child.is_dir() and (child / "__init__.py").is_file():
            yield child / "__init__.py"


@dataclass(frozen=True)
class VendorFiles:
    """What the folders ``<opp>/vendors/<vendor>/<folder>`` hold, by vendor and name."""

    python: tuple[Path, ...] = ()
    native: tuple[Path, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Folders that could not be listed, with the reasons."""


def vendor_files(opp: Path, folder: str = PASS_FOLDER) -> VendorFiles:
    """List ``.py`` and ``.so`` files. Names that begin with ``_`` and sub-folders are left out, links are followed."""
    python: list[Path] = []
    native: list[Path] = []
    unreadable: list[str] = []
    for vendor in _children(opp / "vendors", unreadable):
        for path in _children(vendor / folder, unreadable):
            stem, suffix = os.path.splitext(path.name)
            if stem.startswith("_") or path.is_dir():
                continue
            if suffix == ".py":
                python.append(path)
            elif suffix == ".so":
                native.append(path)
    return VendorFiles(tuple(python), tuple(native), tuple(unreadable))


def _children(folder: Path, unreadable: list[str]) -> list[Path]:
    if not folder.is_dir():
        return []
    try:
        return sorted(folder.iterdir(), key=lambda item: item.name)
    except OSError as fault:
        unreadable.append(f"{folder}: {fault.strerror or fault}")
        return []


def load_pass_plugins(path_list: str | None = None) -> list[PassDescriptor]:
    """Load the files of ``path_list`` (by default ASCEND_GE_PY_PASS_PATH) into the current registry.

    Returns all passes registered there. A compile does not need this: it loads its passes itself.
    """
    text = Environment.read().python_pass_path if path_list is None else path_list
    load_path_list(text, PassFiles(current_registry()))
    return get_registered_passes()
