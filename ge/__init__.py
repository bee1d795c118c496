"""Ascend-compatible ground floor: types, graph IR, operator definitions, options, errors, plan data."""
