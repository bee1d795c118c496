"""The ONNX front end: a model file becomes a GE graph.

    graph = parse("model.onnx", session)

An operator is added with one line in the module of its family (``math.py``, ``reduce.py``, ...); see ``mapping.py``.
"""

from parsers.onnx.custom import check_onnx_names
from parsers.onnx.front_end import parse, precheck
from parsers.refusal import CheckedNode

__all__ = ["CheckedNode", "check_onnx_names", "parse", "precheck"]
