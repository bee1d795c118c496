"""TransData: the same elements at the places of another layout, prepared once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ge.formats import (
    AXES,
    LAYOUT_PAIRS,
    Blocking,
    LayoutError,
    RnnSizes,
    Transfer,
    expand_dims,
    index_map,
    is_private,
)
from ge.graph import Format, Shape, TensorDesc
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, kernel
from simulator.kernels.storage.layout import MATRIX_FORMATS, groups_of

_FORMATS = frozenset(end for pair in LAYOUT_PAIRS for end in pair)
_BY_MATRIX = frozenset({*MATRIX_FORMATS, Format.FORMAT_FRACTAL_ZZ})


@dataclass(frozen=True)
class _Ends:
    """What a TransData reads and writes; ``private`` is the one of them in a layout of the hardware."""

    source: TensorDesc
    target: TensorDesc

    @property
    def to_storage(self) -> bool:
        return is_private(self.target.format) or not is_private(self.source.format)

    @property
    def private(self) -> TensorDesc:
        return self.target if self.to_storage else self.source

    @property
    def plain(self) -> TensorDesc:
        return self.source if self.to_storage else self.target

    def origin(self) -> tuple[Shape, Format]:
        """Return dims and format of the plain end, with the axes that the layout needs besides."""
        layout, plain = self.private.format, self.plain
        shown = plain.format
        if shown is Format.FORMAT_ND and layout not in _BY_MATRIX and plain.origin_format in AXES:
            shown = plain.origin_format
        return expand_dims(plain.shape, shown, layout), shown


@kernel("TransData", formats=_FORMATS)
def build_trans_data(request: KernelRequest) -> Kernel | None:
    """Bind a transfer between two layouts, one of which tells what its axes mean."""
    source, target = request.inputs[0], request.outputs[0]
    if source is None or source.data_type is not target.data_type:
        return None
    ends = _Ends(source, target)
    if is_private(ends.plain.format):
        return None
    if source.format is target.format:
        return _copy() if source.shape == target.shape else None
    shape, origin = ends.origin()
    try:
        mapped = index_map(shape, origin, ends.private.format, _blocking(request, ends.private))
    except LayoutError:
        return None
    if mapped.storage_shape != tuple(ends.private.shape):
        return None
    transfer = Transfer(mapped, ends.to_storage)

    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        transfer.run(inputs[0].reshape(transfer.source_shape), outputs[0].reshape(transfer.target_shape))

    return Kernel("trans-data", run)


def _blocking(request: KernelRequest, private: TensorDesc) -> Blocking:
    """Return the numbers of the layout: its block lengths stand in the storage shape."""
    op, by_desc = request.op, groups_of(private)
    rnn = RnnSizes(op.get("hidden_size", 1), op.get("input_size", 1), op.get("state_size", -1))
    groups = by_desc if by_desc > 1 else max(op.groups, 1)
    if private.format is Format.FORMAT_ND_RNN_BIAS:
        return Blocking(groups=groups, rnn=rnn)
    m0 = private.shape[-2] if private.format in MATRIX_FORMATS else 16
    return Blocking(private.shape[-1], m0, groups, rnn)


def _copy() -> Kernel:
    def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
        np.copyto(outputs[0], inputs[0])

    return Kernel("copy", run, is_in_place_safe=True)
