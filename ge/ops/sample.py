"""Sampling at free coordinates: GridSampler2D, GridSampler3D, AffineGrid.

Modes are nearest, bilinear (also linear) and bicubic (also cubic); paddings zeros, border and reflection. Ties of
nearest go to the even element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.registry import Array, InferContext, OutputSpec, operator

_MODES = {
    "nearest": "nearest",
    "bilinear": "linear",
    "linear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
    "cubic": "cubic",
}
_CUBIC_A = -0.75
PADDINGS = ("zeros", "border", "reflection")


def _reflect(x: Array, low: float, high: float) -> Array:
    """Mirror coordinates at ``low`` and ``high`` until they lie between."""
    span = high - low
    if span <= 0:
        return np.zeros_like(x)
    away = np.abs(x - low)
    turns = np.floor(away / span)
    rest = away - turns * span
    return np.where(turns % 2 == 0, rest + low, high - rest)


def _held(x: Array, size: int, padding: str, is_aligned: bool) -> Array:
    """Bring coordinates onto the axis by the padding rule; zeros leaves them."""
    if padding == "reflection":
        x = _reflect(x, 0, size - 1) if is_aligned else _reflect(x, -0.5, size - 0.5)
    return x if padding == "zeros" else np.clip(x, 0, size - 1)


def _axis_taps(x: Array, size: int, mode: str, padding: str, is_aligned: bool) -> list[tuple[Array, Array]]:
    """Return (whole positions, weights) of each tap; positions off the axis get the weight 0."""
    if mode == "nearest":
        taps = [(np.round(_held(x, size, padding, is_aligned)), np.ones_like(x))]
    elif mode == "linear":
        x = _held(x, size, padding, is_aligned)
        low = np.floor(x)
        taps = [(low, 1 - (x - low)), (low + 1, x - low)]
    else:
        low = np.floor(x)
        taps = [
            (_held(low + shift, size, padding, is_aligned), _cubic_weight(x - low - shift)) for shift in range(-1, 3)
        ]
    found = []
    for place, weight in taps:
        is_inside = (place >= 0) & (place <= size - 1)
        whole = np.where(is_inside, place, 0).astype(np.int64)
        found.append((np.clip(whole, 0, max(size - 1, 0)), np.where(is_inside, weight, 0).astype(x.dtype)))
    return found


def _cubic_weight(distance: Array) -> Array:
    d, a = np.abs(distance), _CUBIC_A
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def sample(
    x: Array, coordinates: Sequence[Array], mode: str = "linear", padding: str = "zeros", is_aligned: bool = False
) -> Array:
    """Return [N, C, P]: ``x`` [N, C, space] read at P points, ``coordinates`` [N, P] per spatial axis, in elements."""
    n, c, *sizes = x.shape
    flat = x.reshape(n, c, -1)
    axes = [_axis_taps(p, size, mode, padding, is_aligned) for p, size in zip(coordinates, sizes, strict=True)]
    result = np.zeros((n, c, coordinates[0].shape[1]), x.dtype)
    for taps in product(*axes):
        place, weight = np.zeros_like(taps[0][0]), np.ones_like(taps[0][1])
        for (position, factor), size in zip(taps, sizes, strict=True):
            place = place * size + position
            weight = weight * factor
        result += np.take_along_axis(flat, place[:, None, :], 2) * weight[:, None, :]
    return result


def _infer_grid(n_axes: int) -> Callable[[InferContext], Sequence[OutputSpec]]:
    def infer(ctx: InferContext) -> Sequence[OutputSpec]:
        op, x, grid, rank = ctx.op, ctx.shape("x"), ctx.shape("grid"), n_axes + 2
        if op.interpolation_mode not in _MODES or op.padding_mode not in PADDINGS:
            raise ctx.fail(
                f"interpolation_mode {op.interpolation_mode} must be one of {', '.join(_MODES)}, "
                f"padding_mode {op.padding_mode} one of {', '.join(PADDINGS)}"
            )
        x, grid = (Shape([-1] * rank) if s.is_unknown_rank() else s for s in (x, grid))
        if len(x) != rank or len(grid) != rank or grid[-1] not in (n_axes, -1):
            raise ctx.fail(f"x {x} and grid {grid} must have rank {rank}, and the grid {n_axes} coordinates per point")
        if x[0] != grid[0] and -1 not in (x[0], grid[0]):
            raise ctx.fail(f"x {x} and grid {grid} differ in the batch", value="grid")
        return [([x[0] if grid[0] == -1 else grid[0], x[1], *grid[1:-1]], ctx.dtype("x"))]

    return infer


def _grid_sample(op: Any, x: Array, grid: Array) -> Array:
    sizes = x.shape[2:]
    points = grid.reshape(len(grid), -1, len(sizes)).astype(x.dtype if x.dtype.kind == "f" else np.float32)
    coordinates = []
    for axis, size in enumerate(sizes):
        unit = points[..., len(sizes) - 1 - axis] + 1
        coordinates.append(unit / 2 * (size - 1) if op.align_corners else (unit * size - 1) / 2)
    mode = _MODES[op.interpolation_mode]
    y = sample(x, coordinates, mode, op.padding_mode, op.align_corners)
    return y.reshape(*x.shape[:2], *grid.shape[1:-1])


_GRID_ATTRS = "[interpolation_mode:s=bilinear padding_mode:s=zeros align_corners:b=F]"


@operator(f"GridSampler2D(x, grid) {_GRID_ATTRS}", infer=_infer_grid(2))
def grid_sampler_2d(op: Any, x: Array, grid: Array) -> Array:
    return _grid_sample(op, x, grid)


@operator(f"GridSampler3D(x, grid) {_GRID_ATTRS}", infer=_infer_grid(3))
def grid_sampler_3d(op: Any, x: Array, grid: Array) -> Array:
    return _grid_sample(op, x, grid)


def _infer_affine_grid(ctx: InferContext) -> Sequence[OutputSpec]:
    size, theta = ctx.ints("output_size"), ctx.shape("theta")
    if size is None:
        length = ctx.shape("output_size").elements
        return [([-2] if length not in (4, 5) else [-1] * (length - 1) + [length - 2], ctx.dtype("theta"))]
    if len(size) not in (4, 5) or min(size) < 1:
        raise ctx.fail(f"output_size must be N, C and two or three sizes, not {size}", value="output_size")
    n = len(size) - 2
    fits = theta.is_unknown_rank() or (
        len(theta) == 3 and all(d in (-1, w) for d, w in zip(theta, (size[0], n, n + 1), strict=True))
    )
    if not fits:
        raise ctx.fail(f"theta has shape {theta}, but {Shape([size[0], n, n + 1])} is needed", value="theta")
    return [([size[0], *size[2:], n], ctx.dtype("theta"))]


@operator("AffineGrid(theta, output_size) [align_corners:b=F]", infer=_infer_affine_grid)
def affine_grid(op: Any, theta: Array, output_size: Array) -> Any:
    """Return the grid [N, (D,) H, W, coordinates] that GridSampler reads, coordinates in the order x, y, (z)."""
    n, _, *sizes = np.ravel(output_size).tolist()
    lines = []
    for size in sizes:
        steps = np.arange(size, dtype=theta.dtype)
        if op.align_corners:
            lines.append(steps * theta.dtype.type(2 / max(size - 1, 1)) - 1 if size > 1 else steps)
        else:
            lines.append((steps * 2 + 1) / theta.dtype.type(size) - 1)
    grids = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*grids[::-1], np.ones_like(grids[0])], -1).reshape(-1, len(sizes) + 1)
    return np.matmul(points, theta.swapaxes(1, 2)).reshape(n, *sizes, len(sizes))
