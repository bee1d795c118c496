"""The shapes of a run's inputs where the model leaves dimensions open: given as an option, or those of .npy files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from atc.input_files import Tensor, shape_of_file
from atc.shape_sets import Shapes
from ge.errors import ReportedError
from simulator.feeds import limits_text, misfit_of


class OpenTensor(Tensor, Protocol):
    """An input as the session describes it: -1 in its shape is an open dimension, ``limits`` are (least, greatest)."""

    @property
    def limits(self) -> Sequence[tuple[int, int]] | None: ...


@dataclass(frozen=True)
class ShapedTensor:
    """An input of one run."""

    name: str
    shape: tuple[int, ...]
    datatype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the tensor; 0 for texts."""
        return 0 if self.datatype.hasobject else prod(self.shape) * self.datatype.itemsize


def is_open(tensor: Tensor) -> bool:
    """Tell whether a dimension of the input is not fixed."""
    return any(dim < 0 for dim in tensor.shape)


def shaped_inputs(inputs: Sequence[OpenTensor], shapes: Shapes, parameter: str) -> list[ShapedTensor]:
    """Return the inputs with the shapes that ``parameter`` gives them.

    Raises R1032 for a name that the model does not have, R1034 for an open input without a shape, R1035 for a shape
    that an input does not take.
    """
    known = [tensor.name for tensor in inputs]
    for name in shapes:
        if name not in known:
            raise ReportedError("R1032", name=name, names=", ".join(known))
    return [_shaped(tensor, shapes.get(tensor.name), parameter) for tensor in inputs]


def inputs_of_files(inputs: Sequence[OpenTensor], files: Sequence[str]) -> list[ShapedTensor]:
    """Return the inputs with the shapes of one .npy file each. Raises R1023, R1028 and R1035."""
    return [_shaped(tensor, shape_of_file(file), file) for tensor, file in zip(inputs, files, strict=True)]


def _shaped(tensor: OpenTensor, shape: tuple[int, ...] | None, given_by: str) -> ShapedTensor:
    limits = limits_text(tensor.limits)
    if shape is None:
        if is_open(tensor):
            raise ReportedError("R1034", name=tensor.name, shape=limits)
        return ShapedTensor(tensor.name, tuple(tensor.shape), tensor.datatype)
    misfit = misfit_of(tensor.limits, shape)
    if misfit:
        raise ReportedError(
            "R1035", source=given_by, name=tensor.name, actual=list(shape), expected=limits, reason=misfit
        )
    return ShapedTensor(tensor.name, shape, tensor.datatype)
