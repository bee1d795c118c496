"""Tensor data: every encoding of TensorProto, sparse tensors, and faults in them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from ge.errors import ReportedError
from parsers.onnx.weights import DATA_TYPES, TensorReader
from tests.parsers.evaluation import parse_model
from tests.parsers.onnx_models import model, node

T = TensorProto


def read(tensor: TensorProto) -> np.ndarray[Any, Any]:
    return TensorReader(None).read(tensor, "tensor [t]")


def refused(tensor: TensorProto) -> str:
    with pytest.raises(ReportedError) as caught:
        read(tensor)
    assert caught.value.code == "E19999"
    assert "[t]" in caught.value.message
    return caught.value.message


NUMBERS = {
    T.FLOAT: [1.5, -2.25, 0.0, 3e38],
    T.DOUBLE: [1.5, -2.25, 0.0, 1e300],
    T.FLOAT16: [1.5, -2.25, 0.0, 65504.0],
    T.BFLOAT16: [1.5, -2.25, 0.0, 3e38],
    T.INT8: [-128, -1, 0, 127],
    T.INT16: [-32768, -1, 0, 32767],
    T.INT32: [-(2**31), -1, 0, 2**31 - 1],
    T.INT64: [-(2**63), -1, 0, 2**63 - 1],
    T.UINT8: [0, 1, 128, 255],
    T.UINT16: [0, 1, 32768, 65535],
    T.UINT32: [0, 1, 2**31, 2**32 - 1],
    T.UINT64: [0, 1, 2**63, 2**64 - 1],
    T.BOOL: [True, False, False, True],
    T.COMPLEX64: [1 + 2j, -3j, 0, 5],
    T.COMPLEX128: [1 + 2j, -3j, 0, 5],
    T.FLOAT8E4M3FN: [1.5, -2.25, 0.0, 448.0],
    T.FLOAT8E5M2: [1.5, -2.5, 0.0, 57344.0],
    T.FLOAT4E2M1: [1.5, -6.0, 0.0, 0.5],
    T.FLOAT6E2M3: [1.5, -7.5, 0.0, 0.125],
    T.FLOAT6E3M2: [1.5, -28.0, 0.0, 0.0625],
    T.FLOAT8E4M3FNUZ: [1.5, -2.25, 0.0, 240.0],
    T.FLOAT8E5M2FNUZ: [1.5, -2.5, 0.0, 57344.0],
    T.INT4: [-8, -1, 0, 7],
    T.UINT4: [0, 1, 8, 15],
}


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
@pytest.mark.parametrize("elem_type", NUMBERS, ids=T.DataType.Name)
def test_numbers_of_every_type(elem_type: int, raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    values = np.array([dtype.type(number) for number in NUMBERS[elem_type]])
    tensor = numpy_helper.from_array(values.reshape(2, 2), "t")
    if not raw:
        tensor = helper.make_tensor("t", elem_type, [2, 2], values.tolist() if values.dtype.kind != "V" else values)
        assert not tensor.HasField("raw_data")
    found = read(tensor)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values.reshape(2, 2))


@given(st.lists(st.integers(-8, 7), min_size=1, max_size=9))
def test_odd_numbers_of_packed_elements(values: list[int]) -> None:
    array = np.array(values).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(read(numpy_helper.from_array(array, "t")), array)


@given(st.lists(st.integers(-28, 28), min_size=1, max_size=9))
def test_elements_packed_across_bytes(values: list[int]) -> None:
    array = np.array(values, np.float32).astype(ml_dtypes.float6_e3m2fn)
    np.testing.assert_array_equal(read(numpy_helper.from_array(array, "t")), array)


def test_half_precision_bits_in_int32_data() -> None:
    tensor = TensorProto(name="t", data_type=T.FLOAT16, dims=[2], int32_data=[0x3C00, 0xC000])
    np.testing.assert_array_equal(read(tensor), np.array([1, -2], np.float16))


def test_one_value_fills_the_tensor() -> None:
    tensor = TensorProto(name="t", data_type=T.FLOAT, dims=[4], float_data=[2.5])
    np.testing.assert_array_equal(read(tensor), np.full(4, 2.5, np.float32))


def test_short_field_is_extended_with_its_last_element() -> None:
    tensor = TensorProto(name="t", data_type=T.INT64, dims=[2, 2], int64_data=[1, 2])
    np.testing.assert_array_equal(read(tensor), [[1, 2], [2, 2]])


def test_typed_field_wins_over_raw_data() -> None:
    tensor = TensorProto(name="t", data_type=T.FLOAT, dims=[1], float_data=[1], raw_data=np.float32(2).tobytes())
    assert read(tensor)[0] == 1


def test_strings() -> None:
    tensor = helper.make_tensor("t", T.STRING, [2], [b"a", "ü".encode()])
    assert read(tensor).tolist() == [b"a", "ü".encode()]


@pytest.mark.parametrize("dims", [[0], [3, 0, 2]])
def test_no_elements_need_no_data(dims: list[int]) -> None:
    assert read(TensorProto(name="t", data_type=T.FLOAT, dims=dims)).shape == tuple(dims)


def test_scalar() -> None:
    assert read(numpy_helper.from_array(np.float32(3).reshape(()), "t")).shape == ()


def test_raw_data_is_not_copied() -> None:
    found = read(numpy_helper.from_array(np.arange(6, dtype=np.float32), "t"))
    assert not found.flags.writeable
    assert not found.flags.owndata


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (TensorProto(name="t", data_type=T.FLOAT, dims=[2]), "holds no data"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[2], raw_data=b"1234567"), "needs 8 bytes, but 7 are there"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[1], float_data=[1, 2]), "of 1 elements has 2 values"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[-1], raw_data=b""), "negative"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[2**40, 2**40], float_data=[1]), "too large"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[2**31], float_data=[1]), "has 1 values only"),
        (TensorProto(name="t", data_type=T.FLOAT, dims=[1] * 40, float_data=[1]), "too large"),
        (TensorProto(name="t", data_type=T.UNDEFINED, dims=[1], raw_data=b"1"), "UNDEFINED"),
        (TensorProto(name="t", data_type=99, dims=[1], raw_data=b"1"), "99"),
        (TensorProto(name="t", data_type=T.COMPLEX64, dims=[1], float_data=[1, 2, 3]), "real and imaginary"),
        (TensorProto(name="t", data_type=T.STRING, dims=[1], raw_data=b"a"), "holds no data"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
def test_faulty_tensors_are_named(tensor: TensorProto, reason: str) -> None:
    assert reason in refused(tensor)


def sparse(dims: list[int], values: list[float], indices: list[Any]) -> SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), "t"),
        numpy_helper.from_array(np.array(indices, np.int64), "t_indices"),
        dims,
    )


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "by axis"])
def test_sparse_tensor(indices: list[Any]) -> None:
    found = TensorReader(None).read_sparse(sparse([2, 3], [5, 7], indices), "tensor [t]")
    np.testing.assert_array_equal(found, [[0, 5, 0], [0, 0, 7]])


@pytest.mark.parametrize(
    ("dims", "indices"),
    [([2, 3], [1, 6]), ([2, 3], [-1, 0]), ([2, 3], [[0, 1], [1, 3]]), ([2**40, 2**40], [0, 1]), ([2, 3], [1])],
)
def test_faulty_sparse_tensor(dims: list[int], indices: list[Any]) -> None:
    with pytest.raises(ReportedError) as caught:
        TensorReader(None).read_sparse(sparse(dims, [5, 7], indices), "tensor [t]")
    assert caught.value.code == "E19999"
    assert "[t]" in caught.value.message


def test_sparse_initializer_of_a_graph() -> None:
    source = model([node("Add", "x t", "y")], ["x"])
    source.graph.input[0].type.tensor_type.shape.Clear()
    source.graph.sparse_initializer.append(sparse([2, 3], [5, 7], [1, 5]))
    graph = parse_model(source, input_shape={"x": (2, 3)})
    np.testing.assert_array_equal(graph.find("t_Initializer_0").attrs["value"].array, [[0, 5, 0], [0, 0, 7]])


def test_every_element_type_is_known() -> None:
    assert set(T.DataType.values()) - set(DATA_TYPES) == {T.UNDEFINED}


CONSTANTS: dict[str, tuple[dict[str, Any], np.ndarray[Any, Any]]] = {
    "value": ({"value": numpy_helper.from_array(np.float32([1, 2]))}, np.float32([1, 2])),
    "value_float": ({"value_float": 1.5}, np.float32(1.5)),
    "value_floats": ({"value_floats": [1.5, 2.5]}, np.float32([1.5, 2.5])),
    "value_int": ({"value_int": 3}, np.int64(3)),
    "value_ints": ({"value_ints": [3, 4]}, np.int64([3, 4])),
    "value_string": ({"value_string": "ab"}, np.array(b"ab", object)),
    "value_strings": ({"value_strings": ["ab", "c"]}, np.array([b"ab", b"c"], object)),
    "sparse_value": ({"sparse_value": sparse([3], [5, 7], [0, 2])}, np.float32([5, 0, 7])),
}


@pytest.mark.parametrize("form", CONSTANTS)
def test_forms_of_constant(form: str) -> None:
    attributes, expected = CONSTANTS[form]
    graph = parse_model(model([node("Constant", "", "y", "c", **attributes)], []))
    found = graph.find("c").attrs["value"].array
    assert graph.find("c").type == "Const"
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
