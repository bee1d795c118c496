"""Weights are views of files until the .om is written: what happens when those files change in between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import atc
from ge.errors import ReportedError
from om_format import OfflineModel
from simulator import InferSession

WEIGHTS = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)


def write_model(folder: Path, is_external: bool) -> Path:
    """Write y = x @ w; w [64,64] is large enough to stay in the file that holds it. Returns that file."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path = folder / "m.onnx"
    onnx.save(model, path, save_as_external_data=is_external, location="w.bin", size_threshold=0)
    return folder / "w.bin" if is_external else path


def compiled(folder: Path) -> OfflineModel:
    return atc.compile_model(folder / "m.onnx", soc_version="Ascend310P3", precision_mode_v2="origin")


@pytest.mark.parametrize("is_external", [True, False], ids=["data file", "model file"])
@pytest.mark.parametrize("keep", [0, 100, None], ids=["emptied", "cut", "longer"])
def test_a_file_written_to_is_reported_and_leaves_no_om(tmp_path: Path, is_external: bool, keep: int | None) -> None:
    holder = write_model(tmp_path, is_external)
    model = compiled(tmp_path)
    with holder.open("r+b" if keep is not None else "ab") as file:
        if keep is None:
            file.write(b"more")
        else:
            file.truncate(keep)
    om = tmp_path / "m.om"
    om.write_bytes(b"an older one")
    with pytest.raises(ReportedError) as caught:
        model.save(om)
    assert caught.value.code == "E13026"
    assert str(holder) in caught.value.message
    assert ("initializer [w]" in caught.value.message) is is_external
    assert om.read_bytes() == b"an older one"
    assert {path.name for path in tmp_path.iterdir()} <= {"m.onnx", "w.bin", "m.om"}


@pytest.mark.parametrize("is_external", [True, False], ids=["data file", "model file"])
def test_a_file_that_was_replaced_still_gives_what_was_compiled(tmp_path: Path, is_external: bool) -> None:
    holder = write_model(tmp_path, is_external)
    model = compiled(tmp_path)
    holder.unlink()
    holder.write_bytes(b"something else")
    model.save(tmp_path / "m.om")
    x = np.random.default_rng(3).standard_normal((2, 64), np.float32)
    (y,) = InferSession(0, tmp_path / "m.om").infer([x])
    np.testing.assert_allclose(y, x.astype(np.float64) @ WEIGHTS, rtol=1e-5, atol=1e-5)


def test_an_om_may_be_saved_over_itself(tmp_path: Path) -> None:
    """Its weights are read from the old file while the new one is written under another name."""
    from om_format import load

    write_model(tmp_path, is_external=False)
    om = tmp_path / "m.om"
    compiled(tmp_path).save(om)
    before = om.read_bytes()
    load(om).save(om)
    assert om.read_bytes() == before
