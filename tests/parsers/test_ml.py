"""Features and labels against onnxruntime, and examples where it has no such types."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ge.errors import ReportedError
from tests.parsers.evaluation import evaluate, parse_model

ML = "ai.onnx.ml"


def one(op_type: str, version: int, feeds: list[np.ndarray], **attrs: Any) -> ModelProto:
    names = [f"x{i}" for i in range(len(feeds))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, feeds, strict=True)
    ]
    node = helper.make_node(op_type, names, ["y"], "n", domain=ML, **attrs)
    output = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([node], "ml", inputs, [output])
    imports = [helper.make_opsetid("", 15), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(source: ModelProto, feeds: list[np.ndarray]) -> np.ndarray:
    return evaluate(parse_model(source), feeds)[0]


def run_onnxruntime(source: ModelProto, feeds: list[np.ndarray]) -> np.ndarray:
    source.graph.output[0].ClearField("type")
    session = onnxruntime.InferenceSession(source.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{i}": feed for i, feed in enumerate(feeds)})[0]


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 1, 5)])
@pytest.mark.parametrize("which", [[3], [0, 4, 0], [[1, 2]]])
def test_array_feature_extractor(shape: tuple[int, ...], which: Any) -> None:
    feeds = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.array(which, np.int64)]
    source = one("ArrayFeatureExtractor", 1, feeds)
    np.testing.assert_array_equal(run(source, feeds), run_onnxruntime(source, feeds))


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.5, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_binarizer(threshold: float, dtype: Any) -> None:
    x = np.array([[-1, 0, 1, 2], [-0.5, 0.1, 0.5, 1.5]]).astype(dtype)
    found = run(one("Binarizer", 1, [x], threshold=threshold), [x])
    np.testing.assert_array_equal(found, x > np.float32(threshold))
    assert found.dtype == dtype


WORDS = np.array([["cat", "dog"], ["cow", "cat"]], object)
NUMBERS = np.array([3, 7, -1, 4], np.int64)
REALS = np.array([1.5, 0.5, 2.0, -0.0], np.float32)
CASES: dict[str, tuple[np.ndarray, int, dict[str, Any]]] = {
    "1 strings": (WORDS, 1, {"classes_strings": ["dog", "cat"]}),
    "1 numbers": (np.array([1, 0, 5]), 1, {"classes_strings": ["dog", "cat"], "default_string": "?"}),
    "strings to numbers": (WORDS, 2, {"keys_strings": ["cat", "dog"], "values_int64s": [5, 6], "default_int64": 9}),
    "numbers to strings": (NUMBERS, 2, {"keys_int64s": [3, 4], "values_strings": ["é", "four"]}),
    "reals to reals": (REALS, 2, {"keys_floats": [1.5, 7.0, 0.0], "values_floats": [1.0, 2.0, 3.0]}),
    "no default": (WORDS, 4, {"keys_strings": ["cat"], "values_floats": [1.0]}),
}


@pytest.mark.parametrize("name", CASES)
def test_label_encoder(name: str) -> None:
    x, version, attrs = CASES[name]
    source = one("LabelEncoder", version, [x], **attrs)
    found = run(source, [x])
    assert found.tolist() == run_onnxruntime(source, [x]).tolist()
    assert len(set(found.reshape(-1).tolist())) > 1


def test_last_of_equal_keys_and_default_of_any_integer() -> None:
    keys, values = np.float64([1, 2, 1]), np.int32([10, 20, 30])
    tensors = {"keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values)}
    x = np.float64([[1, 2], [3, np.nan]])
    assert run(one("LabelEncoder", 4, [x], **tensors), [x]).tolist() == [[30, 20], [-1, -1]]
    tensors["default_tensor"] = numpy_helper.from_array(np.int32([5]))
    assert run(one("LabelEncoder", 4, [x], **tensors), [x]).tolist() == [[30, 20], [5, 5]]


def test_not_a_number_is_a_key() -> None:
    x = np.float32([np.nan, 1])
    assert run(one("LabelEncoder", 2, [x], keys_floats=[float("nan")], values_int64s=[4]), [x]).tolist() == [4, -1]


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"keys_int64s": [1], "values_int64s": [1, 2]}, "1 keys, but 2 values"),
        ({"keys_strings": ["a"], "values_int64s": [1]}, "DT_INT64"),
        ({"values_int64s": [1]}, "keys_*"),
        ({"keys_int64s": [1], "keys_strings": ["a"], "values_int64s": [1]}, "keys_*"),
    ],
)
def test_label_encoder_refuses(attrs: dict[str, Any], words: str) -> None:
    with pytest.raises(ReportedError) as caught:
        parse_model(one("LabelEncoder", 2, [NUMBERS], **attrs))
    assert words in caught.value.message
    assert "[n]" in caught.value.message
