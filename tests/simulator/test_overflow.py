"""Overflows are counted where they happen, and only there."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import atc
from simulator import InferSession, Overflow
from simulator.overflow import OverflowCounter


def compiled(nodes: list[Any], shape: list[Any], outputs: int = 1, **options: Any) -> InferSession:
    """Compile a chain of ONNX nodes from ``x`` to ``y`` (and ``z``) in half precision."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "z")[:outputs]]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, results), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    settings = {"soc_version": "Ascend910B1", "precision_mode_v2": "fp16", "oo_level": "O1", **options}
    return InferSession(0, atc.compile_model(model, **settings))


SQUARE = [
    helper.make_node("Mul", ["x", "x"], ["s"], name="square"),
    helper.make_node("Relu", ["s"], ["r"], name="relu"),
    helper.make_node("Neg", ["r"], ["y"], name="negated"),
]


@pytest.mark.parametrize("shapes", [{}, {"input_shape": "x:-1"}])
def test_a_model_made_to_overflow_is_reported_with_the_name_of_the_operator(shapes: dict[str, str]) -> None:
    """300 * 300 is beyond 65504; Relu and Neg only hand the infinities on, in place where there is a plan."""
    session = compiled(SQUARE, ["n"] if shapes else [4], **shapes)
    [y] = session.infer([np.array([1, 300, -400, 200], np.float32)])
    assert y.tolist() == [-1, -np.inf, -np.inf, -40000]
    assert session.overflows() == [Overflow("square", "Mul", infinite=2)]


def test_the_most_of_one_run_counts_until_it_is_forgotten() -> None:
    session = compiled(SQUARE, [4])
    session.infer([np.full(4, 2.0, np.float32)])
    assert session.overflows() == []
    for values in ([300, 1, 1, 1], [300, 300, 300, 1], [1, 1, 300, 300]):
        session.infer([np.array(values, np.float32)])
    assert [one.infinite for one in session.overflows()] == [3]
    session.reset_summaryinfo()
    assert session.overflows() == []


def test_what_does_not_fit_into_half_precision_overflows_where_it_is_cast() -> None:
    session = compiled([helper.make_node("Relu", ["x"], ["y"], name="relu")], [3])
    session.infer([np.array([1e5, 1, -1e6], np.float32)])
    [found] = session.overflows()
    assert (found.type, found.infinite) == ("Cast", 2)
    session = compiled([helper.make_node("Relu", ["x"], ["y"], name="relu")], [2])
    session.infer([np.array([np.inf, 1], np.float32)])
    assert session.overflows() == [], "what is infinite before has not overflowed"


def test_casts_to_integers_saturate_and_are_counted() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Cast", ["r"], ["y"], name="to_byte", to=TensorProto.INT8),
        helper.make_node("Cast", ["r"], ["z"], name="to_long", to=TensorProto.INT64),
    ]
    session = compiled(nodes, [4], outputs=2)
    y, z = session.infer([np.array([127, 128, 127.9, 1000], np.float32)])
    assert y.tolist() == [127, 127, 127, 127]
    assert z.tolist() == [127, 128, 127, 1000]
    assert session.overflows() == [Overflow("to_byte", "Cast", saturated=2)]


@pytest.mark.parametrize("options", [{}, {"input_shape": "x:-1,300"}])
def test_what_nobody_reads_has_not_overflowed(options: dict[str, str]) -> None:
    """LayerNorm gives the variance along with its result: that of +-1000 is 10**6, and no half precision number."""
    scale = helper.make_tensor("s", TensorProto.FLOAT, [300], np.ones(300, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=scale),
        helper.make_node("LayerNormalization", ["x", "c"], ["y"], name="norm"),
    ]
    session = compiled(nodes, ["n" if options else 1, 300], **options)
    x = np.where(np.arange(300) % 2, 1000, -1000).astype(np.float32).reshape(1, 300)
    [y] = session.infer([x])
    np.testing.assert_allclose(y, np.sign(x), atol=1e-3)
    assert session.overflows() == []


@pytest.mark.parametrize(("unread", "count"), [(set(), 3), ({1}, 1), ({0}, 2), ({0, 1}, 0)])
def test_only_outputs_that_are_read_count(unread: set[int], count: int) -> None:
    counter = OverflowCounter()
    counter.start()
    outputs = [np.array([np.inf, 1], np.float16), np.array([-np.inf, np.inf], np.float16)]
    counter.after("n", "LayerNorm", [np.ones(2, np.float16)], outputs, unread=frozenset(unread))
    counter.finish()
    assert [one.infinite for one in counter.found()] == ([count] if count else [])


def test_single_precision_counts_nothing() -> None:
    session = compiled(SQUARE, [2], precision_mode_v2="origin")
    session.infer([np.array([1e30, 1], np.float32)])
    assert session.overflows() == []


def test_bodies_are_looked_into_and_calls_not_counted_again() -> None:
    def branch(op: str) -> Any:
        node = helper.make_node(op, ["x", "x"], [f"b_{op}"], name=f"in_{op}")
        return helper.make_graph([node], op, [], [helper.make_empty_tensor_value_info(f"b_{op}")])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], name="sum", keepdims=0),
        helper.make_node("Cast", ["total"], ["c"], name="to_bool", to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch("Mul"), else_branch=branch("Add")),
    ]
    session = compiled(nodes, [2])
    session.infer([np.array([400, 1], np.float32)])
    assert [(one.type, one.infinite) for one in session.overflows()] == [("Mul", 1)]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("made", "count"),
    [
        ([1, 2], 0),
        ([np.inf, 1], 1),
        ([-np.inf, 1], 1),
        ([np.nan, 1], 0),
        ([-np.nan, 1], 0),
        ([np.nan, -np.inf], 1),
        ([], 0),
    ],
)
def test_infinities_are_told_from_all_other_values(made: list[float], count: int, dtype: Any) -> None:
    counter = OverflowCounter()
    counter.start()
    counter.after("n", "Add", [np.zeros(2, dtype)], [np.array(made, np.float32).astype(dtype)])
    counter.finish()
    assert [one.infinite for one in counter.found()] == ([count] if count else [])


@pytest.mark.parametrize(("dtype", "infinity"), [(np.float16, 0x7C00), (ml_dtypes.bfloat16, 0x7F80)])
def test_all_half_precision_numbers_are_known(dtype: Any, infinity: int) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    is_infinite = bits & 0x7FFF == infinity
    counter = OverflowCounter()
    counter.start()
    for name, chosen in (("infinite", is_infinite), ("others", ~is_infinite)):
        for value in bits[chosen].view(dtype).reshape(-1, 2):
            counter.after(name, "Add", [], [value])
    counter.finish()
    assert counter.found() == [Overflow("infinite", "Add", infinite=2)]
