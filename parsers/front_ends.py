"""The front ends by kind of model. Each is loaded when it is first needed."""

from __future__ import annotations

import os

from google.protobuf.message import Message

from ge.graph import Graph
from ge.options import Framework
from ge.session import CompileSession
from parsers.refusal import CheckedNode

Source = str | os.PathLike[str] | bytes | Message
"""A path, the content of a file, or a message of the kind that the framework has."""


def parse_model(source: Source, session: CompileSession) -> Graph:
    """Turn a model into a GE graph; ``session.options.framework`` says what kind it is."""
    if session.options.framework is Framework.TENSORFLOW:
        from parsers import tensorflow

        return tensorflow.parse(source, session)  # type: ignore[arg-type]
    from parsers import onnx

    return onnx.parse(source, session)  # type: ignore[arg-type]


def precheck_model(source: Source, session: CompileSession) -> list[CheckedNode]:
    """Check every node of a model without building it; ``session.options.framework`` says what kind it is."""
    if session.options.framework is Framework.TENSORFLOW:
        from parsers import tensorflow

        return tensorflow.precheck(source, session)  # type: ignore[arg-type]
    from parsers import onnx

    return onnx.precheck(source, session)  # type: ignore[arg-type]


def recognise(content: bytes | memoryview) -> Framework:
    """Return what kind of model a file holds; ONNX, whose reader says more, where that cannot be told."""
    from parsers.tensorflow.model import is_frozen_graph

    return Framework.TENSORFLOW if is_frozen_graph(content) else Framework.ONNX
