"""Models compiled with open dimensions give at any shape what a compile for that shape gives, and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import atc
from ge.graph import OpenDim
from om_format import OfflineModel
from simulator import InferSession
from simulator.dynamic import DynamicExecutor
from tests.conftest import SampleModel
from tests.end_to_end.agreement import Arrays, assert_agrees, assert_can_tell

OPTIONS: dict[str, Any] = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin"}
Source = Path | onnx.ModelProto


def compiled(model: Source, shapes: dict[str, Any]) -> OfflineModel:
    return atc.compile_model(model, input_shape=shapes, **OPTIONS)


def open_shapes(inputs: Arrays) -> dict[str, Any]:
    """All dimensions of all inputs open."""
    return {name: (-1,) * value.ndim for name, value in inputs.items()}


def run(session: InferSession, inputs: Arrays) -> list[np.ndarray]:
    return session.infer([inputs[port.name] for port in session.get_inputs()])


def run_onnxruntime(model: Source, inputs: Arrays) -> list[np.ndarray]:
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(None, inputs)


def check(model: Source, dynamic: InferSession, inputs: Arrays, *, with_onnxruntime: bool = True) -> list[np.ndarray]:
    """The dynamic model agrees with a static compile for the shapes at hand, and both with onnxruntime."""
    results = run(dynamic, inputs)
    static = InferSession(0, compiled(model, {name: value.shape for name, value in inputs.items()}))
    for actual, expected in zip(results, run(static, inputs), strict=True):
        assert_agrees(actual, expected, rtol=1e-5)
    if with_onnxruntime:
        for actual, expected in zip(results, run_onnxruntime(model, inputs), strict=True):
            assert_agrees(actual, expected)
    return results


class Promises:
    """Holds a run to what inference promised: known dims are so, and what has one name has one size."""

    def __init__(self, model: OfflineModel) -> None:
        self._graph = model.graph
        self._executor = DynamicExecutor(model)
        self._executor.after_step = self._see
        self._sizes: dict[str, int] = {}
        self.broken: list[str] = []

    def run(self, inputs: Arrays) -> None:
        """Run the model once on ``inputs``."""
        self._sizes.clear()
        for port in self._executor.inputs:
            self._compare(port.name, port.desc.origin_shape, inputs[port.name].shape)
        self._executor.run([inputs[port.name] for port in self._executor.inputs])

    def _see(self, node: Any, results: Sequence[Any]) -> None:
        if node.graph is self._graph:
            arrays = [(d, v) for d, v in zip(node.output_descs, results, strict=False) if isinstance(v, np.ndarray)]
            for desc, value in arrays:
                self._compare(node.name, desc.origin_shape, value.shape)

    def _compare(self, owner: str, promised: Any, found: Sequence[int]) -> None:
        if promised.is_unknown_rank():
            return
        for dim, size in zip(promised, found, strict=True):
            expected = self._sizes.setdefault(dim.name, size) if isinstance(dim, OpenDim) else dim
            if expected != size:
                self.broken.append(f"{owner} was promised as {promised}, {found} came")


# -- networks ----------------------------------------------------------------------------------------------------------
def sentences(rng: np.random.Generator, batch: int, length: int) -> Arrays:
    mask = rng.integers(0, 2, (batch, length))
    mask[:, :2] = 1
    return {"input_ids": rng.integers(0, 200, (batch, length)), "attention_mask": mask}


def images(rng: np.random.Generator, batch: int, height: int, width: int) -> Arrays:
    return {"x": rng.standard_normal((batch, 3, height, width)).astype(np.float32)}


def before_sigmoid(path: Path) -> onnx.ModelProto:
    """The model without its last node, which maps nearly all values of a random image to 0."""
    model = onnx.load(path)
    last = model.graph.node.pop()
    assert last.op_type == "Sigmoid"
    model.graph.output[0].name = last.input[0]
    return model


NETWORKS = [
    ("onnx/bert_tiny_legacy_dyn.onnx", Path, sentences, [(3, 7), (1, 20)], (-1, -1)),
    ("onnx/ch_PP-OCRv4_det_infer.onnx", before_sigmoid, images, [(2, 96, 64), (1, 64, 160)], (-1, 3, -1, -1)),
]


@pytest.mark.parametrize(("name", "part", "inputs_for", "sizes", "shape"), NETWORKS, ids=["bert", "ocr"])
def test_networks(
    name: str,
    part: Callable[[Path], Source],
    inputs_for: Callable[..., Arrays],
    sizes: list[tuple[int, ...]],
    shape: tuple[int, ...],
    sample_model: Callable[[str], SampleModel],
    tmp_path: Path,
    rng: np.random.Generator,
) -> None:
    sample = sample_model(name)
    source = part(sample.path)
    model = compiled(source, dict.fromkeys(sample.inputs, shape))
    promises = Promises(model)
    model.save(tmp_path / "net.om")
    dynamic = InferSession(0, str(tmp_path / "net.om"))
    for size in sizes:
        inputs = inputs_for(rng, *size)
        [result] = check(source, dynamic, inputs)
        [other] = run(dynamic, inputs_for(rng, *size))
        assert_can_tell(result, other)
        promises.run(inputs)
    assert not promises.broken


@pytest.mark.parametrize(("name", "shape"), [(row[0], row[-1]) for row in NETWORKS], ids=["bert", "ocr"])
def test_networks_on_their_own_samples(
    name: str, shape: tuple[int, ...], sample_model: Callable[[str], SampleModel]
) -> None:
    sample = sample_model(name)
    dynamic = InferSession(0, compiled(sample.path, dict.fromkeys(sample.inputs, shape)))
    for actual, expected in zip(run(dynamic, sample.inputs), sample.outputs.values(), strict=True):
        assert_agrees(actual, expected)


def test_if_inside_if_with_an_open_batch(sample_model: Callable[[str], SampleModel], rng: np.random.Generator) -> None:
    sample = sample_model("onnx/silero_vad_16k_op15.onnx")
    model = compiled(sample.path, {"input": (-1, 512), "state": (2, -1, 128), "sr": ()})
    dynamic, promises = InferSession(0, model), Promises(model)
    for batch in (1, 4):
        inputs: Arrays = {
            "input": rng.standard_normal((batch, 512)).astype(np.float32) * 0.1,
            "state": rng.standard_normal((2, batch, 128)).astype(np.float32) * 0.1,
            "sr": np.array(16000),
        }
        for actual, expected in zip(run(dynamic, inputs), run_onnxruntime(sample.path, inputs), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)
        promises.run(inputs)
    assert not promises.broken


# -- small models ------------------------------------------------------------------------------------------------------
def model_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[int | str]]],
    outputs: dict[str, int],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model of opset 17; inputs map names to element type and dims, outputs to element type."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def some(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Values of which about half are 0, and some occur twice."""
    return np.maximum(rng.integers(-4, 5, shape), 0).astype(np.float32)


