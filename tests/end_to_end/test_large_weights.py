"""Models whose weights do not fit into one protobuf message: compiled from external data in bounded memory, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import atc
import om_format.writer
from ge.errors import ReportedError
from om_format.weights import WeightsPool
from simulator import InferSession

ROOT = Path(__file__).resolve().parents[2]
MIB, GIB = 1 << 20, 1 << 30
OPTIONS = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin"}


def external(name: str, dims: list[int], offset: int, location: str = "weights.bin") -> TensorProto:
    """Return a float32 initializer whose data lies outside."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": offset, "length": 4 * int(np.prod(dims))}
    for key, entry in entries.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


def model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, list[int]]],
    outputs: dict[str, list[int]],
    *tensors: TensorProto,
) -> ModelProto:
    """Return a model; `inputs` have a type and dims, `outputs` are float32."""
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()],
        list(tensors),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose files do not stay behind: pytest would keep gigabytes of several runs."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def need_room(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        pytest.skip(f"{folder} has {free / GIB:.1f} GiB left, the test needs {n_bytes / GIB:.1f}")


# -- 3 GiB in layers ---------------------------------------------------------------------------------------------------
WIDTH, LAYERS = 4096, 48
LAYER_BYTES = 4 * WIDTH * WIDTH
"""64 MiB: twice as much as protobuf may hold lies in 48 of them."""
SHOWN = (1, 21, 22, 23, 24, 25, LAYERS)
"""Layers behind which the activation is a result."""
GAIN = np.float32(0.75)


def layer_forms(i: int) -> list[NodeProto]:
    """Return h<i+1> = tanh(h<i> @ w<i>) in five ways: two take the matrix transposed, one scales it, one the product.

    Of the last two the compiler makes new weights.
    """
    source, matrix, product = f"h{i}", f"w{i}", f"m{i}"
    forms = (
        [helper.make_node("MatMul", [source, matrix], [product])],
        [helper.make_node("Gemm", [source, matrix], [product], transB=1)],
        [
            helper.make_node("Transpose", [matrix], [f"{matrix}t"], perm=[1, 0]),
            helper.make_node("MatMul", [source, f"{matrix}t"], [product]),
        ],
        [
            helper.make_node("Mul", [matrix, "gain"], [f"{matrix}s"]),
            helper.make_node("MatMul", [source, f"{matrix}s"], [product]),
        ],
        [
            helper.make_node("MatMul", [source, matrix], [f"{product}u"]),
            helper.make_node("Mul", [f"{product}u", "gain"], [product]),
        ],
    )
    return [*forms[i % 5], helper.make_node("Tanh", [product], [f"h{i + 1}"])]


def write_layers(folder: Path) -> Path:
    """Write a model of `LAYERS` layers; no two have equal weights. The values keep activations near 1."""
    block = np.random.default_rng(11).standard_normal((WIDTH, WIDTH), np.float32) * np.float32(1.2 / WIDTH**0.5)
    with (folder / "weights.bin").open("wb") as file:
        for i in range(LAYERS):
            file.write(np.roll(block, 37 * i, axis=0).data)
    nodes = [node for i in range(LAYERS) for node in layer_forms(i)]
    tensors = [external(f"w{i}", [WIDTH, WIDTH], i * LAYER_BYTES) for i in range(LAYERS)]
    tensors.append(numpy_helper.from_array(GAIN, "gain"))
    outputs = {f"h{i}": [1, WIDTH] for i in SHOWN}
    path = folder / "layers.onnx"
    path.write_bytes(model(nodes, {"h0": (TensorProto.FLOAT, [1, WIDTH])}, outputs, *tensors).SerializeToString())
    return path


def expected_layers(weights: Path, x: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """Compute the results in float64 from the data file."""
    matrices = np.memmap(weights, "<f4", "r", shape=(LAYERS, WIDTH, WIDTH))
    h, found = x.astype(np.float64), []
    for i, matrix in enumerate(matrices):
        wide = matrix.astype(np.float64)
        h = np.tanh(h @ (wide, wide.T, wide.T, GAIN * wide, GAIN * wide)[i % 5])
        if i + 1 in SHOWN:
            found.append(h)
    return found


COMPILE = """
import resource, sys
bound = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
from atc.command import main
status = main(sys.argv[2:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("peak", 1024 * int(peak.split()[1]))
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on private memory is Linux's")
def test_three_gigabytes_compile_in_the_memory_of_a_few_layers_and_run(folder: Path) -> None:
    """The bound is held twice: by the kernel, which refuses private writable memory above it (RLIMIT_DATA, used or
    only reserved), and by the most that was ever resident (VmHWM), pages of mapped files included."""
    need_room(folder, 3 * LAYERS * LAYER_BYTES)
    source = write_layers(folder)
    bound = 4 * LAYER_BYTES + 300 * MIB
    arguments = [f"--model={source}", "--framework=5", f"--output={folder / 'layers'}"]
    arguments += ["--soc_version=Ascend310P3", "--precision_mode_v2=origin"]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(bound), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("peak")[1]) < bound
    om = folder / "layers.om"
    assert om.stat().st_size > LAYERS * LAYER_BYTES

    x = np.random.default_rng(12).standard_normal((1, WIDTH), np.float32)
    session = InferSession(0, om)
    for actual, expected in zip(session.infer([x]), expected_layers(folder / "weights.bin", x), strict=True):
        assert np.std(expected) > 0.1
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


# -- beyond 4 GiB ------------------------------------------------------------------------------------------------------
ROWS, COLUMNS = 1_114_112, 1024
TABLE_BYTES = 4 * ROWS * COLUMNS
"""4.25 GiB."""


class HoleyFile:
    """A file that gets a hole instead of zeros, so that it takes no room on the disk."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes | memoryview) -> int:
        if bytes(data) == bytes(len(data)):
            self._file.seek(len(data), os.SEEK_CUR)
        else:
            self._file.write(data)
        return len(data)

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, position: int) -> None:
        self._file.seek(position)


