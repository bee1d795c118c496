"""Give the `light_*` models of the onnx package weights that can tell a right result from a wrong one.

    python models/materialise_light.py light_resnet50 build/resnet50.onnx [--seed 0] [--before-softmax]

The onnx package ships well-known networks whose weights are ConstantOfShape nodes, so every channel computes the same.
`materialise` returns the same graph with random initializers instead:

- each weight is drawn from a generator seeded by the seed and the tensor's name;
- Conv filters and Gemm rows are scaled to unit standard deviation of the output on `example_input(model, 0)`;
- a BatchNormalization gets about the variance and part of the mean that its input has, different per channel;
- the scales of a BatchNormalization that ends a residual branch are halved (`BRANCH`), for trained networks add little
  in each block. Were it as large as what goes around it, 50 layers would amplify rounding errors 70 times.
- filters lose most of their mean (`CENTRING`). If they kept it all, all images would look alike behind a deep network,
  drowned in the common offset of the activations; if they kept nothing, it would amplify rounding errors a hundredfold.

The factors are rounded to three digits, so that the weights do not depend on the last bits of the machine's arithmetic.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[np.float32]

LIGHT_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_NAMES = (
    "light_bvlc_alexnet",
    "light_densenet121",
    "light_inception_v1",
    "light_inception_v2",
    "light_resnet50",
    "light_shufflenet",
    "light_squeezenet",
    "light_vgg19",
    "light_zfnet512",
)
BIAS_STD = 0.1
CENTRING = 0.7
BRANCH = 0.5
# (op type, input index) -> what a tensor there is for
ROLES = {
    ("Conv", 1): "filter",
    ("Gemm", 1): "matrix",
    ("Conv", 2): "bias",
    ("Gemm", 2): "bias",
    ("BatchNormalization", 1): "scale",
    ("BatchNormalization", 2): "bias",
    ("BatchNormalization", 3): "mean",
    ("BatchNormalization", 4): "variance",
    ("Mul", 1): "scale",
    ("Add", 1): "bias",
}
SHAPE_ONLY = ("Reshape", "Unsqueeze")


def light_model(name: str) -> onnx.ModelProto:
    """The model `name` (one of `LIGHT_NAMES`) as the onnx package ships it."""
    return onnx.load(LIGHT_FOLDER / f"{name}.onnx")


def graph_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs a caller must feed: those without an initializer."""
    stored = {initializer.name for initializer in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in stored]


