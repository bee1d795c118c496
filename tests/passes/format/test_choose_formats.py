"""What every node makes and wants before layouts spread: graph text in, layouts out."""

from __future__ import annotations

import pytest

from ge.graph import Format
from ge.verify import UNSETTLED
from passes.format.choose_formats import ChooseFormats
from tests.passes.format.refined import given, layouts, origin_graph, refined, run, session

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'
POOL = "ksize=[1,1,2,2], strides=[1,1,2,2]"


def chosen(body: str, inputs: str, **options: bool) -> dict[str, str]:
    return layouts(refined(f"graph g({inputs}) {{\n{body}\n  return %y\n}}", [ChooseFormats()], **options))


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        pytest.param(
            f"%y = Conv2D(%x, %w, %b) {{{CONV}}}",
            "%x: f16[1,16,8,8]@ND, %w: f16[32,16,1,1]@ND, %b: f16[32]@ND",
            {"y": "NC1HWC0 FRACTAL_Z ND -> NC1HWC0"},
            id="convolutions-are-private",
        ),
        pytest.param(
            f"%y = Conv2D(%x, %w) {{{CONV}, groups=4}}",
            "%x: f16[1,16,8,8]@ND, %w: f16[32,4,1,1]@ND",
            {"y": "NC1HWC0 FRACTAL_Z:4 -> NC1HWC0"},
            id="filters-know-their-groups",
        ),
        pytest.param(
            f"%p = MaxPoolV3(%x) {{{POOL}}} %y = Relu(%p)",
            "%x: f16[1,16,8,8]@ND",
            {"p": "NC1HWC0 -> NC1HWC0", "y": "NCHW -> NCHW"},
            id="pooling-has-no-other-way",
        ),
        pytest.param(
            "%y = BatchMatMulV2(%a, %b)",
            "%a: f16[8,4]@ND, %b: f16[4,8]@ND",
            {"y": "ND ND -> ND"},
            id="products-stay",
        ),
        pytest.param(
            "%y = BatchMatMulV2(%a, %b) {allow_nz=true}",
            "%a: f16[8,4]@ND, %b: f16[4,8]@ND",
            {"y": "FRACTAL_NZ FRACTAL_NZ -> FRACTAL_NZ"},
            id="products-may-be-told",
        ),
        pytest.param(
            "%y = BatchMatMulV2(%a, %b) {allow_nz=true}",
            "%a: f16[4]@ND, %b: f16[4,8]@ND",
            {"y": "ND ND -> ND"},
            id="a-vector-is-no-matrix",
        ),
        pytest.param(
            f"%p = MaxPoolV3(%x) {{{POOL}}} %y = Relu(%p)",
            "%x: f64[1,16,8,8]@ND",
            {"p": "NCHW -> NCHW", "y": "NCHW -> NCHW"},
            id="origin-only-where-nothing-else-fits",
        ),
    ],
)
def test_choice_of_each_node(body: str, inputs: str, expected: dict[str, str]) -> None:
    assert chosen(body, inputs) == expected


@pytest.mark.parametrize(
    ("inputs", "option", "expected"),
    [
        ("%x: f16[1,3,8,8]@ND, %w: f16[32,3,1,1]@ND", True, "NC1HWC0_C04 FRACTAL_Z_C04 -> NC1HWC0"),
        ("%x: f16[1,3,8,8]@ND, %w: f16[32,3,1,1]@ND", False, "NC1HWC0 FRACTAL_Z -> NC1HWC0"),
        ("%x: f16[1,5,8,8]@ND, %w: f16[32,5,1,1]@ND", True, "NC1HWC0 FRACTAL_Z -> NC1HWC0"),
    ],
)
def test_layouts_for_few_channels_need_the_option(inputs: str, option: bool, expected: str) -> None:
    assert chosen(f"%y = Conv2D(%x, %w) {{{CONV}}}", inputs, enable_small_channel=option) == {"y": expected}


def test_a_node_follows_an_input_that_its_user_gave_in_a_private_layout() -> None:
    graph = origin_graph("""graph g(%x: f16[1,20,8,8]@NCHW) {
  %r = Relu(%x)
  %f = Flatten(%x)
  return %r, %f
}""")
    given(graph, "x", Format.FORMAT_NC1HWC0)
    run(graph, [ChooseFormats()])
    assert layouts(graph) == {"r": "NC1HWC0 -> NC1HWC0", "f": "NCHW -> ND"}
    assert graph.data_nodes()[0].output_descs[0].format == Format.FORMAT_NC1HWC0


def test_dynamic_models_keep_origin_formats() -> None:
    graph = origin_graph(f"""graph g(%x: f16[-1,16,8,8]@ND, %w: f16[32,16,1,1]@ND) {{
  %y = Conv2D(%x, %w) {{{CONV}}}
  return %y
}}""")
    assert not ChooseFormats().run(graph, session())
    assert UNSETTLED not in graph.attrs
    assert layouts(graph) == {"y": "NCHW NCHW -> NCHW"}


def test_constants_computed_at_load_and_arguments_of_bodies_keep_origin_formats() -> None:
    graph = origin_graph(f"""graph g(%c: bool[]@ND, %x: f16[1,16,8,8]@NCHW, %w: f16[32,16,1,1]@ND) {{
  %k = Const {{value=f16[1,16,1,1]{{{",".join(["1"] * 16)}}}}} -> f16[1,16,1,1]@NCHW
  %m = MaxPoolV3(%k) {{ksize=[1,1,1,1], strides=[1,1,1,1], _load_time_const=true}}
  %y = If(%c, %x, %w, %m) {{then_branch=@t, else_branch=@e}}
  return %y
}}
graph t(%tx: f16[1,16,8,8]@NCHW {{_parent_node_index=1}}, %tw: f16[32,16,1,1]@ND {{_parent_node_index=2}}) {{
  %ty = Conv2D(%tx, %tw) {{{CONV}}}
  return %ty
}}
graph e(%ex: f16[1,16,8,8]@NCHW {{_parent_node_index=1}}, %ew: f16[32,16,1,1]@ND {{_parent_node_index=2}}) {{
  %ey = Conv2D(%ex, %ew) {{{CONV}}}
  return %ey
}}""")
    run(graph, [ChooseFormats()])
    assert layouts(graph) == {
        "m": "NCHW -> NCHW",
        "y": "ND NCHW NCHW NCHW -> NCHW",
        "ty": "NC1HWC0 FRACTAL_Z -> NC1HWC0",
        "ey": "NC1HWC0 FRACTAL_Z -> NC1HWC0",
    }
