"""Elementwise kernels: mathematics, activations, selection; and the walk over broadcast blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.graph.types import data_type_of
from ge.ops import lookup
from simulator.kernels import kernel_types
from simulator.kernels import math as math_kernels
from simulator.kernels.blocks import walk
from simulator.loader import load
from tests.simulator.differential import FLOAT_TYPES, assert_equal_meaning, check_kernel, expected_values
from tests.simulator.planned_model import run_model, run_plan, single

INTEGER_TYPES = [np.int8, np.uint8, np.int32, np.int64]
POSITIVE = {"Log", "Sqrt", "Rsqrt", "Log1p", "Pow"}
WITHIN_ONE = {"Acos", "Asin", "Atanh"}
FROM_ONE = {"Acosh"}
SHAPES = [(), (7,), (3, 5), (2, 3, 4), (20000,), (130, 257)]


def numbers(shape: tuple[int, ...], dtype: Any, type: str = "", seed: int = 0) -> np.ndarray:
    """Return data in the domain of an operator."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype) == bool:
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -50
        return rng.integers(low, 51, shape).astype(dtype)
    x = rng.standard_normal(shape) * 2
    if type in POSITIVE:
        x = np.abs(x) + 0.1
    if type in WITHIN_ONE:
        x = np.tanh(x) * 0.99
    if type in FROM_ONE:
        x = np.abs(x) + 1.01
    return x.astype(dtype)


UNARY = [(name, types) for name, (_, types) in (math_kernels.UNARY | math_kernels.TESTS).items()]
PLAIN_ACTIVATIONS = [
    "Relu",
    "Relu6",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Mish",
    "HardSwish",
    "FastGelu",
    "Rsqrt",
    "IsInf",
]


@pytest.mark.parametrize(("type", "types"), UNARY)
def test_unary_ufuncs_of_all_types(type: str, types: frozenset[Any]) -> None:
    for dtype in [*FLOAT_TYPES, *INTEGER_TYPES, np.bool_]:
        if data_type_of(dtype) in types:
            for shape in SHAPES:
                check_kernel(type, [numbers(shape, dtype, type)], kernel=None)


@pytest.mark.parametrize("type", PLAIN_ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_activations(type: str, dtype: Any) -> None:
    for shape in SHAPES:
        check_kernel(type, [numbers(shape, dtype, type)], kernel=None)


ROWS = [
    ("Muls", {"value": 1.5}),
    ("Adds", {"value": -0.25}),
    ("Round", {}),
    ("Exp", {}),
    ("Exp", {"base": 2.0, "scale": 0.5, "shift": 0.25}),
    ("Log", {}),
    ("Log", {"base": 10.0, "scale": 2.0, "shift": 1.0}),
    ("Power", {"power": 2.0, "scale": 0.5}),
    ("Power", {}),
    ("LeakyRelu", {"negative_slope": 0.1}),
    ("LeakyRelu", {"negative_slope": 0.0}),
    ("LeakyRelu", {"negative_slope": 1.5}),
    ("LeakyRelu", {"negative_slope": -0.5}),
    ("Elu", {}),
    ("Elu", {"alpha": 0.5, "scale": 2.0, "input_scale": 0.5}),
    ("Selu", {}),
    ("Selu", {"_x_alpha": 1.0, "_x_gamma": 2.0}),
    ("Celu", {"alpha1": 0.5, "alpha2": 0.5}),
    ("HardSigmoid", {}),
    ("HardSigmoid", {"alpha": 0.2, "beta": 0.0}),
    ("Shrink", {"lambd": 0.5, "bias": 0.25}),
    ("Threshold", {"threshold": 0.5}),
    ("Swish", {}),
    ("Swish", {"scale": 0.5}),
    ("GeluV2", {"approximate": "tanh"}),
]


@pytest.mark.parametrize(("type", "attrs"), ROWS)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_formulas_with_attributes(type: str, attrs: dict[str, Any], dtype: Any) -> None:
    for shape in SHAPES:
        check_kernel(type, [numbers(shape, dtype, type)], attrs, kernel=None)


@pytest.mark.parametrize("type", ["Erf", "Gelu", "GeluV2"])
@pytest.mark.parametrize("dtype", FLOAT_TYPES[:3])
def test_error_function_and_gelu(type: str, dtype: Any) -> None:
    check_kernel(type, [numbers((40, 1000), dtype)], kernel=None)


def exact_gelu(x: float, approximate: str) -> float:
    if approximate == "none":
        return x * math.erfc(-x * math.sqrt(0.5)) / 2
    return x / (1 + math.exp(min(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3), 700)))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_keeps_its_digits_far_from_zero(approximate: str, dtype: Any) -> None:
    near, far = np.linspace(-40, 40, 16001), np.geomspace(1e-30, 1e15, 2000)
    x = np.concatenate([near, far, -far]).astype(dtype)
    [found] = run_model(single("GeluV2", [x], {"approximate": approximate}), [x])
    exact = np.array([exact_gelu(float(v), approximate) for v in x])
    off = np.abs(found - exact)
    assert off[x < 0].max() < 1e-7
    assert (off / np.spacing(np.abs(exact).astype(dtype)))[x > 0].max() < 8
    is_normal = np.abs(exact) > 1e-36
    assert (off[is_normal] / np.abs(exact[is_normal])).max() < 2e-5


