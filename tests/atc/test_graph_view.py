"""What files of other writers hold becomes text: attributes of every kind, types and formats without names."""

from __future__ import annotations

from pathlib import Path

import pytest

from atc.graph_file import load
from atc.graph_view import NodeView, graphs_of


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def node(text: str) -> NodeView:
    Path("dump.txt").write_text(f'graph {{ name: "g" op {{ name: "n" type: "A" {text} }} }}')
    return graphs_of(load("dump.txt"))[0].nodes["n"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("i: -3", "-3"),
        ("f: 0.1", "0.1"),
        ("f: inf", "inf"),
        ("b: true", "true"),
        ('s: "a\\"\\n"', '"a\\"\\n"'),
        ('s: "\\377"', '"\ufffd"'),
        ('bt: "\\001\\377"', "bytes 01ff"),
        ("dt: 27", "DT_BF16"),
        ("dt: 999", "data type 999"),
        ('expression: "x + 1"', '"x + 1"'),
        ("list { }", "[]"),
        ("list { i: 1 i: 2 val_type: VT_LIST_INT }", "[1, 2]"),
        ("list { f: 0.5 val_type: VT_LIST_FLOAT }", "[0.5]"),
        ("list { b: true b: false }", "[true, false]"),
        ('list { s: "a" s: "b" }', '["a", "b"]'),
        ("list { dt: 0 dt: 3 }", "[DT_FLOAT, DT_INT32]"),
        ('list { na { name: "f" attr { key: "k" value { i: 1 } } } }', "[f{k: 1}]"),
        ("list_list_int { list_list_i { list_i: 1 list_i: 2 } list_list_i { } }", "[[1, 2], []]"),
        ("list_list_float { list_list_f { list_f: 0.5 } }", "[[0.5]]"),
        ('func { name: "f" attr { key: "b" value { i: 1 } } attr { key: "a" value { s: "x" } } }', 'f{a: "x", b: 1}'),
        ('g { name: "inner" op { } op { } }', "graph inner of 2 nodes"),
        ('td { dtype: DT_FLOAT16 shape { dim: 2 } layout: "NHWC" }', "desc f16[2]@NHWC"),
        ('t { desc { dtype: DT_INT8 shape { dim: 2 } } data: "\\001\\377" }', "i8[2]{1, -1}"),
        ("t { desc { dtype: DT_INT8 shape { dim: 9 } } }", "i8[9]"),
        ('t { desc { dtype: DT_INT8 shape { dim: 2 } } data: "\\001" }', "i8[2] sha256:4bf5122f344554c5"),
    ],
)
def test_attributes_of_every_kind(value: str, text: str) -> None:
    assert node(f'attr {{ key: "a" value {{ {value} }} }}').attrs == {"a": text}


def test_what_follows_from_the_signature_is_left_out() -> None:
    assert node('attr { key: "_ir_attr_names" value { list { s: "a" } } } id: 7 stream_id: 3 workspace: 1').attrs == {}


@pytest.mark.parametrize(
    ("desc", "text"),
    [
        ("", "undefined[]@ND"),
        ('dtype: DT_FLOAT layout: "NCHW" shape { dim: 1 dim: -1 }', "f32[1,-1]@NCHW"),
        ('dtype: 77 layout: "NOVEL_FORMAT"', "type77[]@NOVEL_FORMAT"),
        ("dtype: DT_HIFLOAT8", "hifloat8[]@ND"),
        (
            'dtype: DT_FLOAT layout: "NC1HWC0" shape { dim: 1 dim: 1 dim: 8 dim: 8 dim: 16 } '
            'attr { key: "origin_format" value { s: "NCHW" } } '
            'attr { key: "origin_shape" value { list { i: 1 i: 3 i: 8 i: 8 } } }',
            "f32[1,1,8,8,16]@NC1HWC0 (origin [1,3,8,8]@NCHW)",
        ),
        (
            "dtype: DT_FLOAT shape { dim: -1 dim: 4 } attr { key: 'shape_range' value { list_list_int { "
            "list_list_i { list_i: 1 list_i: -1 } list_list_i { list_i: 4 list_i: 4 } } } }",
            "f32[-1(1~-1),4]@ND",
        ),
    ],
)
def test_tensors(desc: str, text: str) -> None:
    assert node(f"output_desc {{ {desc} }}").outputs[0].text == text


def test_edges() -> None:
    found = node('input: ["a:0", "", "b:c:1", "", "d:-1", "e:f:-1"]')
    assert (found.inputs, found.controls) == (("a:0", "", "b:c:1"), ("d", "e:f"))
