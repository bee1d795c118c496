"""Arrays that passes make: the first stay in memory, what comes on top lies in files, and all of them are equal."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge import made_arrays
from ge.graph import Graph, Tensor
from ge.made_arrays import kept
from ge.mapped_file import MappedFile

Array = np.ndarray[Any, Any]
KIB = 1 << 10


@pytest.fixture(autouse=True)
def room_for_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 256 KiB stay in memory: two arrays of 128 KiB."""
    gc.collect()
    monkeypatch.setattr(made_arrays, "_in_memory", {})
    monkeypatch.setattr(made_arrays, "MAX_IN_MEMORY", 256 * KIB)


def made(seed: int, dtype: Any = np.float32) -> Array:
    """Return a new array of 128 KiB with two axes."""
    dtype = np.dtype(dtype)
    codes = np.random.default_rng(seed).integers(0, 64, 128 * KIB // dtype.itemsize)
    return codes.astype(dtype).reshape(64, -1)


def is_in_file(array: Array) -> bool:
    return MappedFile.behind(array) is not None


def test_what_comes_on_top_lies_in_files() -> None:
    arrays = [made(i) for i in range(5)]
    results = [kept(array) for array in arrays]
    assert [is_in_file(array) for array in results] == [False, False, True, True, True]
    for array, result in zip(arrays, results, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)
    assert not results[2].flags.writeable


def test_room_is_free_again_when_arrays_go() -> None:
    first, second = kept(made(1)), kept(made(2))
    view = first[1:]
    del first
    assert is_in_file(kept(made(3)))
    del view
    third = kept(made(4))
    assert not is_in_file(third)
    assert is_in_file(kept(made(5)))
    np.testing.assert_array_equal(second, made(2))


def test_an_array_counts_once_with_all_its_views() -> None:
    array = made(1)
    views = [kept(array), kept(array.T), kept(array.reshape(-1)), kept(array)]
    assert not is_in_file(kept(made(2)))
    assert all(np.shares_memory(view, array) for view in views)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.float16, np.complex128, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda a: a, id="as it is"),
        pytest.param(lambda a: a.T, id="transposed"),
        pytest.param(lambda a: a[::-1], id="backwards"),
        pytest.param(lambda a: a.reshape(2, 32, -1).transpose(1, 2, 0), id="axes in another order"),
    ],
)
def test_elements_and_types_stay(dtype: Any, view: Callable[[Array], Array]) -> None:
    full = [kept(made(1)), kept(made(2))]
    array = view(made(3, dtype))
    result = kept(array)
    assert is_in_file(result)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)
    assert len(full) == 2


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.zeros(64 * KIB, np.uint8), id="small"),
        pytest.param(np.array(["text"] * 64 * KIB, object), id="texts"),
        pytest.param(np.broadcast_to(np.float32(1), (1 << 20,)), id="one element, looking like many"),
        pytest.param(np.frombuffer(bytes(128 * KIB), np.uint8), id="memory of another"),
    ],
)
def test_what_is_left_alone(array: Array) -> None:
    full = [kept(made(1)), kept(made(2))]
    assert kept(array) is array
    assert len(full) == 2


def test_without_room_for_files_all_stays_in_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full_disk() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full_disk)
    arrays = [made(i) for i in range(3)]
    with caplog.at_level(logging.WARNING, "atc"):
        assert all(kept(array) is array for array in arrays)
    assert "No space left" in caplog.text


def test_constants_of_graphs_are_kept_so() -> None:
    graph = Graph("g")
    outs = [graph.add_const(f"w{i}", Tensor.of(made(i))) for i in range(4)]
    found = [out.node.attrs["value"].array for out in outs]
    assert [is_in_file(array) for array in found] == [False, False, True, True]
    for i, array in enumerate(found):
        np.testing.assert_array_equal(array, made(i))
