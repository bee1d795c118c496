"""What a graph means, in numpy: operators of the model by their reference semantics, kernels by their AscGraph.

The kernels are evaluated whole, operator by operator, in float64 where the type is floating: only views, guards, axes
and the choice of operators are at stake here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ge.ascir import AscGraph, AscOp, AscTensor, ComputeType, parse_asc_graph
from ge.formats import origin_array, stored_array
from ge.graph import Graph, NodeOut
from ge.graph.types import numpy_dtype
from ge.ops import lookup
from ge.ops.math import truncated_quotient

Array = np.ndarray[Any, Any]
erf = np.vectorize(math.erf, otypes=[np.float64])


def _floor_div(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b) if a.dtype.kind in "iu" else np.floor(a / b)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "Acos": np.arccos, "Asin": np.arcsin, "Erf": erf, "Exp": np.exp, "IsFinite": np.isfinite,
    "Isnan": np.isnan, "Ln": np.log, "LogicalNot": np.logical_not, "Neg": np.negative, "Reciprocal": lambda a: 1 / a,
    "Relu": lambda a: np.maximum(a, 0), "Rsqrt": lambda a: 1 / np.sqrt(a), "Sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "Sign": np.sign, "Sqrt": np.sqrt, "Tanh": np.tanh, "Gelu": lambda a: a * (1 + erf(a / math.sqrt(2))) / 2,
    "BitwiseNot": np.invert, "Ceil": np.ceil, "Cos": np.cos, "Exp2": np.exp2, "Expm1": np.expm1, "Floor": np.floor,
    "IsInf": np.isinf, "Log1p": np.log1p, "Round": np.rint, "Sin": np.sin, "Square": np.square, "Tan": np.tan,
    "Add": np.add, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "Div": truncated_quotient, "TrueDiv": np.divide, "FloorDiv": _floor_div, "Eq": np.equal, "Ge": np.greater_equal,
    "Gt": np.greater, "Le": np.less_equal, "Lt": np.less, "Ne": np.not_equal, "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or, "Maximum": np.maximum, "Minimum": np.minimum, "Mul": np.multiply, "Pow": np.power,
    "Sub": np.subtract, "Where": np.where, "ClipByValue": lambda a, low, high: np.minimum(np.maximum(a, low), high),
}  # fmt: skip
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "All": np.all, "Any": np.any, "Max": np.max, "Mean": np.mean, "Min": np.min, "Prod": np.prod, "Sum": np.sum,
}  # fmt: skip
IDENTITY = {"Max": -np.inf, "Min": np.inf, "Prod": 1, "Sum": 0}


def run_kernel(graph: AscGraph, inputs: list[Array]) -> list[Array]:
    """Evaluate a kernel on arrays and return what its stores write, in order of the outputs."""
    values: dict[int, Any] = {}
    for number, op in enumerate(graph.ops):
        if op.type != "Output":
            values[number] = _evaluate(graph, op, values, inputs)
    return [values[store] for store in graph.outputs]


def _work_type(tensor: AscTensor) -> Any:
    dtype = numpy_dtype(tensor.dtype)
    return dtype if np.dtype(dtype).kind in "iu" else np.float64


def _evaluate(graph: AscGraph, op: AscOp, values: Mapping[int, Any], inputs: list[Array]) -> Any:
    tensor = op.tensor
    arguments = [values[number] for number in op.inputs]
    if op.type == "Data":
        memory = np.ascontiguousarray(inputs[op.attr("index")]).ravel()
        return memory.astype(_work_type(tensor)), tensor
    if op.type == "Load":
        memory, view = arguments[0]
        return np.broadcast_to(_view(memory, view, op.attr("offset")), tensor.repeats).copy()
    if op.type == "Store":
        kept = np.where(_is_real(op, tensor.repeats), arguments[0], 0)
        return kept.astype(numpy_dtype(tensor.dtype))
    if op.type == "Scalar":
        text = op.attr("value")
        number = int(text) if _work_type(tensor) is not np.float64 else float(text)
        return np.full(tensor.repeats, number, _work_type(tensor))
    if op.type == "Gather":
        params, places = (_view(memory, view, 0) for memory, view in arguments)
        return np.take(params, places.astype(np.int64), axis=op.attr("axis"))
    if op.compute_type is ComputeType.REDUCE:
        return _reduce(op, arguments[0])
    return _compute(op, arguments).astype(_work_type(tensor))


def _view(memory: Array, view: AscTensor, offset: int) -> Array:
    assert view.span == 0 or offset + view.span <= memory.size
    step = memory.itemsize
    start = memory[offset:] if view.span else memory[:0]
    return np.lib.stride_tricks.as_strided(start, view.repeats, [s * step for s in view.strides])


def _is_real(op: AscOp, dims: tuple[int, ...]) -> Any:
    places = np.indices(dims, sparse=True)
    real = np.ones(dims, bool)
    for *coefficients, extent in op.attr("guards"):
        real &= sum((c * z for c, z in zip(coefficients, places, strict=True)), np.zeros(dims, int)) < extent
    return real


def _reduce(op: AscOp, value: Array) -> Any:
    axes = tuple(k for k, (have, left) in enumerate(zip(value.shape, op.tensor.repeats, strict=True)) if have != left)
    if op.attr("guards"):
        value = np.where(_is_real(op, value.shape), value, IDENTITY[op.type])
    return REDUCTIONS[op.type](value, axis=axes, keepdims=True).astype(_work_type(op.tensor))


def _compute(op: AscOp, arguments: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        match op.type:
            case "Broadcast":
                return np.broadcast_to(arguments[0], op.tensor.repeats)
            case "Cast":
                return _cast(arguments[0], _work_type(op.tensor), numpy_dtype(op.tensor.dtype))
            case "Concat":
                return np.concatenate(arguments, op.attr("axis"))
            case "Split":
                start, axis = op.attr("start"), op.attr("axis")
                return np.take(arguments[0], range(start, start + op.tensor.repeats[axis]), axis)
            case "LeakyRelu":
                return np.where(arguments[0] >= 0, arguments[0], arguments[0] * op.attr("negative_slope"))
            case "MatMul" | "BatchMatMul" | "MatMulBias" | "BatchMatMulBias":
                a, b = (
                    np.swapaxes(x, -1, -2) if op.attr(f"transpose_x{k + 1}") else x for k, x in enumerate(arguments[:2])
                )
                return a @ b + (arguments[2] if len(arguments) > 2 else 0)
        return np.broadcast_to(FUNCTIONS[op.type](*arguments), op.tensor.repeats)


def _cast(value: Array, work_type: Any, dtype: Any) -> Any:
    if value.dtype.kind == "f" and work_type is not np.float64:
        limits = np.iinfo(dtype)
        return np.nan_to_num(np.clip(np.trunc(value), limits.min, limits.max))
    return value.astype(dtype).astype(work_type)


# -- graphs ------------------------------------------------------------------------------------------------------------
def run_graph(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """Evaluate a graph on its inputs, given in the origin view by name; results are in the origin view."""
    values: dict[NodeOut, Array] = {}  # as stored
    for node in graph.topological_order():
        if node.type == "Data":
            values[node.output()] = stored_array(feeds[node.name], node.output_descs[0])
        elif node.type == "Const":
            values[node.output()] = node.attrs["value"].array  # lies as it is stored
        elif node.type in ("AscBackend", "AscBackendNoKernelOp"):
            given = [values[source] for source in node.inputs if source is not None]
            for index, made in enumerate(run_kernel(parse_asc_graph(node.attrs["asc_graph"]), given)):
                desc = node.output_descs[index]
                values[node.output(index)] = made.reshape(desc.shape).astype(numpy_dtype(desc.data_type))
        elif node.type == "TransData":  # the same tensor in another layout
            [source] = [s for s in node.inputs if s is not None]
            values[node.output()] = stored_array(origin_array(values[source], source.desc), node.output_descs[0])
        elif node.type != "NetOutput":
            definition = lookup(node.type)
            assert definition is not None
            inputs = [None if s is None else origin_array(values[s], s.desc) for s in node.inputs]
            made = definition.evaluate(node.attrs, inputs, [desc.data_type for desc in node.output_descs])
            for index, array in enumerate(made):
                values[node.output(index)] = stored_array(array, node.output_descs[index])
    return [origin_array(values[source], source.desc) for source in graph.outputs]
