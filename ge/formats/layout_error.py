"""The fault of arguments that have no layout."""

from __future__ import annotations


class LayoutError(ValueError):
    """A tensor that cannot lie in memory as asked; the message says what was needed and what was found.

    Raised by rules that know no node: callers who know it turn it into their own report.
    """
