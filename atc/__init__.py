"""The compiler as a program uses it, and its command lines: ``atc``, ``om-run``, ``ge-opt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atc.library import compile_model

__all__ = ["compile_model"]


def __getattr__(name: str) -> Any:
    # late, because the command lines first look whether the package `ge` that it needs is our own
    if name == "compile_model":
        from atc.library import compile_model

        return compile_model
    raise AttributeError(f"module 'atc' has no attribute {name!r}")