def boxes(rng: np.random.Generator, count: int) -> Arrays:
    corner, size = rng.random((1, count, 2)), rng.random((1, count, 2)) * 0.5
    return {
        "boxes": np.concatenate([corner, corner + size], -1).astype(np.float32),
        "scores": rng.random((1, 2, count)).astype(np.float32),
    }


DATA_DEPENDENT = {
    "NonZero": (
        model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": (F32, ["a", "b"])}, {"y": I64}),
        lambda rng, n: {"x": some(rng, n, 5)},
    ),
    "NonZero-gathered": (
        model_of(
            [
                helper.make_node("NonZero", ["x"], ["p"]),
                helper.make_node("Transpose", ["p"], ["t"], perm=[1, 0]),
                helper.make_node("GatherND", ["x", "t"], ["v"]),
                helper.make_node("ReduceSum", ["v"], ["y"], keepdims=0),
            ],
            {"x": (F32, ["a", "b"])},
            {"v": F32, "y": F32},
        ),
        lambda rng, n: {"x": some(rng, n, 3)},
    ),
    "NonMaxSuppression": (
        model_of(
            [
                helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["chosen"]),
                helper.make_node("Gather", ["chosen", "two"], ["i"], axis=1),
                helper.make_node("Gather", ["boxes", "i"], ["y"], axis=1),
            ],
            {"boxes": (F32, [1, "n", 4]), "scores": (F32, [1, 2, "n"])},
            {"chosen": I64, "y": F32},
            {"most": np.array([4]), "overlap": np.array([0.3], np.float32), "two": np.array(2)},
        ),
        boxes,
    ),
    "Unique": (
        model_of(
            [
                helper.make_node("Unique", ["x"], ["u", "first", "back", "count"]),
                helper.make_node("Gather", ["u", "back"], ["y"]),
            ],
            {"x": (F32, ["n"])},
            {"u": F32, "first": I64, "back": I64, "count": I64, "y": F32},
        ),
        lambda rng, n: {"x": some(rng, n)},
    ),
    "Unique-rows": (
        model_of([helper.make_node("Unique", ["x"], ["u"], axis=0)], {"x": (F32, ["n", 2])}, {"u": F32}),
        lambda rng, n: {"x": some(rng, n, 2)},
    ),
    "Compress": (
        model_of(
            [
                helper.make_node("Compress", ["x", "c"], ["y"], axis=1),
                helper.make_node("Shape", ["y"], ["s"]),
            ],
            {"x": (F32, [2, "n"]), "c": (BOOL, ["n"])},
            {"y": F32, "s": I64},
        ),
        lambda rng, n: {"x": some(rng, 2, n), "c": rng.random(n) < 0.5},
    ),
    "Where-then-Range": (
        model_of(
            [
                helper.make_node("ReduceMax", ["n"], ["m"], keepdims=0),
                helper.make_node("Range", ["zero", "m", "one"], ["y"]),
            ],
            {"n": (I64, ["k"])},
            {"y": I64},
            {"zero": np.array(0), "one": np.array(1)},
        ),
        lambda rng, n: {"n": rng.integers(0, 9, n)},
    ),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_shapes_that_depend_on_data(name: str, rng: np.random.Generator) -> None:
    model, inputs_for = DATA_DEPENDENT[name]
    dynamic = InferSession(0, compiled(model, open_shapes(inputs_for(rng, 4))))
    for count in (1, 4, 4, 11):
        check(model, dynamic, inputs_for(rng, count))


