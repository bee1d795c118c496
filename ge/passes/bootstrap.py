"""Loading pass files.

Each file becomes a module ``_ge_py_pass_<stem>_<hash of its path>``; classes register while it is executed. How files
are found and executed is said in :mod:`ge.plugin_files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
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
from ge.plugin_files import PREFIX, Around, FoundFiles, PluginFault, execute, files_of_vendors, neighbours

__all__ = ["LoadFault", "LoadedFile", "get_registered_passes", "load_pass_plugins", "load_path_list", "vendor_files"]

MODULE_PREFIX = f"{PREFIX}pass_"
PASS_FOLDER = "custom_fusion_passes"


class LoadFault(PluginFault):
    """A pass file that cannot be loaded. ``pass_name`` is set when a registration in it failed."""

    def __init__(self, path: Path, reason: str, pass_name: str = "") -> None:
        super().__init__(path, reason)
        self.pass_name = pass_name


@dataclass(frozen=True)
class LoadedFile:
    """A file that was executed, and the passes that it registered."""

    path: Path
    passes: tuple[str, ...]


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
        try:
            with self._around(str(path)), registering_in(self._registry), neighbours(path.parent):
                execute(path, resolved, MODULE_PREFIX)
        except PluginFault as fault:
            cause = fault.__cause__
            pass_name = cause.pass_name if isinstance(cause, RegistrationFault) else ""
            raise LoadFault(path, fault.reason, pass_name) from cause
        added = [d.pass_name for d in self._registry if d.descriptor_key not in before]
        return LoadedFile(path, tuple(added))


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
            with neighbours(path):
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


def vendor_files(opp: Path) -> FoundFiles:
    """List the pass files of all vendors, in the order in which they are loaded."""
    return files_of_vendors(opp, PASS_FOLDER)


def load_pass_plugins(path_list: str | None = None) -> list[PassDescriptor]:
    """Load the files of ``path_list`` (by default ASCEND_GE_PY_PASS_PATH) into the current registry.

    Returns all passes registered there. A compile does not need this: it loads its passes itself.
    """
    text = Environment.read().python_pass_path if path_list is None else path_list
    load_path_list(text, PassFiles(current_registry()))
    return get_registered_passes()
