"""Write the digits classifier as a frozen TensorFlow graph, with the weights of the ONNX model.

    python models/freeze_digits.py

Reads `models/digits/digits.onnx`, writes `models/digits/digits.pb`. The network is the same in TensorFlow's terms:
images are channels last, filters are HWCN, and the dense layer reads rows, columns, channels instead of channels first.

    image [1,8,8,1] -> Conv2D 3x3 SAME (16) -> FusedBatchNormV3 -> Relu -> MaxPool 2x2
                    -> Conv2D 3x3 SAME (32) -> FusedBatchNormV3 -> Relu -> Reshape -> MatMul (10) -> BiasAdd -> Softmax
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from parsers.tensorflow import graph_def_pb2 as pb

DIGITS = Path(__file__).resolve().parent / "digits"
EPSILON = 1e-3
PRODUCER = 2474
"""Version of the graph format that TensorFlow 2.20 writes."""

Array = NDArray[np.float32]


def attribute(value: Any) -> pb.AttrValue:
    """Return an attribute; its kind follows from the type of `value`."""
    if isinstance(value, bool):
        return pb.AttrValue(b=value)
    if isinstance(value, float):
        return pb.AttrValue(f=value)
    if isinstance(value, str):
        return pb.AttrValue(s=value.encode())
    if isinstance(value, list):
        return pb.AttrValue(list=pb.AttrValue.ListValue(i=value))
    assert isinstance(value, pb.AttrValue)
    return value


FLOAT = pb.AttrValue(type=pb.DT_FLOAT)
INT32 = pb.AttrValue(type=pb.DT_INT32)


def shape_of(dims: tuple[int, ...]) -> pb.TensorShapeProto:
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in dims])


class Writer:
    """Collects the nodes of a graph; each method returns the name of the node that it adds."""

    def __init__(self) -> None:
        self.graph = pb.GraphDef(versions=pb.VersionDef(producer=PRODUCER))

    def add(self, op: str, name: str, *inputs: str, **attributes: Any) -> str:
        values = {key: attribute(value) for key, value in attributes.items()}
        self.graph.node.append(pb.NodeDef(name=name, op=op, input=inputs, attr=values))
        return name

    def const(self, name: str, values: NDArray[Any]) -> str:
        dtype = pb.DT_FLOAT if values.dtype == np.float32 else pb.DT_INT32
        tensor = pb.TensorProto(dtype=dtype, tensor_shape=shape_of(values.shape), tensor_content=values.tobytes())
        return self.add("Const", name, dtype=pb.AttrValue(type=dtype), value=pb.AttrValue(tensor=tensor))

    def convolution(self, number: int, x: str, weights: dict[str, Array]) -> str:
        """Add convolution, batch norm and Relu."""
        kernel = weights[f"conv{number}.weight"].transpose(2, 3, 1, 0)
        filters = self.const(f"conv{number}/kernel", np.ascontiguousarray(kernel))
        attributes = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NHWC", "T": FLOAT}
        convolved = self.add("Conv2D", f"conv{number}/Conv2D", x, filters, **attributes)
        parts = [
            self.const(f"norm{number}/{name}", weights[f"norm{number}.{theirs}"])
            for name, theirs in (("gamma", "scale"), ("beta", "bias"), ("mean", "mean"), ("variance", "variance"))
        ]
        attributes = {"epsilon": EPSILON, "is_training": False, "data_format": "NHWC", "T": FLOAT, "U": FLOAT}
        name = f"norm{number}/FusedBatchNormV3"
        return self.add(
            "Relu", f"relu{number}", self.add("FusedBatchNormV3", name, convolved, *parts, **attributes), T=FLOAT
        )


def freeze(weights: dict[str, Array]) -> pb.GraphDef:
    """Return the network with the weights of the ONNX model, by their names there."""
    w = Writer()
    x = w.add("Placeholder", "image", dtype=FLOAT, shape=pb.AttrValue(shape=shape_of((1, 8, 8, 1))))
    x = w.convolution(1, x, weights)
    pooled = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "data_format": "NHWC", "T": FLOAT}
    x = w.convolution(2, w.add("MaxPool", "pool1", x, **pooled), weights)
    x = w.add("Reshape", "flatten", x, w.const("flatten/shape", np.array([-1, 512], np.int32)), T=FLOAT, Tshape=INT32)
    dense = weights["dense.weight"].reshape(10, 32, 4, 4).transpose(2, 3, 1, 0).reshape(512, 10)
    kernel = w.const("dense/kernel", np.ascontiguousarray(dense))
    x = w.add("MatMul", "dense/MatMul", x, kernel, transpose_a=False, transpose_b=False, T=FLOAT)
    x = w.add("BiasAdd", "dense/BiasAdd", x, w.const("dense/bias", weights["dense.bias"]), data_format="NHWC", T=FLOAT)
    w.add("Softmax", "probability", x, T=FLOAT)
    return w.graph


def main() -> None:
    model = onnx.load(DIGITS / "digits.onnx")
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    (DIGITS / "digits.pb").write_bytes(freeze(weights).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
