"""Kernels by operator family; importing the package registers them all."""

from simulator.kernels import activation, conv, math, pool, selection
from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import Kernel, KernelRequest, choose, kernel, kernel_types

FAMILIES = (activation, conv, math, pool, selection)

__all__ = ["FAMILIES", "Kernel", "KernelRequest", "choose", "kernel", "kernel_types", "reference_kernel"]
