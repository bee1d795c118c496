"""How far the layouts of heavy nodes go: graph text in, layouts out."""

from __future__ import annotations

import pytest

from ge.graph import Format
from ge.ops.format_columns import FormatColumn
from passes.format.spread_heavy_formats import score
from tests.passes.format.refined import CHOOSING, given, layouts, origin_graph, refined, run

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'
POOL = "ksize=[1,1,2,2], strides=[1,1,2,2]"
INPUTS = "%x: f16[1,16,8,8]@ND, %w: f16[16,16,1,1]@ND"


def spread(body: str, inputs: str = INPUTS, results: str = "%y") -> dict[str, str]:
    return layouts(refined(f"graph g({inputs}) {{\n{body}\n  return {results}\n}}", CHOOSING))


def of_16(value: str) -> str:
    return ",".join([value] * 16)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %r = Relu(%c) %s = Sigmoid(%r) %y = Flatten(%s)",
            {"r": "NC1HWC0 -> NC1HWC0", "s": "NC1HWC0 -> NC1HWC0", "y": "NCHW -> ND"},
            id="forward-until-nothing-fits",
        ),
        pytest.param(
            f"%t = Reshape(%x, %shape) %r = Relu(%t) %c = Conv2D(%r, %w) {{{CONV}}} %y = Relu(%c)",
            {"t": "NCHW ND -> NCHW", "r": "NC1HWC0 -> NC1HWC0", "y": "NC1HWC0 -> NC1HWC0"},
            id="back-until-nothing-fits",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %a = Relu(%x) %y = Add(%c, %a)",
            {"a": "NC1HWC0 -> NC1HWC0", "y": "NC1HWC0 NC1HWC0 -> NC1HWC0"},
            id="through-an-input-to-its-other-readers",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %n = Neg(%t) %t = TensorMove(%z) %y = Add(%c, %n)",
            {"t": "NC1HWC0 -> NC1HWC0", "n": "NC1HWC0 -> NC1HWC0", "y": "NC1HWC0 NC1HWC0 -> NC1HWC0"},
            id="forward-and-back-along-another-operand",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %p = MaxPoolV3(%c) {{{POOL}}} %y = Neg(%p)",
            {"p": "NC1HWC0 -> NC1HWC0", "y": "NC1HWC0 -> NC1HWC0"},
            id="through-what-has-no-other-layout",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %k = Cast(%c) {{dst_type=2}} %y = Neg(%k)",
            {"k": "NCHW -> NCHW", "y": "NCHW -> NCHW"},
            id="not-into-other-blocks",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %y = Add(%c, %scalar)",
            {"y": "NC1HWC0 ND -> NC1HWC0"},
            id="past-a-scalar",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %y:2 = SplitVD(%c) {{size_splits=[8,8], split_dim=1, num_split=2}}",
            {"y": "NCHW -> NCHW NCHW"},
            id="not-into-parts-of-blocks",
        ),
    ],
)
def test_where_layouts_go(body: str, expected: dict[str, str]) -> None:
    inputs = f"{INPUTS}, %z: f16[1,16,8,8]@NCHW, %shape: i32[4]@ND, %scalar: f16[]@ND"
    constant = "%shape = Const {value=i32[4]{1,16,8,8}} -> i32[4]@ND\n"
    if "%shape" in body:
        body, inputs = constant + body, inputs.replace(", %shape: i32[4]@ND", "")
    found = spread(body, inputs)
    assert {name: found[name] for name in expected} == expected
    assert found["c"] == "NC1HWC0 FRACTAL_Z -> NC1HWC0"


def test_columns_that_compete_are_scored() -> None:
    nd, nz, hd = Format.FORMAT_ND, Format.FORMAT_FRACTAL_NZ, Format.FORMAT_NC1HWC0
    assert score(FormatColumn((hd, None, nd), (hd,)), hd) == 2000 + 100 + 2000
    assert score(FormatColumn((hd, nz), (nd,)), hd) == 2000 + 200 + 100
    assert score(FormatColumn((hd, Format.FORMAT_MD), (hd,)), hd) == 2000 + 1 + 2000


