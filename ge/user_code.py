"""What files and functions of users raise, as text."""

from __future__ import annotations

MAX_TEXT = 4000
"""Characters of an exception's text that are shown."""


def text_of(fault: BaseException) -> str:
    """Return what an exception says, shortened if it says very much; also if it fails to say it."""
    try:
        text = str.__str__(str(fault))  # not a subclass with methods of its own
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)"
    except KeyboardInterrupt:
        raise
    except BaseException as second:  # noqa: BLE001 - a __str__ of the user
        return f"(its text cannot be made: {type(second).__name__})"
