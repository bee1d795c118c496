"""Shapes of tensors in the layouts of the hardware: what a descriptor shows, -1 included.

The table says per layout what its dims are. Axes are read by the origin format; ND of rank 4 is read as NCHW.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ge.formats.cube_sizes import N0, SERVER_CUBES, CubeSizes
from ge.formats.filter_groups import FilterGroups
from ge.formats.layout_error import LayoutError
from ge.formats.origin_axes import AXES, FRACTAL_NZ_FORMATS, GROUPED_FORMATS, ORIGIN_FORMATS, is_private
from ge.formats.packed_format import MAX_GROUPS, PackedFormat, primary_format
from ge.formats.pattern import Pattern, blocks
from ge.graph.tensor_desc import Shape
from ge.graph.types import FORMAT_TEXT, DataType, Format

C04_CHANNELS = 4
"""Channels per position in the layouts for small channel counts."""


@dataclass(frozen=True)
class RnnSizes:
    """Attributes of a recurrent operator by which its weights are divided; ``state_size`` -1 means ``hidden_size``."""

    hidden_size: int = 1
    input_size: int = 1
    state_size: int = -1

    def row_parts(self, rows: int) -> tuple[int, ...]:
        """Return the parts of a weight's rows that are padded each for itself; none when ``rows`` fits no size."""
        state = self.hidden_size if self.state_size == -1 else self.state_size
        if min(self.input_size, state) < 0:
            return ()
        if rows == self.input_size + state:
            return (self.input_size, state)
        return (rows,) if rows in (state, self.input_size) else ()


@dataclass(frozen=True)
class Blocking:
    """The numbers that a layout depends on besides the origin shape: block lengths, groups, sizes of an RNN."""

    c0: int = 16
    m0: int = 16
    groups: int = 1
    rnn: RnnSizes = RnnSizes()

    @classmethod
    def of(
        cls,
        format: int,
        dtype: DataType,
        groups: int = 1,
        *,
        cubes: CubeSizes = SERVER_CUBES,
        rnn: RnnSizes | None = None,
    ) -> Blocking:
        """Return them for a format integer and an element type. ``groups`` 0 and 1 leave it to the format integer."""
        if not 0 <= groups <= MAX_GROUPS:
            raise LayoutError(f"a layout has 0 to {MAX_GROUPS} groups, not {groups}")
        if dtype in (DataType.DT_UNDEFINED, DataType.DT_MAX):
            raise LayoutError(f"a tensor of type {dtype.name} has no layout")
        packed = PackedFormat.unpack(format)
        return cls(
            cubes.block_length(format, dtype),
            cubes.m0,
            groups if groups > 1 else max(packed.groups, 1),
            RnnSizes() if rnn is None else rnn,
        )


# Behind a pattern stands what its axes are divided by. K is the run (H W 4) of FRACTAL_Z_C04, G the diagonals of groups
BY_AXES: dict[Format, Pattern] = {origin: Pattern.read(" ".join(axes)) for origin, axes in AXES.items()} | {
    Format.FORMAT_NC1HWC0: Pattern.read("N C1 H W C0", C="c0"),
    Format.FORMAT_NC1HWC0_C04: Pattern.read("N C1 H W C0", C="c0"),
    Format.FORMAT_NDC1HWC0: Pattern.read("N D C1 H W C0", C="c0"),
    Format.FORMAT_C1HWC0: Pattern.read("N1 H W N0", N="c0"),
    Format.FORMAT_FRACTAL_Z: Pattern.read("(G C1 H W) N1 N0 C0", C="c0", N=N0),
    Format.FORMAT_FRACTAL_Z_3D: Pattern.read("(G D C1 H W) N1 N0 C0", C="c0", N=N0),
    Format.FORMAT_FRACTAL_Z_3D_TRANSPOSE: Pattern.read("(D H W N1) C1 N0 C0", C="c0", N=N0),
    Format.FORMAT_FRACTAL_Z_C04: Pattern.read("K1 N1 N0 K0", K="c0", N=N0),
    Format.FORMAT_FRACTAL_Z_WINO: Pattern.read("C1 N1 2 (H W) 8 C0", C="c0", N=N0),
    Format.FORMAT_C1HWNCoC0: Pattern.read("C1 H W N1 C0 C0", C="c0", N=N0),
}
"""Layouts made from named axes."""
BY_MATRIX: dict[Format, Pattern] = {
    **dict.fromkeys(FRACTAL_NZ_FORMATS, Pattern.read("J1 I1 I0 J0", I="m0", J="c0")),
    Format.FORMAT_FRACTAL_ZZ: Pattern.read("I1 J1 I0 J0", I="c0", J="c0"),
}
"""Layouts of the last two dims, I and J; the dims before them stay."""
MATRIX_Z = Pattern.read("I1 J1 J0 I0", I="c0", J=N0)
"""FRACTAL_Z of a tensor of rank 2, whatever its origin format."""


