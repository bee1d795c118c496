"""The TensorFlow front end: a frozen graph becomes a GE graph.

    graph = parse("model.pb", session)

An operator is added with one line in the module of its family (``math.py``, ``reduce.py``, ...); see ``mapping.py``.
"""

from parsers.refusal import CheckedNode
from parsers.tensorflow.front_end import parse, precheck
from parsers.tensorflow.mapping import mapped_operators

__all__ = ["CheckedNode", "mapped_operators", "parse", "precheck"]
