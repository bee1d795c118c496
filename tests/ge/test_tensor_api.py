"""Tensor and TensorDesc as CANN's pass API sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.graph import DataType, Format, Placement, Shape, Tensor, TensorDesc

CASES = [
    (DataType.DT_FLOAT, [0.1, -2.5], lambda v: float(np.float32(v))),
    (DataType.DT_FLOAT16, [0.1, 65504.0], lambda v: float(np.float16(v))),
    (DataType.DT_BF16, [0.1, 3.0], lambda v: float(ml_dtypes.bfloat16(v))),
    (DataType.DT_INT8, [-128, 127], int),
    (DataType.DT_UINT8, [0, 255], int),
    (DataType.DT_INT32, [-(2**31), 2**31 - 1], int),
    (DataType.DT_INT64, [-(2**63), 2**63 - 1], int),
    (DataType.DT_UINT64, [0, 2**64 - 1], int),
    (DataType.DT_BOOL, [True, False], bool),
    (DataType.DT_INT4, [-8, 7], int),
]


@pytest.mark.parametrize(("data_type", "values", "rounded"), CASES, ids=lambda v: getattr(v, "name", ""))
def test_flat_data_is_arranged_by_the_shape(
    data_type: DataType, values: list[Any], rounded: Callable[[Any], Any]
) -> None:
    tensor = Tensor(values, data_type=data_type, shape=[2, 1])
    assert tensor.data == tensor.get_data() == [[rounded(v)] for v in values]
    assert type(tensor.data[0][0]) is type(values[0])
    assert (tensor.shape, tensor.data_type, tensor.format) == ([2, 1], data_type, Format.FORMAT_ND)


def test_a_scalar_is_a_number() -> None:
    tensor = Tensor([2.5], format=Format.FORMAT_NCHW)
    assert tensor.data == 2.5
    assert (tensor.get_shape(), tensor.get_format()) == ([], Format.FORMAT_NCHW)
    assert (tensor.get_data_type(), tensor.get_placement()) == (DataType.DT_FLOAT, Placement.PLACEMENT_HOST)


def test_strings_are_kept() -> None:
    assert Tensor(["a", "b"], data_type=DataType.DT_STRING, shape=[2]).data == ["a", "b"]


@pytest.mark.parametrize(("data_type", "dtype"), [(DataType.DT_FLOAT, "<f4"), (DataType.DT_INT16, "<i2")])
def test_files_hold_the_elements(tmp_path: Path, data_type: DataType, dtype: str) -> None:
    values = np.arange(6).astype(dtype)
    path = tmp_path / "values.bin"
    path.write_bytes(values.tobytes())
    tensor = Tensor(None, str(path), data_type, Format.FORMAT_ND, [2, 3])
    assert tensor.data == values.reshape(2, 3).tolist()


def test_files_of_four_bit_elements_are_packed(tmp_path: Path) -> None:
    path = tmp_path / "values.bin"
    path.write_bytes(bytes([0x21, 0x0F]))
    assert Tensor(file_path=str(path), data_type=DataType.DT_INT4, shape=[3]).data == [1, 2, -1]


FAILURES: dict[str, tuple[Callable[[], Tensor], str]] = {
    "two sources": (lambda: Tensor([1.0], "file"), "not of both"),
    "double": (lambda: Tensor([1.0], data_type=DataType.DT_DOUBLE), "DT_DOUBLE"),
    "no such elements": (lambda: Tensor([1], data_type=DataType.DT_QINT8), "DT_QINT8 cannot be held"),
    "too few": (lambda: Tensor([1.0], shape=[2]), r"\[2\] needs 2 elements, 1 are given"),
    "too many": (lambda: Tensor([1.0, 2.0]), r"\[\] needs 1 elements, 2 are given"),
    "unknown shape": (lambda: Tensor([1.0], shape=[-1]), r"\[-1\] needs -1"),
    "out of range": (lambda: Tensor([256], data_type=DataType.DT_UINT8), "does not fit into DT_UINT8"),
    "negative": (lambda: Tensor([-1], data_type=DataType.DT_UINT64), "does not fit into DT_UINT64"),
    "huge": (lambda: Tensor([2**70], data_type=DataType.DT_INT64), "does not fit into DT_INT64"),
    "absent file": (lambda: Tensor(file_path="/nowhere/values.bin"), "/nowhere/values.bin cannot be read"),
    "short file": (lambda: Tensor(file_path=__file__, shape=[3]), "a DT_FLOAT of .3. has 12"),
}


@pytest.mark.parametrize(("make", "message"), FAILURES.values(), ids=FAILURES)
def test_what_cannot_be_made_is_a_runtime_error(make: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        make()


BAD_ARGUMENTS: dict[str, Callable[[], object]] = {
    "data": lambda: Tensor(1.0),  # type: ignore[arg-type]
    "nested": lambda: Tensor([[1.0]], shape=[1, 1]),
    "text": lambda: Tensor(["a"]),
    "numbers": lambda: Tensor([1], data_type=DataType.DT_STRING),
    "file": lambda: Tensor(file_path=3),  # type: ignore[arg-type]
    "shape": lambda: Tensor([1.0], shape=[1.0]),  # type: ignore[list-item]
    "type": lambda: Tensor([1.0], data_type=0),  # type: ignore[arg-type]
    "format": lambda: Tensor([1.0], format="ND"),  # type: ignore[arg-type]
    "placement": lambda: Tensor([1.0], placement=0),  # type: ignore[arg-type]
    "set_format": lambda: Tensor([1.0]).set_format(2),  # type: ignore[arg-type]
    "set_data_type": lambda: Tensor([1.0]).set_data_type(0),  # type: ignore[arg-type]
    "desc type": lambda: TensorDesc([1], data_type=0),  # type: ignore[arg-type]
    "desc format": lambda: TensorDesc([1], 2),  # type: ignore[arg-type]
    "desc shape": lambda: TensorDesc().set_shape("12"),  # type: ignore[arg-type]
    "desc dims": lambda: TensorDesc().set_origin_shape([1.5]),  # type: ignore[list-item]
    "desc set_format": lambda: TensorDesc().set_format(1),  # type: ignore[arg-type]
    "desc set_origin_format": lambda: TensorDesc().set_origin_format(None),  # type: ignore[arg-type]
    "desc set_data_type": lambda: TensorDesc().set_data_type("DT_INT8"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("use", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_arguments_of_other_types_are_type_errors(use: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="must be"):
        use()


def test_setters_of_a_tensor_chain_and_keep_the_bytes() -> None:
    tensor = Tensor([1.0, -2.0], shape=[2]).set_format(Format.FORMAT_NHWC).set_data_type(DataType.DT_INT32)
    assert tensor.data == np.float32([1, -2]).view(np.int32).tolist()
    assert tensor.get_tensor_desc() == TensorDesc([2], Format.FORMAT_NHWC, DataType.DT_INT32, None, Format.FORMAT_ND)
    with pytest.raises(RuntimeError, match="DT_INT32 cannot be read as DT_INT8"):
        tensor.set_data_type(DataType.DT_INT8)


def test_a_tensor_without_data_takes_any_type() -> None:
    assert Tensor().set_data_type(DataType.DT_INT8).data == []


def test_placement_is_told_by_a_new_tensor() -> None:
    tensor = Tensor([1.0])
    there = tensor.to_device()
    assert (there.placement, tensor.placement) == (Placement.PLACEMENT_DEVICE, Placement.PLACEMENT_HOST)
    assert there.to_host().get_placement() is Placement.PLACEMENT_HOST
    assert there.data == 1.0


def test_descriptor_setters_chain() -> None:
    desc = TensorDesc()
    assert (desc.shape, desc.format, desc.data_type) == ([], Format.FORMAT_ND, DataType.DT_FLOAT)
    found = (
        desc.set_shape([1, 4])
        .set_origin_shape([4])
        .set_format(Format.FORMAT_NHWC)
        .set_origin_format(Format.FORMAT_NCHW)
        .set_data_type(DataType.DT_INT8)
    )
    assert found is desc
    assert (desc.get_shape(), desc.get_origin_shape()) == ([1, 4], [4])
    assert (desc.get_format(), desc.get_origin_format()) == (Format.FORMAT_NHWC, Format.FORMAT_NCHW)
    assert desc.get_data_type() is DataType.DT_INT8


@pytest.mark.parametrize(
    ("dims", "size", "unknown"),
    [([], 0, False), ([2, 3], 6, False), ([2, 0], 0, False), ([2, -1], -1, True), ([-2], -1, True)],
)
def test_shape_size(dims: list[int], size: int, unknown: bool) -> None:
    shape = Shape(dims)
    assert (shape.get_shape_size(), shape.is_unknown_shape()) == (size, unknown)


@pytest.mark.parametrize(("name", "value"), [("DT_FLOAT", 0), ("DT_INT16", 6), ("DT_UINT64", 10), ("DT_QINT32", 20),
    ("DT_BF16", 27), ("DT_UINT1", 30), ("DT_FLOAT8_E5M2", 35), ("DT_FLOAT4_E2M1", 40), ("DT_MAX", 43)])  # fmt: skip
def test_data_types_are_numbered_as_in_cann(name: str, value: int) -> None:
    assert DataType[name] == value


@pytest.mark.parametrize(("name", "value"), [("NCHW", 0), ("FRACTAL_DECONV_TRANSPOSE", 10), ("NCDHW", 30),
    ("HASHTABLE_LOOKUP_LOOKUPS", 20), ("RESERVED", 40), ("FRACTAL_NZ_C0_16", 50), ("MAX", 53)])  # fmt: skip
def test_formats_are_numbered_as_in_cann(name: str, value: int) -> None:
    assert Format[f"FORMAT_{name}"] == value
