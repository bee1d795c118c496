"""Single operators under test: run ours through graph, inference and evaluation; run ONNX's through an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from ge.graph import Graph, Node, Tensor, TensorDesc
from ge.graph.types import data_type_of
from ge.ops import definition, infer_node

onnxruntime.set_default_logger_severity(4)


def build_node(
    type: str,
    inputs: Sequence[np.ndarray | None],
    attrs: dict[str, Any],
    n_outputs: int = 1,
    *,
    constant: bool = True,
    unknown: bool = False,
) -> Node:
    """Return a node whose inputs are Const nodes, or Data nodes of the arrays' shapes (all dims unknown on demand)."""
    graph = Graph()
    sources = []
    for index, array in enumerate(inputs):
        if array is None:
            sources.append(None)
        elif constant:
            sources.append(graph.add_const(f"in{index}", Tensor.of(array)))
        else:
            dims = [-1] * array.ndim if unknown else array.shape
            desc = TensorDesc(dims, data_type=data_type_of(array.dtype))
            sources.append(graph.add_node("Data", f"in{index}", attrs={"index": index}, output_descs=[desc]).output(0))
    return graph.add_node(type, "node", sources, attrs, n_outputs)


def inferred(
    type: str, inputs: Sequence[np.ndarray | None], attrs: dict[str, Any], n_outputs: int = 1, **how: bool
) -> list[TensorDesc]:
    """Return the inferred output descriptors."""
    node = build_node(type, inputs, attrs, n_outputs, **how)
    infer_node(node)
    return node.output_descs


def fits(shape: Sequence[int], desc: TensorDesc) -> bool:
    """Tell whether a real shape is one that the descriptor allows."""
    dims = desc.origin_shape
    return dims.is_unknown_rank() or (
        len(dims) == len(shape) and all(d in (-1, s) for d, s in zip(dims, shape, strict=True))
    )


def run_ge(
    type: str, inputs: Sequence[np.ndarray | None], attrs: dict[str, Any] | None = None, n_outputs: int = 1
) -> list[np.ndarray]:
    """Infer and evaluate one operator, and hold inference to what came out, with and without knowledge of values."""
    attrs = {} if attrs is None else attrs
    node = build_node(type, inputs, attrs, n_outputs)
    infer_node(node)
    types = [desc.data_type for desc in node.output_descs]
    results = definition(node).evaluate(attrs, inputs, types)
    assert len(results) >= n_outputs
    views = {
        "constant": node.output_descs,
        "known shapes": inferred(type, inputs, attrs, n_outputs, constant=False),
        "unknown dims": inferred(type, inputs, attrs, n_outputs, constant=False, unknown=True),
    }
    for view, descs in views.items():
        for result, desc in zip(results, descs, strict=True):
            assert fits(result.shape, desc), f"{view}: inferred {desc}, computed {result.shape}"
            assert data_type_of(result.dtype) is desc.data_type, f"{view}: inferred {desc}, computed {result.dtype}"
    return results


def onnx_model(
    type: str,
    inputs: Sequence[np.ndarray | None],
    attrs: dict[str, Any],
    n_outputs: int,
    opset: int,
    domain: str = "",
    output_types: Sequence[int] | None = None,
) -> onnx.ModelProto:
    """Return a model of one ONNX node; trailing absent inputs are left out."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    names = ["" if array is None else f"in{index}" for index, array in enumerate(inputs)]
    outputs = [f"out{index}" for index in range(n_outputs)]
    node = helper.make_node(type, names, outputs, domain=domain, **attrs)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
        if array is not None
    ]
    types = [0] * n_outputs if output_types is None else output_types
    results = [
        helper.make_tensor_value_info(name, t, None) if t else onnx.ValueInfoProto(name=name)
        for name, t in zip(outputs, types, strict=True)
    ]
    graph = helper.make_graph([node], "one", values, results)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def run_onnx(
    type: str,
    inputs: Sequence[np.ndarray | None],
    attrs: dict[str, Any] | None = None,
    n_outputs: int = 1,
    opset: int = 21,
    *,
    reference: bool = False,
) -> list[np.ndarray]:
    """Run one ONNX node in onnxruntime (or in onnx's reference evaluator)."""
    model = onnx_model(type, inputs, {} if attrs is None else attrs, n_outputs, opset)
    feeds = {f"in{index}": np.asarray(array) for index, array in enumerate(inputs) if array is not None}
    if reference:
        return ReferenceEvaluator(model).run(None, feeds)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def data(seed: int, *shape: int, dtype: Any = np.float32, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return seeded uniform data."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return values.astype(dtype)


def assert_close(found: np.ndarray, expected: np.ndarray, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Compare values and shapes; float tolerances are relative to the largest magnitude of ``expected``."""
    assert found.shape == expected.shape
    finite = np.abs(expected[np.isfinite(expected)]) if expected.dtype.kind == "f" else np.array([1.0])
    scale = max(float(finite.max(initial=0.0)), 1e-30)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol * scale)
