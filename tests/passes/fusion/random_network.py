"""ONNX models at random, made of what built-in fusions look for and of what stands in their way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Dims = tuple[int, ...]
INPUTS: dict[str, Dims] = {"image": (1, 4, 6, 5), "rows": (2, 3, 4)}


class Network:
    """A model in the making: the nodes, and the shapes of the tensors that they give."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shapes = dict(INPUTS)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def some(self, *choices: object) -> object:
        """One of the choices."""
        return choices[self.rng.integers(len(choices))]

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def numbers(self, *dims: int) -> str:
        """Positive parameters."""
        return self.constant(self.rng.uniform(0.5, 1.5, dims))

    def weight(self, *dims: int) -> str:
        """Weights of both signs, smaller where more of them are summed up."""
        return self.constant(self.rng.standard_normal(dims) / np.sqrt(max(np.prod(dims[1:]), 1)))

    def add(self, op_type: str, inputs: list[str], shape: Dims, **attrs: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], f"{op_type}_{len(self.nodes)}", **attrs))
        self.shapes[name] = tuple(shape)
        return name

    def pick(self) -> str:
        """A tensor, mostly the newest, which nobody reads yet."""
        names = list(self.shapes)
        return names[-1] if self.rng.random() < 0.9 else names[self.rng.integers(len(names))]

    def model(self) -> ModelProto:
        """The model; what nobody reads is a result, and sometimes something else is too."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        results = [name for name in made if name not in read or self.rng.random() < 0.05]
        ports = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in names]
            for names in (INPUTS, results)
        ]
        graph = helper.make_graph(self.nodes, "random", *ports, self.constants)
        made_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(made_model)
        return made_model


def random_network(seed: int) -> ModelProto:
    """A model of 5 to 30 blocks."""
    network = Network(seed)
    for _ in range(network.rng.integers(5, 30)):
        x = network.pick()
        block = BLOCKS[network.rng.integers(len(BLOCKS))]
        block(network, x, network.shapes[x])
    return network.model() if network.nodes else random_network(seed + 1_000_000)


# -- blocks ------------------------------------------------------------------------------------------------------------
def constant_operand(n: Network, x: str, shape: Dims) -> None:
    """x and a constant: a number, one per channel, a row, everything, or something odd."""
    per_channel = (shape[1], *(1 for _ in shape[2:])) if len(shape) > 1 else shape
    odd = tuple(dim if n.rng.random() < 0.5 else 1 for dim in shape)
    c = n.numbers(*n.some((), per_channel, per_channel, per_channel, shape[-1:], shape, odd))
    op_type = str(n.some("Add", "Sub", "Mul", "Div"))
    is_second = op_type == "Div" or n.rng.random() < 0.6
    n.add(op_type, [x, c] if is_second else [c, x], shape)


def neutral_operand(n: Network, x: str, shape: Dims) -> None:
    op_type, number = n.some(("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1), ("Pow", 1))
    n.add(str(op_type), [x, n.constant(np.full(shape[-1:], number))], shape)


def activation(n: Network, x: str, shape: Dims) -> None:
    n.add(str(n.some("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "HardSigmoid")), [x], shape)


def branches(n: Network, x: str, shape: Dims) -> None:
    alike = [name for name, other in n.shapes.items() if other == shape]
    n.add(str(n.some("Add", "Mul")), [x, str(n.some(*alike))], shape)


def convolution(n: Network, x: str, shape: Dims) -> None:
    if len(shape) != 4:
        return
    _, channels, height, width = shape
    size = int(n.some(1, 3))
    pads = [int(pad) for pad in n.rng.integers(0, 2, 4)]
    rows, columns = height + pads[0] + pads[2] - size + 1, width + pads[1] + pads[3] - size + 1
    groups = int(n.some(1, channels))
    outputs = groups * int(n.some(1, 2))
    if min(rows, columns) < 1 or outputs > 16:
        return
    inputs = [x, n.weight(outputs, channels // groups, size, size), n.numbers(outputs)]
    has_bias = n.rng.random() < 0.4
    n.add("Conv", inputs[: 2 + has_bias], (shape[0], outputs, rows, columns), pads=pads, group=groups)


def transposed_convolution(n: Network, x: str, shape: Dims) -> None:
    if len(shape) == 4 and shape[2] * shape[3] < 100:
        size = (shape[0], 3, shape[2] + 2, shape[3] + 2)
        n.add("ConvTranspose", [x, n.weight(shape[1], 3, 3, 3)], size)


def batch_norm(n: Network, x: str, shape: Dims) -> None:
    if len(shape) > 1:
        n.add("BatchNormalization", [x, *(n.numbers(shape[1]) for _ in range(4))], shape, epsilon=0.1)


def pad_and_window(n: Network, x: str, shape: Dims) -> None:
    if len(shape) != 4 or min(shape[2:]) < 3:
        return
    begin, end = ([0, 0, *(int(width) for width in n.rng.integers(0, 2, 2))] for _ in range(2))
    fill = n.constant(float(n.some(0, 0, 1)))
    padded = tuple(a + b + c for a, b, c in zip(begin, shape, end, strict=True))
    before = n.add("Relu", [x], shape) if n.rng.random() < 0.5 else x
    y = n.add("Pad", [before, n.constant(begin + end, np.int64), fill], padded)
    kind = n.some("MaxPool", "AveragePool", "Conv")
    result = (*padded[:2], padded[2] - 1, padded[3] - 1)
    if kind == "Conv":
        n.add("Conv", [y, n.weight(shape[1], shape[1], 2, 2)], result)
    else:
        n.add(str(kind), [y], result, kernel_shape=[2, 2])


def transpose(n: Network, x: str, shape: Dims) -> None:
    """One, or a few in a row."""
    for _ in range(int(n.some(1, 1, 2, 3))):
        order = [int(axis) for axis in n.rng.permutation(len(shape))]
        if n.rng.random() < 0.5:
            order = [*range(len(shape) - 2), *reversed(range(max(len(shape) - 2, 0), len(shape)))]
        shape = tuple(shape[axis] for axis in order)
        x = n.add("Transpose", [x], shape, perm=order)


def reshape(n: Network, x: str, shape: Dims) -> None:
    elements = int(np.prod(shape))
    rows = int(n.some(*(rows for rows in range(1, elements + 1) if elements % rows == 0)))
    result = n.some((elements,), (rows, elements // rows), (1, rows, 1, elements // rows))
    n.add("Reshape", [x, n.constant(result, np.int64)], result)


def unsqueeze(n: Network, x: str, shape: Dims) -> None:
    if len(shape) < 5:
        axis = int(n.rng.integers(len(shape) + 1))
        n.add("Unsqueeze", [x, n.constant([axis], np.int64)], (*shape[:axis], 1, *shape[axis:]))


def squeeze(n: Network, x: str, shape: Dims) -> None:
    if 1 in shape[:-1]:
        axis = shape.index(1)
        n.add("Squeeze", [x, n.constant([axis], np.int64)], (*shape[:axis], *shape[axis + 1 :]))


def product(n: Network, x: str, shape: Dims) -> None:
    if len(shape) < 2:
        return
    fitting = [name for name, other in n.shapes.items() if other[:-1] == (*shape[:-2], shape[-1])]
    if fitting and n.rng.random() < 0.3:
        other = str(n.some(*fitting))
        n.add("MatMul", [x, other], (*shape[:-1], n.shapes[other][-1]))
    elif n.rng.random() < 0.3:
        n.add("MatMul", [n.weight(3, shape[-2]), x], (*shape[:-2], 3, shape[-1]))
    else:
        n.add("MatMul", [x, n.weight(shape[-1], 4)], (*shape[:-1], 4))


def dense_over_axes(n: Network, x: str, shape: Dims) -> None:
    """A product of rows, brought back into shape before or after its bias, or into another shape."""
    if len(shape) < 3:
        return
    columns = int(n.rng.integers(2, 5))
    count = int(np.prod(shape[:-1]))
    flat = n.add("Reshape", [x, n.constant([count, shape[-1]], np.int64)], (count, shape[-1]))
    product = n.add("MatMul", [flat, n.weight(shape[-1], columns)], (count, columns))
    deep = (*shape[:-1], columns) if n.rng.random() < 0.8 else (columns, count)
    back = n.add("Reshape", [product, n.constant(deep, np.int64)], deep)
    n.add("Add", [back, n.numbers(deep[-1])], deep)


def gemm(n: Network, x: str, shape: Dims) -> None:
    if len(shape) == 2:
        bias = n.numbers(*n.some((), (3,), (1, 3), (shape[0], 3)))
        n.add("Gemm", [x, n.weight(3, shape[1]), bias], (shape[0], 3), transB=1, alpha=0.5, beta=float(n.some(1, 2)))


def split_and_join(n: Network, x: str, shape: Dims) -> None:
    even = [axis for axis, dim in enumerate(shape) if dim % 2 == 0]
    if not even:
        return
    axis = int(n.some(*even))
    half = tuple(dim // 2 if at == axis else dim for at, dim in enumerate(shape))
    parts = [f"{x}_part{len(n.nodes)}_{i}" for i in range(2)]
    n.nodes.append(helper.make_node("Split", [x], parts, axis=axis))
    n.shapes.update(dict.fromkeys(parts, half))
    to = int(n.some(axis, axis, *range(len(shape))))
    joined = tuple(2 * dim if at == to else dim for at, dim in enumerate(half))
    n.add("Concat", parts[:: int(n.some(1, 1, -1))], joined, axis=to)


def idle(n: Network, x: str, shape: Dims) -> None:
    kind = n.some("Expand", "Tile", "Slice")
    if kind == "Slice":
        start = int(shape[0] > 1 and n.rng.random() < 0.3)
        bounds = [n.constant([number], np.int64) for number in (start, 2**31, 0)]
        n.add("Slice", [x, *bounds], (shape[0] - start, *shape[1:]))
    else:
        n.add(str(kind), [x, n.constant(shape if kind == "Expand" else [1] * len(shape), np.int64)], shape)


def swish(n: Network, x: str, shape: Dims) -> None:
    scaled = n.add("Mul", [x, n.constant(1.702)], shape) if n.rng.random() < 0.5 else x
    n.add("Mul", [x, n.add("Sigmoid", [scaled], shape)], shape)


def hard_swish(n: Network, x: str, shape: Dims) -> None:
    cut = n.add("Clip", [n.add("Add", [x, n.constant(3)], shape), n.constant(0), n.constant(6)], shape)
    n.add("Div", [n.add("Mul", [x, cut], shape), n.constant(n.some(6, 6, 5))], shape)


def gelu(n: Network, x: str, shape: Dims) -> None:
    if n.rng.random() < 0.5:
        gate = n.add("Erf", [n.add("Div", [x, n.constant(np.sqrt(2))], shape)], shape)
    else:
        cube = n.add("Mul", [n.add("Pow", [x, n.constant(3)], shape), n.constant(0.044715)], shape)
        inner = n.add("Mul", [n.add("Add", [x, cube], shape), n.constant(np.sqrt(2 / np.pi))], shape)
        gate = n.add("Tanh", [inner], shape)
    whole = n.add("Mul", [x, n.add("Add", [gate, n.constant(1)], shape)], shape)
    n.add("Mul", [whole, n.constant(0.5)], shape)


def norm(n: Network, x: str, shape: Dims) -> None:
    """LayerNorm or RMSNorm, with gamma and beta or without."""
    reduced = (*shape[:-1], 1)
    centred = x
    if n.rng.random() < 0.6:
        centred = n.add("Sub", [x, n.add("ReduceMean", [x], reduced, axes=[-1])], shape)
    mean = n.add("ReduceMean", [n.add("Mul", [centred, centred], shape)], reduced, axes=[-1])
    root = n.add("Sqrt", [n.add("Add", [mean, n.constant(0.1)], reduced)], reduced)
    y = n.add("Div", [centred, root], shape)
    for op_type in ("Mul", "Add"):
        if n.rng.random() < 0.7:
            y = n.add(op_type, [y, n.numbers(shape[-1])], shape)


def softmax(n: Network, x: str, shape: Dims) -> None:
    axis = int(n.rng.integers(len(shape)))
    reduced = (*shape[:axis], 1, *shape[axis + 1 :])
    below = n.add("Sub", [x, n.add("ReduceMax", [x], reduced, axes=[axis])], shape)
    power = n.add("Exp", [below], shape)
    n.add("Div", [power, n.add("ReduceSum", [power, n.constant([axis], np.int64)], reduced)], shape)


BLOCKS: tuple[Callable[[Network, str, Dims], None], ...] = (
    *(constant_operand,) * 6,
    *(convolution, product) * 3,
    *(batch_norm, transpose, reshape, pad_and_window) * 2,
    *(neutral_operand, activation, branches, transposed_convolution, unsqueeze, squeeze, gemm),
    *(split_and_join, idle, swish, hard_swish, gelu, norm, softmax, dense_over_axes),
)
"""Where one is listed more than once, it is as much more likely."""