@pytest.mark.parametrize("name", ["NonZero", "NonZero-gathered", "Unique", "Unique-rows", "Compress"])
def test_data_dependent_shapes_in_a_model_with_fixed_inputs(name: str, rng: np.random.Generator) -> None:
    model, inputs_for = DATA_DEPENDENT[name]
    first = inputs_for(rng, 6)
    session = InferSession(0, compiled(model, {key: value.shape for key, value in first.items()}))
    assert session.is_dynamic
    for inputs in (first, inputs_for(rng, 6)):
        for actual, expected in zip(run(session, inputs), run_onnxruntime(model, inputs), strict=True):
            assert_agrees(actual, expected)


def classifier(rng: np.random.Generator) -> onnx.ModelProto:
    """Convolution, normalisation, pooling, `x.view(x.size(0), -1)`, a product, half of the columns."""

    def values(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    node = helper.make_node
    return model_of(
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"]),
            node("Relu", ["n"], ["r"]),
            node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Shape", ["p"], ["s"]),
            node("Gather", ["s", "zero"], ["batch"]),
            node("Unsqueeze", ["batch", "axis"], ["batches"]),
            node("Concat", ["batches", "rest"], ["target"], axis=0),
            node("Reshape", ["p", "target"], ["flat"]),
            node("MatMul", ["flat", "m"], ["product"]),
            node("Slice", ["product", "zeros", "ends", "ones"], ["y"]),
        ],
        {"x": (F32, ["n", 3, 8, 8])},
        {"y": F32},
        {
            "w": values(4, 3, 3, 3),
            "b": values(4),
            "v": np.abs(values(4)) + 0.5,
            "m": values(64, 10),
            "zero": np.array(0),
            "axis": np.array([0]),
            "rest": np.array([-1]),
            "zeros": np.array([0]),
            "ends": np.array([5]),
            "ones": np.array([1]),
        },
    )


def test_a_classifier_with_an_open_batch(rng: np.random.Generator) -> None:
    model = classifier(rng)
    offline = compiled(model, {"x": ("1~8", 3, 8, 8)})
    flat = next(node for node in offline.graph if node.type == "Reshape")
    assert list(flat.output_descs[0].shape) == [-1, 64], "the columns stay known"
    dynamic, promises = InferSession(0, offline), Promises(offline)
    for batch in (1, 3, 8):
        inputs = {"x": rng.standard_normal((batch, 3, 8, 8)).astype(np.float32)}
        [y] = check(model, dynamic, inputs)
        assert y.shape == (batch, 5)
        promises.run(inputs)
    assert not promises.broken