def storage_shape(
    origin_shape: Iterable[int],
    origin_format: int,
    format: int,
    dtype: DataType,
    groups: int = 1,
    *,
    cubes: CubeSizes = SERVER_CUBES,
    rnn: RnnSizes | None = None,
) -> Shape:
    """Return the shape that a tensor shows in the layout ``format``.

    Args:
        origin_shape: dims by ``origin_format``; expand them first where a reshape type applies (``expand_dims``).
        origin_format: a format with named axes, or ND.
        format: the layout, alone or packed with groups and C0.
        dtype: element type; gives C0 unless the layout or ``format`` does.
        groups: groups of a convolution, for its filter in FRACTAL_Z and FRACTAL_Z_3D.
        cubes: block lengths of the chip.
        rnn: sizes that FRACTAL_ZN_RNN and ND_RNN_BIAS are made with.

    Scalars, unknown ranks, tensors with fewer dims than their format has axes, and formats that are no private layout
    keep their shape. Raises :class:`LayoutError` for what has no layout.
    """
    shape = Shape(origin_shape)
    origin, target = primary_format(origin_format), primary_format(format)
    if not shape or (origin == Format.FORMAT_ND and target in ORIGIN_FORMATS):
        return shape
    if Format.FORMAT_RESERVED in (origin, target):
        raise LayoutError(f"shape {shape} from {FORMAT_TEXT[origin]} to {FORMAT_TEXT[target]}: RESERVED is no layout")
    blocking = Blocking.of(format, dtype, groups, cubes=cubes, rnn=rnn)
    if shape.is_unknown_rank():
        return shape
    if target in BY_MATRIX:
        return matrix_shape(shape, BY_MATRIX[target], blocking, is_column=target in FRACTAL_NZ_FORMATS)
    if target == Format.FORMAT_FRACTAL_Z and len(shape) == 2:
        return matrix_shape(shape, MATRIX_Z, blocking)
    if target in _BY_LAST_DIMS:
        return _BY_LAST_DIMS[target](shape, blocking)
    if target in BY_AXES or target == Format.FORMAT_FRACTAL_ZN_LSTM:
        extents = axis_extents(shape, origin, target)
        return shape if extents is None else _axes_shape(extents, target, blocking)
    if is_private(target):
        raise LayoutError(f"no storage shape is known for {FORMAT_TEXT[target]}")
    return shape


def matrix_shape(shape: Shape, pattern: Pattern, blocking: Blocking, *, is_column: bool = False) -> Shape:
    """Return the shape of a layout of the last two dims. A vector is a row, or a column if ``is_column``."""
    vector = (*shape, 1) if is_column else (1, *shape)
    *batch, rows, columns = shape if len(shape) > 1 else vector
    lengths = pattern.lengths(blocking.c0, blocking.m0)
    return Shape((*batch, *pattern.shape({"I": rows, "J": columns}, lengths)))


def axis_extents(shape: Shape, origin: Format, target: Format) -> dict[str, int] | None:
    """Return the extents of N, C, H, W (and D) that ``target`` is made from; ``None`` when the shape lacks axes.

    Raises :class:`LayoutError` when the origin has other axes than ``target`` needs, or the shape more than the origin.
    """
    axes = AXES[Format.FORMAT_NCHW] if origin == Format.FORMAT_ND else AXES.get(origin)
    if axes is None:
        raise LayoutError(f"{FORMAT_TEXT[target]} is made from named axes, which {FORMAT_TEXT[origin]} does not have")
    has_depth = target in BY_AXES and "D" in BY_AXES[target].axes
    is_flat_volume = target == Format.FORMAT_NDC1HWC0 and "D" not in axes
    if has_depth != ("D" in axes) and not is_flat_volume:
        needed = "N, C, D, H and W" if has_depth else "N, C, H and W"
        raise LayoutError(f"{FORMAT_TEXT[target]} is made from {needed}; {FORMAT_TEXT[origin]} has {', '.join(axes)}")
    if len(shape) > len(axes):
        raise LayoutError(f"shape {shape} has {len(shape)} dims; {FORMAT_TEXT[origin]} is laid out with {len(axes)}")
    if len(shape) < len(axes):
        return None
    return dict(zip(axes, shape, strict=True)) | ({"D": 1} if is_flat_volume else {})


