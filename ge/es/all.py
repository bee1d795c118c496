"""All operator functions."""

from __future__ import annotations

from typing import Any

from ge.es import plugins


def __getattr__(name: str) -> Any:
    return plugins.attribute("all", name)


def __dir__() -> list[str]:
    return plugins.offered("all")
