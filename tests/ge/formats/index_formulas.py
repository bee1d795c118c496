"""The slow oracle of the layout tests: index formulas applied to one element after the other.

It shares nothing with the product: per layout it says what the dims of the storage are and where an element goes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import gcd, lcm
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Dims = tuple[int, ...]
Place = Callable[..., Dims]

LETTERS = {name: name for name in ("NCHW", "NHWC", "HWCN", "CHWN", "NCDHW", "NDHWC", "DHWCN", "DHWNC")}


def cd(a: int, b: int) -> int:
    return -(-a // b)


def lay_out(source: Array, origin: str, layout: str, c0: int, m0: int = 16, groups: int = 1, rnn=(1, 1)) -> Array:
    """Return `source` in the layout, element by element, in the shape in which its dims are numbered below."""
    if layout in MATRICES:
        dims, place = MATRICES[layout](source.shape, c0, m0)
        return scatter(source, dims, place)
    if layout in RNN:
        dims, place = RNN[layout](source.shape, c0, *rnn)
        return scatter(source, dims, place)
    letters = LETTERS.get(origin, "NCHW")
    if layout in LETTERS:
        order = [letters.index(axis) for axis in layout]
        dims = tuple(source.shape[axis] for axis in order)
        return scatter(source, dims, lambda *at: tuple(at[axis] for axis in order))
    dims, place = NAMED[layout]({"D": 1, **dict(zip(letters, source.shape, strict=True))}, c0, groups)
    return scatter(source, dims, lambda *at: place(**{"d": 0, **dict(zip(letters.lower(), at, strict=True))}))


def scatter(source: Array, dims: Dims, place: Place) -> Array:
    target = np.zeros(dims, source.dtype)
    for index in product(*map(range, source.shape)):
        at = place(*index)
        assert all(0 <= i < dim for i, dim in zip(at, dims, strict=True)), (index, at, dims)
        target[at] = source[index]
    return target


# -- layouts of named axes: dims, and the place of the element (n, c, d, h, w) ----------------------------------------
def five_dims(x, c0, groups):
    dims = (x["N"], cd(x["C"], c0), x["H"], x["W"], c0)
    return dims, lambda n, c, d, h, w: (n, c // c0, h, w, c % c0)


def six_dims(x, c0, groups):
    dims = (x["N"], x["D"], cd(x["C"], c0), x["H"], x["W"], c0)
    return dims, lambda n, c, d, h, w: (n, d, c // c0, h, w, c % c0)


def fractal_z(x, c0, groups):
    """[G1, D, C1, H, W, N16, C0]; filter o = group * co + j, place e of its group among those that share blocks."""
    n, c = x["N"], x["C"]
    if groups <= 1 or n < groups:
        groups = 1
    co = n // groups
    shared = 1 if groups == 1 else min(lcm(c0 // gcd(c, c0), 16 // gcd(co, 16)), groups)
    rows = cd(co * shared, 16) * 16
    dims = (cd(groups, shared), x["D"], cd(c * shared, c0), x["H"], x["W"], rows, c0)

    def place(n, c, d, h, w):
        group, j = divmod(n, co)
        e = group % shared
        channel = e * x["C"] + c
        return (group // shared, d, channel // c0, h, w, e * co + j, channel % c0)

    return dims, place


def fractal_z_3d_transpose(x, c0, groups):
    """FRACTAL_Z_3D with filters and channels in each other's role: [D, N1, H, W, C16, N0]."""
    dims = (x["D"], cd(x["N"], c0), x["H"], x["W"], cd(x["C"], 16) * 16, c0)
    return dims, lambda n, c, d, h, w: (d, n // c0, h, w, c, n % c0)


def fractal_z_c04(x, c0, groups):
    dims = (cd(4 * x["H"] * x["W"], c0), cd(x["N"], 16), 16, c0)

    def place(n, c, d, h, w):
        k = ((h * x["W"]) + w) * 4 + c
        return (k // c0, n // 16, n % 16, k % c0)

    return dims, place


def c1hwncoc0(x, c0, groups):
    dims = (cd(x["C"], c0), x["H"], x["W"], x["N"], c0, c0)
    return dims, lambda n, c, d, h, w: (c // c0, h, w, n, c % c0, c % c0)


NAMED = {
    "NC1HWC0": five_dims,
    "NC1HWC0_C04": lambda x, c0, groups: five_dims(x, 4, groups),
    "NDC1HWC0": six_dims,
    "FRACTAL_Z": fractal_z,
    "FRACTAL_Z_3D": fractal_z,
    "FRACTAL_Z_3D_TRANSPOSE": fractal_z_3d_transpose,
    "FRACTAL_Z_C04": fractal_z_c04,
    "C1HWNCoC0": c1hwncoc0,
}


# -- layouts of the last two dims: dims, and the place of the element (..., i, j) --------------------------------------
def matrix_dims(shape: Dims) -> tuple[Dims, int, int]:
    *batch, rows, columns = shape if len(shape) > 1 else (1, *shape)
    return tuple(batch), rows, columns


def split(index: Dims) -> tuple[Dims, int, int]:
    *batch, i, j = index if len(index) > 1 else (0, *index)
    return tuple(batch), i, j


def fractal_nz(shape, c0, m0):
    batch, a, b = matrix_dims(shape)

    def place(*index):
        lead, i, j = split(index)
        return (*lead, j // c0, i // m0, i % m0, j % c0)

    return (*batch, cd(b, c0), cd(a, m0), m0, c0), place


def fractal_zz(shape, c0, m0):
    batch, a, b = matrix_dims(shape)

    def place(*index):
        lead, i, j = split(index)
        return (*lead, i // c0, j // c0, i % c0, j % c0)

    return (*batch, cd(a, c0), cd(b, c0), c0, c0), place


def fractal_z_of_matrix(shape, c0, m0):
    """a = C, b = N with H = W = 1."""
    a, b = shape
    return (cd(a, c0), cd(b, 16), 16, c0), lambda i, j: (i // c0, j // 16, j % 16, i % c0)


MATRICES = {
    "FRACTAL_NZ": fractal_nz,
    "FRACTAL_NZ_C0_16": lambda shape, c0, m0: fractal_nz(shape, 16, m0),
    "FRACTAL_NZ_C0_32": lambda shape, c0, m0: fractal_nz(shape, 32, m0),
    "FRACTAL_ZZ": fractal_zz,
    "FRACTAL_Z of a matrix": fractal_z_of_matrix,
}


# -- recurrent operators: rows of input and state, columns gate by gate -----------------------------------------------
def fractal_zn_rnn(shape, c0, hidden, inputs):
    """[K1, N1, n, k]: both parts of the rows begin a block, and so does every gate."""
    *batch, k, n = shape
    both = k == inputs + hidden
    blocks = cd(inputs, 16) + cd(hidden, 16) if both else cd(k, 16)
    gates = n // hidden

    def place(*index):
        *lead, i, j = index
        row = cd(inputs, 16) * 16 + i - inputs if both and i >= inputs else i
        gate, unit = divmod(j, hidden)
        column = gate * cd(hidden, 16) * 16 + unit
        return (*lead, row // 16, column // 16, column % 16, row % 16)

    return (*batch, blocks, gates * cd(hidden, 16), 16, 16), place


def nd_rnn_bias(shape, c0, hidden, inputs):
    *batch, n = shape
    padded = cd(hidden, c0) * c0

    def place(*index):
        *lead, j = index
        return (*lead, j // hidden * padded + j % hidden)

    return (*batch, n // hidden * padded), place


RNN = {"FRACTAL_ZN_RNN": fractal_zn_rnn, "ND_RNN_BIAS": nd_rnn_bias}