@contextmanager
def holey_file(path: str | Path) -> Iterator[HoleyFile]:
    with Path(path).open("wb") as file:
        yield HoleyFile(file)
        file.truncate()


def write_ends(pool: WeightsPool, file: HoleyFile) -> None:
    """Write the last MiB of each constant only: what is before it in this test is zero."""
    start = file.tell()
    for offset, tensor in pool._placed:
        end = tensor.array.reshape(-1).view(np.uint8)[-MIB:]
        file.seek(start + offset + tensor.nbytes - end.size)
        file.write(end.data)
    file.seek(start + pool.size)


@pytest.mark.parametrize("is_streamed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_weights_beyond_four_gibibytes(
    is_streamed: bool, folder: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of 4.25 GiB, almost all of it holes in sparse files, and weights behind it: offsets need 64 bits, in the
    data file as in the .om."""
    last_rows, bias = rng.standard_normal((2, COLUMNS), np.float32), rng.standard_normal(COLUMNS, np.float32)
    with (folder / "weights.bin").open("wb") as file:
        file.seek(TABLE_BYTES - last_rows.nbytes)
        file.write(last_rows.tobytes() + bias.tobytes())
    nodes = [
        helper.make_node("Gather", ["table", "row"], ["picked"]),
        helper.make_node("Add", ["picked", "wide"], ["y"]),
    ]
    tensors = [external("table", [ROWS, COLUMNS], 0), external("wide", [COLUMNS], TABLE_BYTES)]
    source = model(nodes, {"row": (TensorProto.INT64, [3])}, {"y": [3, COLUMNS]}, *tensors)
    (folder / "table.onnx").write_bytes(source.SerializeToString())

    monkeypatch.setattr(om_format.writer, "atomic_file", holey_file)
    if not is_streamed:
        monkeypatch.setattr(WeightsPool, "write", write_ends)
    om = folder / "table.om"
    atc.compile_model(folder / "table.onnx", **OPTIONS).save(om)
    if om.stat().st_blocks * 512 > GIB:
        pytest.skip("this file system has no sparse files")
    assert om.stat().st_size > TABLE_BYTES + bias.nbytes

    (y,) = InferSession(0, om).infer([np.array([ROWS - 1, 0, ROWS - 2])])
    np.testing.assert_array_equal(y, np.stack([last_rows[1], np.zeros(COLUMNS, np.float32), last_rows[0]]) + bias)


# -- one file ----------------------------------------------------------------------------------------------------------
def test_file_above_two_gibibytes_without_external_data(folder: Path) -> None:
    path = folder / "whole.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(ReportedError) as caught:
        atc.compile_model(path, **OPTIONS)
    assert caught.value.code == "E13015"
    for said in (str(path), str(2**31), str(2**31 - 1), "external data"):
        assert said in str(caught.value) + caught.value.solution


@pytest.mark.slow
def test_file_just_below_two_gibibytes(folder: Path, rng: np.random.Generator) -> None:
    """Weights inside the model's file are mapped like external ones."""
    need_room(folder, 5 * GIB)
    rows = (2**31 - 4096) // (4 * COLUMNS)
    weights = np.tile(rng.standard_normal((rows // 64, COLUMNS), np.float32), (64, 1))
    table = numpy_helper.from_array(weights, "table")
    source = model(
        [helper.make_node("Gather", ["table", "row"], ["y"])],
        {"row": (TensorProto.INT64, [2])},
        {"y": [2, COLUMNS]},
        table,
    )
    path, om = folder / "whole.onnx", folder / "whole.om"
    path.write_bytes(source.SerializeToString())
    assert 2**31 - 2**20 < path.stat().st_size < 2**31
    del source, table
    atc.compile_model(path, **OPTIONS).save(om)
    wanted = np.array([0, len(weights) - 1])
    np.testing.assert_array_equal(InferSession(0, om).infer([wanted])[0], weights[wanted])
