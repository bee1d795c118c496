"""Kernels that work on storage layouts, by operator family; importing the package registers them."""

from simulator.kernels.storage import (
    channels,
    conv,
    conv_transpose,
    elementwise,
    join,
    matmul,
    pool,
    reduce,
    resize,
    rows,
    trans_data,
)

FAMILIES = (channels, conv, conv_transpose, elementwise, join, matmul, pool, reduce, resize, rows, trans_data)

__all__ = ["FAMILIES"]
