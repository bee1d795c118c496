"""The grammar of --dymShape and --dymShape_range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atc.shape_sets import MAX_SETS, as_text, parse_shape_ranges, parse_shapes
from ge.errors import ReportedError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,600;b:1,600", {"a": (1, 600), "b": (1, 600)}),
        (" a : 1 , 2 ;b:", {"a": (1, 2), "b": ()}),
        ("a:0:3", {"a:0": (3,)}),
        ("a:0,4", {"a": (0, 4)}),
    ],
)
def test_shapes(text: str, expected: dict[str, Any]) -> None:
    assert parse_shapes(text) == expected
    assert parse_shapes(as_text(expected)) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1,2", "'1,2' is not of the form"),
        ("a:1;", "'' is not of the form"),
        ("a:1;a:2", "'a' is given twice"),
        ("a:-1", "'-1' is no dimension"),
        ("a:1~2", "'1~2' is no dimension"),
        ("a:1,,2", "'' is no dimension"),
        ("a:x", "'x' is no dimension"),
        ("a:9223372036854775808", "is no dimension"),
        ("a:" + "9" * 5000, "is no dimension"),
    ],
)
def test_faulty_shapes(text: str, part: str) -> None:
    with pytest.raises(ReportedError) as error:
        parse_shapes(text)
    assert error.value.code == "R1001"
    assert "--dymShape" in error.value.message
    assert part in error.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,3", [{"a": (1, 3)}]),
        ("a:1~3", [{"a": (1,)}, {"a": (2,)}, {"a": (3,)}]),
        ("a:2~8~3", [{"a": (2,)}, {"a": (5,)}, {"a": (8,)}]),
        ("a:2~9~3", [{"a": (2,)}, {"a": (5,)}, {"a": (8,)}]),
        ("a:16-4", [{"a": (16,)}, {"a": (4,)}]),
        ("a:1~2-8", [{"a": (1,)}, {"a": (2,)}, {"a": (8,)}]),
        ("a:1-2,3~4", [{"a": (1, 3)}, {"a": (1, 4)}, {"a": (2, 3)}, {"a": (2, 4)}]),
        ("a:1-2;b:5;c:", [{"a": (1,), "b": (5,), "c": ()}, {"a": (2,), "b": (5,), "c": ()}]),
    ],
)
def test_ranges(text: str, expected: list[dict[str, Any]]) -> None:
    assert parse_shape_ranges(text) == expected


def test_a_file_has_a_set_on_each_line(tmp_path: Path) -> None:
    path = tmp_path / "shapes.txt"
    path.write_text("a:1,2;b:3\n\na:4~5,6;b:7\n")
    assert parse_shape_ranges(str(path)) == [
        {"a": (1, 2), "b": (3,)},
        {"a": (4, 6), "b": (7,)},
        {"a": (5, 6), "b": (7,)},
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:3~1", "'3~1' holds no number"),
        ("a:1~3~0", "'1~3~0' holds no number"),
        ("a:1~2~3~4", "neither a number nor"),
        ("a:1-", "'' is neither"),
        ("a:~2", "'~2' is neither"),
        ("1~3", "is not of the form"),
        (f"a:1~{MAX_SETS + 1}", "more than"),
        ("a:1~200;b:1~200", "more than"),
        ("a:1~9000000000000000000", "more than"),
        ("a:0~9223372036854775807", "more than"),
    ],
)
def test_faulty_ranges(text: str, part: str) -> None:
    with pytest.raises(ReportedError) as error:
        parse_shape_ranges(text)
    assert error.value.code == "R1001"
    assert part in error.value.message


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"a:1\nx\n", b"a:1~9999\n" * 3])
def test_faulty_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "shapes.txt"
    path.write_bytes(content)
    with pytest.raises(ReportedError) as error:
        parse_shape_ranges(str(path))
    assert error.value.code == "R1001"


@given(st.text(alphabet="ab:;,~-0129 é", max_size=24))
def test_any_text_is_read_or_reported(text: str) -> None:
    try:
        sets = parse_shape_ranges(text)
    except ReportedError:
        return
    assert all(dim >= 0 for shapes in sets for dims in shapes.values() for dim in dims)
