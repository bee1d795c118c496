"""The compiler and the simulator as a backend of the onnx package."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from atc import compile_model
from simulator import InferSession


class CompiledModel(BackendRep):
    """An .om file that has been loaded."""

    def __init__(self, session: InferSession) -> None:
        self.session = session

    def run(self, inputs: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        """Return the outputs, in the order of the model."""
        return tuple(self.session.infer(inputs))


class OfflineBackend(Backend):
    """Takes the way of a user: the model is compiled, written as .om file, read again and run.

    Dimensions that the model leaves open are left to the run, which `atc` wants to be told.
    """

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> CompiledModel:
        """Compile ``model`` in its own precision and load the resulting file."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "model.onnx"), Path(folder, "model.om")
            source.write_bytes(model.SerializeToString())
            options = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "input_shape": _open_shapes(model)}
            compile_model(source, **options).save(target)
            return CompiledModel(InferSession(0, target))

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node on arrays, one per input that it names."""
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        feeds = [np.asarray(x) for x in inputs]
        formals = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, feeds, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", formals, results)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        return cls.prepare(model, device).run(feeds)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """There is one device."""
        return device.upper() == "CPU"


def _open_shapes(model: onnx.ModelProto) -> dict[str, list[int]] | None:
    """Return the shapes of inputs with open dimensions, -1 for each of those."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in value.type.tensor_type.shape.dim]
        if value.name not in initializers and -1 in dims:
            found[value.name] = dims
    return found or None
