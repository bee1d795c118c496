"""The page of `atc graph ... --html`, as text and in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from atc.command import main
from tests.atc.test_graph_diff import AFTER, BEFORE, many

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(autouse=True)
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def diff_page(before: str, after: str) -> str:
    Path("a.txt").write_text(before)
    Path("b.txt").write_text(after)
    assert main(["graph", "diff", "a.txt", "b.txt", "--html", "page.html"]) in (0, 1)
    return Path("page.html").read_text()


@pytest.mark.parametrize("line", [["show", "a.txt"], ["diff", "b.txt", "a.txt"]])
def test_a_page_takes_the_place_of_no_input(line, capsys) -> None:
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("graph g(%x: f32[4]@ND) {\n  return %x\n}\n")
    before = Path("a.txt").read_bytes()
    assert main(["graph", *line, "--html", "./a.txt"]) == 2
    assert "E10001: Value [./a.txt] for parameter [--html]" in "".join(capsys.readouterr())
    assert Path("a.txt").read_bytes() == before


def show_page(graph: str) -> str:
    Path("a.txt").write_text(graph)
    assert main(["graph", "show", "a.txt", "--html", "page.html"]) == 0
    return Path("page.html").read_text()


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# -- the text ----------------------------------------------------------------------------------------------------------
class Tags(HTMLParser):
    """Collects the tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("page_of", [lambda: diff_page(BEFORE, AFTER), lambda: show_page(BEFORE)], ids=["diff", "show"])
