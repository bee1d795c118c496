"""Which files feed which input, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atc.input_files import assign_files, load_run, natural_key, plan_runs
from atc.made_up_inputs import random_inputs, zero_inputs
from ge.errors import ReportedError


@dataclass(frozen=True)
class Tensor:
    """A model input as a session describes it."""

    name: str
    shape: list[int]
    datatype: np.dtype[Any]

    @property
    def size(self) -> int:
        return prod(self.shape) * self.datatype.itemsize


def tensor(name: str, *shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(name, list(shape), np.dtype(dtype))


X, Y, Z = tensor("x", 1, 4), tensor("y", 1, 4), tensor("z", 1, 4)
BATCH = tensor("x", 4, 3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(name: str, array: np.ndarray) -> str:
    Path(name).parent.mkdir(exist_ok=True)
    np.save(name, array) if name.endswith(".npy") else array.tofile(name)
    return name


def test_files_are_taken_in_chunks_per_input() -> None:
    assert assign_files(["0", "1", "2", "3"], [X, Y]) == [("0", "2"), ("1", "3")]


def test_directories_are_one_per_input_in_natural_order() -> None:
    for name in ("a/10.bin", "a/9.bin", "a/notes.txt", "b/x2.npy", "b/x10.NPY"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    Path("a/folder.bin").mkdir()
    assert assign_files(["a", "b"], [X, Y]) == [("a/9.bin", "b/x2.npy"), ("a/10.bin", "b/x10.NPY")]


@pytest.mark.parametrize(
    ("names", "inputs", "code", "part"),
    [
        (["0", "1", "2"], [X, Y], "R1020", "3 files do not divide among 2 model inputs: x, y"),
        (["a", "b"], [X, Y, Z], "R1021", "directories is 2, that of the model's inputs 3"),
        (["empty", "a"], [X, Y], "R1022", ".npy or .bin"),
        (["a", "0"], [X, Y], "R1028", "[a]"),
        (["a", "b"], [X, Y], "R1027", "Input [y] has 2 files; input [x] has 1"),
        (["0"], [], "R1029", "0"),
    ],
)
def test_assignment_faults(names: list[str], inputs: list[Tensor], code: str, part: str) -> None:
    Path("empty").mkdir()
    for name in ("a/1.bin", "b/1.bin", "b/2.bin"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    with pytest.raises(ReportedError) as error:
        assign_files(names, inputs)
    assert error.value.code == code
    assert part in error.value.message


@given(st.permutations(["1.bin", "2.bin", "10.bin", "a1b2", "a1b10", "a2b1", "b"]))
def test_natural_order(names: list[str]) -> None:
    assert sorted(names, key=natural_key) == ["1.bin", "2.bin", "10.bin", "a1b2", "a1b10", "a2b1", "b"]


@given(st.lists(st.text(max_size=8), max_size=6))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    assert sorted(sorted(names, key=natural_key)) == sorted(names)


@pytest.mark.parametrize("suffix", [".npy", ".bin"])
def test_one_file_per_run(suffix: str, rng: np.random.Generator) -> None:
    arrays = [rng.random((1, 4), np.float32) for _ in range(2)]
    files = [(save(f"{i}{suffix}", array),) for i, array in enumerate(arrays)]
    runs = plan_runs(files, [X])
    assert [run.wanted for run in runs] == [(files[0],), (files[1],)]
    for run, array in zip(runs, arrays, strict=True):
        np.testing.assert_array_equal(load_run(run, [X])[0], array)


@pytest.mark.parametrize("shape", [(1, 3), (3,)])
def test_short_last_batch_is_filled_with_its_first_sample(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    arrays = [rng.random(shape, np.float32) for _ in range(6)]
    runs = plan_runs([(save(f"{i}.npy", array),) for i, array in enumerate(arrays)], [BATCH])
    assert [len(run.wanted) for run in runs] == [4, 2]
    assert [run.padding for run in runs] == [0, 2]
    last = load_run(runs[1], [BATCH])[0]
    np.testing.assert_array_equal(last, np.stack([arrays[i].reshape(3) for i in (4, 5, 4, 4)]))


def test_all_inputs_are_packed_alike(rng: np.random.Generator) -> None:
    second = tensor("n", 4, dtype=np.int64)
    x, n = rng.random((2, 3), np.float32), np.array([5, 7], np.int64)
    run = plan_runs([(save("x.npy", x), save("n.npy", n))], [BATCH, second])[0]
    assert run.padding == 1
    arrays = load_run(run, [BATCH, second])
    np.testing.assert_array_equal(arrays[0], np.concatenate([x, x]))
    np.testing.assert_array_equal(arrays[1], [5, 7, 5, 7])


SHAPE_1x8 = tensor("x", 1, 8)


@pytest.mark.parametrize(
    ("inputs", "arrays", "code", "parts"),
    [
        # half a file may not be paired with padding
        ([SHAPE_1x8], [np.zeros(4, np.float32)], "R1024", ["[x] (float32[1, 8]) takes 32 bytes", "0.bin] has 16"]),
        ([BATCH], [np.zeros(5, np.float32)], "R1024", ["48 bytes", "has 20"]),
        ([X], [np.zeros(8, np.float32)], "R1024", ["16 bytes", "has 32"]),
        ([X], [np.zeros(0, np.float32)], "R1024", ["16 bytes", "has 0"]),
        ([X, Y], [np.zeros(4, np.float32), np.zeros(2, np.float32)], "R1024", ["Input [y]", "1.bin] has 8"]),
        ([BATCH, tensor("s")], [np.zeros(3, np.float32), np.zeros(1, np.float32)], "R1024", ["Input [s]", "1 of 4"]),
    ],
)
def test_size_faults(inputs: list[Tensor], arrays: list[np.ndarray], code: str, parts: list[str]) -> None:
    files = tuple(save(f"{i}.bin", array) for i, array in enumerate(arrays))
    with pytest.raises(ReportedError) as error:
        plan_runs([files], inputs)
    assert error.value.code == code
    for part in parts:
        assert part in error.value.message


def test_second_file_of_another_size_is_refused() -> None:
    files = [(save("0.bin", np.zeros(4, np.float32)),), (save("1.bin", np.zeros(2, np.float32)),)]
    with pytest.raises(ReportedError) as error:
        plan_runs(files, [X])
    assert (error.value.code, error.value.fields["file"]) == ("R1024", "1.bin")


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.zeros((1, 2), np.int64), "R1025"),
        (np.zeros((1, 4), np.int32), "R1025"),
        (np.zeros((4, 1), np.float32), "R1026"),
        (np.zeros(4, np.float32), "R1026"),
    ],
)
def test_npy_of_another_type_or_shape(array: np.ndarray, code: str) -> None:
    files = [(save("x.npy", array),)]
    with pytest.raises(ReportedError) as error:
        plan_runs(files, [X])
    assert error.value.code == code
    assert "--allow-reinterpret" in error.value.solution
    run = plan_runs(files, [X], allow_reinterpret=True)[0]
    assert load_run(run, [X])[0].tobytes() == array.tobytes()


@pytest.mark.parametrize("array", [np.zeros((1, 4), ">f4") + 1.5, np.asfortranarray(np.ones((1, 4), np.float32))])
def test_byte_order_and_memory_order_do_not_matter(array: np.ndarray) -> None:
    run = plan_runs([(save("x.npy", array),)], [X])[0]
    loaded = load_run(run, [X])[0]
    assert loaded.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(loaded, array)


def test_fortran_order_is_undone(rng: np.random.Generator) -> None:
    array = rng.random((4, 3), np.float32)
    run = plan_runs([(save("x.npy", np.asfortranarray(array)),)], [BATCH])[0]
    np.testing.assert_array_equal(load_run(run, [BATCH])[0], array)


def test_bfloat16_as_numpy_saves_it(rng: np.random.Generator) -> None:
    narrow = tensor("x", 1, 4, dtype=ml_dtypes.bfloat16)
    array = rng.random((1, 4)).astype(ml_dtypes.bfloat16)
    run = plan_runs([(save("x.npy", array),)], [narrow])[0]
    np.testing.assert_array_equal(load_run(run, [narrow])[0].astype(np.float32), array.astype(np.float32))


def test_scalar_input() -> None:
    scalar = tensor("s", dtype=np.int64)
    run = plan_runs([(save("s.npy", np.array(7)),)], [scalar])[0]
    assert load_run(run, [scalar])[0].shape == ()


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("missing.npy", None, "does not exist"),
        ("x.npz", b"PK", "must end with"),
        ("x.npy", b"", "magic"),
        ("x.npy", b"\x93NUMPY\x01\x00\xff\xff{", "header is damaged"),
        ("x.npy", b"\x93NUMPY\x01\x00\xc9\x00" + b"(" * 200 + b"\n", "header is damaged"),
        ("x.npy", b"\x93NUMPY\x09\x00", "version"),
        ("x.npy", "cut", "promises 16 bytes of data, but 15 follow"),
        ("x.npy", "objects", "Python objects"),
    ],
)
def test_unreadable_files(name: str, content: bytes | str | None, part: str) -> None:
    if content == "cut":
        save(name, np.zeros((1, 4), np.float32))
        Path(name).write_bytes(Path(name).read_bytes()[:-1])
    elif content == "objects":
        np.save(name, np.array([[1, 2, 3, None]], object), allow_pickle=True)
    elif isinstance(content, bytes):
        Path(name).write_bytes(content)
    with pytest.raises(ReportedError) as error:
        plan_runs([(name,)], [X])
    assert error.value.code == "R1023"
    assert name in error.value.message
    assert part in error.value.message


@given(head=st.binary(max_size=80), is_npy=st.booleans())
def test_any_npy_file_is_read_or_reported(head: bytes, is_npy: bool) -> None:
    Path("x.npy").write_bytes((b"\x93NUMPY\x01\x00" if is_npy else b"") + head)
    with pytest.raises(ReportedError) as error:
        plan_runs([("x.npy",)], [X])
    assert error.value.code in ("R1023", "R1024", "R1025", "R1026")


ALL_TYPES = [
    *(np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.bool_),
    *(np.complex64, ml_dtypes.bfloat16),
]


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_made_up_inputs_are_typed_finite_and_repeatable(dtype: Any) -> None:
    inputs = [tensor("a", 2, 50, dtype=dtype), tensor("b", 2, 50, dtype=dtype), tensor("s", dtype=dtype)]
    first, second = random_inputs(inputs), random_inputs(inputs)
    for one, other, expected in zip(first, second, inputs, strict=True):
        assert one.dtype == expected.datatype
        assert list(one.shape) == expected.shape
        assert one.tobytes() == other.tobytes()
        assert np.isfinite(one.astype(np.complex64)).all()
    assert first[0].tobytes() != first[1].tobytes(), "inputs must differ"
    assert len(np.unique(first[0].astype(np.complex64))) > 1
    assert all(not array.astype(np.complex64).any() for array in zero_inputs(inputs))
