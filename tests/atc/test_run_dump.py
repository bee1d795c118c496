"""``om-run --dump`` on a compiled model: options, places, warnings, faults."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import atc
from atc.run_command import main
from simulator.dump_data import read

X = np.float32([[1, -2, 3]])
W = np.float32([[1, 0.5], [2, -1], [0, 4]])


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """net.v1.om: y = relu(x @ w) * 3"""
    monkeypatch.chdir(tmp_path)
    weights = [numpy_helper.from_array(W, "w"), numpy_helper.from_array(np.float32(3), "three")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], "block/matmul"),
        helper.make_node("Relu", ["m"], ["r"], "block/relu"),
        helper.make_node("Mul", ["r", "three"], ["y"], "scale"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 3]), ("y", [1, 2])))
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(content)
    atc.compile_model(content, soc_version="Ascend310P3", precision_mode_v2="origin").save("net.v1.om")
    np.save("x.npy", X)


def om_run(*arguments: str) -> int:
    return main(["--model=net.v1.om", *arguments])


def manifests(folder: str = "out/dump") -> list[dict[str, Any]]:
    """The manifests of all runs, in order."""
    found = sorted(Path(folder).glob("*/*/*/*/*/manifest.json"), key=lambda path: (path.parts[2], int(path.parts[-2])))
    return [json.loads(path.read_text()) | {"folder": path.parent} for path in found]


def saved(manifest: dict[str, Any], op: str, kind: str, index: int = 0) -> NDArray[Any]:
    [entry] = [entry for entry in manifest["files"] if entry["op"] == op]
    [tensor] = [t for t in entry["tensors"] if (t["kind"], t["index"]) == (kind, index)]
    assert len(read(manifest["folder"] / entry["file"]).data.output) <= 1
    return np.load(manifest["folder"] / tensor["npy"])


def test_a_dump_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert om_run("--input=x.npy", "--output=out", "--dump", "1", "--device=2") == 0
    [manifest] = manifests()
    assert manifest["folder"].parts[:2] == ("out", "dump")
    assert manifest["folder"].parts[3:] == ("2", "net_v1", "1", "0")
    assert manifest["dump_mode"] == "all"
    assert [entry["op"] for entry in manifest["files"]] == ["block/matmul", "block/relu", "scale"]
    np.testing.assert_array_equal(saved(manifest, "block/matmul", "input", 1), W)
    np.testing.assert_allclose(saved(manifest, "block/matmul", "output"), X @ W, rtol=1e-6)
    np.testing.assert_allclose(saved(manifest, "block/relu", "input"), X @ W, rtol=1e-6)
    np.testing.assert_allclose(saved(manifest, "scale", "output"), np.maximum(X @ W, 0) * 3, rtol=1e-6)
    captured = capsys.readouterr()
    assert f"The dump is in {manifest['folder'].parent}" in captured.out.splitlines()
    assert captured.err == ""


def test_warming_up_is_not_dumped_and_every_measured_run_is() -> None:
    np.save("z.npy", np.zeros_like(X))
    assert om_run("--input=x.npy,z.npy", "--output=out", "--dump=true", "--loop=2", "--warmup_count=3") == 0
    found = manifests()
    assert [manifest["data_index"] for manifest in found] == [0, 1, 2, 3]
    inputs = [saved(manifest, "block/matmul", "input") for manifest in found]
    np.testing.assert_array_equal(inputs, [X, X, X * 0, X * 0])


@pytest.mark.parametrize("mode", ["input", "output"])
def test_one_side(mode: str) -> None:
    assert om_run("--input=x.npy", "--output=out", "--dump", f"--dump_mode={mode}", "--dump_npy=1") == 0
    [manifest] = manifests()
    assert {tensor["kind"] for entry in manifest["files"] for tensor in entry["tensors"]} == {mode}


def test_layers(capsys: pytest.CaptureFixture[str]) -> None:
    assert om_run("--input=x.npy", "--output=out", "--dump", "--dump_layer=block/relu, block/relu6") == 0
    [manifest] = manifests()
    assert [entry["op"] for entry in manifest["files"]] == ["block/relu"]
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("WARNING: nothing is dumped for 'block/relu6'")
    assert "near: block/relu" in line


def test_no_layer_is_no_dump(capsys: pytest.CaptureFixture[str]) -> None:
    assert om_run("--input=x.npy", "--output=out", "--dump", "--dump_layer=nobody") == 0
    assert not Path("out/dump").exists()
    captured = capsys.readouterr()
    assert "WARNING: nothing is dumped for 'nobody'" in captured.err
    assert "The dump is in" not in captured.out


def test_extra() -> None:
    assert om_run("--input=x.npy", "--output=out", "--dump", "--dump_extra") == 0
    [manifest] = manifests()
    np.testing.assert_array_equal(saved(manifest, "x", "output"), X)
    assert {entry["type"] for entry in manifest["files"]} >= {"Data", "Const", "Relu"}


def test_a_second_dump_leaves_the_first_alone() -> None:
    for _ in range(2):
        assert om_run("--input=x.npy", "--output=out", "--output_dirname=r", "--dump") == 0
    assert len(manifests()) == 2


def test_a_dump_directory_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/dump").write_text("kept")
    assert om_run("--input=x.npy", "--output=out", "--output_dirname=r", "--dump") == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("R1044: The dump [out/dump] cannot be written")
    assert captured.out == ""
    assert Path("out/dump").read_text() == "kept"
    assert os.listdir("out") == ["dump"]


def test_a_disk_that_fills_leaves_nothing_half(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **how: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    assert om_run("--input=x.npy", "--output=out", "--output_dirname=r", "--dump") == 1
    captured = capsys.readouterr()
    assert "The dump is in" not in captured.out
    [line, solution] = captured.err.splitlines()
    assert line.startswith("R1044: ")
    assert "No space left on device" in line
    assert "--dump_layer" in solution
    assert not Path("out/dump").exists()
    assert not any(path.is_file() for path in Path("out").rglob("*"))


def test_room_for_all_runs_is_looked_at_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert om_run("--input=x.npy", "--output=out", "--dump", "--loop=10") == 0
    [line] = capsys.readouterr().err.splitlines()
    size = 4 * ((3 + 6 + 2) + (2 + 2) + (2 + 1 + 2)) * 2 * 10
    assert line == f"WARNING: the dump takes some {size} bytes for 10 runs, but only 1000 are free in out/dump"


def test_a_configuration_goes_before_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"model_name": "net.v1", "layer": ["block/relu"]}
    config = {"dump": {"dump_path": "elsewhere", "dump_list": [entry], "dump_step": "1"}}
    Path("acl.json").write_text(json.dumps(config))
    assert om_run("--input=x.npy", "--output=out", "--dump", "--acl_json_path=acl.json", "--loop=3") == 0
    assert not Path("out/dump").exists()
    [manifest] = manifests("elsewhere")
    assert manifest["data_index"] == 1
    assert [(entry["op"], [t["kind"] for t in entry["tensors"]]) for entry in manifest["files"]] == [
        ("block/relu", ["output"])
    ]
    assert "goes before --dump" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dump", "reason"),
    [
        ({"dump_path": "d", "dump_list": [], "dump_mode": "both"}, "dump_mode"),
        ({"dump_path": "d", "dump_list": [], "dump_stats": ["Max"]}, "dump_stats needs"),
        ({"dump_path": "", "dump_list": []}, "dump_path"),
        ({"dump_path": "d", "dump_list": [], "dump_step": "|".join(map(str, range(101)))}, "dump_step"),
        ({"dump_path": "d", "dump_list": [{"opname_range": [{"begin": "a", "end": "b"}]}]}, "opname_range"),
    ],
)
def test_configurations_that_cannot_be_followed(
    dump: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("acl.json").write_text(json.dumps({"dump": dump}))
    assert om_run("--input=x.npy", "--acl_json_path", "acl.json") == 1
    [line, _] = capsys.readouterr().err.splitlines()
    assert line.startswith("R1046: The configuration [acl.json] cannot be followed.")
    assert reason in line