@pytest.mark.parametrize(("approximate", "lowest"), [("none", 0.0), ("tanh", np.nan)])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_gelu_of_special_values(approximate: str, lowest: float, dtype: Any) -> None:
    x = np.array([-np.inf, 0.0, np.inf, np.nan], dtype)
    [found] = run_model(single("GeluV2", [x], {"approximate": approximate}), [x])
    np.testing.assert_array_equal(found.astype(np.float64), [lowest, 0, np.inf, np.nan])


def test_error_function_to_a_few_units_in_the_last_place() -> None:
    x = np.concatenate([np.linspace(-6, 6, 5001), np.geomspace(1e-30, 1, 500), [np.inf, -np.inf]]).astype(np.float32)
    exact = np.array([math.erf(v) for v in x.astype(np.float64)])
    [found] = run_model(single("Erf", [x]), [x])
    off = np.abs(found - exact) / np.maximum(np.spacing(np.abs(exact).astype(np.float32)), 1e-45)
    assert off.max() < 8
    assert np.abs(found).max() <= 1


BINARY = [
    (name, types) for table in (math_kernels.BINARY, math_kernels.COMPARISONS) for name, (_, types) in table.items()
]


PAIRS = [((3, 5), (3, 5)), ((40, 1, 9), (70, 1)), ((), (6,)), ((5, 4000), (5, 1)), ((9,), (2, 9))]


@pytest.mark.parametrize(("type", "types"), BINARY)
def test_binary_ufuncs_of_all_types(type: str, types: frozenset[Any]) -> None:
    for dtype in [*FLOAT_TYPES, *INTEGER_TYPES, np.bool_]:
        if data_type_of(dtype) in types:
            for left, right in [
                ((3, 5), (3, 5)),
                ((40, 1, 9), (70, 1)),
                ((), (6,)),
                ((5, 4000), (5, 1)),
                ((9,), (2, 9)),
            ]:
                x1, x2 = numbers(left, dtype, seed=1), numbers(right, dtype, seed=2)
                check_kernel(type, [x1, x2], kernel=None)
                check_kernel(type, [x2, x1], kernel=None, constant=[1])


@pytest.mark.parametrize("type", ["SquaredDifference", "FloorDiv", "DivNoNan", "Mod"])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_binary_formulas(type: str, dtype: Any) -> None:
    # whole numbers over powers of two: quotients are exact, so that no rounding moves one across an integer
    x1 = numbers((30, 700), np.int32, seed=1).astype(dtype)
    x2 = np.random.default_rng(2).choice([1, 2, 4, -1, -2, 0.5, 0], 700).astype(dtype)
    check_kernel(type, [x1, x2], kernel=None)
    check_kernel(type, [x2, x1], kernel=None)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("exponent", "kernel"), [(2, "square"), (3, "cube"), (0.5, "power"), (-1.5, "power")])
def test_constant_exponents(dtype: Any, exponent: float, kernel: str) -> None:
    x = numbers((50, 500), dtype, "Pow")
    check_kernel("Pow", [x, np.array(exponent, dtype)], constant=[1], kernel=kernel)


