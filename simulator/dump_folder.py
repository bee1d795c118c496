"""The folder of one dumped run: it appears whole under its name, or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from ge.errors import ReportedError
from simulator.dump_names import ShortNames

Array = np.ndarray[Any, np.dtype[Any]]
CODE = "R1044"
NPY = "npy"
MANIFEST, MAPPING = "manifest.json", "mapping.csv"


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Report what the file system refuses inside of the block as R1044."""
    try:
        yield
    except OSError as fault:
        raise ReportedError(CODE, file=str(path), errmsg=fault.strerror or str(fault)) from fault


def new_folder(root: Path) -> Path:
    """Make a folder ``YYYYMMDDHHMMSS`` inside of ``root`` that nobody has used, and return it. Raises R1044."""
    with reported(root):
        root.mkdir(parents=True, exist_ok=True)
    now = time.time()
    for second in range(1000):
        folder = root / time.strftime("%Y%m%d%H%M%S", time.localtime(now + second))
        with reported(folder), suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise ReportedError(CODE, file=str(root), errmsg="all names for the next 1000 seconds are taken")


def free_bytes(path: Path) -> int | None:
    """Return the bytes that are free where ``path`` is or will be; ``None`` when that cannot be told."""
    for folder in (path, *path.absolute().parents):
        with suppress(OSError):
            return shutil.disk_usage(folder).free
    return None


class RunFolder:
    """A folder under another name until :meth:`finish` gives it its own; :meth:`discard` leaves nothing behind."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
        self._names, self._npy_names = ShortNames(), ShortNames()
        with reported(path):
            (self._unfinished / NPY).mkdir(parents=True)

    @contextmanager
    def dump_file(self, name: str) -> Iterator[tuple[BinaryIO, str]]:
        """Give a file to write a dump into, and its name. Raises R1044."""
        fitting = self._names.fitting(name)
        with reported(self.path / fitting), open(self._unfinished / fitting, "xb") as file:
            yield file, fitting

    def write_npy(self, name: str, suffix: str, array: Array) -> str:
        """Save ``array`` as ``npy/{name}{suffix}`` and return where, from the folder. Raises R1044."""
        fitting = self._npy_names.fitting(name, suffix)
        with reported(self.path / NPY / fitting), open(self._unfinished / NPY / fitting, "xb") as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
        return f"{NPY}/{fitting}"

    def write_text(self, name: str, content: str) -> None:
        """Write a list. Raises R1044."""
        with reported(self.path / name):
            (self._unfinished / name).write_text(content, encoding="utf-8", errors="backslashreplace")

    def finish(self, manifest: Mapping[str, object], files: Sequence[Mapping[str, object]]) -> None:
        """Write the manifest and the mappings of names, and give the folder its name. Raises R1044."""
        with reported(self.path):
            for folder, names in ((self._unfinished, self._names), (self._unfinished / NPY, self._npy_names)):
                if names.mapping():
                    (folder / MAPPING).write_text(names.mapping(), encoding="utf-8")
            with open(self._unfinished / MANIFEST, "x", encoding="utf-8", errors="backslashreplace") as file:
                _write_lists(file, manifest, files)
            os.rename(self._unfinished, self.path)

    def discard(self, inside: Path) -> None:
        """Remove what has been written, and the folders around it, inside of another, that are empty then."""
        shutil.rmtree(self._unfinished, ignore_errors=True)
        with suppress(OSError):  # the first one that is not empty ends it
            for folder in (self.path.parent, *self.path.parent.parents):
                if folder == inside:
                    break
                folder.rmdir()


def _write_lists(file: TextIO, manifest: Mapping[str, object], files: Sequence[Mapping[str, object]]) -> None:
    """Write JSON with a line for each file: it is read by people too."""
    head = json.dumps(manifest, indent=1).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(one) for one in files)
    file.write(f'{head},\n "files": [\n  {lines}\n ]\n}}\n')
