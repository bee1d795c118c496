"""Functions of custom operators: which there are is known when they are registered."""

from typing import Any

def __getattr__(name: str) -> Any: ...
