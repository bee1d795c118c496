"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def value(name: str, dims: Sequence[int | str | None] | None = (1, 3, 4, 4), elem_type: int = F32) -> ValueInfoProto:
    """Return a graph input or output; ``dims`` may hold names and None, or be None for no shape."""
    return helper.make_tensor_value_info(name, elem_type, dims)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto | str] = ("x",),
    outputs: Sequence[ValueInfoProto | str] = ("y",),
    initializers: Mapping[str, Any] | None = None,
    name: str = "g",
) -> GraphProto:
    """Return a graph; an input or output given by name is float32 of shape [1,3,4,4]."""
    tensors = [
        t if isinstance(t, TensorProto) else numpy_helper.from_array(np.asarray(t), key)
        for key, t in (initializers or {}).items()
    ]
    ends = [[value(v) if isinstance(v, str) else v for v in values] for values in (inputs, outputs)]
    return helper.make_graph(nodes, name, *ends, tensors)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto | str] = ("x",),
    outputs: Sequence[ValueInfoProto | str] = ("y",),
    initializers: Mapping[str, Any] | None = None,
    *,
    opset: int = 13,
    imports: Mapping[str, int] | None = None,
    functions: Sequence[Any] = (),
) -> ModelProto:
    """Return a model of one graph; see :func:`graph`."""
    opsets = [helper.make_opsetid(domain, v) for domain, v in {"": opset, **(imports or {})}.items()]
    whole = graph(nodes, inputs, outputs, initializers)
    return helper.make_model(whole, opset_imports=opsets, functions=list(functions), ir_version=10)


def node(op_type: str, inputs: str, outputs: str = "y", name: str = "n", **attributes: Any) -> NodeProto:
    """Return a node; tensor names are separated by blanks, ``_`` is an absent one."""

    def names(text: str) -> list[str]:
        return ["" if word == "_" else word for word in text.split()]

    return helper.make_node(op_type, names(inputs), names(outputs), name, **attributes)


def one(op_type: str, *inputs: Any, outputs: int = 1, opset: int = 13, **attributes: Any) -> ModelProto:
    """Return a model of one node named ``n``.

    An input is an array (a constant), the dims of a float32 model input, or None (absent); they are named x0, x1, ...
    Outputs are y0, y1, ...
    """
    names = ["" if item is None else f"x{i}" for i, item in enumerate(inputs)]
    fed = [value(f"x{i}", list(item)) for i, item in enumerate(inputs) if isinstance(item, tuple | list)]
    constants = {
        f"x{i}": item for i, item in enumerate(inputs) if isinstance(item, np.ndarray | np.generic | TensorProto)
    }
    results = [f"y{j}" for j in range(outputs)]
    made = helper.make_node(op_type, names, results, "n", **attributes)
    return model([made], fed, [ValueInfoProto(name=name) for name in results], constants, opset=opset)
