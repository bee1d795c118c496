"""``atc`` and ``om-run`` with real models: files, lines, exit status (the cases of the command line reference)."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import atc
from atc import checks, modes, run_command
from atc.command import FAILURE, START, SUCCESS, main
from ge.errors import ReportedError
from ge.options import DEFAULT_PRECISION, PRECISION_KEPT
from om_format import load
from om_format.reader import open_model
from passes.pipeline import compile_passes

B = "--model=m.onnx --framework=5 --output=o/m --soc_version=Ascend310P3"
D = B.replace("m.onnx", "d.onnx")
WARNINGS = {"origin": [f"WARNING: {PRECISION_KEPT}"], "fp16": []}
"""What a compile says without precision options, by the default that there is."""


def save_model(path: str, shape: list[int | str], *ops: str) -> None:
    """Save a chain of nodes: input `x`, output `out`, each node named like its operator in lower case."""
    names = ["x", *(f"t{i}" for i in range(1, len(ops))), "out"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], name=op.lower()) for i, op in enumerate(ops)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    model = helper.make_model(
        helper.make_graph(nodes, "net", [x], [out]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_model("m.onnx", [1, 3, 8, 8], "Neg", "Relu")
    save_model("d.onnx", ["n", 3, "h", "w"], "Neg", "Relu")
    return tmp_path


def run(arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Run atc; return exit status and lines of stdout, after checking that no traceback was shown."""
    status = main(shlex.split(arguments))
    output = capsys.readouterr()
    assert "Traceback" not in output.out + output.err
    return status, output.out.splitlines()


def codes(lines: list[str]) -> list[str]:
    errors = lines[lines.index(FAILURE) + 1 :]
    return [line.split(":")[0] for line in errors if not line.startswith(" ")]


@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        ("3", B),
        ("4", f"{B} --soc-version=Ascend310P3"),
        ("5", f"-model=m.onnx {B.partition(' ')[2]}"),
        ("20", f'{B} --input_shape="x:1,3,8,8"'),
        ("29", f'{D} --input_shape="x:1,3,8,8"'),
        ("oo", f"{B} --oo_level=O3 --external_weight=0 --dump_mode=0"),
        ("hardware", f"{B} --aicore_num=8 --core_type=AiCore --sparsity=1 --op_debug_level=2"),
    ],
)
def test_compile(case: str, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments, capsys) == (0, [START, "...", SUCCESS, *WARNINGS[DEFAULT_PRECISION]])
    assert os.listdir("o") == ["m.om"]


