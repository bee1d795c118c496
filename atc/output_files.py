"""Results of runs as files: their names, their division into samples, their forms."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from atc.input_files import Array, Run, Tensor
from ge.atomic_file import atomic_file
from ge.errors import ReportedError

MADE_UP_NAME = "pure_infer_data"
CODE = "R1040"


def output_folder(output: str, dirname: str) -> Path:
    """Return the folder for the results: ``dirname`` inside ``output``, or one named after the time."""
    if dirname:
        return Path(output, os.path.normpath(dirname))
    stamp = time.strftime("%Y_%m_%d-%H_%M_%S")
    names = (stamp, *(f"{stamp}_{i}" for i in range(1, 1000)))
    return next(folder for name in names if not os.path.exists(folder := Path(output, name)) or name is names[-1])


def sample_name(files: Sequence[str]) -> str:
    """Return the name that the results of a sample begin with: its first file without the last suffix."""
    return os.path.splitext(os.path.basename(files[0]))[0] if files else MADE_UP_NAME


def result_paths(folder: Path, files: Sequence[str], n_outputs: int, form: str) -> list[Path]:
    """Return where the outputs of the sample that was read from ``files`` are saved."""
    return [folder / f"{sample_name(files)}_{number}.{form.lower()}" for number in range(n_outputs)]


def check_names(samples: Sequence[Sequence[str]]) -> None:
    """Raise R1041 if the results of two samples would overwrite each other."""
    seen: dict[str, str] = {}
    for files in samples:
        name = sample_name(files)
        if name in seen:
            raise ReportedError("R1041", first=seen[name], second=files[0], name=f"{name}_0")
        seen[name] = files[0]


def check_inputs_stay(folder: Path, samples: Sequence[Sequence[str]], n_outputs: int, form: str) -> None:
    """Raise R1043 if a result would take the place of a file that is read."""
    if not folder.is_dir():
        return
    read = {os.path.realpath(file): file for files in samples for file in files}
    for files in samples:
        for target in result_paths(folder, files, n_outputs, form):
            found = read.get(os.path.realpath(target))
            if found is not None:
                raise ReportedError("R1043", file=target, input=found)


def check_division(runs: Sequence[Run], outputs: Sequence[Tensor]) -> None:
    """Raise R1042 if an output cannot be divided among the samples of a run; what is open is seen when it is there."""
    parts = len(runs[0].samples)
    for tensor in outputs:
        if not tensor.shape or tensor.shape[0] >= 0:
            _check_parts(tensor.name, tensor.shape, parts)


def _check_parts(name: str, shape: Sequence[int], parts: int) -> None:
    if parts > 1 and (not shape or shape[0] % parts):
        raise ReportedError("R1042", name=name, shape=list(shape), parts=parts)


def save_run(folder: Path, run: Run, outputs: Sequence[Array], form: str) -> list[list[str]]:
    """Write the outputs of ``run`` and return the paths per wanted sample. Raises R1040."""
    parts = len(run.samples)
    for number, output in enumerate(outputs):
        _check_parts(str(number), output.shape, parts)
    divided = [np.split(output, parts) if parts > 1 else [output] for output in outputs]
    paths = []
    for i, files in enumerate(run.wanted):
        targets = result_paths(folder, files, len(outputs), form)
        for target, pieces in zip(targets, divided, strict=True):
            with atomic_file(target, code=CODE) as file:
                write_array(file, pieces[i], form)
        paths.append([str(target) for target in targets])
    return paths


def write_array(file: BinaryIO, array: Array, form: str) -> None:
    """Write ``array`` as ``NPY``, ``BIN`` (its bytes) or ``TXT`` (a line per innermost row).

    NPY holds types that numpy does not know, such as bfloat16, as float32. TXT numbers have enough digits to tell any
    two values of their type apart. Of texts, BIN and TXT are lines in UTF-8, one per element.
    """
    if array.dtype.hasobject:
        array = array.astype("U")
        if form != "NPY":
            lines = "".join(f"{text}\n" for text in array.reshape(-1).tolist())
            file.write(lines.encode(errors="backslashreplace"))
            return
    if form == "BIN":
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return
    if array.dtype.kind == "V" or (array.dtype.isbuiltin != 1 and array.dtype.kind != "U"):
        array = array.astype(np.float32)
    if form == "NPY":
        np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
        return
    pattern = {"f": "%.17g" if array.dtype.itemsize > 4 else "%.9g", "c": "%s"}.get(array.dtype.kind, "%d")
    rows = array.reshape(prod(array.shape[:-1]), array.shape[-1]) if array.ndim else array.reshape(1, 1)
    for row in rows:
        file.write((" ".join(pattern % value for value in row.tolist()) + "\n").encode())
