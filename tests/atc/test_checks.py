"""What ``atc`` says about its options before it looks into a model (the cases of the command line reference)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import numpy as np
import pytest

from atc.checks import Given, check
from atc.command import FAILURE, START, main
from atc.library import options_from
from ge.errors import ReportedError
from ge.graph.types import DataType, Format
from ge.option_grammar import ANY_DIM, DimRange
from ge.options import CompileOptions, Environment, OutNode

B = "--model=m.onnx --framework=5 --output=o/m --soc_version=Ascend310P3"
B9 = "--model=m.onnx --framework=5 --output=o/m --soc_version=Ascend950"


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file that has the name of a model, but is none: nothing here may get as far as reading it."""
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "m.caffemodel", "w.cfg", "a.pbtxt", "a.txt", "m.om"):
        Path(name).write_text("no model")
    Path("empty.cfg").touch()
    Path("relu.cfg").write_text("conv1\n\nOpType::relu\n")
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    """Return codes and text of the errors that a failed run printed, after looking at its other lines."""
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == START
    assert "Traceback" not in captured.out + captured.err
    errors = lines[lines.index(FAILURE) + 1 :]
    return [line.split(":")[0] for line in errors if not line.startswith(" ")], "\n".join(errors)


CASES = [
    ("8", "--model=m.onnx --framework=5 --output=o/m", ["E10054"], "--soc_version"),
    ("9", "--model=m.onnx --framework=5 --soc_version=Ascend310P3", ["E10054"], "--output"),
    ("10", "--framework=5 --output=o/m --soc_version=Ascend310P3", ["E10054"], "--model"),
    ("11", "--model=m.onnx --output=o/m --soc_version=Ascend310P3", ["E10007"], "--framework"),
    ("12", f"{B} --framework=2", ["E10007"], "--framework"),
    ("13", f"{B} --mode=2", ["E10001"], "0, 1, 3, 5, 6, 7, 30"),
    ("14", f"{B} --mode=10", ["E10001"], "--mode"),
    ("15", f"{B} --model=missing.onnx", ["E10001"], "missing.onnx"),
    ("15b", f"{B} --model=.", ["E10001"], "directory"),
    ("16", f'{B} --output="o/a b"', ["E10001"], "' '"),
    ("17", f"{B} --output=o/", ["E10022"], "o/"),
    ("18", f"{B} --framework=0", ["E10008"], "--weight"),
    ("18b", f"{B} --framework=0 --weight=m.caffemodel", ["E10055"], "Caffe"),
    ("18c", f"{B} --weight=missing", ["E10001"], "--weight"),
    ("18e", f"{B} --framework=1", ["E10055"], "MindSpore"),
    ("19", f"{B} --input_format=NHWC", ["E10001"], "NCHW, ND, NCDHW"),
    ("19b", f"{B} --input_format=nchw", ["E10001"], "nchw"),
    ("22", f'{B} --input_shape="x:1,3,8.5,8"', ["E10002", "E10001"], "8.5"),
    ("23", f'{B} --input_shape="x:1,0,8,8"', ["E10011", "E10001"], "x:1,0,8,8"),
    ("24", f'{B} --input_shape="x:1,3,abc,8"', ["E10014", "E10001"], "abc"),
    ("25", f'{B} --input_shape="x:99999999999999999999"', ["E10013", "E10001"], "99999999999999999999"),
    ("26", f'{B} --input_shape="1,3,8,8"', ["E10002", "E10001"], "names no input"),
    ("26b", f'{B} --input_shape="-1,3,8,8"', ["E10048"], "no input is named"),
    ("range", f'{B} --input_shape_range="[1~2,3],[4]"', ["E10048", "WARNING"], "data:[1~8,3,-1,224]"),
    ("range-bound", f'{B} --input_shape_range="x:[4~2]"', ["E10048", "WARNING"], "4~2"),
    ("cpu", f"{B} --host_env_cpu=mips", ["E10001"], "x86_64, aarch64"),
    ("47", f"{B} --precision_mode=must_keep_origin_dtype --precision_mode_v2=origin", ["E10056"], "precision_mode_v2"),
    ("48", f"{B} --precision_mode=fp16", ["E10001"], "force_fp16"),
    ("48b", f"{B} --precision_mode_v2=force_fp16", ["E10001"], "origin"),
    ("48c", f"{B} --precision_mode_v2=mixed_hif8", ["E10001"], "Ascend310P3 does not compute in hifloat8"),
    ("48d", f"{B9} --precision_mode_v2=cube_hif8", ["E10055"], "cube_hif8 is known but not implemented"),
    ("48e", f"{B} --precision_mode_v2=mixed_bfloat16", ["E10001"], "Ascend310P3 does not compute in bf16"),
    ("48f", f"{B} --precision_mode=allow_fp32_to_bf16", ["E10001"], "A2, A3, 310B and 950"),
    ("48g", f"{B} --precision_mode=allow_mix_precision_bf16", ["E10001"], "bf16"),
    ("49", f"{B} --precision_mode_v2=origin --modify_mixlist=w.cfg", ["E10001"], "the precision is origin"),
    ("49b", f"{B} --modify_mixlist=w.cfg", ["E10001"], "--modify_mixlist"),
    ("49c", f"{B} --precision_mode_v2=mixed_float16 --modify_mixlist=missing", ["E10001"], "--modify_mixlist"),
    ("49d", f"{B} --precision_mode=allow_mix_precision --modify_mixlist=w.cfg", ["E10032"], "it is not JSON"),
    ("50", f"{B} --keep_dtype=missing", ["E10001"], "--keep_dtype"),
    ("51", f"{B} --keep_dtype=relu.cfg", ["E10003"], "OpType::relu"),
    ("customize-missing", f"{B} --customize_dtypes=missing", ["E10001"], "--customize_dtypes"),
    ("customize-form", f"{B} --customize_dtypes=w.cfg", ["E20101"], "line 1 is 'no model'"),
    ("weight-clip", f"{B} --is_weight_clip=2", ["E10006"], "--is_weight_clip"),
    ("53", f"{B} --output_type=INT32", ["E10001"], "INT32"),
    ("53b", f"{B} --output_type=HIF8", ["E10055"], "HIF8"),
    ("54", f"{B} --output_type=relu:0:FP16", ["E10001"], "relu:0"),
    ("55", f'{B} --out_nodes="relu:0;out"', ["E10001"], "mixes"),
    ("fp16-flag", f"{B} --input_fp16_nodes=x --is_input_adjust_hw_layout=True", ["E10005"], "[True]"),
    ("fp16-flag-alone", f"{B} --is_input_adjust_hw_layout=1,true", ["E10005"], "--is_input_adjust_hw_layout"),
    ("fp16-twice", f'{B} --input_fp16_nodes="x;y;x"', ["E10001"], "'x' is given twice"),
    ("fp16-empty", f'{B} --input_fp16_nodes="x;"', ["E10001"], "empty item"),
    ("layout-flag", f"{B} --out_nodes=r:0 --is_output_adjust_hw_layout=,true", ["E10005"], "output_adjust"),
    ("66", f"{B} --external_weight=3", ["E10006"], "--external_weight"),
    ("67", f"{B} --log=bug", ["E10010"], "bug"),
    ("68", f"{B} --sparsity=2", ["E10006"], "--sparsity"),
    ("69", f"{B} --enable_compress_weight=yes", ["E10005"], "yes"),
    ("70", f"{B} --enable_compress_weight=true --compress_weight_conf=w.cfg", ["E10047"], "--compress_weight_conf"),
    ("72", "--mode=1 --om=m.om", ["E10004"], "--json"),
    ("72b", "--mode=1", ["E10004", "E10004"], "--om"),
    ("74", "--mode=1 --om=m.om --json=j --framework=1", ["E10001"], "MindSpore"),
    ("74b", "--mode=1 --om=m.om --json=j --framework=3", ["E10001"], "a frozen TensorFlow graph"),
    ("74c", "--mode=1 --om=missing.om --json=j", ["E10001"], "missing.om"),
    ("76", "--mode=6 --om=m.om --framework=5", ["E10057"], "--framework"),
    ("76b", "--mode=6", ["E10004"], "--om"),
    ("77", "--mode=5 --om=a.pbtxt --json=j", ["E10001"], ".txt"),
    ("77b", "--mode=5 --om=a.txt --json=j", ["E10055"], "--mode=5"),
    ("80", f"{B} --mode=30", ["E10055"], "Ascend310P3"),
    ("80b", f"{B} --mode=30 --soc_version=Ascend035A", ["E10055"], "--mode=30"),
    ("80c", f"{B} --mode=7", ["E10055"], "--mode=7"),
    ("81", f"{B} --soc_version=Ascend035", ["E10055"], "Ascend035"),
    ("91", f"{B} --deterministic=1 --deterministic_level=0", ["E10001"], "--deterministic_level"),
    ("91b", f"{B} --deterministic_level=2", ["E10001"], "--deterministic=0"),
    ("92", f"{B} --auto_tune_mode=RL", ["E10001"], "--auto_tune_mode"),
    ("soc", f"{B} --soc_version=ascend310p3", ["E10001"], "did you mean Ascend310P3?"),
    ("long", f"{B} --output={'a' * 5000}", ["E10021"], "--output"),
    ("name", f"{B} --output={'a' * 300}", ["E13004"], "aaa"),
    ("below-file", f"{B} --output=m.om/x", ["E13004"], "m.om/x.om"),
    ("implmode", f"{B} --optypelist_for_implmode=Relu", ["E10001"], "--op_select_implmode"),
    ("op-precision", f"{B} --op_precision_mode=missing", ["E10001"], "--op_precision_mode"),
    ("op-precision-content", f"{B} --op_precision_mode=w.cfg", ["E20003"], "line 1 is 'no model'"),
    ("hint", f"{B} --input_hint_shape=x", ["E10014"], "--input_hint_shape"),
    ("report", f"{B} --check_report=m.om/x", ["E13004"], "m.om/x"),
    ("folder", f"{B} --mdl_bank_path=w.cfg", ["E10001"], "not a directory"),
    ("os", f"{B} --host_env_os=windows", ["E10001"], "linux, minios"),
    ("streams", f"{B} --enable_single_stream=true --multi_stream_parallel_mode=cv", ["E10056"], "single_stream"),
    ("device", f"{B} --device_id=x", ["E10001"], "--device_id"),
    ("takes-the-weights", f"{B} --weight=m.om --output=m", ["E10001", "WARNING"], "the file of --weight"),
    ("suffix", f"{B} --model=a.txt", ["E10001"], "[a.txt] for parameter [--model]"),
    ("suffix-of-om", f"{B} --model=m.om", ["E10001"], "om-run"),
    ("suffix-before-output", f"{B} --model=a.pbtxt --output=o/", ["E10001"], "text form"),
    ("suffix-json", "--mode=1 --om=m.caffemodel --framework=5 --json=j", ["E10001"], "a Caffe model"),
    ("tf-suffix", f"{B} --framework=3 --model=m.caffemodel", ["E10001"], "a frozen TensorFlow graph (.pb)"),
    ("tf-text", f"{B} --framework=3 --model=a.pbtxt --output=o/", ["E10022"], "--output"),
    ("tf-format", f"{B} --framework=3 --input_format=NCDWH", ["E10001"], "--input_format"),
    ("tf-content", f"{B} --framework=3", ["E13005"], "m.onnx"),
    ("suffix-check", "--mode=3 --model=m.om --framework=5 --soc_version=Ascend310P3", ["E10001"], "--model"),
    ("report-takes-the-model", f"{B} --check_report=./m.onnx", ["E10001"], "--model"),
    ("report-takes-a-file", f"{B} --op_precision_mode=empty.cfg --check_report=empty.cfg", ["E10001"], "--op_prec"),
    ("report-takes-the-output", f"{B} --check_report=o/../o/m.om", ["E10001"], "--output"),
    ("json-takes-the-om", "--mode=1 --om=m.om --json=m.om", ["E10001"], "--om"),
    ("switches-pipe", f"{B} --fusion_switch_file=pipe", ["E21001"], "not a regular file"),
    ("amct", f"{B} --compression_optimize_conf=w.cfg", ["E10001"], "AMCT"),
]


