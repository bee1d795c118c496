"""Which files feed which input of which run, whether they fit, and their contents.

A *share* is the part of an input that one file holds: all of it, or an equal part along the first axis where several
files are packed into one run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from ge.errors import ReportedError
from ge.mapped_file import why_unreadable

SUFFIXES = (".npy", ".bin")
Array = NDArray[Any]


class Tensor(Protocol):
    """An input or output of the model as the session describes it; ``size`` is bytes."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def datatype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True)
class Run:
    """The files of one run: ``samples[s][i]`` feeds input ``i``; the last ``padding`` samples only fill the batch."""

    samples: tuple[tuple[str, ...], ...]
    padding: int = 0

    @property
    def wanted(self) -> tuple[tuple[str, ...], ...]:
        """The samples whose results are saved."""
        return self.samples[: len(self.samples) - self.padding]


def assign_files(names: Sequence[str], inputs: Sequence[Tensor]) -> list[tuple[str, ...]]:
    """Return the samples, one file per input each.

    ``names`` are files, all of the first input first, or one directory per input. Raises R1020 to R1023 and R1027 to
    R1029.
    """
    if not inputs:
        raise ReportedError("R1029", files=", ".join(names))
    known = ", ".join(tensor.name for tensor in inputs)
    are_folders = [os.path.isdir(name) for name in names]
    if all(are_folders):
        if len(names) != len(inputs):
            raise ReportedError("R1021", directories=len(names), inputs=len(inputs), names=known)
        columns = [_files_in(name) for name in names]
    elif any(are_folders):
        raise ReportedError("R1028", path=names[are_folders.index(True)])
    else:
        count, rest = divmod(len(names), len(inputs))
        if rest:
            raise ReportedError("R1020", files=len(names), inputs=len(inputs), names=known)
        columns = [list(names[i * count : (i + 1) * count]) for i in range(len(inputs))]
    for tensor, column in zip(inputs, columns, strict=True):
        if len(column) != len(columns[0]):
            first = inputs[0].name
            raise ReportedError("R1027", name=tensor.name, actual=len(column), first=first, expected=len(columns[0]))
    return list(zip(*columns, strict=True))


def _files_in(folder: str) -> list[str]:
    try:
        names = [name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES)]
    except OSError as fault:
        raise ReportedError("R1023", file=folder, reason=fault.strerror or str(fault)) from fault
    paths = [os.path.join(folder, name) for name in sorted(names, key=natural_key)]
    files = [path for path in paths if os.path.isfile(path)]
    if not files:
        raise ReportedError("R1022", path=folder, suffixes=" or ".join(SUFFIXES))
    return files


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Sort key that puts ``9.bin`` before ``10.bin``."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def plan_runs(
    samples: Sequence[tuple[str, ...]], inputs: Sequence[Tensor], *, allow_reinterpret: bool = False
) -> list[Run]:
    """Check every file against its input and pack the samples into runs; a short last run repeats its first sample.

    The number of samples per run is the size of the first input over that of its first file. Raises R1023 to R1026.
    """
    if not allow_reinterpret:
        _check_type(samples[0][0], inputs[0])  # a wrong type explains a wrong size
    per_run = _samples_per_run(samples[0][0], inputs[0])
    for i, tensor in enumerate(inputs):
        if per_run > 1 and (not tensor.shape or tensor.shape[0] % per_run):
            file = samples[0][i]
            reason = f"it would be 1 of {per_run} files per run, which cannot share the first axis equally"
            raise _misfit(tensor, file, _Content.of(file).size, reason)
        for sample in samples:
            _check_share(sample[i], tensor, per_run, allow_reinterpret)
    runs = []
    for start in range(0, len(samples), per_run):
        group = tuple(samples[start : start + per_run])
        padding = per_run - len(group)
        runs.append(Run(group + group[:1] * padding, padding))
    return runs


def _samples_per_run(file: str, tensor: Tensor) -> int:
    size = _Content.of(file).size
    if size == tensor.size or tensor.datatype.hasobject:
        return 1
    if size == 0 or tensor.size % size or tensor.size == 0:
        raise _misfit(tensor, file, size, "the size of the input is no multiple of the size of the file")
    return tensor.size // size


