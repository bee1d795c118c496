"""Random ONNX models of what fusions look for: all fusions on, all off, and onnxruntime give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from atc.compiler import compile_source
from ge.fusion_switches import FusionSwitches
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from simulator import InferSession
from tests.passes.fusion.fused import ALL_OFF

Array = np.ndarray[Any, Any]
SMALL = 400
"""Tensors with more elements are not made larger."""


class Writer:
    """A model in the making. Every value has its shape; ``last`` is read by the next operator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        shape = [int(dim) for dim in rng.integers(1, 5, int(rng.integers(2, 5)))]
        self.x = rng.uniform(-2, 2, shape).astype(np.float32)
        self.shapes: dict[str, list[int]] = {"x": shape}
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.last = "x"

    @property
    def shape(self) -> list[int]:
        return self.shapes[self.last]

    def constant(self, value: Array | list[int]) -> str:
        array = np.asarray(value) if isinstance(value, np.ndarray) else np.asarray(value, np.int64)
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return f"c{len(self.constants) - 1}"

    def number(self, shape: list[int]) -> str:
        values = self.rng.uniform(0.5, 2, shape) * self.rng.choice([-1, 1], shape)
        special = self.rng.choice([0.0, 1.0], shape)
        return self.constant(np.where(self.rng.uniform() < 0.3, special, values).astype(np.float32))

    def add(self, op_type: str, inputs: list[str], shape: list[int], **attrs: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attrs))
        self.shapes[name] = [int(dim) for dim in shape]
        self.last = name

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def model(self) -> ModelProto:
        others = [name for name in self.shapes if name not in ("x", self.last) and self.rng.uniform() < 0.1]
        results = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in [*others, self.last]
        ]
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])
        graph = helper.make_graph(self.nodes, "random", [given], results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


# -- steps: each adds an operator that fits, or nothing ----------------------------------------------------------------
def arithmetic(w: Writer) -> None:
    shape = w.shape[int(w.rng.integers(0, len(w.shape) + 1)) :]
    shape = [dim if w.rng.uniform() < 0.6 else 1 for dim in shape]
    op_type = w.pick("Add", "Sub", "Mul", "Div")
    if op_type == "Div":
        values = w.rng.uniform(0.5, 2, shape).astype(np.float32)
        operands = [w.last, w.constant(w.pick(values, np.ones_like(values)))]
    else:
        operands = [w.last, w.number(shape)]
        operands = operands[::-1] if w.rng.uniform() < 0.4 else operands
    w.add(op_type, operands, w.shape)


def unary(w: Writer) -> None:
    w.add(w.pick("Neg", "Relu", "Identity", "Abs", "Sigmoid"), [w.last], w.shape)


def gate(w: Writer) -> None:
    x = w.last
    w.add("Sigmoid", [x], w.shape)
    w.add("Mul", [x, w.last], w.shape)


def sum_of_values(w: Writer) -> None:
    same = [name for name, shape in w.shapes.items() if shape == w.shape]
    w.add("Add", [w.last, w.pick(*same)], w.shape)


def reshape(w: Writer) -> None:
    count = int(np.prod(w.shape))
    first = w.pick(*[d for d in range(1, count + 1) if count % d == 0]) if count else 0
    dims = w.pick([first, count // first], [1, first, count // first], [first, 1, 1, count // first], w.shape)
    w.add("Reshape", [w.last, w.constant(dims)], dims)


def unsqueeze(w: Writer) -> None:
    if len(w.shape) < 4:
        axis = int(w.rng.integers(0, len(w.shape) + 1))
        w.add("Unsqueeze", [w.last, w.constant([axis])], [*w.shape[:axis], 1, *w.shape[axis:]])


def squeeze(w: Writer) -> None:
    axes = [axis for axis, dim in enumerate(w.shape) if dim == 1]
    if axes and len(w.shape) > 2:
        axis = w.pick(*axes)
        w.add("Squeeze", [w.last, w.constant([axis])], [*w.shape[:axis], *w.shape[axis + 1 :]])


def transpose(w: Writer) -> None:
    perm = [int(axis) for axis in w.rng.permutation(len(w.shape))]
    w.add("Transpose", [w.last], [w.shape[axis] for axis in perm], perm=perm)


def split_and_concat(w: Writer) -> None:
    axis, whole = int(w.rng.integers(len(w.shape))), w.shape
    if whole[axis] < 2:
        return
    first = int(w.rng.integers(1, whole[axis]))
    parts, x = [f"p{len(w.nodes)}_{side}" for side in (0, 1)], w.last
    sizes = w.constant([first, whole[axis] - first])
    w.nodes.append(helper.make_node("Split", [x, sizes], parts, axis=axis))
    w.add("Concat", parts if w.rng.uniform() < 0.7 else parts[::-1], whole, axis=axis)


def cut(w: Writer) -> None:
    axis = int(w.rng.integers(len(w.shape)))
    begin = int(w.rng.integers(0, w.shape[axis])) if w.rng.uniform() < 0.5 else 0
    inputs = [w.last, *(w.constant([number]) for number in (begin, 2**31 - 1, axis))]
    w.add("Slice", inputs, [dim - begin if place == axis else dim for place, dim in enumerate(w.shape)])


def product(w: Writer) -> None:
    if int(np.prod(w.shape)) > SMALL:
        return
    columns = int(w.rng.integers(1, 5))
    weight = w.rng.uniform(-1, 1, (w.shape[-1], columns)).astype(np.float32)
    w.add("MatMul", [w.last, w.constant(weight)], [*w.shape[:-1], columns])


def padded_window(w: Writer) -> None:
    """Pad, then a convolution or pool; a normalisation or an addend behind, now and then."""
    if len(w.shape) != 4 or int(np.prod(w.shape)) > SMALL:
        return
    kernel = [int(w.rng.integers(1, min(dim, 3) + 1)) for dim in w.shape[2:]]
    own = [int(w.rng.integers(0, size)) for size in kernel] * 2
    strides = [int(stride) for stride in w.rng.integers(1, 3, 2)]
    kind, mode = w.pick("Conv", "MaxPool", "AveragePool"), w.pick("constant", "constant", "edge")
    fill = w.pick(0.0, 0.0, -np.inf) if kind == "MaxPool" else w.pick(0.0, 0.0, 0.5)
    # onnxruntime takes the lowest finite number for the maximum of nothing but -inf
    most = [size - 1 - before if fill < 0 else 2 for size, before in zip(kernel, own, strict=False)] * 2
    pad(w, [int(w.rng.integers(0, width + 1)) for width in most], mode, fill)
    sizes = [(dim + own[i] + own[i + 2] - kernel[i]) // strides[i] + 1 for i, dim in enumerate(w.shape[2:])]
    attrs: dict[str, Any] = {"kernel_shape": kernel, "pads": own, "strides": strides}
    if kind == "Conv":
        weight = w.rng.uniform(-1, 1, (3, w.shape[1], *kernel)).astype(np.float32)
        w.add("Conv", [w.last, w.constant(weight)], [w.shape[0], 3, *sizes], **attrs)
        behind_convolution(w)
    else:
        extra = {"count_include_pad": int(w.rng.integers(2))} if kind == "AveragePool" else {}
        w.add(kind, [w.last], [*w.shape[:2], *sizes], **attrs, **extra)


def pad(w: Writer, space: list[int], mode: str, fill: float) -> None:
    inputs = [w.last, w.constant([0, 0, *space[:2], 0, 0, *space[2:]])]
    if mode == "constant":
        inputs.append(w.constant(np.array(fill, np.float32)))
    dims = [*w.shape[:2], *(dim + space[i] + space[i + 2] for i, dim in enumerate(w.shape[2:]))]
    w.add("Pad", inputs, dims, mode=mode)


def behind_convolution(w: Writer) -> None:
    choice = w.pick("norm", "sum", "none")
    if choice == "norm":
        vectors = [w.constant(w.rng.uniform(0.5, 2, 3).astype(np.float32)) for _ in range(4)]
        w.add("BatchNormalization", [w.last, *vectors], w.shape, epsilon=0.01)
    elif choice == "sum":
        w.add("Add", [w.last, w.number([3, 1, 1])], w.shape)


STEPS: list[Callable[[Writer], None]] = [
    *[arithmetic] * 5,
    *[padded_window] * 2,
    *[reshape, unsqueeze, squeeze, transpose] * 2,
    unary,
    gate,
    sum_of_values,
    split_and_concat,
    cut,
    product,
]


def random_model(seed: int) -> tuple[ModelProto, Array]:
    w = Writer(np.random.default_rng(seed))
    for _ in range(int(w.rng.integers(3, 16))):
        w.pick(*STEPS)(w)
    w.add("Neg", [w.last], w.shape)
    return w.model(), w.x


def compiled(model: ModelProto, inputs: list[Array], *, is_fused: bool) -> tuple[list[Array], set[str]]:
    """The results (none without inputs), and the fusions that took effect."""
    options = CompileOptions() if is_fused else CompileOptions(fusion_switches=FusionSwitches(graph=ALL_OFF))
    session = CompileSession(options, Environment())
    made = compile_source(model, session)
    effects = {name for name, times in session.fusion.graph_fusion.items() if times.effect}
    assert not [text for text in session.warnings if "alone" in text]  # what a check that fails would say
    return list(InferSession(0, made).infer(inputs)) if inputs else [], effects


def reference(model: ModelProto, x: Array) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    runner = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(runner.run(None, {"x": x}))


def assert_close(found: list[Array], expected: list[Array], largest: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-6 * largest)


@pytest.mark.parametrize("seed", range(60))
def test_fused_models_compute_the_same(seed) -> None:
    model, x = random_model(seed)
    expected = reference(model, x)
    largest = max([1.0, *(float(np.abs(part[np.isfinite(part)]).max(initial=0)) for part in expected)])
    merged, _ = compiled(model, [x], is_fused=True)
    plain, _ = compiled(model, [x], is_fused=False)
    assert_close(plain, expected, largest)
    assert_close(merged, expected, largest)


def test_the_models_have_what_fusions_look_for() -> None:
    seen: set[str] = set()
    for seed in range(60):
        seen |= compiled(random_model(seed)[0], [], is_fused=True)[1]
    wanted = (
        "Reshape Transpose NeutralOperand ScaleShift IdleNode SplitConcat PadConv2d PadPool ConvBatchnorm ConvBiasadd"
    )
    assert seen >= {f"{name}FusionPass" for name in wanted.split()}
