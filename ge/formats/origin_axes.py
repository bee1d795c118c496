"""Formats that say what axes mean: their axis letters, and the sets of formats that passes ask for."""

from __future__ import annotations

from collections.abc import Sequence

from ge.graph.tensor_desc import Shape
from ge.graph.types import Format

AXES: dict[Format, str] = {
    Format.FORMAT_NCHW: "NCHW",
    Format.FORMAT_NHWC: "NHWC",
    Format.FORMAT_HWCN: "HWCN",
    Format.FORMAT_CHWN: "CHWN",
    Format.FORMAT_NCDHW: "NCDHW",
    Format.FORMAT_NDHWC: "NDHWC",
    Format.FORMAT_DHWCN: "DHWCN",
    Format.FORMAT_DHWNC: "DHWNC",
}
"""Axis letters of the formats with named axes, in the order of the dims."""

PLANAR_FORMATS = tuple(f for f, axes in AXES.items() if len(axes) == 4)
VOLUME_FORMATS = tuple(f for f, axes in AXES.items() if len(axes) == 5)
ORIGIN_FORMATS = (*AXES, Format.FORMAT_ND)
"""Formats a user's model may have: those with named axes, and ND."""

FRACTAL_NZ_FORMATS = (Format.FORMAT_FRACTAL_NZ, Format.FORMAT_FRACTAL_NZ_C0_16, Format.FORMAT_FRACTAL_NZ_C0_32)

HEAVY_FORMATS = (
    Format.FORMAT_NC1HWC0_C04,
    Format.FORMAT_NC1HWC0,
    Format.FORMAT_C1HWNCoC0,
    Format.FORMAT_FRACTAL_Z,
    Format.FORMAT_FRACTAL_NZ,
    Format.FORMAT_NDC1HWC0,
    Format.FORMAT_FRACTAL_Z_3D,
    Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE,
    Format.FORMAT_FRACTAL_Z_C04,
    Format.FORMAT_FRACTAL_Z_WINO,
    Format.FORMAT_C1HWC0,
    Format.FORMAT_FRACTAL_NZ_C0_16,
    Format.FORMAT_FRACTAL_NZ_C0_32,
)
"""Private layouts that spread through a graph, in the order in which selectors try them."""

GROUPED_FORMATS = (Format.FORMAT_FRACTAL_Z, Format.FORMAT_FRACTAL_Z_3D)
"""Layouts that depend on the number of groups of a convolution."""

_PRIVATE = frozenset(HEAVY_FORMATS) | {
    Format.FORMAT_NC1C0HWPAD,
    Format.FORMAT_NHWC1C0,
    Format.FORMAT_FRACTAL_DECONV,
    Format.FORMAT_C1HWNC0,
    Format.FORMAT_FRACTAL_DECONV_TRANSPOSE,
    Format.FORMAT_FRACTAL_DECONV_SP_STRIDE_TRANS,
    Format.FORMAT_FRACTAL_DECONV_SP_STRIDE8_TRANS,
    Format.FORMAT_NC1KHKWHWC0,
    Format.FORMAT_FRACTAL_ZZ,
    Format.FORMAT_FRACTAL_ZN_LSTM,
    Format.FORMAT_FRACTAL_Z_G,
    Format.FORMAT_ND_RNN_BIAS,
    Format.FORMAT_FRACTAL_ZN_RNN,
    Format.FORMAT_NYUV,
    Format.FORMAT_NYUV_A,
}


def is_private(format: Format) -> bool:
    """Tell whether ``format`` is a layout of the hardware, which says nothing about the meaning of axes."""
    return format in _PRIVATE


def full_rank(format: Format) -> int | None:
    """Return the rank to which tensors of an origin format are expanded (ND: 4); ``None`` for other formats."""
    return 4 if format == Format.FORMAT_ND else len(AXES[format]) if format in AXES else None


def axis_order(before: Format, after: Format, rank: int) -> Sequence[int] | None:
    """Return which axes of a tensor in ``before`` are those of it in ``after``, in order.

    ``None`` where it is not the question: formats without named axes, other ones, or fewer dims than they have axes.
    """
    axes, wanted = AXES.get(before, ""), AXES.get(after, "")
    if before == after or not axes or rank != len(axes) or sorted(axes) != sorted(wanted):
        return None
    return [axes.index(letter) for letter in wanted]


def in_axis_order(shape: Shape, before: Format, after: Format) -> Shape:
    """Return the dims of a tensor in ``before`` as ``after`` orders its axes; as they are where that is no question."""
    order = axis_order(before, after, len(shape))
    return shape if order is None else Shape(shape[axis] for axis in order)
