"""Train the digits classifier on scikit-learn's handwritten digits and export it to ONNX.

    python models/train_digits.py            # needs the `train` extra (scikit-learn)

Writes `models/digits/digits.onnx` and `models/digits/samples/digit_<label>_<k>.npy`.

The network, batch size B:

    image [B,1,8,8] -> Conv 3x3 (16) -> BatchNormalization -> Relu -> MaxPool 2x2
                    -> Conv 3x3 (32) -> BatchNormalization -> Relu -> Flatten -> Gemm (10) -> Softmax

Everything is computed in float64 from fixed seeds, and the trained numbers are rounded to multiples of 2**-12.
The last bits of a matrix product depend on the machine's BLAS; the rounding hides them, so the files come out the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float64]

DIGITS = Path(__file__).resolve().parent / "digits"
HELD_OUT_SHARE = 0.25
SPLIT_SEED = 20
TRAIN_SEED = 7
EPOCHS = 40
BATCH = 64
WEIGHT_DECAY = 1e-3
BATCH_NORM_EPSILON = 1e-3
GRID = 2.0**-12
HARD_SAMPLES = 4


@dataclass(frozen=True)
class Split:
    """Images [n,1,8,8] in 0..1 and labels [n], for training and held out."""

    train_images: Array
    train_labels: NDArray[np.int64]
    held_out_images: Array
    held_out_labels: NDArray[np.int64]


def load_split() -> Split:
    """Read the digits and hold out a quarter of every class, chosen by `SPLIT_SEED`."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images[:, None, :, :].astype(np.float64) / 16.0
    labels = digits.target.astype(np.int64)
    rng = np.random.default_rng(SPLIT_SEED)
    held_out = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        members = rng.permutation(np.flatnonzero(labels == label))
        held_out[members[: round(len(members) * HELD_OUT_SHARE)]] = True
    return Split(images[~held_out], labels[~held_out], images[held_out], labels[held_out])


class Layer:
    """One step of the network; `parameters` and `gradients` share their keys."""

    def __init__(self) -> None:
        self.parameters: dict[str, Array] = {}
        self.gradients: dict[str, Array] = {}

    def forward(self, x: Array, training: bool) -> Array:
        raise NotImplementedError

    def backward(self, gradient: Array) -> Array:
        """Fill `gradients` and return the gradient of the input of the last `forward`."""
        raise NotImplementedError


class Convolution(Layer):
    """3x3 convolution, stride 1, one ring of zeros around the image; weight [out,in,3,3].

    It has no bias: the batch normalization behind it would cancel it, so its gradient would be rounding noise.
    """

    def __init__(self, channels_in: int, channels_out: int, rng: np.random.Generator) -> None:
        super().__init__()
        scale = np.sqrt(2.0 / (channels_in * 9))
        self.parameters["weight"] = rng.normal(0.0, scale, (channels_out, channels_in, 3, 3))

    def forward(self, x: Array, training: bool) -> Array:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        batch, channels, height, width = x.shape
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, channels * 9)
        self.shape = x.shape
        weight = self.parameters["weight"]
        flat = self.columns @ weight.reshape(len(weight), -1).T
        return flat.reshape(batch, height, width, -1).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array) -> Array:
        batch, channels, height, width = self.shape
        weight = self.parameters["weight"]
        flat = gradient.transpose(0, 2, 3, 1).reshape(-1, len(weight))
        self.gradients["weight"] = (flat.T @ self.columns).reshape(weight.shape)
        columns = (flat @ weight.reshape(len(weight), -1)).reshape(batch, height, width, channels, 3, 3)
        padded = np.zeros((batch, channels, height + 2, width + 2))
        for row in range(3):
            for column in range(3):
                padded[:, :, row : row + height, column : column + width] += columns[..., row, column].transpose(
                    0, 3, 1, 2
                )
        return padded[:, :, 1:-1, 1:-1]