@pytest.mark.parametrize("dtype", [*FLOAT_TYPES, *INTEGER_TYPES])
def test_clip_sum_and_select(dtype: Any) -> None:
    x = numbers((3, 5, 7), dtype)
    low, high = np.array(2, dtype), np.array(20, dtype)
    check_kernel("ClipByValue", [x, low, high], constant=[1, 2], kernel="clip")
    check_kernel("ClipByValue", [x, numbers((7,), dtype), high], kernel="clip")
    for count in (1, 2, 3):
        parts = [numbers((3, 5, 7) if i == 0 else (5, 1), dtype, seed=i) for i in range(count)]
        check_kernel("AddN", parts, {"N": count}, kernel="sum")
    flags = numbers((3, 1, 7), np.bool_)
    check_kernel("SelectV2", [flags, x, numbers((7,), dtype, seed=3)], kernel="select")
    check_kernel("SelectV2", [flags, numbers((5, 1), dtype, seed=3), x], kernel="select")


@pytest.mark.parametrize(
    ("weight", "attrs"), [((5,), {}), ((1,), {}), ((5, 1, 1), {}), ((7,), {"_x_unidirectional": True})]
)
def test_prelu_slopes(weight: tuple[int, ...], attrs: dict[str, Any]) -> None:
    for dtype in FLOAT_TYPES:
        check_kernel("PRelu", [numbers((2, 5, 6, 7), dtype), numbers(weight, dtype, seed=1)], attrs, kernel="prelu")


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e38, -1e38], np.float32)


@pytest.mark.parametrize(
    "type", ["Relu", "Sigmoid", "Softplus", "Tanh", "Erf", "Abs", "Exp", "HardSwish", "Mish", "Relu6"]
)
def test_special_values_go_through(type: str) -> None:
    model = single(type, [SPECIAL])
    [found] = run_model(model, [SPECIAL])
    # in single precision, as the kernel: HardSwish of 1e38 overflows there
    reference = expected_values(model, [SPECIAL])[0]
    with np.errstate(over="ignore"):
        single_reference = reference.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(single_reference))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(single_reference))


IN_PLACE = [
    *[
        (name, {})
        for name in ("Abs", "Relu", "Sigmoid", "Softplus", "Mish", "HardSwish", "Gelu", "Erf", "Rsqrt", "Softsign")
    ],
    *[(name, attrs) for name, attrs in ROWS],
]


@pytest.mark.parametrize(("type", "attrs"), IN_PLACE)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_unary_kernels_may_write_over_their_input(type: str, attrs: dict[str, Any], dtype: Any) -> None:
    x = numbers((3, 20000), dtype, type)
    apart, together = single(type, [x], attrs), single(type, [x], attrs)
    plan = together.plan.graphs["single"]
    plan.blocks["node", 0] = plan.blocks["x0", 0]
    loaded = load(together)
    assert "staging" not in loaded.steps[0].kernel.name
    np.testing.assert_array_equal(run_plan(loaded, [x])[0], run_model(apart, [x])[0])


@pytest.mark.parametrize(
    "type", ["Add", "Sub", "RealDiv", "Pow", "SquaredDifference", "FloorDiv", "Maximum", "DivNoNan"]
)
@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_binary_kernels_may_write_over_either_input(type: str, slot: int, dtype: Any) -> None:
    inputs = [numbers((200, 300), dtype, "Pow", seed=i) for i in range(2)]
    if slot:
        inputs[0] = inputs[0][:1]
    else:
        inputs[1] = inputs[1][:, :1].copy()
    apart, together = single(type, inputs), single(type, inputs)
    plan = together.plan.graphs["single"]
    plan.blocks["node", 0] = plan.blocks[f"x{slot}", 0]
    loaded = load(together)
    assert "staging" not in loaded.steps[0].kernel.name
    np.testing.assert_array_equal(run_plan(loaded, inputs)[0], run_model(apart, inputs)[0])