def test_of_two_columns_with_the_layout_the_one_that_hands_it_on_wins() -> None:
    # over H the mean stays in blocks, over C it can leave them only
    found = spread(f"""%c = Conv2D(%x, %w) {{{CONV}}}
  %y = ReduceMeanD(%c) {{axes=[2], keep_dims=true}}
  %z = ReduceMeanD(%c) {{axes=[1], keep_dims=true}}""")
    assert (found["y"], found["z"]) == ("NC1HWC0 -> NC1HWC0", "NC1HWC0 -> NCHW")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("%o = Mul(%z, %k)", "NC1HWC0 NC1HWC0 -> NC1HWC0"),
        ("%o = Mul(%z, %k) %f = Flatten(%k)", "NCHW NCHW -> NCHW"),
    ],
)
def test_through_a_weight_all_readers_or_none(other: str, expected: str) -> None:
    found = spread(
        f"""%k = Const {{value=f16[1,16,1,1]{{{of_16("2")}}}}} -> f16[1,16,1,1]@NCHW
  %c = Conv2D(%x, %w) {{{CONV}}}
  %y = Mul(%c, %k)
  {other}""",
        f"{INPUTS}, %z: f16[1,16,8,8]@NCHW",
    )
    assert found["y"] == "NC1HWC0 NC1HWC0 -> NC1HWC0"
    assert found["o"] == expected


def test_the_first_source_wins() -> None:
    body = """%p = BatchMatMulV2(%a, %b) {allow_nz=true}
  %y = Add(%p, %c)
  %c = Conv2D(%x, %w) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"}"""
    inputs = f"{INPUTS}, %a: f16[1,16,8,8]@NCHW, %b: f16[1,16,8,8]@NCHW"
    first = spread(body, inputs)
    assert first["y"] == "FRACTAL_NZ FRACTAL_NZ -> FRACTAL_NZ"
    lines = body.split("\n")
    assert spread("\n".join([lines[2], lines[1], lines[0]]), inputs)["y"] == "NC1HWC0 NC1HWC0 -> NC1HWC0"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Format.FORMAT_NC1HWC0, "NHWC -> NHWC"),
        (Format.FORMAT_FRACTAL_NZ, "FRACTAL_NZ -> FRACTAL_NZ"),
    ],
)
def test_names_of_axes_must_agree_unless_they_do_not_matter(layout: Format, expected: str) -> None:
    graph = origin_graph("""graph g(%x: f16[1,16,8,8]@NCHW) {
  %y = Relu(%x) -> f16[1,16,8,8]@NHWC
  return %y
}""")
    relu = graph.find("y")
    assert relu is not None
    reading = relu.input_descs[0]
    assert reading is not None
    reading.origin_format = Format.FORMAT_NHWC
    given(graph, "x", layout, spreads=True)
    run(graph, CHOOSING[1:])
    assert layouts(graph)["y"].split(" -> ")[1] == expected.split(" -> ")[1]


def test_a_layout_that_the_user_gave_spreads_if_it_is_marked() -> None:
    for spreads, expected in ((True, "NC1HWC0 -> NC1HWC0"), (False, "NCHW -> NCHW")):
        graph = origin_graph("""graph g(%x: f16[1,16,8,8]@NCHW) {
  %r = Relu(%x)
  %y = Relu(%r)
  return %y
}""")
        given(graph, "x", Format.FORMAT_NC1HWC0, spreads=spreads)
        run(graph, CHOOSING)
        assert layouts(graph) == {"r": "NC1HWC0 -> NC1HWC0", "y": expected}


def test_bodies_do_not_pass_layouts_on() -> None:
    found = spread(
        f"""%c = Conv2D(%x, %w) {{{CONV}}}
  %y = If(%q, %c) {{then_branch=@t, else_branch=@e}}
  return %y
}}
graph t(%tx: f16[1,16,8,8]@NCHW {{_parent_node_index=1}}) {{
  %ty = Relu(%tx)
  return %ty
}}
graph e(%ex: f16[1,16,8,8]@NCHW {{_parent_node_index=1}}) {{
  %ey = Neg(%ex)""",
        f"{INPUTS}, %q: bool[]@ND",
        "%ey",
    )
    assert (found["y"], found["ty"], found["ey"]) == ("ND NCHW -> NCHW", "NCHW -> NCHW", "NCHW -> NCHW")
