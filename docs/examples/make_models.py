"""Writes the models of docs/custom_passes.md, and an input for them: leaky.onnx, clip.onnx, x.npy."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(name, nodes, constants):
    """Write a model with the input x [1,3,8,8] and the output y."""
    x, y = (helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, 3, 8, 8]) for end in "xy")
    graph = helper.make_graph(nodes, name, [x], [y], [numpy_helper.from_array(c, n) for n, c in constants.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.signal", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), f"{name}.onnx")


def main():
    random = np.random.default_rng(1)
    weights = random.standard_normal((3, 3, 3, 3)).astype(np.float32)
    conv = helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1])
    scale = helper.make_node("Mul", ["c", "slope"], ["scaled"], "scale")
    larger = helper.make_node("Max", ["c", "scaled"], ["y"], "larger")
    write("leaky", [conv, scale, larger], {"w": weights, "slope": np.array(0.1, np.float32)})
    clip = helper.make_node("SoftClip", ["c"], ["y"], "clip", domain="acme.signal", limit=2.0, s=0.5)
    write("clip", [conv, clip], {"w": weights})
    np.save("x.npy", random.standard_normal((1, 3, 8, 8)).astype(np.float32))


if __name__ == "__main__":
    main()
