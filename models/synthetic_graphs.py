"""Graphs of any number of nodes, in the forms that strain a compiler differently.

`make(name, n)` returns a model of about `n` nodes with one input `x` [1,8]. Values depend on the input all the way
through, so that a wrong result shows. Only what computes shapes may be put together by a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

WIDTH = 8
Parts = tuple[list[NodeProto], dict[str, NDArray[np.generic]], list[str]]
"""Nodes, initializers, names of the outputs."""


def _node(op_type: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], f"{op_type}_{output}", **attributes)


def chain(n: int) -> Parts:
    """Each node reads the one before: x = 2 log(sqrt(exp(x))), again and again."""
    steps = [("Exp", ""), ("Sqrt", ""), ("Log", ""), ("Mul", "two")]
    nodes, last = [], "x"
    for i in range(n):
        op_type, operand = steps[i % len(steps)]
        nodes.append(_node(op_type, f"{last} {operand}", f"t{i}"))
        last = f"t{i}"
    return nodes, {"two": np.asarray(np.float32(2))}, [last]


def fan_out(n: int) -> Parts:
    """All nodes read the input, one reads all of them."""
    scales = {f"scale{k}": np.float32((k + 1) / n) for k in range(7)}
    nodes = [_node("Mul", f"x scale{i % 7}", f"t{i}") for i in range(n - 1)]
    nodes.append(_node("Sum", " ".join(f"t{i}" for i in range(n - 1)), "y"))
    return nodes, {name: np.asarray(value) for name, value in scales.items()}, ["y"]


def residual(n: int) -> Parts:
    """Blocks y = x + f(x), one behind the other."""
    nodes, last = [], "x"
    for i in range(n // 3):
        nodes += [
            _node("Sin", last, f"s{i}"),
            _node("Mul", f"s{i} little", f"m{i}"),
            _node("Add", f"{last} m{i}", f"r{i}"),
        ]
        last = f"r{i}"
    return nodes, {"little": np.asarray(np.float32(3 / n))}, [last]


def skips(n: int) -> Parts:
    """The first third is read again in reverse order: a third of all tensors is alive at once."""
    nodes, last = [], "x"
    for i in range(n // 3):
        nodes.append(_node("Sin", last, f"d{i}"))
        last = f"d{i}"
    for i in reversed(range(n // 3)):
        nodes += [_node("Add", f"{last} d{i}", f"a{i}"), _node("Mul", f"a{i} half", f"u{i}")]
        last = f"u{i}"
    return nodes, {"half": np.asarray(np.float32(0.5))}, [last]


def constants(n: int) -> Parts:
    """The sum of many sin(x + c), each with a constant of its own."""
    terms = range(n // 2)
    nodes = [_node("Add", f"x c{i}", f"a{i}") for i in terms] + [_node("Sin", f"a{i}", f"s{i}") for i in terms]
    nodes.append(_node("Sum", " ".join(f"s{i}" for i in terms), "y"))
    values: dict[str, NDArray[np.generic]] = {
        f"c{i}": np.random.default_rng(i).uniform(0, 1, WIDTH).astype(np.float32) for i in terms
    }
    return nodes, values, ["y"]


def shape_arithmetic(n: int) -> Parts:
    """Exporters' way of writing down a reshape: the target is computed from the shape of the tensor."""
    nodes, last = [], "x"
    for i in range(n // 5):
        nodes += [
            _node("Shape", last, f"shape{i}"),
            _node("Gather", f"shape{i} second", f"width{i}", axis=0),
            _node("Concat", f"minus_one width{i}", f"target{i}", axis=0),
            _node("Reshape", f"{last} target{i}", f"r{i}"),
            _node("Log" if i % 2 else "Exp", f"r{i}", f"t{i}"),
        ]
        last = f"t{i}"
    return nodes, {"second": np.array([1]), "minus_one": np.array([-1])}, [last]


def branches(n: int) -> Parts:
    """Ifs of two bodies of one node each, one behind the other."""
    nodes = [_node("ReduceSum", "x", "sum", keepdims=0), _node("Greater", "sum limit", "is_large")]
    last = "x"
    for i in range(n // 3):
        bodies = {}
        for branch, op_type in (("then_branch", "Neg"), ("else_branch", "Identity")):
            result = helper.make_tensor_value_info(f"{branch}{i}", TensorProto.FLOAT, [1, WIDTH])
            bodies[branch] = helper.make_graph([_node(op_type, last, f"{branch}{i}")], f"{branch}{i}", [], [result])
        nodes.append(_node("If", "is_large", f"t{i}", **bodies))
        last = f"t{i}"
    return nodes, {"limit": np.asarray(np.float32(WIDTH))}, [last]


def outputs(n: int) -> Parts:
    """Every node of a chain is a result."""
    nodes, values, _ = chain(n)
    return nodes, values, [node.output[0] for node in nodes]


FORMS: dict[str, Callable[[int], Parts]] = {
    form.__name__: form for form in (chain, fan_out, residual, skips, constants, shape_arithmetic, branches, outputs)
}


def make(form: str, n: int) -> ModelProto:
    """Return a model of about `n` nodes of one of the `FORMS`."""
    nodes, values, results = FORMS[form](n)
    graph = helper.make_graph(
        nodes,
        form,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH]) for name in results],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