def test_nothing_is_loaded_from_elsewhere(page_of: Any) -> None:
    page = page_of()
    tags = Tags(page).tags
    assert not [tag for tag, attrs in tags if {"src", "href", "action", "data"} & set(attrs)]
    assert not [tag for tag, _ in tags if tag in ("link", "iframe", "object", "embed", "base")]
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|innerHTML", page)
    policy = next(attrs["content"] for tag, attrs in tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_nodes_with_their_changes_side_by_side() -> None:
    content = data_of(diff_page(BEFORE, AFTER))
    nodes = {node[0]: node for node in content["graphs"][0]["nodes"]}
    name, before, kind, changes, rows = nodes["conv"]
    assert (name, before, kind) == ("conv", "conv", "Conv2DV2")
    assert changes == ["retyped", "rewired", "attributes", "tensors"]
    assert rows == [
        ["name", "conv"],
        ["type", "Conv2DV2", "Conv2D", 1],
        ["input 0", "cast:0", "x:0", 1],
        ["input 1", "folded:0", "w:0"],
        ["output 0", "f16[1,1,8,8,16]@NC1HWC0 (origin [1,2,8,8]@NCHW)", "f32[1,2,8,8]@NCHW", 1],
        ["data_format", "", '"NCHW"', 1],
        ["groups", "1", "", 1],
        ["pads", "[1, 1, 1, 1]", "[0, 0, 0, 0]", 1],
        ["strides", "[1, 1, 1, 1]"],
    ]
    assert nodes["folded"][:4] == ["folded", "w", "Const", ["renamed", "attributes"]]
    assert nodes["bn"][3] == ["removed"]
    assert nodes["bn"][4][1] == ["type", "", "BatchNorm"]
    assert nodes["cast"][3] == ["added"]
    assert nodes["cast"][4][1] == ["type", "Cast", ""]
    assert nodes["scale"][3] == []


def test_removed_nodes_stand_where_they_were() -> None:
    content = data_of(diff_page(BEFORE, AFTER))
    names = [node[0] for node in content["graphs"][0]["nodes"]]
    assert names == ["x", "go", "folded", "scale", "cast", "conv", "bn", "relu", "gate", "if", "out"]


def test_attributes_may_be_called_like_other_rows() -> None:
    form = 'graph g(%x: f32[1]@ND) {{ %a = A(%x) {{name="n", type="{}", value=1}} return }}'
    content = data_of(diff_page(form.format("s"), form.format("t")))
    rows = content["graphs"][0]["nodes"][1][4]
    assert [row for row in rows if row[0] in ("name", "type")] == [
        ["name", "a"],
        ["type", "A"],
        ["name", '"n"'],
        ["type", '"t"', '"s"', 1],
    ]


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--data-->", "<!--title-->", "\u2028 & ü"])
def test_texts_of_the_graph_cannot_leave_the_data(text: str) -> None:
    graph = f"graph g(%x: f32[1]@ND) {{ %{json.dumps(text)} = A(%x) {{p={json.dumps(text)}}} return }}"
    page = show_page(graph)
    assert data_of(page)["graphs"][0]["nodes"][1][0] == text
    assert len(re.findall(r"<script", page)) == 2


def test_long_values_are_cut() -> None:
    content = data_of(show_page(f'graph g() {{ %a = A {{p="{"x" * 5000}"}} return }}'))
    (row,) = [row for row in content["graphs"][0]["nodes"][0][4] if row[0] == "p"]
    assert row[1] == '"' + "x" * 1999 + "... (5,002 characters)"


def test_a_page_of_5000_nodes_is_small() -> None:
    assert len(diff_page(many("a", 1), many("b", 2))) < 3_000_000


# -- in a browser ------------------------------------------------------------------------------------------------------
def in_browser(page: str, fragment: str = "") -> str:
    """The document after its script has run; skips the test where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium is installed: the page cannot be opened")
    path = Path("opened.html").resolve()
    path.write_text(page)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, f"--user-data-dir={path.parent / 'profile'}", f"{path.as_uri()}{fragment}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(document: str) -> list[list[str]]:
    """The rows of the list: mark, type, name."""
    part = re.search(r"<ul>(.*?)</ul>", document, re.DOTALL)
    assert part is not None
    return [
        [html.unescape(t) for t in re.findall(r"<span[^>]*>(.*?)</span>", row)] for row in part[1].split("</li>")[:-1]
    ]


def table(document: str) -> dict[str, list[str]]:
    """The rows of the side by side table; changed ones have a mark in front of their label."""
    rows = re.findall(r'<tr(?: class="([^"]*)")?><th scope="row">(.*?)</th>(.*?)</tr>', document)
    return {
        ("*" if mark else "") + label: [
            html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td.*?</td>", cells)
        ]
        for mark, label, cells in rows
    }


def status(document: str) -> str:
    found = re.search(r'id="status"[^>]*>(.*?)<', document)
    assert found is not None
    return found[1]


def test_the_browser_shows_what_has_changed() -> None:
    document = in_browser(diff_page(BEFORE, AFTER))
    assert listed(document) == [
        ["renamed, attributes", "Const", "w → folded"],
        ["added", "Cast", "cast"],
        ["retyped, rewired, attributes, tensors", "Conv2DV2", "conv"],
        ["removed", "BatchNorm", "bn"],
        ["rewired", "Relu", "relu"],
        ["rewired", "Mul", "gate"],
        ["renamed", "Data", "then/x → yes/x"],
        ["renamed", "Neg", "then/neg → yes/neg"],
        ["added", "Data", "extra/x"],
    ]
    assert status(document) == "9 of 15 nodes"
    buttons = re.findall(r'<button type="button" aria-pressed="(\w+)">(.*?)</button>', document)
    assert buttons == [
        ("false", "all 15"),
        ("true", "changed 9"),
        ("false", "removed 1"),
        ("false", "added 2"),
        ("false", "renamed 3"),
        ("false", "retyped 1"),
        ("false", "rewired 3"),
        ("false", "attributes 2"),
        ("false", "tensors 1"),
        ("false", "same 6"),
    ]
    assert table(document)["*names of results"] == ["y", "z"]


@pytest.mark.parametrize(
    ("fragment", "names"),
    [
        ("#kind=&q=conv", ["conv", "bn", "relu"]),
        ("#kind=&q=CONV+rewired", ["conv", "relu"]),
        ("#kind=added", ["cast", "extra/x"]),
        ("#kind=same&type=Data", ["x", "go", "else/x"]),
        ("#q=nothing-like-it", []),
    ],
)
def test_search_and_filters(fragment: str, names: list[str]) -> None:
    document = in_browser(diff_page(BEFORE, AFTER), fragment)
    assert [row[-1] for row in listed(document)] == names


def test_a_node_side_by_side() -> None:
    document = in_browser(diff_page(BEFORE, AFTER), "#node=0%2Fconv")
    assert table(document) == {
        "name": ["conv", "conv"],
        "*type": ["Conv2D", "Conv2DV2"],
        "*input 0": ["x:0", "cast:0"],
        "input 1": ["w:0", "folded:0"],
        "*output 0": ["f32[1,2,8,8]@NCHW", "f16[1,1,8,8,16]@NC1HWC0 (origin [1,2,8,8]@NCHW)"],
        "*data_format": ['"NCHW"', ""],
        "*groups": ["", "1"],
        "*pads": ["[0, 0, 0, 0]", "[1, 1, 1, 1]"],
        "strides": ["[1, 1, 1, 1]", "[1, 1, 1, 1]"],
    }
    assert '<a href="#node=0%2Fcast">cast:0</a>' in document
    assert '<a href="#node=0%2Ffolded">w:0</a>' in document
    assert "read by 2" in document  # bn before, relu after


def test_one_graph() -> None:
    page = show_page(BEFORE)
    document = in_browser(page)
    assert listed(document)[:3] == [["Data", "x"], ["Data", "go"], ["Const", "w"]]
    assert status(document) == "13 of 13 nodes"
    assert "  1  BatchNorm" in document
    assert table(in_browser(page, "#node=0%2Frelu"))["input 0"] == ["bn:0"]


def test_5000_nodes_are_listed_in_parts() -> None:
    document = in_browser(diff_page(many("a", 1), many("b", 2)), "#kind=attributes")
    assert status(document) == "2500 of 5001 nodes"
    assert len(listed(document)) == 400
    assert "show 400 more" in document


def test_equal_graphs() -> None:
    document = in_browser(diff_page(BEFORE, BEFORE))
    assert status(document) == "0 of 13 nodes; no node has changed"


def test_texts_of_the_graph_are_not_taken_for_markup() -> None:
    text = "<img src=x onerror=alert(1)>"
    document = in_browser(show_page(f"graph g() {{ %{json.dumps(text)} = A {{p={json.dumps(text)}}} return }}"))
    assert listed(document) == [["A", text]]
    assert "<img" not in document


@pytest.mark.parametrize("line", [["show", "a.txt"], ["diff", "a.txt", "a.txt"]])
@pytest.mark.parametrize(("page", "code"), [("", "E10001"), ("a.txt/page.html", "E13004"), ("folder", "E13004")])
def test_a_page_that_cannot_be_written_is_the_only_thing_said(line, page, code, capsys) -> None:
    Path("folder").mkdir()
    Path("a.txt").write_text("graph g(%x: f32[4]@ND) {\n  return %x\n}\n")
    assert main(["graph", *line, "--html", page]) == 2
    output = capsys.readouterr()
    assert code in output.out + output.err
    assert "inputs" not in output.out
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "folder"]


def test_folders_of_a_page_are_made(capsys) -> None:
    Path("a.txt").write_text("graph g(%x: f32[4]@ND) {\n  return %x\n}\n")
    assert main(["graph", "show", "a.txt", "--html", "new/deep/page.html"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("the page is new/deep/page.html")
    assert Path("new/deep/page.html").is_file()
