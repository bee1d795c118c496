"""Who shares memory with whom, and who must not."""

import pytest

from ge.tensor_memory import is_computing
from ge.text import parse_graph
from passes.build.liveness import analyse


def symbols_of(text: str, is_sharing: bool = True):
    """Return (tensor names, first step, last step) of every symbol that holds bytes; sizes are checked on the way."""
    graph = parse_graph(text)
    tasks = [node for node in graph if is_computing(node)]
    found = []
    for symbol in analyse(graph, tasks, is_sharing).symbols:
        assert symbol.size % 512 == 0
        found.append((" ".join(out.node.name for out in symbol.tensors), symbol.first, symbol.last))
    return found


def test_inputs_live_from_before_the_first_step_and_results_to_behind_the_last() -> None:
    text = """graph g(%x: f32[8]@ND, %unread: f32[8]@ND) {
  %a:2 = TopK(%x) -> f32[8]@ND, i32[8]@ND
  %b = MatMulV2(%a) -> f32[8]@ND
  %c = MatMulV2(%b, %a) -> f32[8]@ND
  return %b
}"""
    assert symbols_of(text) == [
        ("x", -1, 0),
        ("unread", -1, -1),
        ("a", 0, 2),
        ("a", 0, 0),
        ("b", 1, 3),
        ("c", 2, 2),
    ]


@pytest.mark.parametrize(
    ("node", "is_shared"),
    [
        pytest.param("Reshape(%a) -> f32[2,32]@ND", True, id="reshape"),
        pytest.param("Reshape(%a) -> f32[2,32]@NCHW", True, id="reshape into another plain format"),
        pytest.param("Flatten(%a) -> f32[4,16]@ND", True, id="flatten"),
        pytest.param("Unsqueeze(%a) -> f32[1,4,16]@ND", True, id="unsqueeze"),
        pytest.param("SqueezeV3(%a) -> f32[4,16]@ND", True, id="squeeze"),
        pytest.param("ExpandDims(%a) -> f32[4,1,16]@ND", True, id="expand dims"),
        pytest.param("Identity(%a) -> f32[4,16]@ND", True, id="identity"),
        pytest.param("Bitcast(%a) -> i32[4,16]@ND", True, id="same bytes, other type"),
        pytest.param("Identity(%a) {_must_copy=true} -> f32[4,16]@ND", False, id="identity that must copy"),
        pytest.param("Transpose(%a) -> f32[16,4]@ND", False, id="elements move"),
        pytest.param("Reshape(%a) -> f32[64]@ND | [1,4,1,1,16]@NC1HWC0", False, id="padded format: elements move"),
        pytest.param("Squeeze(%a) -> f32[4,8]@ND", False, id="unequal bytes"),
        pytest.param("TensorMove(%a) -> f32[4,16]@ND", False, id="a copy by its meaning"),
    ],
)
def test_views_share_what_they_show(node, is_shared) -> None:
    text = f"""graph g(%x: f32[4,4]@ND) {{
  %a = MatMulV2(%x) -> f32[4,16]@ND
  %v = {node}
  %late = MatMulV2(%x) -> f32[4]@ND
  %y = MatMulV2(%v, %late) -> f32[4]@ND
  return %y
}}"""
    found = symbols_of(text)
    if is_shared:
        assert found == [("x", -1, 1), ("a v", 0, 2), ("late", 1, 2), ("y", 2, 3)]
    else:
        assert found == [("x", -1, 2), ("a", 0, 1), ("v", 1, 3), ("late", 2, 3), ("y", 3, 4)]


def test_views_of_constants_need_no_memory() -> None:
    text = """graph g(%x: f32[8]@ND) {
  %c = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %f = Fill(%c) {_load_time_const=true} -> f32[8]@ND
  %v = Reshape(%f) -> f32[2,4]@ND
  %w = Reshape(%c) -> f32[1,2]@ND
  %y = MatMulV2(%x, %v, %w) -> f32[8]@ND
  return %y
}"""
    assert symbols_of(text) == [("x", -1, 0), ("y", 0, 1)]


def test_strings_have_no_place_among_bytes() -> None:
    text = "graph g(%x: str[8]@ND) { %y = StringLength(%x) -> i32[8]@ND return %y }"
    assert symbols_of(text) == [("y", 0, 1)]


IN_PLACE = """graph g(%x: f32[4,16]@ND) {{
  %a = MatMulV2(%x) -> {a}
  %b = MatMulV2(%x) -> f32[16]@ND
  %y = {node}
  {more}
  return {results}
}}"""