class BatchNormalization(Layer):
    """Per channel of [n,c,h,w]; statistics of the batch while training, of the whole training set afterwards."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.parameters["scale"] = np.ones(channels)
        self.parameters["bias"] = np.zeros(channels)
        self.mean = np.zeros(channels)
        self.variance = np.ones(channels)

    def forward(self, x: Array, training: bool) -> Array:
        mean = x.mean(axis=(0, 2, 3)) if training else self.mean
        variance = x.var(axis=(0, 2, 3)) if training else self.variance
        self.inverse = 1.0 / np.sqrt(variance + BATCH_NORM_EPSILON)[:, None, None]
        self.normal = (x - mean[:, None, None]) * self.inverse
        return self.normal * self.parameters["scale"][:, None, None] + self.parameters["bias"][:, None, None]

    def backward(self, gradient: Array) -> Array:
        self.gradients["scale"] = (gradient * self.normal).sum(axis=(0, 2, 3))
        self.gradients["bias"] = gradient.sum(axis=(0, 2, 3))
        scaled = gradient * self.parameters["scale"][:, None, None]
        centred = scaled - scaled.mean(axis=(0, 2, 3), keepdims=True)
        along = (scaled * self.normal).mean(axis=(0, 2, 3), keepdims=True)
        return (centred - self.normal * along) * self.inverse

    def fix_statistics(self, x: Array) -> None:
        """Take mean and variance over the whole training set instead of a moving average."""
        self.mean = x.mean(axis=(0, 2, 3))
        self.variance = x.var(axis=(0, 2, 3))


class Relu(Layer):
    def forward(self, x: Array, training: bool) -> Array:
        self.positive = x > 0
        return x * self.positive

    def backward(self, gradient: Array) -> Array:
        return gradient * self.positive


class MaxPool(Layer):
    """2x2 windows, stride 2; the first of several equal maxima takes the gradient."""

    def forward(self, x: Array, training: bool) -> Array:
        batch, channels, height, width = x.shape
        self.shape = x.shape
        windows = x.reshape(batch, channels, height // 2, 2, width // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        windows = windows.reshape(batch, channels, height // 2, width // 2, 4)
        self.chosen = windows.argmax(axis=-1)[..., None]
        return np.take_along_axis(windows, self.chosen, axis=-1)[..., 0]

    def backward(self, gradient: Array) -> Array:
        batch, channels, height, width = self.shape
        windows = np.zeros((batch, channels, height // 2, width // 2, 4))
        np.put_along_axis(windows, self.chosen, gradient[..., None], axis=-1)
        windows = windows.reshape(batch, channels, height // 2, width // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
        return windows.reshape(self.shape)


class Dense(Layer):
    """Flatten, then x @ weight.T + bias; weight [out,in], bias [out]."""

    def __init__(self, features_in: int, features_out: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.parameters["weight"] = rng.normal(0.0, np.sqrt(1.0 / features_in), (features_out, features_in))
        self.parameters["bias"] = np.zeros(features_out)

    def forward(self, x: Array, training: bool) -> Array:
        self.shape = x.shape
        self.flat = x.reshape(len(x), -1)
        return self.flat @ self.parameters["weight"].T + self.parameters["bias"]

    def backward(self, gradient: Array) -> Array:
        self.gradients["weight"] = gradient.T @ self.flat
        self.gradients["bias"] = gradient.sum(axis=0)
        return (gradient @ self.parameters["weight"]).reshape(self.shape)


def softmax(logits: Array) -> Array:
    """Row-wise softmax of [n,classes]."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Network:
    """The layers in order; `logits` stops before the softmax."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.conv1, self.norm1 = Convolution(1, 16, rng), BatchNormalization(16)
        self.conv2, self.norm2 = Convolution(16, 32, rng), BatchNormalization(32)
        self.dense = Dense(32 * 4 * 4, 10, rng)
        self.layers: list[Layer] = [
            *(self.conv1, self.norm1, Relu(), MaxPool()),
            *(self.conv2, self.norm2, Relu(), self.dense),
        ]

    def logits(self, images: Array, training: bool = False) -> Array:
        for layer in self.layers:
            images = layer.forward(images, training)
        return images

    def learn(self, images: Array, labels: NDArray[np.int64]) -> None:
        """Fill the gradients of the mean cross entropy over the batch."""
        gradient = softmax(self.logits(images, training=True))
        gradient[np.arange(len(labels)), labels] -= 1.0
        gradient /= len(labels)
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient)

    def fix_statistics(self, images: Array) -> None:
        """Settle the statistics of the batch normalizations, first to last, over `images`."""
        for layer in self.layers:
            if isinstance(layer, BatchNormalization):
                layer.fix_statistics(images)
            images = layer.forward(images, training=False)

    def round_to_grid(self) -> None:
        """Round all trained numbers to multiples of `GRID`."""
        for layer in self.layers:
            layer.parameters = {name: to_grid(value) for name, value in layer.parameters.items()}
            if isinstance(layer, BatchNormalization):
                layer.mean, layer.variance = to_grid(layer.mean), to_grid(layer.variance)


def to_grid(value: Array) -> Array:
    return np.round(value / GRID) * GRID


@dataclass
class Adam:
    """Adam with weight decay kept apart from the moments."""

    moments: dict[tuple[int, str], tuple[Array, Array]] = field(default_factory=dict)
    steps: int = 0

    def step(self, layers: list[Layer], rate: float) -> None:
        self.steps += 1
        for index, layer in enumerate(layers):
            for name, value in layer.parameters.items():
                gradient = layer.gradients[name]
                first, second = self.moments.get((index, name), (np.zeros_like(value), np.zeros_like(value)))
                first = 0.9 * first + 0.1 * gradient
                second = 0.999 * second + 0.001 * gradient * gradient
                self.moments[index, name] = first, second
                step = first / (1 - 0.9**self.steps) / (np.sqrt(second / (1 - 0.999**self.steps)) + 1e-8)
                decay = WEIGHT_DECAY if name == "weight" else 0.0
                layer.parameters[name] = value - rate * (step + decay * value)


def batches(split: Split, rng: np.random.Generator) -> Iterator[tuple[Array, NDArray[np.int64]]]:
    """Shuffled batches, each image moved by up to one pixel in both directions."""
    order = rng.permutation(len(split.train_labels))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        padded = np.pad(split.train_images[chosen], ((0, 0), (0, 0), (1, 1), (1, 1)))
        moves = rng.integers(0, 3, (BATCH, 2))
        images = np.stack([padded[i, :, y : y + 8, x : x + 8] for i, (y, x) in enumerate(moves)])
        yield images, split.train_labels[chosen]


def train(split: Split) -> Network:
    """Train for `EPOCHS` with a rate that falls along a cosine, settle the statistics, round."""
    rng = np.random.default_rng(TRAIN_SEED)
    network = Network(rng)
    optimiser = Adam()
    for epoch in range(EPOCHS):
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for images, labels in batches(split, rng):
            network.learn(images, labels)
            optimiser.step(network.layers, rate)
    network.fix_statistics(split.train_images)
    network.round_to_grid()
    return network


def to_onnx(network: Network) -> onnx.ModelProto:
    """Export for batch 1: input `image` [1,1,8,8], output `probability` [1,10]."""
    weights: list[onnx.TensorProto] = []

    def stored(prefix: str, values: dict[str, Array]) -> list[str]:
        names = {f"{prefix}.{name}": value.astype(np.float32) for name, value in values.items()}
        weights.extend(numpy_helper.from_array(value, name) for name, value in names.items())
        return list(names)

    def normalization(prefix: str, layer: BatchNormalization) -> list[str]:
        return stored(prefix, {**layer.parameters, "mean": layer.mean, "variance": layer.variance})

    def node(op_type: str, name: str, inputs: list[str], **attributes: Any) -> onnx.NodeProto:
        output = "probability" if op_type == "Softmax" else f"{name}.out"
        return helper.make_node(op_type, inputs, [output], name=name, **attributes)

    epsilon = BATCH_NORM_EPSILON
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", "conv1", ["image", *stored("conv1", network.conv1.parameters)], **window),
        node("BatchNormalization", "norm1", ["conv1.out", *normalization("norm1", network.norm1)], epsilon=epsilon),
        node("Relu", "relu1", ["norm1.out"]),
        node("MaxPool", "pool1", ["relu1.out"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "conv2", ["pool1.out", *stored("conv2", network.conv2.parameters)], **window),
        node("BatchNormalization", "norm2", ["conv2.out", *normalization("norm2", network.norm2)], epsilon=epsilon),
        node("Relu", "relu2", ["norm2.out"]),
        node("Flatten", "flatten", ["relu2.out"], axis=1),
        node("Gemm", "dense", ["flatten.out", *stored("dense", network.dense.parameters)], transB=1),
        node("Softmax", "softmax", ["dense.out"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, [1, 10])],
        weights,
    )
    model = helper.make_model(
        graph, producer_name="train_digits", opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def choose_samples(network: Network, split: Split) -> dict[str, NDArray[np.float32]]:
    """From the held-out digits: per label one of middling confidence, then the hardest that are still read rightly."""
    probability = softmax(network.logits(split.held_out_images))
    labels = split.held_out_labels
    confidence = probability[np.arange(len(labels)), labels]
    right = probability.argmax(axis=1) == labels
    chosen: list[int] = []
    for label in range(10):
        members = np.flatnonzero((labels == label) & right)
        chosen.append(int(members[np.argsort(confidence[members], kind="stable")[len(members) // 4]]))
    by_difficulty = [int(i) for i in np.argsort(confidence, kind="stable") if right[i] and int(i) not in chosen]
    chosen += by_difficulty[:HARD_SAMPLES]
    samples: dict[str, NDArray[np.float32]] = {}
    for index in chosen:
        label = labels[index]
        k = sum(name.startswith(f"digit_{label}_") for name in samples)
        samples[f"digit_{label}_{k}"] = split.held_out_images[index][None].astype(np.float32)
    return samples


def accuracy(network: Network, images: Array, labels: NDArray[np.int64]) -> float:
    """Share of images whose largest logit is at their label."""
    return float((network.logits(images).argmax(axis=1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and export the digits classifier.")
    parser.add_argument("--output", type=Path, default=DIGITS, help="folder for digits.onnx and samples/")
    folder: Path = parser.parse_args().output
    split = load_split()
    network = train(split)
    print(f"training accuracy {accuracy(network, split.train_images, split.train_labels):.4f}")
    right = accuracy(network, split.held_out_images, split.held_out_labels)
    print(f"held-out accuracy {right:.4f} ({len(split.held_out_labels)} digits)")
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    (folder / "digits.onnx").write_bytes(to_onnx(network).SerializeToString(deterministic=True))
    for name, image in choose_samples(network, split).items():
        np.save(folder / "samples" / f"{name}.npy", image)


if __name__ == "__main__":
    main()
