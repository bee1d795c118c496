"""The exception of the pass API (CANN's import path ``ge.error``)."""

from __future__ import annotations


class GeError(RuntimeError):
    """An operation on a graph that cannot be done."""


class GraphEditError(GeError, ValueError):
    """A change that would break a graph; the message names the graph, the node, what was expected and what was found.

    It is a ``RuntimeError`` for users of the pass API, and a ``ValueError`` for code that checks its own arguments.
    """