@pytest.mark.parametrize("slot", [1, 2])
def test_select_may_write_over_either_value(slot: int) -> None:
    inputs = [
        numbers((40, 900), np.bool_),
        numbers((40, 900), np.float32, seed=1),
        numbers((40, 900), np.float32, seed=2),
    ]
    model = single("SelectV2", inputs)
    plan = model.plan.graphs["single"]
    plan.blocks["node", 0] = plan.blocks[f"x{slot}", 0]
    np.testing.assert_array_equal(run_model(model, inputs)[0], np.where(*inputs))


def test_the_tables_name_only_registered_operators() -> None:
    assert [name for name in kernel_types() if lookup(name) is None] == []


# -- the walk ----------------------------------------------------------------------------------------------------------
@given(
    st.lists(st.integers(1, 6), max_size=4),
    st.lists(st.lists(st.booleans(), max_size=4), min_size=1, max_size=3),
    st.integers(1, 40),
)
def test_blocks_cover_the_result_once_and_fit(shape: list[int], repeats: list[list[bool]], limit: int) -> None:
    operands = [
        [1 if repeated else dim for repeated, dim in zip(pattern, shape[len(shape) - len(pattern) :], strict=False)]
        for pattern in repeats
        if len(pattern) <= len(shape)
    ]
    path = walk(shape, operands, limit)
    out = np.zeros(path.dims, int)
    arrays = [np.random.default_rng(i).integers(0, 99, operand) for i, operand in enumerate(operands)]
    views = [a.reshape(dims) for a, dims in zip(arrays, path.operand_dims, strict=True)]
    total = np.zeros(path.dims, int)
    for index, own in path.indices:
        assert out[index].size <= path.block
        assert out[index].size <= limit or path.block <= max(limit, path.dims[-1])
        out[index] += 1
        total[index] = sum((view[i] for view, i in zip(views, own, strict=True)), 0)
    assert (out == 1).all()
    np.testing.assert_array_equal(total.reshape(shape), sum(arrays, np.zeros(shape, int)))


def test_neighbouring_axes_become_one() -> None:
    path = walk((2, 3, 4, 5), [(2, 3, 4, 5), (3, 1, 1)], 10_000)
    assert path.dims == (2, 3, 20)
    assert path.operand_dims == ((2, 3, 20), (1, 3, 1))
    assert walk((2, 3, 4), [(2, 3, 4), (1,)], 8).dims == (24,)


@pytest.mark.parametrize("slope", [np.inf, -np.inf, np.nan, 3.0, -0.5])
def test_slopes_that_are_no_numbers_leave_positive_values_alone(slope: float) -> None:
    x = np.array([[-2, 0, 5, np.inf]], np.float32)
    weight = np.array([slope], np.float32)
    with np.errstate(all="ignore"):
        expected = np.where(x >= 0, x, x * np.float32(slope))
    [leaky] = run_model(single("LeakyRelu", [x], {"negative_slope": slope}), [x])
    [parametric] = run_model(single("PRelu", [x, weight], constant=[1]), [x])
    np.testing.assert_array_equal(leaky, expected)
    np.testing.assert_array_equal(parametric, expected)


EMPTY = np.zeros((2, 0, 3), np.float32)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs"),
    [
        ("Abs", [EMPTY], {}),
        ("Add", [EMPTY, np.ones((1, 1, 3), np.float32)], {}),
        ("Sigmoid", [EMPTY.astype(np.float16)], {}),
        ("SoftmaxV2", [EMPTY], {"axes": [1]}),
        ("MatMulV2", [np.ones((0, 3), np.float32), np.ones((3, 4), np.float32)], {}),
        ("Transpose", [EMPTY, np.array([2, 0, 1])], {}),
        ("Cast", [EMPTY], {"dst_type": 3}),
    ],
)
def test_results_without_elements(type: str, inputs: list[np.ndarray], attrs: dict[str, object]) -> None:
    check_kernel(type, inputs, attrs, kernel="nothing", constant=[1] if type == "Transpose" else [])


def test_a_product_of_matrices_without_common_elements_is_zero() -> None:
    feeds = [np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)]
    [found] = run_model(single("MatMulV2", feeds), feeds)
    np.testing.assert_array_equal(found, np.zeros((2, 3), np.float32))


def test_assertion_can_tell() -> None:
    with pytest.raises(AssertionError):
        assert_equal_meaning(np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0001]))
