"""Is the package ``ge`` that Python would import our own? A CANN installation has one of the same name."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def foreign_ge() -> str | None:
    """Return where ``ge`` would come from if that is not beside this package, else None. Imports nothing."""
    spec = importlib.util.find_spec("ge")
    folder = Path(spec.origin).resolve().parent if spec and spec.origin else None
    if folder == Path(__file__).resolve().parent.parent / "ge":
        return None
    return str(folder) if folder else "nowhere"


def explanation(folder: str) -> str:
    """Return the text that the command lines show for a foreign ``ge``."""
    return (
        f"The Python package 'ge' would be taken from {folder}, which is not part of this compiler.\n"
        "Remove that folder from PYTHONPATH for this command: a CANN installation brings a package of the same name."
    )
