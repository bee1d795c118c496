"""The files of the precision options: what they ask for, and what is said of malformed ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ge.errors import ReportedError
from ge.graph import DataType
from ge.precision_files import (
    Customized,
    CustomTypes,
    KeptNodes,
    MixListChanges,
    read_customized,
    read_kept_nodes,
    read_mix_list,
)

FP16, FP32, INT8 = DataType.DT_FLOAT16, DataType.DT_FLOAT, DataType.DT_INT8


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.cfg"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", KeptNodes()),
        ("conv1\n\n  gpu_0/fc:1 \r\nOpType::Relu\nconv1", KeptNodes(("conv1", "gpu_0/fc:1"), ("Relu",))),
        ("\ufeffOpType::SoftmaxV2\nOpType::SoftmaxV2", KeptNodes((), ("SoftmaxV2",))),
    ],
)
def test_nodes_to_keep(file: Path, text: str, expected: KeptNodes) -> None:
    file.write_text(text, encoding="utf-8")
    assert read_kept_nodes(str(file)) == expected


@pytest.mark.parametrize("line", ["OpType::relu", "OpType::", "OpType::Relu V2", "OpType::2Relu"])
def test_operator_types_to_keep_are_written_as_such(file: Path, line: str) -> None:
    file.write_text(f"a\n{line}")
    with pytest.raises(ReportedError, match=f"(?s)E10003.*{line}.*--keep_dtype"):
        read_kept_nodes(str(file))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Customized()),
        (
            "add::InputDtype:float16,float16,OutputDtype:float16",
            Customized({"add": CustomTypes((FP16, FP16), (FP16,))}),
        ),
        ("OpType::Add:InputDtype:FLOAT32,,Int8", Customized({}, {"Add": CustomTypes((FP32, None, INT8))})),
        ("add::OutputDtype:,bfloat16", Customized({"add": CustomTypes((), (None, DataType.DT_BF16))})),
        # of two lines for the same the first counts; the name ends at the first colon
        ("a::InputDtype:half\n\n a::InputDtype:float", Customized({"a": CustomTypes((FP16,))})),
        ("a:InputDtype:half", Customized({"a": CustomTypes((FP16,))})),
    ],
)
def test_customised_types(file: Path, text: str, expected: Customized) -> None:
    file.write_text(text)
    assert read_customized(str(file)) == expected


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("add", "E20101", "line 2 is 'add'"),
        ("add::", "E20101", "names the types as ''"),
        (":InputDtype:float16", "E20101", "line 2"),
        ("add::float16", "E20101", "'float16'"),
        ("add::OutputDtype:half,InputDtype:half", "E20101", "expected Name::InputDtype"),
        ("gpu_0/fc:1::InputDtype:half", "E20101", "1::InputDtype"),
        ("add::InputDtype:float17", "E20003", "'float17' is no element type; known are bf16,"),
        (f"add::InputDtype:{'half,' * 210}", "E20101", "at most 1023"),
    ],
)
def test_malformed_customised_types(file: Path, line: str, code: str, reason: str) -> None:
    file.write_text(f"a::InputDtype:half\n{line}")
    with pytest.raises(ReportedError) as caught:
        read_customized(str(file))
    assert caught.value.code == code
    assert reason in str(caught.value)


def test_changes_of_the_mix_lists(file: Path) -> None:
    content = {"black-list": {"to-add": ["Add"], "to-remove": ["SoftmaxV2"]}, "white-list": {"to-remove": ["MatMul"]}}
    file.write_text(json.dumps(content))
    changes = read_mix_list(str(file))
    assert changes == MixListChanges(
        white_removed=frozenset({"MatMul"}), black_added=frozenset({"Add"}), black_removed=frozenset({"SoftmaxV2"})
    )
    white, black = changes.apply(frozenset({"MatMul", "Conv2D", "Add"}), frozenset({"SoftmaxV2", "Exp"}))
    assert (white, black) == ({"Conv2D"}, {"Exp", "Add"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "the file must hold an object"),
        ('{"grey-list": {}}', "the file has the key 'grey-list'"),
        ('{"black-list": ["Add"]}', "black-list must hold an object"),
        ('{"black-list": {"add": []}}', "black-list has the key 'add'"),
        ('{"black-list": {"to-add": "Add"}}', "to-add of black-list must be a list of operator types"),
        ('{"white-list": {"to-remove": [1]}}', "to-remove of white-list must be a list"),
        ('{"white-list": {"to-add": ["Add"]}, "black-list": {"to-add": ["Add"]}}', "Add is added to both lists"),
        ('{"white-list": {"to-add": ["Add"], "to-remove": ["Add"]}}', "Add is added to the white list and removed"),
        ("\xff", "it is not UTF-8 text"),
    ],
)
def test_malformed_mix_lists(file: Path, content: str, reason: str) -> None:
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ReportedError) as caught:
        read_mix_list(str(file))
    assert caught.value.code == "E10032"
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("read", "option"),
    [
        (read_kept_nodes, "--keep_dtype"),
        (read_customized, "--customize_dtypes"),
        (read_mix_list, "--modify_mixlist"),
    ],
)
def test_files_that_are_not_there(read: object, option: str, file: Path) -> None:
    with pytest.raises(ReportedError, match=rf"(?s)E10001.*{option}"):
        read(str(file))  # type: ignore[operator]