def _check_share(file: str, tensor: Tensor, per_run: int, allow_reinterpret: bool) -> None:
    content = _Content.of(file)
    share = tensor.size // per_run
    if content.dtype is not None and not allow_reinterpret:
        expected = [tensor.shape[0] // per_run, *tensor.shape[1:]] if per_run > 1 else list(tensor.shape)
        _check_type(file, tensor)
        without_batch = expected[1:] if per_run > 1 and expected[0] == 1 else expected
        if list(content.shape) not in (expected, without_batch):
            raise ReportedError("R1026", name=tensor.name, expected=expected, file=file, actual=list(content.shape))
    if tensor.datatype.hasobject:
        if content.dtype is None:
            raise _unreadable(file, f"input [{tensor.name}] takes texts, which come in .npy files")
        return
    if content.size != share:
        parts = f"{share} bytes, 1/{per_run} of the input" if per_run > 1 else f"{share} bytes"
        raise _misfit(tensor, file, content.size, f"each file must hold {parts}")


def _check_type(file: str, tensor: Tensor) -> None:
    dtype = _Content.of(file).dtype
    if dtype is not None and not _same_type(dtype, tensor.datatype):
        expected = "str" if tensor.datatype.hasobject else tensor.datatype
        raise ReportedError("R1025", name=tensor.name, expected=expected, file=file, actual=dtype)


def _misfit(tensor: Tensor, file: str, size: int, reason: str) -> ReportedError:
    shape = list(tensor.shape)
    return ReportedError(
        "R1024",
        name=tensor.name,
        dtype=tensor.datatype,
        shape=shape,
        expected=tensor.size,
        file=file,
        actual=size,
        reason=reason,
    )


def _same_type(actual: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """Equal up to byte order; numpy stores types that it does not know, such as bfloat16, as raw bytes."""
    if expected.hasobject:
        return actual.kind in "US"
    if actual.kind == "V" and expected.kind == "V":
        return actual.itemsize == expected.itemsize
    return actual.newbyteorder("=") == expected


def load_run(run: Run, inputs: Sequence[Tensor]) -> list[Array]:
    """Read the files of ``run`` and return one array per input, in its dtype and shape."""
    arrays = []
    for i, tensor in enumerate(inputs):
        shares = [_read(sample[i], tensor.datatype) for sample in run.samples]
        flat = shares[0] if len(shares) == 1 else np.concatenate(shares)
        if flat.size != prod(tensor.shape) or (flat.nbytes != tensor.size and not tensor.datatype.hasobject):
            raise _misfit(tensor, run.samples[0][i], flat.nbytes, "the file changed since it was looked at")
        arrays.append(flat.reshape(tuple(tensor.shape)))
    return arrays


def _read(file: str, dtype: np.dtype[Any]) -> Array:
    """Return the contents of ``file`` as a flat array of ``dtype``, taken by its bytes."""
    try:
        if not file.lower().endswith(".npy"):
            return np.fromfile(file, dtype)
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as fault:
        raise _unreadable(file, fault) from fault
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(-1)
    return native if dtype.hasobject else native.view(dtype)


_NPY_HEADERS: dict[tuple[int, int], Callable[[BinaryIO], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class _Content:
    """What a file says about itself: bytes of data; dtype and shape of an ``.npy`` file, None and () of raw bytes."""

    size: int
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, file: str) -> _Content:
        """Look at the head of ``file``; R1023 if it cannot be used."""
        suffix = os.path.splitext(file)[1].lower()
        try:
            reason = why_unreadable(file)
            if reason:
                raise _unreadable(file, reason)
            if suffix not in SUFFIXES:
                raise _unreadable(file, f"its name must end with {' or '.join(SUFFIXES)}")
            size = os.path.getsize(file)
            return cls(size) if suffix == ".bin" else cls._of_npy(file, size)
        except (OSError, ValueError, EOFError) as fault:
            raise _unreadable(file, fault) from fault

    @classmethod
    def _of_npy(cls, file: str, size: int) -> _Content:
        with open(file, "rb") as stream:
            version = np.lib.format.read_magic(stream)
            if version not in _NPY_HEADERS:
                raise ValueError(f"version {version} of the .npy format is for structured data")
            try:
                shape, _, dtype = _NPY_HEADERS[version](stream)
            except Exception as fault:  # numpy hands the text to parsers of Python, which fail in many ways
                raise ValueError("its header is damaged") from fault
            start = stream.tell()
        if dtype.hasobject:
            raise ValueError("it holds Python objects, not numbers")
        needed = prod(shape) * dtype.itemsize
        if size - start != needed:
            raise ValueError(f"its header promises {needed} bytes of data, but {size - start} follow")
        return cls(needed, dtype, shape)


def shape_of_file(file: str) -> tuple[int, ...]:
    """Return the shape of an .npy file. Raises R1023 for a file that does not tell."""
    content = _Content.of(file)
    if content.dtype is None:
        raise _unreadable(file, "it does not tell its shape; --auto_set_dymshape_mode needs .npy files")
    return content.shape


def _unreadable(file: str, fault: Exception | str) -> ReportedError:
    reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return ReportedError("R1023", file=file, reason=reason)
