"""Ascend-compatible ground floor: types, graph IR, operator definitions, options, errors, plan data."""

__version__ = "0.1.0"
