"""Kernels that work on storage layouts, by operator family; importing the package registers them."""

from simulator.kernels.storage import conv, elementwise, trans_data

FAMILIES = (conv, elementwise, trans_data)

__all__ = ["FAMILIES"]
