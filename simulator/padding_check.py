"""The check of debug runs: lanes of padding hold zeros after every step."""

from __future__ import annotations

import numpy as np

from ge.errors import ReportedError
from ge.formats import is_private
from ge.graph import TensorDesc
from ge.graph.types import FORMAT_TEXT
from simulator.kernels.registry import Array
from simulator.kernels.storage.layout import has_padding, stored_map
from simulator.steps import Step


def check_step(step: Step) -> None:
    """Look at what a step has written. Raises R1053 for the first output with anything else than 0 in its padding."""
    for index, (desc, array) in enumerate(zip(step.descs, step.outputs, strict=False)):
        if array is not None:
            check_padding(desc, array, f"{step.node} ({step.type}, kernel {step.kernel.name})", index)


def check_padding(desc: TensorDesc, array: Array, node: str, index: int) -> None:
    """Raise R1053 unless the padding of one tensor is zero."""
    if not is_private(desc.format) or not has_padding(desc):
        return
    found = stored_map(desc)
    if found.storage_shape != tuple(array.shape) or found.padding_is_zero(array):
        return
    clean = array.copy()
    found.clear_padding(clean)
    wrong = np.argwhere(clean != array)  # NaN differs from everything
    place = tuple(int(i) for i in wrong[0]) if len(wrong) else ()
    raise ReportedError(
        "R1053",
        node=node,
        index=index,
        format=FORMAT_TEXT[desc.format],
        place=list(place),
        value=array[place] if place else "unknown",
    )