@pytest.mark.parametrize(
    ("node", "more", "a"),
    [
        pytest.param("Relu(%a) -> f32[4,16]@ND", "", "f32[4,16]@ND", id="the only reader"),
        pytest.param("Add(%a, %b) -> f32[4,16]@ND", "", "f32[4,16]@ND", id="the other input is broadcast"),
        pytest.param("Add(%b, %a) -> f32[4,16]@ND", "", "f32[4,16]@ND", id="second input"),
        pytest.param("Relu(%a) -> f32[1,4,16]@ND", "", "f32[4,16]@ND", id="leading ones do not count"),
        pytest.param("Relu(%r) -> f32[64]@ND", "", "f32[4,16]@ND", id="through a view"),
        pytest.param("SelectV2(%b, %a, %b) -> f32[4,16]@ND", "", "f32[4,16]@ND", id="a branch of a selection"),
    ],
)
def test_elementwise_operators_write_over_what_dies(node, more, a) -> None:
    text = IN_PLACE.format(node=node, more=more, a=a, results="%y")
    if "%r" in node:
        text = text.replace("  %b =", "  %r = Reshape(%a) -> f32[64]@ND\n  %b =")
    shared = [names for names, _, _ in symbols_of(text) if "a" in names.split()]
    assert shared[0].split()[0] == "a"
    assert shared[0].split()[-1] == "y"
    assert not any("y" in names.split() for names, _, _ in symbols_of(text, is_sharing=False) if names.startswith("a"))


@pytest.mark.parametrize(
    ("node", "more", "a", "results"),
    [
        pytest.param("Relu(%x) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="model input"),
        pytest.param("Relu(%v) -> f32[64]@ND", "", "f32[4,16]@ND", "%y", id="view of a model input"),
        pytest.param("Add(%b, %a) -> f32[4,16]@ND", "", "f32[1,16]@ND", "%y", id="unequal size"),
        pytest.param("Add(%b, %a) -> f32[16,16]@ND", "", "f32[16,1]@ND", "%y", id="broadcast along the last axis"),
        pytest.param("Equal(%a, %b) -> bool[4,16]@ND", "", "f32[4,16]@ND", "%y", id="other element type"),
        pytest.param("Relu(%a) -> i32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="equal bytes, other element type"),
        pytest.param("Relu(%a) -> f32[4,16]@ND", "%z = MatMulV2(%a)", "f32[4,16]@ND", "%y", id="later reader"),
        pytest.param(
            "Relu(%a) -> f32[4,16]@ND", "%z = MatMulV2(%w)", "f32[4,16]@ND", "%y", id="later reader of a view"
        ),
        pytest.param("Relu(%a) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y, %a", id="result of the model"),
        pytest.param("Relu(%a) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y, %w", id="a view is a result"),
        pytest.param("Mul(%a, %a) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="read through two slots"),
        pytest.param("Mul(%a, %w) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="read directly and through a view"),
        pytest.param("SoftmaxV2(%a) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="not elementwise"),
        pytest.param("PRelu(%b, %a) -> f32[4,16]@ND", "", "f32[4,16]@ND", "%y", id="a slot that is read again"),
    ],
)
def test_refusals_to_write_in_place(node, more, a, results) -> None:
    text = IN_PLACE.format(node=node, more=more and f"{more} -> f32[4]@ND", a=a, results=results)
    text = text.replace("  %y =", "  %v = Reshape(%x) -> f32[64]@ND\n  %w = Reshape(%a) -> f32[1,4,16]@ND\n  %y =")
    if "[1,16]" in a or "[16,1]" in a:
        text = text.replace("f32[1,4,16]", "f32[16]")
    with_y = [names.split() for names, _, _ in symbols_of(text) if "y" in names.split()]
    assert with_y == [["y"]]


def test_chains_in_place_become_one_symbol() -> None:
    text = """graph g(%x: f32[8]@ND) {
  %a = MatMulV2(%x) -> f32[8]@ND
  %b = Relu(%a) -> f32[8]@ND
  %c = Add(%b, %x) -> f32[8]@ND
  %d = Reshape(%c) -> f32[2,4]@ND
  %e = Sigmoid(%d) -> f32[2,4]@ND
  %y = MatMulV2(%e) -> f32[8]@ND
  return %y
}"""
    assert symbols_of(text) == [("x", -1, 2), ("a b c d e", 0, 4), ("y", 4, 5)]