@pytest.mark.parametrize("default", WARNINGS)
def test_default_precision(default: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(checks, "DEFAULT_PRECISION", default)
    assert run(B, capsys) == (0, [START, "...", SUCCESS, *WARNINGS[default]])
    assert load("o/m.om").attrs["_precision_mode_v2"] == default


@pytest.mark.parametrize("precision", ["--precision_mode_v2=origin", "--precision_mode=must_keep_origin_dtype"])
def test_chosen_precision_needs_no_warning(precision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{B} {precision}", capsys) == (0, [START, "...", SUCCESS])


@pytest.mark.parametrize(
    ("case", "arguments", "code", "culprit"),
    [
        ("21", f'{B} --input_shape="y:1,3,8,8"', "E10016", "y"),
        ("27", D, "E10001", "--input_shape"),
        ("56", f'{B} --out_nodes="none:0"', "E10016", "none"),
        ("57", f'{B} --out_nodes="relu:9"', "E10003", "relu"),
        ("shape", f'{B} --input_shape="x:1,3,8"', "E10001", "x"),
        ("range-rank", f'{D} --input_shape="x:-1,3,8"', "E10049", "[x]: the range has 3 dimensions"),
        ("range-dim", f'{D} --input_shape="x:1,4~8,8,8"', "E10050", "[x]: dimension 3 of the model"),
        ("range-name", f'{D} --input_shape="y:-1,3,8,8"', "E10016", "y"),
        ("range-inner", f'{D} --input_shape="t1:-1,3,8,8"', "E10017", "t1"),
    ],
)
def test_options_that_do_not_fit_the_model(
    case: str, arguments: str, code: str, culprit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = run(arguments, capsys)
    assert status == 255
    assert codes(lines)[0] == code
    assert culprit in "\n".join(lines)
    assert not Path("o").exists()


HOST = f"{platform.system().lower()}_{platform.machine().lower()}".replace("amd64", "x86_64")


@pytest.mark.parametrize(
    ("case", "arguments", "shape", "limits"),
    [
        ("28", f'{D} --input_shape="x:1~4,3,8,8"', "[-1,3,8,8]", [(1, 4), (3, 3), (8, 8), (8, 8)]),
        ("open", f'{D} --input_shape="x:-1,3,2~9,-1"', "[-1,3,-1,-1]", [(0, -1), (3, 3), (2, 9), (0, -1)]),
        ("range", f'{D} --input_shape_range="x:[1~4,3,8,-1]"', "[-1,3,8,-1]", [(1, 4), (3, 3), (8, 8), (0, -1)]),
        ("fixed-model", f'{B} --input_shape="x:1~4,3,8,8"', "[-1,3,8,8]", [(1, 4), (3, 3), (8, 8), (8, 8)]),
    ],
)
def test_dynamic_models(
    case: str, arguments: str, shape: str, limits: list[tuple[int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = run(f"{arguments} --precision_mode_v2=origin", capsys)
    assert status == 0
    assert lines[:3] == [START, "...", SUCCESS]
    (name,) = os.listdir("o")
    assert name == f"m_{HOST}.om"
    assert f"WARNING: the model is dynamic: input x has the shape {shape}, which is known at run time only" in lines
    assert any(f"o/{name}" in line for line in lines[3:])
    header = open_model(f"o/{name}").header
    assert (header.is_unknow_model, header.is_dynamic) == (1, True)
    assert [list(info.ranges) for info in load(f"o/{name}").io.inputs] == [limits]


@pytest.mark.parametrize("dims", ["2~2,3,8~8,8", "2,3,8,8"])
def test_ranges_of_one_number_are_static(dims: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f'{D} --input_shape="x:{dims}"', capsys)[0] == 0
    assert os.listdir("o") == ["m.om"]
    assert load("o/m.om").io.inputs[0].ranges == ()


def test_input_shape_range_is_deprecated(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = run(f'{D} --input_shape_range="x:[1~4,3,8,8]" --input_shape="x:9,3,8,8"', capsys)
    assert any("--input_shape_range is deprecated" in line and "--input_shape is ignored" in line for line in lines)
    assert os.listdir("o") == [f"m_{HOST}.om"]


def test_open_dimensions_must_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = run(D, capsys)
    text = "\n".join(lines)
    for way in ('--input_shape="x:1,3,1,1"', '--input_shape="x:-1,3,-1,-1"', "low~high"):
        assert way in text


@pytest.mark.parametrize("dims", ["1~4,3,8,8", "1,3,8,8"])
def test_a_dynamic_model_runs_on_one_kind_of_machine(
    dims: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    run(f'{D} --input_shape="x:{dims}" --host_env_os=linux --host_env_cpu=aarch64', capsys)
    (name,) = os.listdir("o")
    is_dynamic = "~" in dims
    assert name == ("m_linux_aarch64.om" if is_dynamic else "m.om")
    assert run_command.main([f"--model=o/{name}"]) == (1 if is_dynamic else 0)
    output = capsys.readouterr()
    if is_dynamic:
        text = output.out + output.err
        assert text.startswith("E19999")
        for part in (name, "linux on aarch64", "linux on x86_64", "--host_env_cpu=x86_64"):
            assert part in text
        assert main(["--mode=6", f"--om=o/{name}"]) == 0, "looking at it is no running"
        monkeypatch.setattr(platform, "machine", lambda: "arm64")
        assert run_command.main([f"--model=o/{name}", "--dymShape=x:2,3,8,8"]) == 0


def test_a_dynamic_model_keeps_its_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    contents = []
    for _ in range(2):
        run(f'{D} --input_shape="x:1~4,3,8,8"', capsys)
        contents.append(Path(f"o/m_{HOST}.om").read_bytes())
    assert contents[0] == contents[1]


def test_output_options_of_a_dynamic_model(rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--out_nodes=neg:0 --output_type=neg:0:FP16"
    assert run(f'{D} --input_shape="x:-1,3,8,8" {options}', capsys)[0] == 0
    x = rng.standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.save("x.npy", x)
    arguments = [f"--model=o/m_{HOST}.om", "--input=x.npy", "--asdsm=1", "--output=r", "--od=r", "--outfmt=NPY"]
    assert run_command.main(arguments) == 0
    np.testing.assert_array_equal(np.load("r/r/x_0.npy"), (-x).astype(np.float16))


def run_om(*arguments: str) -> list[np.ndarray]:
    """Run o/m.om on x.npy and return the results in order."""
    assert run_command.main(["--model=o/m.om", "--input=x.npy", "--output=r", "-od=r", "--outfmt=NPY", *arguments]) == 0
    return [np.load(path) for path in sorted(Path("r/r").iterdir())]


@pytest.mark.parametrize(
    ("options", "dtype", "expected"),
    [
        ("", np.float32, lambda x: np.maximum(-x, 0)),
        ("--output_type=FP16", np.float16, lambda x: np.maximum(-x, 0)),
        ("--out_nodes=neg:0", np.float32, lambda x: -x),
        ("--out_nodes=neg:0 --output_type=neg:0:FP16", np.float16, lambda x: -x),
        ("--out_nodes=out", np.float32, lambda x: np.maximum(-x, 0)),
    ],
)
def test_outputs_as_asked_for(
    options: str, dtype: type, expected, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.save("x.npy", x)
    assert run(f"{B} --precision_mode_v2=origin {options}", capsys)[0] == 0
    (result,) = run_om()
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected(x).astype(dtype))


def test_several_outputs_keep_the_order_of_out_nodes(
    rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.save("x.npy", x)
    assert run(f'{B} --precision_mode_v2=origin --out_nodes="relu:0;neg:0"', capsys)[0] == 0
    relu, neg = run_om()
    np.testing.assert_array_equal(neg, -x)
    np.testing.assert_array_equal(relu, np.maximum(-x, 0))


def test_digits_agree_with_onnxruntime(
    digits_model: Path, digits_samples: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--framework=5 --output=o/m --soc_version=Ascend310P3 --precision_mode_v2=origin"
    assert run(f"--model={digits_model} {options}", capsys)[0] == 0
    folder = digits_model.parent / "samples"
    arguments = ["--model=o/m.om", f"--input={folder}", "--output=r", "-od=r", "--outfmt=NPY"]
    assert run_command.main(arguments) == 0
    session = onnxruntime.InferenceSession(digits_model)
    for stem, image in digits_samples.items():
        (expected,) = session.run(None, {"image": image})
        np.testing.assert_allclose(np.load(f"r/r/{stem}_0.npy"), expected, rtol=1e-4, atol=1e-5)
    assert len(json.loads(Path("r/r_summary.json").read_text())["filesinfo"]) == len(digits_samples)


# -- what the model says -----------------------------------------------------------------------------------------------


def test_unsupported_nodes_are_reported_together_and_in_the_check_report(capsys: pytest.CaptureFixture[str]) -> None:
    save_model("m.onnx", [1, 4], "Frobnicate", "Relu", "Defenestrate")
    for mode in ("", "--mode=3"):
        Path("check_result.json").unlink(missing_ok=True)
        status, lines = run(f"{B} {mode}", capsys)
        assert status == 255
        assert codes(lines)[:2] == ["E13010", "E13010"]
        assert "frobnicate" in "\n".join(lines)
        report = json.loads(Path("check_result.json").read_text())
        assert (report["result"], report["total"], report["pass"], report["fail"]) == ("failed", 3, 1, 2)
        assert [(op["name"], op["result"]) for op in report["op"]] == [
            ("frobnicate", "failed"),
            ("relu", "success"),
            ("defenestrate", "failed"),
        ]
        assert report["op"][0]["cause"][0]["code"] == 1
    assert not Path("o").exists()


def test_pre_check_needs_no_output_and_writes_its_report(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run("--mode=3 --model=m.onnx --framework=5 --soc_version=Ascend310P3", capsys)
    assert (status, lines[-1]) == (0, SUCCESS)
    report = json.loads(Path("check_result.json").read_text())
    assert report["name"] == "m.onnx"
    assert [(op["type"], op["result"]) for op in report["op"]] == [("Neg", "success"), ("Relu", "success")]


def test_check_report_goes_where_it_is_asked_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASCEND_WORK_PATH", str(tmp_path / "work"))
    run("--mode=3 --model=m.onnx --framework=5 --soc_version=Ascend310P3", capsys)
    assert (tmp_path / "work" / "check_result.json").exists()
    run("--mode=3 --model=m.onnx --framework=5 --soc_version=Ascend310P3 --check_report=here.json", capsys)
    assert Path("here.json").exists()
    assert not Path("check_result.json").exists()


def test_report_of_a_model_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.onnx").write_bytes(b"\x00\x01")
    status, lines = run("--mode=3 --model=m.onnx --framework=5 --soc_version=Ascend310P3", capsys)
    assert (status, codes(lines)) == (255, ["E13005"])
    report = json.loads(Path("check_result.json").read_text())
    assert (report["result"], report["op"]) == ("failed", [])


def test_unwritable_report_does_not_hide_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    save_model("m.onnx", [1, 4], "Frobnicate")
    Path("check_result.json").mkdir()
    for mode in ("", "--mode=3"):
        status, lines = run(f"{B} {mode}", capsys)
        assert (status, codes(lines)) == (255, ["E13010", "E13004"])


def test_warnings_follow_errors(capsys: pytest.CaptureFixture[str]) -> None:
    save_model("m.onnx", [1, 4], "Neg", "MatMul")
    model = onnx.load("m.onnx")
    model.graph.node[0].attribute.append(helper.make_attribute("flavour", 1))
    onnx.save(model, "m.onnx")
    status, lines = run(B, capsys)
    assert (status, codes(lines)) == (255, ["E11010", "WARNING"])
    assert lines[-1] == "WARNING: node neg (Neg): attribute flavour is unknown and ignored"


def test_name_of_an_unreadable_model_gives_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.pb").write_bytes(b"\x00\x01\x02")
    status, lines = run(B.replace("m.onnx", "m.pb"), capsys)
    assert (status, codes(lines)) == (255, ["E13005"])
    assert "The name of the file may say TensorFlow" in "\n".join(lines)


@pytest.mark.parametrize("name", ["M.ONNX", "m.pb", "m.onnx.pb", "m", "m.v1", "m.onnx.bak", "m.bin", "m.txt.model"])
def test_names_that_say_nothing_else_leave_it_to_the_content(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.onnx").rename(name)
    assert run(B.replace("m.onnx", name), capsys)[0] == 0
    assert run(f"--mode=1 --om={name} --framework=5 --json=j", capsys) == (0, [START, "...", SUCCESS])


@pytest.mark.parametrize(
    "name",
    [
        *("m.txt", "m.onnx.txt", "m.JPG", "m.json", "m.npz", "m.h5", "m.tflite", "m.pth", "m.safetensors", "m.air"),
        *("m.caffemodel", "m.ort", "m.pbtxt", "m.py", "m.tar.gz", "m.onnx_data"),
    ],
)
def test_names_of_other_kinds_are_refused_whatever_the_content(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.onnx").rename(name)
    for arguments in (B.replace("m.onnx", name), f"--mode=1 --om={name} --framework=5 --json=j"):
        status, lines = run(arguments, capsys)
        assert (status, codes(lines)) == (255, ["E10001"])
        text = "\n".join(lines)
        assert all(part in text for part in (f"[{name}]", f".{name.rpartition('.')[2]} is the suffix of", ".onnx"))
    with pytest.raises(ReportedError, match=r"E10001.*is the suffix of"):
        atc.compile_model(name, soc_version="Ascend310P3")
    assert sorted(os.listdir()) == ["d.onnx", name]


def test_failure_keeps_the_old_file(capsys: pytest.CaptureFixture[str]) -> None:
    run(B, capsys)
    before = Path("o/m.om").read_bytes()
    content = Path("m.onnx").read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        Path("m.onnx").write_bytes(content[:size])
        status, lines = run(B, capsys)
        assert status == 255
        assert codes(lines)[0] in ("E13005", "E13015", "E16004", "E16001", "E13010", "E13014", "E14001")
    assert Path("o/m.om").read_bytes() == before
    assert os.listdir("o") == ["m.om"]


def test_random_bytes_as_model_or_om(rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    run(B, capsys)
    good = Path("o/m.om").read_bytes()
    for i in range(20):
        noise = rng.bytes(int(rng.integers(1, 4000)))
        Path("m.onnx").write_bytes(noise)
        assert run(B, capsys)[0] == 255
        bad = bytearray(good)
        bad[int(rng.integers(0, 300))] ^= int(rng.integers(1, 256))
        Path("noise.om").write_bytes(noise if i % 2 else bytes(bad[: rng.integers(1, len(bad))]))
        for arguments in ("--mode=6 --om=noise.om", "--mode=1 --om=noise.om --json=j"):
            status, lines = run(arguments, capsys)
            assert status == 255
            assert codes(lines) == ["E10041"]
        assert run_command.main(["--model=noise.om"]) == 1
        assert "R1999" not in (text := capsys.readouterr().err)
        assert "noise.om" in text
    assert not Path("j").exists()


# -- the other modes ---------------------------------------------------------------------------------------------------


def test_om_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    run(B, capsys)
    status, lines = run("--mode=1 --om=o/m.om --json=out/j.json", capsys)
    assert (status, lines) == (0, [START, "...", SUCCESS])
    ops = json.loads(Path("out/j.json").read_text())["graph"][0]["op"]
    assert {op["type"] for op in ops} >= {"Data", "Neg", "Relu", "NetOutput"}


@pytest.mark.parametrize("model", ["m.onnx", "d.onnx"])
def test_model_as_json(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run(f"--mode=1 --om={model} --framework=5 --json=j.json", capsys)
    assert (status, lines) == (0, [START, "...", SUCCESS])
    ops = json.loads(Path("j.json").read_text())["graph"][0]["op"]
    assert [op["name"] for op in ops if op["type"] in ("Neg", "Relu")] == ["neg", "relu"]


def test_model_as_json_without_framework_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run("--mode=1 --model=m.onnx --framework=5 --json=j.json", capsys)
    assert (status, codes(lines)) == (255, ["E10004"])
    assert "--om=m.onnx --framework=5" in lines[-1]
    status, lines = run("--mode=1 --om=m.onnx --json=j.json", capsys)
    assert (status, codes(lines)) == (255, ["E10041"])
    assert "--framework=5" in lines[-1]


def test_display_block(capsys: pytest.CaptureFixture[str]) -> None:
    _, with_block = run(f"{B} --display_model_info=1", capsys)
    status, lines = run("--mode=6 --om=o/m.om", capsys)
    assert status == 0
    block = lines[1 : lines.index("...")]
    assert block[0] == "============ Display Model Info start ============"
    assert block[-1] == "============ Display Model Info end   ============"
    assert (
        block[1] == f"Original Atc command line: atc {shlex.join(B.split()[1:2])} --output=m --soc_version=Ascend310P3"
    )
    assert with_block[1 : with_block.index("...")] == block


# -- the boundary ------------------------------------------------------------------------------------------------------


def test_fault_of_the_program_becomes_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(modes, "run_mode", broken)
    status, lines = run(B, capsys)
    assert (status, codes(lines)) == (255, ["E19999"])
    assert "ZeroDivisionError in broken: by nothing" in lines[lines.index("E19999: Internal Error!") + 1]
    assert main(shlex.split(f"{B} --log=debug")) == 255
    output = capsys.readouterr()
    assert "Traceback" in output.err
    assert "Traceback" not in output.out


@pytest.mark.parametrize(("fault", "status"), [(KeyboardInterrupt, 130), (MemoryError, 255), (RecursionError, 255)])
def test_interrupts_and_exhaustion(
    fault: type[BaseException], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise fault

    monkeypatch.setattr(modes, "run_mode", broken)
    assert run(B, capsys)[0] == status


def test_log_lines_have_their_form_and_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"{B} --mode=3 --log=info")) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[0] == START
    line = output.err.splitlines()[0]
    assert line.startswith("[INFO] ATC(")
    assert "checking 2 nodes of m.onnx" in line
    main(shlex.split(f"{B} --mode=3"))
    assert capsys.readouterr().err == ""


def test_log_of_a_compile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"{B} --log=info")) == 0
    texts = [line.partition("]")[2].partition("]")[2] for line in capsys.readouterr().err.splitlines()]
    assert texts == ["parsed: 3 nodes", f"o/m.om is written, {Path('o/m.om').stat().st_size} bytes"]
    assert main(shlex.split(f"{B} --log=debug")) == 0
    passes = re.findall(r"pass (\S+): \d+\.\d\d ms, ", capsys.readouterr().err)
    assert passes == [step.name for step in compile_passes() if not isinstance(step, str)]


def test_log_lines_on_stdout_if_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1")
    main(shlex.split(f"{B} --mode=3 --log=info"))
    output = capsys.readouterr()
    assert any(line.startswith("[INFO] ATC(") for line in output.out.splitlines())
    assert output.err == ""


def test_stdout_of_the_installed_form(work_folder: Path) -> None:
    root = Path(atc.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "atc.command", *shlex.split(B), "--precision_mode_v2=origin"],
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{START}\n...\n{SUCCESS}\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="the shell line is POSIX")
@pytest.mark.parametrize("module", ["atc.command", "atc.run_command"])
def test_closed_pipe_is_no_fault(module: str) -> None:
    root = Path(atc.__file__).parents[1]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m {module} --help | true; exit ${{PIPESTATUS[0]}}"],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)  # 0 if all was written before the reader had gone


def test_foreign_ge_is_named(tmp_path: Path) -> None:
    (tmp_path / "cann" / "ge").mkdir(parents=True)
    (tmp_path / "cann" / "ge" / "__init__.py").write_text("raise RuntimeError('this is not ours')")
    root = Path(atc.__file__).parents[1]
    for module, status in (("atc.command", 255), ("atc.run_command", 1)):
        done = subprocess.run(
            [sys.executable, "-m", module, "--help"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "cann"), str(root)])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status
        assert str(tmp_path / "cann" / "ge") in done.stderr
        assert "Traceback" not in done.stderr


# -- the library -------------------------------------------------------------------------------------------------------


def test_library_and_command_line_write_the_same_file(capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{B} --precision_mode_v2=origin --input_shape=x:1,3,8,8", capsys)
    options = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "input_shape": {"x": (1, 3, 8, 8)}}
    content = Path("m.onnx").read_bytes()
    for model in ("m.onnx", Path("m.onnx"), content, onnx.load_model(io.BytesIO(content))):
        atc.compile_model(model, output="m", framework=5, **options).save("lib.om")
        assert Path("lib.om").read_bytes() == Path("o/m.om").read_bytes()


def test_library_reports_faults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ReportedError, match=r"E10001.*missing"):
        atc.compile_model("missing.onnx", soc_version="Ascend310P3")
    with pytest.raises(ReportedError, match="E13005"):
        atc.compile_model(b"\x00", soc_version="Ascend310P3")
    with pytest.raises(ReportedError, match="E10054"):
        atc.compile_model("m.onnx")
    assert capsys.readouterr().out == ""