def example_input(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Standard normal float32 values for every input of static shape, the same for the same seed and input name."""
    feeds = {}
    for value in graph_inputs(model):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = _generator(seed, value.name).standard_normal(shape, dtype=np.float32)
    return feeds


def before_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the Softmax that makes its output; itself where there is none."""
    (output,) = model.graph.output
    (last,) = [node for node in model.graph.node if output.name in node.output]
    if last.op_type != "Softmax":
        return model
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    cut.graph.node.remove(last)
    cut.graph.output[0].name = last.input[0]
    return cut


def materialise(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return `model` with random float32 initializers in place of its constant weights; `model` stays as it is.

    The model must have one output and consist of operators that onnxruntime runs. Raises ValueError for a weight whose
    purpose is unknown, and if the result could not tell a right output from a wrong one.
    """
    return _Materialiser(model, seed).run()


def assert_tells(logits: Array, other: Array, name: str) -> None:
    """Raise ValueError unless `logits` are spread out and differ from `other`, the output for another input."""
    largest = float(np.abs(logits).max())
    if not np.isfinite(largest) or not logits.std() > 0.05 * largest:
        raise ValueError(f"{name}: the output has std {logits.std():.3g} beside a maximum of {largest:.3g}")
    change = float(np.abs(logits - other).max())
    if not change > 0.05 * largest:
        raise ValueError(f"{name}: another input changes the output by {change:.3g} beside a maximum of {largest:.3g}")


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])


def _rounded(factor: float) -> float:
    return float(f"{factor:.3g}")


class _Materialiser:
    """Walks the graph once, with the activations of two inputs: the first sets the scales, the second is the check."""

    def __init__(self, model: onnx.ModelProto, seed: int) -> None:
        self.model = model
        self.seed = seed
        self.weights: dict[str, Array] = {}  # the new initializers
        self.constants: dict[str, Array] = {}  # all tensors that do not depend on the input
        self.weight_of: dict[str, str] = {}  # a tensor -> the weight it is a reshaped form of
        self.activations: list[dict[str, Array]] = [example_input(model, 0), example_input(model, 1)]

    def run(self) -> onnx.ModelProto:
        self._draw_weights()
        for node in self.model.graph.node:
            if node.op_type == "ConstantOfShape":
                continue
            if all(name in self.constants for name in node.input):
                self._fold(node)
            elif node.op_type in ("Conv", "Gemm"):
                self._scale_layer(node)
            else:
                if node.op_type == "BatchNormalization":
                    self._settle_statistics(node)
                self._store(node, self._evaluate(node, *self.activations))
        output = before_softmax(self.model).graph.output[0].name
        assert_tells(self.activations[0][output], self.activations[1][output], self.model.graph.name)
        return self._with_weights()

    def _draw_weights(self) -> None:
        shapes = {item.name: tuple(item.dims) for item in self.model.graph.initializer if item.data_type == 1}
        stored = {item.name: numpy_helper.to_array(item) for item in self.model.graph.initializer}
        for node in self.model.graph.node:
            if node.op_type == "ConstantOfShape":
                shapes[node.output[0]] = tuple(int(dim) for dim in stored[node.input[0]])
        roles = self._roles()
        branch_ends = self._branch_ends()
        self.constants.update(stored)
        for name, shape in shapes.items():
            if name in roles:
                self.weights[name] = self._draw(name, shape, roles[name])
                if name in branch_ends:
                    self.weights[name] *= np.float32(BRANCH)
                self.weight_of[name] = name
        self.constants.update(self.weights)

    def _roles(self) -> dict[str, str]:
        """The role of each tensor that a layer reads, also where a Reshape or Unsqueeze lies between."""
        roles: dict[str, str] = {}
        for node in reversed(self.model.graph.node):
            if node.op_type in SHAPE_ONLY and node.output[0] in roles:
                roles[node.input[0]] = roles[node.output[0]]
            for index, name in enumerate(node.input):
                if (node.op_type, index) in ROLES:
                    roles[name] = ROLES[node.op_type, index]
        return roles

    def _branch_ends(self) -> set[str]:
        """The scales of normalisations that are added to what is none."""
        producers = {output: node for node in self.model.graph.node for output in node.output}
        ends = set()
        for node in self.model.graph.node:
            if node.op_type in ("Sum", "Add"):
                found = [producers[name] for name in node.input if name in producers]
                normalised = [source for source in found if source.op_type == "BatchNormalization"]
                if len(normalised) == 1:
                    ends.add(normalised[0].input[1])
        return ends

    def _draw(self, name: str, shape: tuple[int, ...], role: str) -> Array:
        rng = _generator(self.seed, name)
        if role in ("scale", "variance"):
            return rng.uniform(0.5, 1.5, shape).astype(np.float32)
        values = rng.standard_normal(shape, dtype=np.float32)
        if role in ("bias", "mean"):
            return values * np.float32(BIAS_STD)
        fan_in = values[0].size
        if fan_in > 1:
            values -= np.float32(CENTRING) * values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
        return values / np.float32(np.sqrt(fan_in))

    def _fold(self, node: onnx.NodeProto) -> None:
        (self.constants[node.output[0]],) = self._evaluate(node, self.constants)
        if node.op_type in SHAPE_ONLY and node.input[0] in self.weight_of:
            self.weight_of[node.output[0]] = self.weight_of[node.input[0]]

    def _scale_layer(self, node: onnx.NodeProto) -> None:
        """Evaluate a Conv or Gemm without its bias, scale the weight to unit output std, then add the bias."""
        bias: Array = np.zeros((), dtype=np.float32)
        if len(node.input) == 3:
            stored = self.constants[node.input[2]]
            bias = stored.reshape(-1, *(1,) * (self.activations[0][node.input[0]].ndim - 2))
            self.constants[node.input[2]] = np.zeros_like(stored)
        outputs = self._evaluate(node, *self.activations)
        factor = np.float32(_rounded(1.0 / float(outputs[0].std())))
        weight = self.weights[self.weight_of[node.input[1]]]
        weight *= factor
        self.constants[node.input[1]] = weight.reshape(self.constants[node.input[1]].shape)
        self._store(node, [output * factor + bias for output in outputs])

    def _settle_statistics(self, node: onnx.NodeProto) -> None:
        x = self.activations[0][node.input[0]]
        mean, variance = (self.weights[self.weight_of[name]] for name in node.input[3:5])
        for channel in range(x.shape[1]):
            mean[channel] += np.float32(_rounded(CENTRING * float(x[:, channel].mean())))
            variance[channel] *= np.float32(_rounded(float(x[:, channel].var()) + 1e-2))

    def _store(self, node: onnx.NodeProto, outputs: list[Array]) -> None:
        for values, output in zip(self.activations, outputs, strict=True):
            values[node.output[0]] = output

    def _evaluate(self, node: onnx.NodeProto, *cases: dict[str, Array]) -> list[Array]:
        """The first output of `node` for each case, by onnxruntime; a case holds what is not constant."""
        feeds = [
            {name: values[name] if name in values else self.constants[name] for name in node.input} for values in cases
        ]
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in feeds[0].items()
        ]
        graph = helper.make_graph([node], "node", inputs, [onnx.ValueInfoProto(name=node.output[0])])
        single = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(single.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(session.run([node.output[0]], feed)[0]) for feed in feeds]

    def _with_weights(self) -> onnx.ModelProto:
        result = onnx.ModelProto()
        result.CopyFrom(self.model)
        graph = result.graph
        nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
        shape_inputs = {node.input[0] for node in graph.node if node.op_type == "ConstantOfShape"}
        gone = (shape_inputs - {name for node in nodes for name in node.input}) | set(self.weights)
        kept_initializers = [item for item in graph.initializer if item.name not in gone]
        kept_inputs = [item for item in graph.input if item.name not in gone]
        for name in ("node", "initializer", "input"):
            graph.ClearField(name)
        graph.node.extend(nodes)
        graph.initializer.extend(kept_initializers)
        graph.input.extend(kept_inputs)
        for name, value in self.weights.items():
            graph.initializer.append(numpy_helper.from_array(value, name))
            if result.ir_version < 4:  # before IR version 4 an initializer must be an input too
                graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape))
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a light_* model of the onnx package with random weights.")
    parser.add_argument("name", choices=LIGHT_NAMES)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--before-softmax", action="store_true", help="leave out the final Softmax")
    arguments = parser.parse_args()
    model = materialise(light_model(arguments.name), arguments.seed)
    if arguments.before_softmax:
        model = before_softmax(model)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, arguments.output)


if __name__ == "__main__":
    main()
