"""Kernels by operator family; importing the package registers them all."""

from simulator.kernels import (
    activation,
    cast,
    concat,
    conv,
    conv_channels_last,
    conv_transpose,
    expand,
    gather,
    math,
    matmul,
    norm,
    pad,
    pool,
    rearrange,
    reduce,
    selection,
    slicing,
    softmax,
    storage,
)
from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import Kernel, KernelRequest, choose, kernel, kernel_types

FAMILIES = (
    activation,
    cast,
    concat,
    conv,
    conv_channels_last,
    conv_transpose,
    expand,
    gather,
    math,
    matmul,
    norm,
    pad,
    pool,
    rearrange,
    reduce,
    selection,
    slicing,
    softmax,
    *storage.FAMILIES,
)

__all__ = ["FAMILIES", "Kernel", "KernelRequest", "choose", "kernel", "kernel_types", "reference_kernel"]
