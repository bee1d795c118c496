"""Which nodes are taken for each other."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from atc.graph_file import load
from atc.graph_matching import match_nodes
from atc.graph_view import GraphView, graphs_of

CHAIN = """
graph g(%x: f32[4]@ND) {
  %w1 = Const {value=f32[1]{1}} %w2 = Const {value=f32[1]{2}} %zero = Const {value=f32[1]{0}}
  %a = Mul(%x, %w1) %b = Relu(%a) %c = Mul(%b, %w2) %d = Add(%c, %zero) %e = Add(%d, %b)
  %out:0 = NetOutput(%e) return
}
"""


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graph(text: str) -> GraphView:
    Path("graph.txt").write_text(text)
    return graphs_of(load("graph.txt"))[0]


def renamed_of(before: str, after: str) -> dict[str, str]:
    """The matched nodes whose names differ."""
    return {one: other for one, other in match_nodes(graph(before), graph(after)).items() if one != other}


def with_names(text: str, name: object) -> str:
    """`text` with another name for every value."""
    return re.sub(r"%(\w+)", name, text)


def test_equal_names_belong_together_whatever_they_are() -> None:
    before, after = graph(CHAIN), graph(CHAIN.replace("Relu(%a)", "Neg(%w2)"))
    assert match_nodes(before, after) == {name: name for name in before.nodes}


def test_a_prefix_on_all_names() -> None:
    renamed = renamed_of(CHAIN, with_names(CHAIN, r"%net/\1"))
    assert renamed == {name: f"net/{name}" for name in graph(CHAIN).nodes}


def test_names_that_say_nothing() -> None:
    shuffled = list(graph(CHAIN).nodes)
    random.Random(7).shuffle(shuffled)
    number = {name: f"n{i}" for i, name in enumerate(shuffled)}
    assert renamed_of(CHAIN, with_names(CHAIN, lambda match: f"%{number[match[1]]}")) == number


@pytest.mark.parametrize(
    ("before", "after", "renamed"),
    [
        # what feeds a node of equal name in the same slot
        ("%w = Const {value=f32[1]{1}} %y = Mul(%x, %w)", "%v = Const {value=f32[1]{2}} %y = Mul(%x, %v)", {"w": "v"}),
        ("%w = Const {value=f32[1]{1}} %y = Mul(%x, %w)", "%v = Neg(%x) %y = Mul(%x, %v)", {}),
        ("%s:2 = Split(%x) %y = Neg(%s)", "%t:2 = Split(%x) %y = Neg(%t:1)", {"s": "t"}),
        # constants of equal content go where they are used
        (
            "%p = Const {value=f32[1]{0}} %q = Const {value=f32[1]{0}} %y = Mul(%p, %x) %z = Add(%x, %q)",
            "%r = Const {value=f32[1]{0}} %s = Const {value=f32[1]{0}} %y = Mul(%s, %x) %z = Add(%x, %r)",
            {"p": "s", "q": "r"},
        ),
        # readers: by type and slot, then by what they are told
        ("%a = Relu(%x)", "%b = Relu(%x)", {"a": "b"}),
        ("%a = Relu(%x)", "%b = Neg(%x)", {}),
        ("%a = Relu(%x) %b = Neg(%x)", "%c = Neg(%x) %d = Relu(%x)", {"a": "d", "b": "c"}),
        (
            "%a = LeakyRelu(%x) {negative_slope=0.5} %b = LeakyRelu(%x) {negative_slope=0.25}",
            "%c = LeakyRelu(%x) {negative_slope=0.25} %d = LeakyRelu(%x) {negative_slope=0.75}",
            {"a": "d", "b": "c"},
        ),
        (
            "%a = LeakyRelu(%x) {negative_slope=0.5} %b = LeakyRelu(%x) {negative_slope=0.25}",
            "%c = LeakyRelu(%x) {negative_slope=0.125} %d = LeakyRelu(%x) {negative_slope=0.75}",
            {},
        ),
        # as many equal ones as before are matched in their order, else none
        ("%a = Relu(%x) %b = Relu(%x)", "%c = Relu(%x) %d = Relu(%x)", {"a": "c", "b": "d"}),
        ("%a = Relu(%x) %b = Relu(%x)", "%c = Relu(%x)", {}),
        # a change on the way does not hide what is behind it
        (
            "%a = LeakyRelu(%x) {negative_slope=0.5} %b = Neg(%a) %c = Exp(%b)",
            "%d = LeakyRelu(%x) {negative_slope=0.25} %e = Neg(%d) %f = Exp(%e)",
            {"a": "d", "b": "e", "c": "f"},
        ),
        # what is put in between is new
        ("%a = Relu(%x) %b = Exp(%a)", "%c = Neg(%x) %a = Relu(%c) %b = Exp(%a)", {}),
        ("%a = Unknown(%x, _, %x)", "%b = Unknown(%x, _, %x)", {"a": "b"}),
        ("%a = Relu(%a)", "%b = Relu(%b)", {}),
    ],
)
def test_structure(before: str, after: str, renamed: dict[str, str]) -> None:
    form = "graph g(%x: f32[4]@ND) {{ {} return }}"
    assert renamed_of(form.format(before), form.format(after)) == renamed


def test_inputs_by_their_index_and_results() -> None:
    before = "graph g(%a: f32[1]@ND, %b: i64[1]@ND) { %out:0 = NetOutput(%a, %b) return }"
    after = "graph g(%d: i64[1]@ND {index=1}, %c: f32[1]@ND {index=0}) { %end:0 = NetOutput(%c, %d) return }"
    assert renamed_of(before, after) == {"a": "c", "b": "d", "out": "end"}


def test_notes_of_passes_do_not_keep_nodes_apart() -> None:
    before = "graph g(%x: f32[1]@ND) { %a = Relu(%x) {_note=1} %b = Relu(%x) {_note=2} return }"
    after = "graph g(%x: f32[1]@ND) { %c = Relu(%x) {_note=3} %d = Relu(%x) {_note=4} return }"
    assert renamed_of(before, after) == {"a": "c", "b": "d"}
