"""Option values with a grammar of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge import option_grammar as grammar
from ge.errors import ReportedError
from ge.graph.types import DataType
from ge.option_grammar import ANY_DIM, DimRange, OutNode, OutputType


def codes(error: ReportedError) -> list[str]:
    return [error.code, *(later.code for later in error.also)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:1,3,8,8", {"x": (1, 3, 8, 8)}),
        ("x:1,3;y:2", {"x": (1, 3), "y": (2,)}),
        ("x:", {"x": ()}),
        ("x:0:1,3", {"x:0": (1, 3)}),
        (" x : 1 , 3 ; y:4", {"x": (1, 3), "y": (4,)}),
        ("a-1:1,3", {"a-1": (1, 3)}),
        ("x:9223372036854775807", {"x": (2**63 - 1,)}),
        ("x:" + "0" * 6000 + "5", {"x": (5,)}),
        ("x:-1,3", {"x": (ANY_DIM, 3)}),
        ("x:1~4,3", {"x": (DimRange(1, 4), 3)}),
        ("x: 2 ~ 2 ,-1", {"x": (2, ANY_DIM)}),
        ("x:0~4", {"x": (DimRange(0, 4),)}),
        ("x:-1;y:", {"x": (ANY_DIM,), "y": ()}),
        ("", {}),
        ("  ", {}),
    ],
)
def test_input_shape(text: str, expected: dict) -> None:
    assert grammar.parse_input_shape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,3,8,8", ["E10002", "E10001"]),
        (":1,3", ["E10002", "E10001"]),
        ("x:1,3;", ["E10002", "E10001"]),
        ("x:1;x:2", ["E10002", "E10001"]),
        ("x:1,3,8.5,8", ["E10002", "E10001"]),
        ("x:3x", ["E10002", "E10001"]),
        ("x:abc.d", ["E10002", "E10001"]),
        ("x:1,3,abc,8", ["E10014", "E10001"]),
        ("x:1,,3", ["E10014", "E10001"]),
        ("x:٣", ["E10014", "E10001"]),
        ("x:99999999999999999999", ["E10013", "E10001"]),
        ("x:9223372036854775808", ["E10013", "E10001"]),
        ("x:" + "9" * 6000, ["E10013", "E10001"]),
        ("x:1,0,8,8", ["E10011", "E10001"]),
        ("x:-2", ["E10011", "E10001"]),
        ("-1,3,8,8", ["E10048"]),
        ("x:-1,a", ["E10002"]),
        ("x:-1,8.5", ["E10002"]),
        (":-1", ["E10002"]),
        ("x:-1;y", ["E10002"]),
        ("x:-1,-2", ["E10048"]),
        ("x:4~2", ["E10048"]),
        ("x:1~-1", ["E10048"]),
        ("x:1~2~3", ["E10048"]),
        ("x:~", ["E10048"]),
        ("x:-1,", ["E10048"]),
        ("x:-1,0", ["E10011"]),
        ("x:1~99999999999999999999", ["E10013"]),
    ],
)
def test_input_shape_faults(text: str, expected: list[str]) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.parse_input_shape(text)
    assert codes(error.value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x:[1~20,3,3~6,-1]", {"x": (DimRange(1, 20), 3, DimRange(3, 6), ANY_DIM)}),
        (" x : [ 1 ~ 2 , 3 ] ;y:[]", {"x": (DimRange(1, 2), 3), "y": ()}),
        ("a:0:[-1]", {"a:0": (ANY_DIM,)}),
        ("x:[4~4]", {"x": (4,)}),
    ],
)
def test_input_shape_range(text: str, expected: dict) -> None:
    assert grammar.parse_input_shape_range(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1~2,3],[4]", "E10048"),
        (":[1]", "E10048"),
        ("x:[1", "E10048"),
        ("x:1,2", "E10048"),
        ("x:[1][2]", "E10048"),
        ("x:[[1]]", "E10048"),
        ("x:[1];", "E10048"),
        ("x:[1];x:[2]", "E10048"),
        ("x:[1,]", "E10048"),
        ("x:[a]", "E10048"),
        ("x:[-2]", "E10048"),
        ("x:[1~-1]", "E10048"),
        ("x:[4~2]", "E10048"),
        ("x:[0]", "E10048"),
        ("x:[1~99999999999999999999]", "E10013"),
    ],
)
def test_input_shape_range_faults(text: str, expected: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.parse_input_shape_range(text)
    assert codes(error.value) == [expected]


def test_dims_as_shape_and_as_bounds() -> None:
    dims = (DimRange(1, 8), 3, ANY_DIM)
    assert grammar.open_dims(dims) == [-1, 3, -1]
    assert grammar.dim_bounds(dims) == [(1, 8), (3, 3), (0, -1)]


@pytest.mark.parametrize(("dim", "holds"), [(0, False), (1, True), (8, True), (9, False)])
def test_range_holds(dim: int, holds: bool) -> None:
    assert DimRange(1, 8).holds(dim) is holds
    assert ANY_DIM.holds(dim)


@given(st.text(alphabet="x:;,~-1 09.é", max_size=20))
def test_any_input_shape_is_read_or_reported(text: str) -> None:
    try:
        shapes = grammar.parse_input_shape(text)
    except ReportedError:
        return
    for dims in shapes.values():
        for dim in dims:
            assert dim > 0 if isinstance(dim, int) else dim.high is None or 0 <= dim.low < dim.high


name = st.text(alphabet="ab:/.é-", min_size=1, max_size=6).map(str.strip)
dims = st.lists(st.integers(1, 2**63 - 1), max_size=4)


@given(st.dictionaries(name, dims, min_size=1, max_size=4))
def test_static_shapes_are_read_as_written(shapes: dict[str, list[int]]) -> None:
    text = ";".join(f"{name}:{','.join(map(str, dims))}" for name, dims in shapes.items())
    assert grammar.parse_input_shape(text) == {name: tuple(dims) for name, dims in shapes.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0:[1,2];1:[]", {0: (1, 2), 1: ()}), (" 1 : [ 0 ] ", {1: (0,)})],
)
def test_hint_shape(text: str, expected: dict[int, tuple[int, ...]]) -> None:
    assert grammar.parse_hint_shape(text) == expected


@pytest.mark.parametrize("text", ["0:1,2", "x:[1]", "0:[1];0:[2]", "0:[-1]", "-1:[1]", "0:[1,]", "0:[1 2]", ";"])
def test_hint_shape_faults(text: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.parse_hint_shape(text)
    assert error.value.code == "E10014"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("relu:0", (OutNode("relu", 0),)),
        ("relu:0;conv:1", (OutNode("relu", 0), OutNode("conv", 1))),
        ("a:b:2", (OutNode("a:b", 2),)),
        ("outA;outB", (OutNode("outA"), OutNode("outB"))),
        ("", ()),
    ],
)
def test_out_nodes(text: str, expected: tuple[OutNode, ...]) -> None:
    assert grammar.parse_out_nodes(text) == expected
    assert ";".join(map(str, expected)) == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("relu:0;out", "E10001"),
        ("relu:", "E10001"),
        ("relu:x", "E10001"),
        ("relu:-1", "E10001"),
        (":0", "E10001"),
        ("a;;b", "E10001"),
        ("relu:99999999999999999999", "E10013"),
    ],
)
def test_out_nodes_faults(text: str, code: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.parse_out_nodes(text)
    assert error.value.code == code


def test_output_type_of_all_outputs() -> None:
    assert grammar.parse_output_type("FP16") == OutputType(whole=DataType.DT_FLOAT16)
    assert grammar.parse_output_type("") == OutputType()


def test_output_type_per_output() -> None:
    outputs = (OutNode("relu", 0), OutNode("a:b", 1))
    result = grammar.parse_output_type("relu:0:FP16;a:b:1:UINT8", outputs)
    assert result.per_output == {("relu", 0): DataType.DT_FLOAT16, ("a:b", 1): DataType.DT_UINT8}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("INT32", "itself refuses"),
        ("fp16", "'fp16' is not one of"),
        ("relu:0:FP16", "--out_nodes"),
        ("conv:0:INT4", "'INT4' is not one of"),
        ("conv:0:FP16;conv:0:FP32", "given twice"),
        ("conv:FP16", "not of the form"),
        ("FP16;FP32", "not of the form"),
        ("conv:x:FP16", "'x' is not an output index"),
    ],
)
def test_output_type_faults(text: str, part: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.parse_output_type(text, (OutNode("conv", 0),))
    assert error.value.code == "E10001"
    assert part in error.value.message


@pytest.mark.parametrize("soc", ["Ascend310P3", "Ascend910B2C", "Ascend910_9382", "Ascend950", "Ascend950PR_9599"])
def test_known_chips(soc: str) -> None:
    grammar.check_soc_version(soc)


@pytest.mark.parametrize(
    ("soc", "near"),
    [("ascend310p3", "Ascend310P3"), ("310P3", "Ascend310P3"), ("Ascend310P4", "Ascend310P"), ("tpu", "")],
)
def test_unknown_chips_are_refused_with_near_matches(soc: str, near: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.check_soc_version(soc)
    assert error.value.code == "E10001"
    assert near in error.value.message
    assert ("did you mean" in error.value.message) == bool(near)


@pytest.mark.parametrize("path", ["a/b-c_d.1", "模型/m", ""])
def test_allowed_path_characters(path: str) -> None:
    grammar.check_path_characters(path, "--output")


@pytest.mark.parametrize("character", " ~:+@\n'é鿿")
def test_refused_path_characters(character: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.check_path_characters(f"a{character}b", "--output")
    assert error.value.code == "E10001"
    assert repr(character) in error.value.message


@pytest.mark.parametrize(
    ("path", "code"),
    [("o/", "E10022"), ("o/..", "E10022"), ("a" * 5000, "E10021"), ("a b", "E10001"), ("\0", "E10001")],
)
def test_output_stem_faults(path: str, code: str) -> None:
    with pytest.raises(ReportedError) as error:
        grammar.check_output_stem(path, "--output")
    assert error.value.code == code


@pytest.mark.parametrize("path", ["missing", ".", "\0", "\ud800", "a" * 5000, "/dev/null"])
def test_input_file_faults(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReportedError) as error:
        grammar.check_input_file(path, "--model")
    assert error.value.code in ("E10001", "E10021")
    assert error.value.fields["parameter"] == "--model"


def test_input_file_is_judged_by_its_real_path(tmp_path: Path) -> None:
    folder = tmp_path / "with blank here"
    folder.mkdir()
    (folder / "m").touch()
    os.symlink(folder / "m", tmp_path / "link")
    with pytest.raises(ReportedError) as error:
        grammar.check_input_file(str(tmp_path / "link"), "--model")
    assert "' '" in error.value.message