@pytest.mark.parametrize(
    ("arguments", "codes", "culprit"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_faulty_options(
    arguments: str, codes: list[str], culprit: str, capsys: pytest.CaptureFixture[str], work_folder: Path
) -> None:
    before = sorted(os.listdir())
    assert main(shlex.split(arguments)) == 255
    printed, text = failure(capsys)
    assert printed == codes
    assert culprit in text
    assert sorted(os.listdir()) == before


# What the reference expects of these cases once their options are built; until then they are refused before any work.
NOT_BUILT = [
    ("30", '--input_shape="x:-1,3,8,8" --dynamic_batch_size="1,2,4"', "gears: an .om"),
    ("31", "--dynamic_batch_size=1", "gears: E10035"),
    ("38", '--input_shape="x:1,3,-1,-1" --dynamic_image_size="8,8;16,16"', "gears: an .om"),
    ("42", '--dynamic_batch_size="1,2" --dynamic_image_size="8,8;16,16"', "gears: E10009"),
    ("43", '--dynamic_dims="2,8,8;4,16,16"', "gears: an .om"),
    ("45", "--dynamic_dims=2,3 --insert_op_conf=w.cfg", "gears and AIPP: E10001"),
    ("58", "--insert_op_conf=w.cfg", "AIPP"),
    ("62", "--input_fp16_nodes=x --insert_op_conf=w.cfg", "AIPP and fp16 inputs: E10034"),
    ("64", "--external_weight=1", "external weights"),
    ("65", "--external_weight=2", "external weights"),
    ("82", "--singleop=w.cfg", "single operators"),
    ("87", "--raw_ge_options=w.cfg", "raw options: E10001"),
    ("original", "--save_original_model=true", "second .om"),
]


@pytest.mark.parametrize("arguments", [case[1] for case in NOT_BUILT], ids=[case[0] for case in NOT_BUILT])
def test_options_that_are_not_built_yet_are_refused_before_any_work(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"{B} {arguments}")) == 255
    assert failure(capsys)[0] == ["E10055"]


def test_all_options_that_are_not_built_are_named_together(capsys: pytest.CaptureFixture[str]) -> None:
    main(shlex.split(f"{B} --singleop=a --insert_op_conf=b --external_weight=0"))
    text = capsys.readouterr().out
    assert "--singleop, --insert_op_conf are known but not implemented yet" in text
    assert "external_weight" not in text


@pytest.mark.parametrize(
    ("arguments", "culprit"), [(f"{B} --nope=1", "--nope"), (f"{B} stray", "'stray'"), ("--model", "--model")]
)
def test_unreadable_command_line(arguments: str, culprit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(arguments)) == 255
    output = capsys.readouterr()
    assert output.err.startswith("ERROR: ")
    assert culprit in output.err
    assert output.out.splitlines()[:3] == [START, FAILURE, "E19999: Internal Error!"]


@pytest.mark.parametrize("flag", ["--help", "-h", "--help=true", "-help"])
def test_help(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == START
    assert lines[1].startswith("usage: atc ")
    text = " ".join(lines)
    assert "--soc_version" in text
    assert "[not implemented yet]" in text


def test_lexing_faults_skip_the_dots(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--framework=2"])
    assert "..." not in capsys.readouterr().out.splitlines()
    main(["--framework=5"])
    assert capsys.readouterr().out.splitlines()[:3] == [START, "...", FAILURE]


def test_first_fault_of_the_order_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    faults = [
        "--device_id=x",
        "--input_shape=1",
        "--precision_mode=fp16",
        "--output=o/",
        "--model=",
        "--input_format=X",
    ]
    codes = []
    while faults:
        main(shlex.split(f"{B} {' '.join(faults)}"))
        codes.append(failure(capsys)[0][0])
        faults.pop()
    assert codes == ["E10001", "E10054", "E10022", "E10001", "E10002", "E10001"]


def test_work_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment(work_path="/w")
    assert options_from({"soc_version": "Ascend310P3"}, environment).check_report == "/w/check_result.json"
    assert options_from({"soc_version": "Ascend310P3"}, Environment()).check_report == "check_result.json"


def test_unusable_environment_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATC_NUM_THREADS", "many")
    assert main(shlex.split(B)) == 255
    assert failure(capsys)[0] == ["E13024"]


# -- typed options -----------------------------------------------------------------------------------------------------


def library(**keywords: object) -> CompileOptions:
    return options_from({"soc_version": "Ascend310P3", **keywords}, Environment())


@pytest.mark.parametrize(
    ("dims", "expected"), [((1, 3), (1, 3)), ("1,3", (1, 3)), (5, (5,)), ([], ()), (np.array([1, 3]), (1, 3))]
)
def test_forms_of_dims(dims: object, expected: tuple[int, ...]) -> None:
    assert library(input_shape={"x": dims}).input_shape == {"x": expected}


def test_keywords_become_typed_options() -> None:
    options = library(
        input_shape={"x": (1, 3), "s": ()},
        input_format="ND",
        out_nodes=["relu:0"],
        output_type="relu:0:FP16",
        precision_mode_v2="origin",
        deterministic=True,
        deterministic_level=2,
        aicore_num="8|",
        enable_compress_weight=False,
        external_weight=0,
    )
    assert options.input_shape == {"x": (1, 3), "s": ()}
    assert options.input_format is Format.FORMAT_ND
    assert options.out_nodes == (OutNode("relu", 0),)
    assert options.output_type.per_output == {("relu", 0): DataType.DT_FLOAT16}
    assert options.precision == "origin"
    assert not options.is_default_precision
    assert options.recorded == {
        "deterministic": "1",
        "deterministic_level": "2",
        "aicore_num": "8|",
        "enable_compress_weight": "false",
    }


@pytest.mark.parametrize(
    "given",
    [
        {
            "input_fp16_nodes": "a; b",
            "is_input_adjust_hw_layout": "false,true",
            "is_output_adjust_hw_layout": "true,false",
        },
        {
            "input_fp16_nodes": ["a", "b"],
            "is_input_adjust_hw_layout": [False, True],
            "is_output_adjust_hw_layout": (True, False),
        },
    ],
)
def test_layouts_of_inputs_and_outputs(given: dict[str, object]) -> None:
    options = library(out_nodes=["r:0", "s:1"], **given)
    assert options.half_inputs == {"a": False, "b": True}
    assert options.half_outputs == (True, False)


@pytest.mark.parametrize(
    ("values", "inputs", "outputs", "warning"),
    [
        ({"input_fp16_nodes": "a;b", "is_input_adjust_hw_layout": "true"}, [True, False], (), "the others count as"),
        ({"input_fp16_nodes": "a", "is_input_adjust_hw_layout": "true,true"}, [True], (), "the others are ignored"),
        ({"is_input_adjust_hw_layout": "true"}, [], (), "has no effect without --input_fp16_nodes"),
        ({"out_nodes": "r:0;s:0", "is_output_adjust_hw_layout": "true"}, [], (True, False), "1 values for 2 names"),
        ({"is_output_adjust_hw_layout": "true"}, [], (), "has no effect without --out_nodes"),
        (
            {"out_nodes": "r:0;s:0", "is_output_adjust_hw_layout": "true,true", "output_type": "s:0:FP32"},
            [],
            (True, True),
            "--output_type decides over --is_output_adjust_hw_layout for output s:0",
        ),
        (
            {"out_nodes": "r:0", "is_output_adjust_hw_layout": "true", "output_type": "FP32"},
            [],
            (True,),
            "--output_type decides over --is_output_adjust_hw_layout for output r:0",
        ),
    ],
)
def test_lists_of_unequal_length_are_warned_of(
    values: dict[str, str], inputs: list[bool], outputs: tuple[bool, ...], warning: str
) -> None:
    notices: list[str] = []
    values = {"framework": "5", "soc_version": "Ascend310P3", "precision_mode_v2": "origin", **values}
    options = check(Given(values, Environment(), notices.append, is_library_call=True))
    assert (list(options.half_inputs.values()), options.half_outputs) == (inputs, outputs)
    [notice] = notices
    assert warning in notice


def test_shapes_that_are_known_at_run_time() -> None:
    options = library(input_shape={"x": (-1, 3, "2~4")})
    assert options.input_shape == {"x": (ANY_DIM, 3, DimRange(2, 4))}


def test_input_shape_range_overrides_input_shape_with_a_notice() -> None:
    values = {"framework": "5", "soc_version": "Ascend310P3", "input_shape": "x:1,3"}
    values["input_shape_range"] = "x:[1~2,3]"
    notices: list[str] = []
    options = check(Given(values, Environment(), notices.append, is_library_call=True))
    assert options.input_shape == {"x": (DimRange(1, 2), 3)}
    [notice] = notices
    assert notice.startswith("--input_shape_range is deprecated")
    assert notice.endswith("--input_shape is ignored")


def test_text_and_natural_keywords_mean_the_same() -> None:
    assert library(input_shape="x:1,3;s:", out_nodes="relu:0") == library(
        input_shape={"x": [1, 3], "s": []}, out_nodes=("relu:0",)
    )


def test_command_line_in_the_om_does_not_depend_on_order_or_places() -> None:
    one = library(output="a/b/net", input_shape="x:1,3", aicore_num="2")
    other = library(aicore_num="2", input_shape="x:1,3", output="elsewhere/net")
    assert one.command_line == other.command_line
    words = ["--framework=5", "--input_shape=x:1,3", "--output=net", "--soc_version=Ascend310P3", "--aicore_num=2"]
    assert one.command_line == shlex.join(["atc", *words])


@pytest.mark.parametrize(
    ("keywords", "code"),
    [
        ({"input_shape": {"x": (0,)}}, "E10011"),
        ({"input_shape": {"x": (-2,)}}, "E10011"),
        ({"input_shape": {"x": (-1, -2)}}, "E10048"),
        ({"sparsity": 2}, "E10006"),
        ({"precision_mode_v2": "mixed_hif8"}, "E10001"),
        ({"soc_version": None}, "E10054"),
        ({"framework": 1}, "E10055"),
        ({"dynamic_batch_size": "1,2"}, "E10055"),
    ],
)
def test_faulty_keywords(keywords: dict[str, object], code: str) -> None:
    with pytest.raises(ReportedError) as error:
        library(**keywords)
    assert error.value.code == code


@pytest.mark.parametrize("name", ["soc", "socversion", "model", "mode", "log"])
def test_unknown_keywords(name: str) -> None:
    with pytest.raises(TypeError, match=f"no option '{name}'"):
        library(**{name: "1"})


def test_recorded_op_precision_file() -> None:
    Path("sub").mkdir()
    Path("sub/ok.ini").write_text("# comment\n[ByOpType]\nRelu=high_precision\n\n[ByNodeName]\na/b = keep_fp16\n")
    assert library(op_precision_mode=Path("sub/ok.ini")).recorded == {"op_precision_mode": "ok.ini"}


@pytest.mark.parametrize(
    ("name", "kind"), [("saved_model.pb", "a SavedModel"), ("checkpoint", "a TensorFlow checkpoint")]
)
def test_directories_that_tensorflow_writes(
    name: str, kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / name).touch()
    assert main([f"--model={tmp_path}", "--framework=3", "--output=o", "--soc_version=Ascend310P3"]) == 255
    codes, text = failure(capsys)
    assert codes == ["E10001"]
    assert f"the directory of {kind}" in text
    assert "convert_variables_to_constants" in text
