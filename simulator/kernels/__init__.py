"""Kernels by operator family; importing the package registers them all."""

from simulator.kernels.reference import reference_kernel
from simulator.kernels.registry import Kernel, KernelRequest, choose, kernel, kernel_types

__all__ = ["Kernel", "KernelRequest", "choose", "kernel", "kernel_types", "reference_kernel"]
