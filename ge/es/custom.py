"""Functions of custom operators: those registered with the plugin ``custom``."""

from __future__ import annotations

from typing import Any

from ge.es import plugins


def __getattr__(name: str) -> Any:
    return plugins.attribute("custom", name)


def __dir__() -> list[str]:
    return plugins.offered("custom")