def c04_extents(extents: dict[str, int]) -> dict[str, int]:
    """Return the extents that FRACTAL_Z_C04 is made from. Raises :class:`LayoutError` for more than 4 channels."""
    if extents["C"] > C04_CHANNELS:
        raise LayoutError(f"FRACTAL_Z_C04 holds filters of at most {C04_CHANNELS} channels, not {extents['C']}")
    is_open = extents["H"] < 0 or extents["W"] < 0
    return extents | {"K": -1 if is_open else C04_CHANNELS * extents["H"] * extents["W"]}


def _axes_shape(extents: dict[str, int], target: Format, blocking: Blocking) -> Shape:
    if target == Format.FORMAT_FRACTAL_ZN_LSTM:
        return _lstm_shape(extents)
    if target == Format.FORMAT_FRACTAL_Z_C04:
        extents = c04_extents(extents)
    elif target in GROUPED_FORMATS:
        extents = _diagonal_extents(extents, blocking)
    pattern = BY_AXES[target]
    return pattern.shape(extents, pattern.lengths(blocking.c0, blocking.m0))


def _diagonal_extents(extents: dict[str, int], blocking: Blocking) -> dict[str, int]:
    filters, channels = extents["N"], extents["C"]
    if channels < 0 and filters >= blocking.groups > 1:
        return extents | {"G": -1, "N": -1}  # how many groups share a diagonal depends on the channels
    found = FilterGroups.of(filters, channels, blocking.groups, blocking.c0)
    return extents | {"G": found.diagonals, "C": found.merged * channels, "N": found.merged * found.filters}


def _lstm_shape(extents: dict[str, int]) -> Shape:
    if extents["N"] < 0 or extents["C"] < 0:
        return Shape((-1, -1, N0, N0))
    hidden = extents["N"] // 4
    state_blocks = blocks(hidden, N0)
    return Shape((-(-(extents["C"] - hidden) // N0) + state_blocks, 4 * state_blocks, N0, N0))


def _rnn_weight_shape(shape: Shape, blocking: Blocking) -> Shape:
    if len(shape) < 2:
        return shape
    *batch, rows, columns = shape
    parts = blocking.rnn.row_parts(rows) if rows >= 0 else ()
    if rows >= 0 and not parts:
        return shape
    row_blocks = sum(blocks(part, N0) for part in parts) if parts else -1
    gates = _gates(columns, blocking)
    gate_blocks = gates * blocks(blocking.rnn.hidden_size, blocking.c0) if gates >= 0 else -1
    return Shape((*batch, row_blocks, gate_blocks, N0, blocking.c0))


def _rnn_bias_shape(shape: Shape, blocking: Blocking) -> Shape:
    gates = _gates(shape[-1], blocking)
    padded = _rounded_up(blocking.rnn.hidden_size, blocking.c0)
    return Shape((*shape[:-1], gates * padded if gates >= 0 else -1))


def _gates(columns: int, blocking: Blocking) -> int:
    hidden = blocking.rnn.hidden_size
    if hidden < 1:
        raise LayoutError(f"layouts of recurrent weights need a hidden_size above 0, not {hidden}")
    return columns // hidden if columns >= 0 else -1


def _aligned_image_shape(shape: Shape, blocking: Blocking) -> Shape:
    if len(shape) < 3:
        return shape
    *batch, rows, columns, last = shape
    return Shape((*batch, _rounded_up(rows, 16), _rounded_up(columns, 64), last))


def _rounded_up(extent: int, step: int) -> int:
    return blocks(extent, step) * step if extent >= 0 else -1


_BY_LAST_DIMS: dict[Format, Callable[[Shape, Blocking], Shape]] = {
    Format.FORMAT_FRACTAL_ZN_RNN: _rnn_weight_shape,
    Format.FORMAT_ND_RNN_BIAS: _rnn_bias_shape,
    Format.FORMAT_NYUV_A: _aligned_image_shape,
}