@pytest.mark.parametrize("k", [-2, 0, 3])
def test_a_diagonal_of_open_size(k: int) -> None:
    model = model_of([helper.make_node("EyeLike", ["x"], ["y"], k=k)], {"x": (F32, ["a", "b"])}, {"y": F32})
    dynamic = InferSession(0, compiled(model, {"x": (-1, -1)}))
    for shape in ((4, 4), (2, 6), (5, 1)):
        [y] = check(model, dynamic, {"x": np.zeros(shape, np.float32)})
        np.testing.assert_array_equal(y, np.eye(*shape, k, dtype=np.float32))


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_that_collects_rows_of_open_length(turns: int, rng: np.random.Generator) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Identity", ["go"], ["still"]),
            helper.make_node("Mul", ["next", "next"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", I64, []),
            helper.make_tensor_value_info("go", BOOL, []),
            helper.make_tensor_value_info("state", F32, None),
        ],
        [helper.make_tensor_value_info(n, k, None) for n, k in (("still", BOOL), ("next", F32), ("row", F32))],
    )
    model = model_of(
        [helper.make_node("Loop", ["turns", "", "x"], ["last", "rows"], body=body)],
        {"turns": (I64, []), "x": (F32, ["n"])},
        {"last": F32, "rows": F32},
    )
    dynamic = InferSession(0, compiled(model, {"turns": (), "x": (-1,)}))
    for length in (3, 6):
        inputs: Arrays = {"turns": np.array(turns), "x": rng.standard_normal(length).astype(np.float32)}
        last, rows = run(dynamic, inputs)
        expected_last, expected_rows = run_onnxruntime(model, inputs)
        np.testing.assert_allclose(last, expected_last, rtol=1e-5)
        if turns:
            np.testing.assert_allclose(rows, expected_rows, rtol=1e-5)
        assert len(rows) == turns


# -- properties --------------------------------------------------------------------------------------------------------
# operators on a [a,b,c] tensor that give one again, as (type, constant inputs, attributes)
STEPS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "relu": ("Relu", [], {}),
    "add-itself": ("Add", ["x"], {}),
    "scale": ("Mul", [np.float32(0.5)], {}),
    "swap": ("Transpose", [], {"perm": [1, 0, 2]}),
    "rotate": ("Transpose", [], {"perm": [2, 0, 1]}),
    "merge": ("Reshape", [np.array([0, -1, 1])], {}),
    "flip-to-rows": ("Reshape", [np.array([1, 0, -1])], {}),
    "softmax": ("Softmax", [], {"axis": 1}),
    "mean": ("ReduceMean", [], {"axes": [2], "keepdims": 1}),
    "first-row": ("Slice", [np.array([0]), np.array([1]), np.array([1])], {}),
    "every-other": ("Slice", [np.array([0]), np.array([2**31 - 1]), np.array([0]), np.array([2])], {}),
    "backwards": ("Slice", [np.array([-1]), np.array([-(2**31)]), np.array([2]), np.array([-1])], {}),
    "pad": ("Pad", [np.array([0, 1, 0, 0, 0, 2])], {}),
    "twice": ("Concat", ["x"], {"axis": 1}),
    "tile": ("Tile", [np.array([1, 1, 2])], {}),
    "sum-up": ("CumSum", [np.array(1)], {}),
    "expand": ("Expand", [np.array([1, 1, 1])], {}),
    "product": ("MatMul", ["x"], {}),
}


def chain_of(names: Sequence[str]) -> onnx.ModelProto:
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {}
    value = "x"
    for i, name in enumerate(names):
        kind, others, attributes = STEPS[name]
        inputs = [value]
        for j, other in enumerate(others):
            if isinstance(other, str):
                inputs.append(value)
            else:
                constants[f"k{i}_{j}"] = np.asarray(other)
                inputs.append(f"k{i}_{j}")
        if name == "product":
            nodes.append(helper.make_node("Transpose", [value], [f"t{i}"], perm=[0, 2, 1]))
            inputs[1] = f"t{i}"
        nodes.append(helper.make_node(kind, inputs, [f"v{i}"], **attributes))
        value = f"v{i}"
    nodes.append(helper.make_node("Shape", [value], ["shape"]))
    nodes.append(helper.make_node("Reshape", [value, "shape"], ["y"]))
    return model_of(nodes, {"x": (F32, ["a", "b", "c"])}, {"y": F32, "shape": I64}, constants)


@settings(max_examples=60)
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    is_open=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    shapes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=2),
    seed=st.integers(0, 2**16),
)
def test_chains_of_operators(names: list[str], is_open: Sequence[bool], shapes: list[Any], seed: int) -> None:
    """Dynamic is static on any chain, at any shape, whichever dimensions are open; and inference keeps its promises."""
    model = chain_of(names)
    first = shapes[0]
    others = tuple(new if is_ else old for old, new, is_ in zip(first, shapes[1], is_open, strict=True))
    offline = compiled(model, {"x": tuple(-1 if is_ else dim for dim, is_ in zip(first, is_open, strict=True))})
    dynamic, promises = InferSession(0, offline), Promises(offline)
    for shape in (first, others):
        inputs = {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}
        check(model, dynamic, inputs)
        promises.run(inputs)
    assert not promises.broken
