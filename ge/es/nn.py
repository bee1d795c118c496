"""Operator functions, as CANN's package of neural network operators is imported."""

from __future__ import annotations

from typing import Any

from ge.es import plugins


def __getattr__(name: str) -> Any:
    return plugins.attribute("nn", name)


def __dir__() -> list[str]:
    return plugins.offered("nn")
