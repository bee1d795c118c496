"""Results as files, and the summary of a run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from atc.input_files import Run
from atc.output_files import check_inputs_stay, check_names, output_folder, sample_name, save_run, write_array
from atc.run_summary import Sample, Statistics, Summary
from ge.atomic_file import write_atomically
from ge.errors import ReportedError


def written(array: np.ndarray, form: str) -> bytes:
    file = io.BytesIO()
    write_array(file, array, form)
    return file.getvalue()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([[1, 2.5, 1e-9], [-0.0, np.inf, 16777217]], np.float32), "1 2.5 9.99999972e-10\n-0 inf 16777216\n"),
        (np.array([[[1, 2], [3, 4]]], np.int64), "1 2\n3 4\n"),
        (np.array([True, False]), "1 0\n"),
        (np.array(7, np.uint8), "7\n"),
        (np.array([0.1], np.float64), "0.10000000000000001\n"),
        (np.array([1.5, 3], ml_dtypes.bfloat16), "1.5 3\n"),
        (np.zeros((2, 0), np.float32), "\n\n"),
        (np.zeros((0, 2), np.float32), ""),
    ],
)
def test_text_form(array: np.ndarray, text: str) -> None:
    assert written(array, "TXT").decode() == text


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_text_tells_all_values_apart(dtype: Any, rng: np.random.Generator) -> None:
    bits = rng.integers(0, 2**16, 400, np.uint16)
    values = np.concatenate([bits.view(np.float16).astype(dtype), rng.standard_normal(100).astype(dtype)])
    values = values[np.isfinite(values)]
    back = np.array(written(values, "TXT").split(), np.float64).astype(dtype)
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("array", [np.arange(6, dtype=np.int16).reshape(2, 3).T, np.array(2.5, np.float32)])
def test_binary_and_npy_forms(array: np.ndarray) -> None:
    assert written(array, "BIN") == array.tobytes()
    back = np.load(io.BytesIO(written(array, "NPY")))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, array)


def test_npy_of_types_that_numpy_does_not_know_is_widened(rng: np.random.Generator) -> None:
    array = rng.standard_normal((2, 3)).astype(ml_dtypes.bfloat16)
    back = np.load(io.BytesIO(written(array, "NPY")))
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, array.astype(np.float32))


@pytest.mark.parametrize(
    ("files", "name"),
    [(["a/x.npy", "b/y.npy"], "x"), (["a.1.bin"], "a.1"), (["noext"], "noext"), ([], "pure_infer_data")],
)
def test_results_are_named_after_the_first_file(files: list[str], name: str) -> None:
    assert sample_name(files) == name


def test_samples_with_dots_do_not_collide_but_equal_names_do() -> None:
    check_names([["a.1.bin"], ["a.2.bin"]])
    with pytest.raises(ReportedError) as error:
        check_names([["one/a.npy"], ["two/a.bin"]])
    assert error.value.code == "R1041"
    assert "[one/a.npy] and [two/a.bin]" in error.value.message


def test_no_result_takes_the_place_of_an_input(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.bin", "a_0.bin")]
    check_inputs_stay(tmp_path / "later", [files], 2, "BIN")
    check_inputs_stay(tmp_path, [files], 2, "NPY")
    check_inputs_stay(tmp_path, [files[:1]], 2, "BIN")
    with pytest.raises(ReportedError) as error:
        check_inputs_stay(tmp_path, [files], 2, "BIN")
    assert error.value.code == "R1043"
    assert "a_0.bin" in error.value.message


def test_names_of_files_may_hold_any_bytes(tmp_path: Path) -> None:
    odd = "\udcff"
    text = Summary([], 1, [Sample([f"{odd}.npy"], [])]).text({})
    write_atomically(tmp_path / "s.json", text)
    assert json.loads((tmp_path / "s.json").read_text())["filesinfo"]["0"]["infiles"] == [f"{odd}.npy"]


def test_batch_is_divided_and_padding_is_dropped(tmp_path: Path) -> None:
    run = Run((("p.npy",), ("q.npy",), ("p.npy",), ("p.npy",)), padding=2)
    outputs = [np.arange(8, dtype=np.float32).reshape(4, 2), np.arange(4, dtype=np.int64)]
    paths = save_run(tmp_path, run, outputs, "NPY")
    assert [[Path(path).name for path in row] for row in paths] == [["p_0.npy", "p_1.npy"], ["q_0.npy", "q_1.npy"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p_0.npy", "p_1.npy", "q_0.npy", "q_1.npy"]
    np.testing.assert_array_equal(np.load(paths[1][0]), [[2, 3]])
    np.testing.assert_array_equal(np.load(paths[1][1]), [1])


def test_output_folder(tmp_path: Path) -> None:
    assert output_folder("out", "a/./b/") == Path("out/a/b")
    first = output_folder(str(tmp_path), "")
    first.mkdir()
    assert output_folder(str(tmp_path), "") != first


def test_statistics_against_numbers_by_hand() -> None:
    assert Statistics.of([4.0, 1.0, 3.0, 2.0]).named() == {
        "min": 1.0,
        "max": 4.0,
        "mean": 2.5,
        "median": 2.5,
        "percentile(99%)": pytest.approx(3.97),
        "count": 4,
    }
    assert Statistics.of([]) == Statistics()


def test_summary_lines_keep_their_form() -> None:
    lines = Summary([1.0, 2.0, 3.0], batchsize=8).lines()
    assert "Performance Summary" in lines[0]
    assert "CPU simulation" in lines[0]
    assert lines[1] == "NPU_compute_time (ms): min = 1.0, max = 3.0, mean = 2.0, median = 2.0, percentile(99%) = 2.98"
    assert lines[2] == "throughput 1000*batchsize.mean(8)/NPU_compute_time.mean(2.0): 4000.0"
    assert float(lines[2].split()[-1]) == 4000.0


def test_summary_file() -> None:
    content = json.loads(Summary([2.0], 1, [Sample(["x.npy"], ["o/x_0.bin"])]).text({"model": "m.om"}))
    assert content["filesinfo"] == {"0": {"infiles": ["x.npy"], "outfiles": ["o/x_0.bin"]}}
    assert content["args"] == {"model": "m.om"}
    assert content["NPU_compute_time"]["count"] == 1
    assert content["npu_compute_time_list"] == [2.0]
    assert content["throughput"] == 500.0
    assert content["H2D_latency"]["count"] == content["D2H_latency"]["count"] == 0
    assert json.loads(Summary([], 1).text({}))["throughput"] == 0.0
