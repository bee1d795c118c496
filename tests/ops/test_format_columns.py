"""The layouts that operators can work in. A node in graph text, its columns out."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.formats import AXES, LITE_CUBES, SERVER_CUBES, CubeSizes, is_shown_as_stored
from ge.graph import DataType, Format, Graph, Node, TensorDesc
from ge.graph.types import FORMAT_TEXT
from ge.ops import lookup, registered_types
from ge.ops.format_columns import COLUMNS, ColumnFinder, FormatColumn, format_columns, is_heavy
from ge.text import parse_graph

CONV = "strides=[1,1,1,1], pads=[0,0,0,0]"


def node_of(text: str, inputs: str) -> Node:
    """Parse ``%y = ...`` that reads ``inputs``, which are given as ``name: description``, separated by semicolons."""
    params = ", ".join(f"%{part.strip()}" for part in inputs.split(";"))
    graph: Graph = parse_graph(f"graph g({params}) {{\n  {text}\n  return %y\n}}")
    node = graph.find("y")
    assert node is not None
    return node


def shown(column: FormatColumn) -> str:
    """``x filter _ -> y``: the layouts by slot; ``*`` behind an origin column that selection avoids."""
    before = " ".join("_" if layout is None else FORMAT_TEXT[layout] for layout in column.inputs)
    after = " ".join(FORMAT_TEXT[layout] for layout in column.outputs)
    return f"{before} -> {after}{'*' if column.is_origin_only else ''}"


def private(text: str, inputs: str, cubes: CubeSizes = SERVER_CUBES) -> list[str]:
    """The private layouts of the first input and of the output, per column behind the origin column."""
    origin, *columns = format_columns(node_of(text, inputs), cubes)
    assert origin.is_origin
    return [shown(column) for column in columns]


# -- operators with layouts of their own -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "inputs", "expected"),
    [
        pytest.param(
            f'%y = Conv2D(%x, %w, %b) {{{CONV}, data_format="NCHW"}} -> f16[1,32,8,8]@NCHW',
            "x: f16[1,16,8,8]@NCHW; w: f16[32,16,1,1]@NCHW; b: f16[32]@ND",
            ["ND ND ND -> ND*", "NC1HWC0 FRACTAL_Z ND -> NC1HWC0"],
            id="convolution",
        ),
        pytest.param(
            f"%y = Conv2D(%x, %w, _) {{{CONV}}} -> f16[1,8,8,32]@NHWC",
            "x: f16[1,8,8,3]@NHWC; w: f16[1,1,3,32]@HWCN",
            [
                "ND ND _ -> ND*",
                "NC1HWC0_C04 FRACTAL_Z_C04 _ -> NC1HWC0",
                "NC1HWC0 FRACTAL_Z _ -> NC1HWC0",
            ],
            id="few-channels",
        ),
        pytest.param(
            f'%y = Conv2D(%x, %w) {{{CONV}, groups=2, data_format="NCHW"}} -> f16[1,32,8,8]@NCHW',
            "x: f16[1,8,8,8]@NCHW; w: f16[32,4,1,1]@NCHW",
            ["ND ND -> ND*", "NC1HWC0 FRACTAL_Z -> NC1HWC0"],
            id="groups-have-no-small-form",
        ),
        pytest.param(
            f'%y = Conv2D(%x, %w) {{{CONV}, data_format="NCHW"}} -> f16[1,32,8,8]@NCHW',
            "x: f16[1,8,8,16]@NHWC; w: f16[32,16,1,1]@NCHW",
            ["ND ND -> ND*"],
            id="axes-in-dispute",
        ),
        pytest.param(
            f'%y = Conv2D(%x, %w) {{{CONV}, data_format="NCHW"}} -> f64[1,32,8,8]@NCHW',
            "x: f64[1,16,8,8]@NCHW; w: f64[32,16,1,1]@NCHW",
            ["ND ND -> ND*"],
            id="double",
        ),
        pytest.param(
            f'%y = Conv2D(%x, %w) {{{CONV}, data_format="NCHW"}} -> f16[-1,32,8,8]@NCHW',
            "x: f16[-1,16,8,8]@NCHW; w: f16[32,16,1,1]@NCHW",
            ["ND ND -> ND*"],
            id="open-batch",
        ),
        pytest.param(
            '%y = Conv2DTranspose(%s, %x, %w, %b) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"}'
            " -> f16[1,32,8,8]@NCHW",
            "s: i32[4]@ND; x: f16[1,16,8,8]@NCHW; w: f16[16,32,1,1]@NCHW; b: f16[32]@ND",
            ["ND ND ND ND -> ND*", "ND NC1HWC0 FRACTAL_Z ND -> NC1HWC0"],
            id="transposed-convolution",
        ),
        pytest.param(
            '%y = Conv3D(%x, %w) {strides=[1,1,1,1,1], pads=[0,0,0,0,0,0], data_format="NCDHW"}'
            " -> f16[1,32,2,8,8]@NCDHW",
            "x: f16[1,16,2,8,8]@NCDHW; w: f16[32,16,1,1,1]@NCDHW",
            ["ND ND -> ND*", "NDC1HWC0 FRACTAL_Z_3D -> NDC1HWC0"],
            id="convolution-of-volumes",
        ),
        pytest.param(
            "%y = MatMulV2(%a, %b, %c) -> f16[8,4]@ND",
            "a: f16[8,3]@ND; b: f16[3,4]@ND; c: f16[4]@ND",
            ["ND ND ND -> ND", "FRACTAL_NZ FRACTAL_NZ ND -> FRACTAL_NZ"],
            id="product",
        ),
        pytest.param(
            "%y = BatchMatMulV2(%a, %b) -> f16[2,4]@ND",
            "a: f16[3]@ND; b: f16[2,3,4]@ND",
            ["ND ND -> ND"],
            id="product-with-a-vector",
        ),
        pytest.param(
            "%y = MaxPoolV3(%x) {ksize=[1,1,2,2], strides=[1,1,2,2]} -> f16[1,3,4,4]@NCHW",
            "x: f16[1,3,8,8]@NCHW",
            ["ND -> ND*", "NC1HWC0 -> NC1HWC0"],
            id="pooling",
        ),
        pytest.param(
            "%y = GlobalAveragePool(%x) -> f16[1,3,1]@ND",
            "x: f16[1,3,8]@ND",
            ["ND -> ND*"],
            id="pooling-of-a-line",
        ),
        pytest.param(
            "%y = BNInfer(%x, %s, %o, %m, %v) {epsilon=0.1} -> f32[1,3,2,8,8]@NCDHW",
            "x: f32[1,3,2,8,8]@NCDHW; s: f32[3]@NCDHW; o: f32[3]@ND; m: f32[3]@ND; v: f32[3]@ND",
            ["ND ND ND ND ND -> ND", "NDC1HWC0 ND ND ND ND -> NDC1HWC0"],
            id="normalisation-of-volumes",
        ),
        pytest.param(
            "%y = Relu(%x) -> f16[1,3,8,8]@NCHW",
            "x: f16[1,3,8,8]@NCHW",
            ["ND -> ND", "NC1HWC0 -> NC1HWC0", "FRACTAL_NZ -> FRACTAL_NZ"],
            id="agnostic",
        ),
        pytest.param("%y = Relu(%x) -> f16[8]@NCHW", "x: f16[8]@NCHW", ["ND -> ND"], id="agnostic-vector"),
        pytest.param(
            "%y = Cast(%x) {dst_type=2} -> i8[1,3,8,8]@NCHW",
            "x: f32[1,3,8,8]@NCHW",
            ["ND -> ND"],
            id="cast-to-other-blocks",
        ),
        pytest.param(
            "%y = Cast(%x) {dst_type=1} -> f16[1,3,8,8]@NCHW",
            "x: f32[1,3,8,8]@NCHW",
            ["ND -> ND", "NC1HWC0 -> NC1HWC0", "FRACTAL_NZ -> FRACTAL_NZ"],
            id="cast-to-equal-blocks",
        ),
        pytest.param("%y = Flatten(%x) -> f16[1,192]@ND", "x: f16[1,3,8,8]@NCHW", ["ND -> ND"], id="all-others"),
    ],
)
def test_columns_of_operators(text: str, inputs: str, expected: list[str]) -> None:
    assert [shown(column) for column in format_columns(node_of(text, inputs))] == expected


def test_the_filter_of_a_grouped_convolution_has_the_groups_as_sub_format() -> None:
    text = f'%y = Conv2D(%x, %w) {{{CONV}, groups=2, data_format="NCHW"}} -> f16[1,32,8,8]@NCHW'
    column = format_columns(node_of(text, "x: f16[1,8,8,8]@NCHW; w: f16[32,4,1,1]@NCHW"))[-1]
    assert [column.sub_format(layout) for layout in (*column.inputs, *column.outputs)] == [0, 2, 0]


@pytest.mark.parametrize(
    ("axis", "inputs"),
    [
        ('str[1]{"x"}', "a: f32[1,16,8,8]@NCHW; b: f32[1,16,8,8]@NCHW"),
        ("f32[1]{1.0}", "a: f32[1,16,8,8]@NCHW; b: f32[1,16,8,8]@NCHW"),
        ("i32[1]{7}", "a: f32[1,16,8,8]@NCHW; b: f32[1,16,8,8]@NCHW"),
        ("i32[0]{}", "a: f32[1,16,8,8]@NCHW; b: f32[1,16,8,8]@NCHW"),
        ("i32[1]{3}", "a: f32[1,16,8]@NCHW; b: f32[1,16,8]@NCHW"),
        ("i32[1]{1}", "a: f32[]@NCHW; b: f32[]@NCHW"),
    ],
)
def test_what_a_file_may_hold_has_an_origin_column_at_least(axis: str, inputs: str) -> None:
    text = f"%d = Const {{value={axis}}} %y = ConcatV2(%a, %b, %d) -> f32[1,32,8,8]@NCHW"
    assert private(text, inputs) == []


def test_nodes_without_outputs_have_no_layouts() -> None:
    graph = Graph()
    source = graph.add_node("Data", "x").output()
    assert len(format_columns(graph.add_node("Relu", "y", [source], n_outputs=0))) == 1


# -- broadcast: cases 43 to 46 of the specification, and the rows of its table -----------------------------------------
def added(first: str, second: str) -> list[str]:
    return [line.split(" -> ")[0] for line in private(f"%y = Add(%a, %b) -> {first}", f"a: {first}; b: {second}")]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("f32[16,32,8,8]@NCHW", "f32[1,32,16,16]@NCHW", ["NC1HWC0 NC1HWC0"], id="case-43"),
        pytest.param("f32[16,32,16,16]@NCHW", "f32[16,16]@NCHW", ["FRACTAL_NZ FRACTAL_NZ"], id="case-44"),
        pytest.param("f32[16,32,16,32]@NCHW", "f32[16,32,1,32]@NCHW", ["NC1HWC0 NC1HWC0"], id="case-45"),
        pytest.param("f32[16,32,16,16]@NCHW", "f32[16,8]@NCHW", [], id="case-46"),
        pytest.param(
            "f32[2,3,4,5]@NCHW", "f32[2,3,4,5]@NCHW", ["NC1HWC0 NC1HWC0", "FRACTAL_NZ FRACTAL_NZ"], id="equal"
        ),
        pytest.param("f32[2,3,4,5]@NCHW", "f32[2,1,4,5]@NCHW", ["FRACTAL_NZ FRACTAL_NZ"], id="channels-broadcast"),
        pytest.param("f32[2,16,4,5]@NCHW", "f32[]@ND", ["NC1HWC0 ND"], id="scalar-and-whole-blocks"),
        pytest.param("f32[2,16,4,5]@NCHW", "f32[1]@ND", ["NC1HWC0 ND"], id="one-element"),
        pytest.param("f32[2,17,4,5]@NCHW", "f32[]@ND", [], id="scalar-and-padding"),
        pytest.param("f32[17,32,16]@ND", "f32[]@ND", ["FRACTAL_NZ ND"], id="scalar-and-whole-matrices"),
        pytest.param("f32[2,3,4,5]@NCHW", "f32[2,3,4,5]@NHWC", ["FRACTAL_NZ FRACTAL_NZ"], id="formats-differ"),
        pytest.param("f32[2,3,4,5,6]@NCDHW", "f32[2,3,1,1,1]@NCDHW", ["NDC1HWC0 NDC1HWC0"], id="volumes"),
        pytest.param("f32[2,3,4,5]@NCHW", "f32[3,1,1]@NCHW", [], id="fewer-dims"),
        pytest.param("i64[2,3,4,5]@NCHW", "i64[2,3,4,5]@NCHW", [], id="other-types"),
    ],
)
def test_broadcast(first: str, second: str, expected: list[str]) -> None:
    assert added(first, second) == expected


def test_operands_of_other_block_lengths_do_not_meet() -> None:
    inputs = "c: bool[1,32,8,8]@NCHW; a: i8[1,32,8,8]@NCHW"
    assert private("%y = Select(%c, %a, %a) -> i8[1,32,8,8]@NCHW", inputs) == []


# -- along axes --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("attributes", "x", "y", "expected"),
    [
        ("axes=[2,3], keep_dims=true", "f32[2,3,4,5]@NCHW", "f32[2,3,1,1]@NCHW", ["NC1HWC0 -> NC1HWC0"]),
        ("axes=[-1], keep_dims=false", "f32[2,3,4,5]@NCHW", "f32[2,3,4]@NCHW", []),
        ("axes=[1], keep_dims=true", "f32[2,3,4,5]@NCHW", "f32[2,1,4,5]@NCHW", ["FRACTAL_NZ -> FRACTAL_NZ"]),
        (
            "axes=[1], keep_dims=true",
            "f16[2,3,4,5]@NCHW",
            "f16[2,1,4,5]@NCHW",
            ["NC1HWC0 -> ND", "FRACTAL_NZ -> FRACTAL_NZ"],
        ),
        (
            "axes=[1], keep_dims=false",
            "f16[2,3,64,64]@NCHW",
            "f16[2,64,64]@NCHW",
            ["NC1HWC0 -> ND", "FRACTAL_NZ -> FRACTAL_NZ"],
        ),
        # more than the buffer of a chip holds
        ("axes=[1], keep_dims=false", "f16[2,3,256,256]@NCHW", "f16[2,256,256]@NCHW", ["FRACTAL_NZ -> FRACTAL_NZ"]),
        ("axes=[0], keep_dims=false", "f32[2,3,4]@ND", "f32[3,4]@ND", ["FRACTAL_NZ -> FRACTAL_NZ"]),
        ("axes=[1], keep_dims=false", "f32[2,32,16]@ND", "f32[2,16]@ND", ["FRACTAL_NZ -> ND"]),
        ("axes=[1], keep_dims=false", "f32[2,32,15]@ND", "f32[2,15]@ND", []),
        ("axes=[3], keep_dims=true", "f32[2,4,5,3]@NHWC", "f32[2,4,5,1]@NHWC", []),
        (
            "axes=[2], keep_dims=true",
            "f32[2,3,4,5,6]@NCDHW",
            "f32[2,3,1,5,6]@NCDHW",
            ["FRACTAL_NZ -> FRACTAL_NZ", "NDC1HWC0 -> NDC1HWC0"],
        ),
    ],
)
def test_reductions(attributes: str, x: str, y: str, expected: list[str]) -> None:
    assert private(f"%y = ReduceMeanD(%x) {{{attributes}}} -> {y}", f"x: {x}") == expected


def test_axes_from_a_constant_count_and_from_elsewhere_do_not() -> None:
    reduced = "ReduceSum(%x, %axes) {keep_dims=true} -> f32[2,3,1,1]@NCHW"
    constant = "%axes = Const {value=i32[2]{2,3}} -> i32[2]@ND\n  %y = "
    assert private(constant + reduced, "x: f32[2,3,4,5]@NCHW") == ["NC1HWC0 ND -> NC1HWC0"]
    assert private("%y = " + reduced, "x: f32[2,3,4,5]@NCHW; axes: i32[2]@ND") == []


@pytest.mark.parametrize(
    ("axes", "x", "expected"),
    [
        ("[-1]", "f32[2,3,4,5]@NCHW", ["NC1HWC0"]),
        ("[1]", "f32[2,3,4,5]@NCHW", ["FRACTAL_NZ"]),
        ("[1]", "f32[2,32,4,5]@NCHW", ["NC1HWC0", "FRACTAL_NZ"]),
        ("[-1]", "f32[8,32,48]@ND", ["FRACTAL_NZ"]),
        ("[-1]", "f32[8,32,50]@ND", []),
    ],
)
def test_softmax(axes: str, x: str, expected: list[str]) -> None:
    lines = private(f"%y = SoftmaxV2(%x) {{axes={axes}}} -> {x}", f"x: {x}")
    assert lines == [f"{layout} -> {layout}" for layout in expected]


@pytest.mark.parametrize(
    ("x", "first", "gamma", "expected"),
    [
        ("f32[2,32,48]@ND", 2, "f32[48]@ND", ["FRACTAL_NZ ND ND -> FRACTAL_NZ ND ND"]),
        ("f32[2,32,48]@ND", -1, "f32[48]@ND", ["FRACTAL_NZ ND ND -> FRACTAL_NZ ND ND"]),
        ("f32[2,33,48]@ND", 2, "f32[48]@ND", []),
        ("f32[2,32,48]@ND", 1, "f32[32,48]@ND", []),
    ],
)
def test_layer_normalisation(x: str, first: int, gamma: str, expected: list[str]) -> None:
    text = f"%y:3 = LayerNorm(%x, %g, %g) {{begin_norm_axis={first}}} -> {x}, f32[2,32,1]@ND, f32[2,32,1]@ND"
    assert private(text, f"x: {x}; g: {gamma}") == expected


# -- parts -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("axis", "first", "second", "y", "expected"),
    [
        (1, "f32[1,16,8,8]@NCHW", "f32[1,32,8,8]@NCHW", "f32[1,48,8,8]@NCHW", ["NC1HWC0", "FRACTAL_NZ"]),
        (1, "f32[1,16,8,8]@NCHW", "f32[1,8,8,8]@NCHW", "f32[1,24,8,8]@NCHW", ["FRACTAL_NZ"]),
        (-1, "f32[1,3,8,8]@NCHW", "f32[1,3,8,8]@NCHW", "f32[1,3,8,16]@NCHW", ["NC1HWC0"]),
        (2, "f32[1,3,16,8]@NCHW", "f32[1,3,32,8]@NCHW", "f32[1,3,48,8]@NCHW", ["NC1HWC0", "FRACTAL_NZ"]),
        (1, "i8[1,32,8,8]@NCHW", "i8[1,16,8,8]@NCHW", "i8[1,48,8,8]@NCHW", ["FRACTAL_NZ"]),
    ],
)
def test_joining_and_splitting(axis: int, first: str, second: str, y: str, expected: list[str]) -> None:
    joined = private(f"%y = ConcatD(%a, %b) {{concat_dim={axis}}} -> {y}", f"a: {first}; b: {second}")
    assert joined == [f"{layout} {layout} -> {layout}" for layout in expected]
    split = private(
        f"%y:2 = SplitVD(%x) {{size_splits=[1,1], split_dim={axis}, num_split=2}} -> {first}, {second}", f"x: {y}"
    )
    assert split == [f"{layout} -> {layout} {layout}" for layout in expected]


def test_packing_keeps_rows_and_columns() -> None:
    inputs = "a: f32[8,8]@ND; b: f32[8,8]@ND"
    assert private("%y = Pack(%a, %b) {axis=0} -> f32[2,8,8]@ND", inputs) == ["FRACTAL_NZ FRACTAL_NZ -> FRACTAL_NZ"]
    assert private("%y = Pack(%a, %b) {axis=1} -> f32[8,2,8]@ND", inputs) == []


@pytest.mark.parametrize(
    ("weight", "attributes", "has_column"),
    [
        ("f32[3]@ND", "", True),
        ("f32[1]@ND", "", True),
        ("f32[3,1,1]@ND", "", True),
        ("f32[1,3,1,1]@ND", "", True),
        ("f32[8]@ND", "{_x_unidirectional=true}", False),
        ("f32[3,8,8]@ND", "", False),
    ],
)
def test_slopes_per_channel(weight: str, attributes: str, has_column: bool) -> None:
    lines = private(f"%y = PRelu(%x, %w) {attributes} -> f32[1,3,8,8]@NCHW", f"x: f32[1,3,8,8]@NCHW; w: {weight}")
    assert lines == (["NC1HWC0 ND -> NC1HWC0"] if has_column else [])


# -- all of them -------------------------------------------------------------------------------------------------------
def test_every_type_with_columns_is_registered() -> None:
    assert [name for name in COLUMNS if lookup(name) is None] == []


def test_heavy_operators() -> None:
    graph = Graph()
    heavy = {name for name in registered_types() if is_heavy(graph.add_node(name, name))}
    assert heavy == {"Conv2D", "Conv2DV2", "DepthwiseConv2D", "Conv2DTranspose", "Conv2DBackpropInput", "Conv3D"}
    product_ = node_of("%y = MatMulV2(%a, %b) {allow_nz=true} -> f16[8,4]@ND", "a: f16[8,3]@ND; b: f16[3,4]@ND")
    assert is_heavy(product_)


@pytest.mark.parametrize("cubes", [SERVER_CUBES, LITE_CUBES], ids=["server", "lite"])
def test_whatever_a_column_names_is_shown_as_it_is_stored(cubes: CubeSizes) -> None:
    shapes = [(1, 1, 1, 1), (2, 3, 4, 5), (17, 33, 1, 2), (3, 3), (1, 5), (2, 33, 17), (2, 3, 4, 5, 6)]
    named = {4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}
    checked = 0
    for shape, dtype in product(shapes, ("f32", "f16", "i8", "bool")):
        for text in (*named.get(len(shape), ()), "ND"):
            desc = f"{dtype}[{','.join(map(str, shape))}]@{text}"
            for column in format_columns(node_of(f"%y = Relu(%x) -> {desc}", f"x: {desc}"), cubes)[1:]:
                y = node_of(f"%y = Relu(%x) -> {desc}", f"x: {desc}").output_descs[0]
                layout = column.outputs[0]
                assert layout != Format.FORMAT_ND
                assert is_shown_as_stored(shape, y.origin_format, layout, y.data_type, cubes=cubes)
                checked += 1
    assert checked > 50


_SOME = {"i": st.integers(-5, 5), "I": st.lists(st.integers(-5, 5), max_size=4), "s": st.sampled_from(["NHWC", "x"])}
_DESCS = st.builds(
    TensorDesc,
    st.lists(st.sampled_from([-1, 0, 1, 2, 15, 16, 17, 32]), max_size=6),
    st.sampled_from(
        [Format.FORMAT_ND, Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_HWCN, Format.FORMAT_NCDHW]
    ),
    st.sampled_from([DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_INT8, DataType.DT_INT64, DataType.DT_STRING]),
)


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_columns_of_any_node_are_layouts_that_its_tensors_can_have(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(sorted(COLUMNS)))
    definition = lookup(type_)
    assert definition is not None
    signature = definition.signature
    least = signature.min_inputs
    count = data.draw(st.integers(least, least + 2 if signature.max_inputs is None else signature.max_inputs))
    graph = Graph()
    sources = [graph.add_node("Data", f"x{i}", output_descs=[data.draw(_DESCS)]).output() for i in range(count)]
    attrs = {
        name: data.draw(_SOME[spec.kind])
        for name, spec in signature.attrs.items()
        if spec.kind in _SOME and (spec.is_required or data.draw(st.booleans()))
    }
    node = graph.add_node(type_, "y", sources, attrs, output_descs=data.draw(st.lists(_DESCS, min_size=1, max_size=3)))
    cubes = data.draw(st.sampled_from([SERVER_CUBES, LITE_CUBES]))
    for column in format_columns(node, cubes)[1:]:
        assert not column.is_origin
        for layout, desc in [
            *zip(column.inputs, node.input_descs, strict=True),
            *zip(column.outputs, node.output_descs, strict=True),
        ]:
            if layout not in (None, Format.FORMAT_ND):
                assert desc is not None
                groups = column.sub_format(layout)
                filters = desc.origin_shape[AXES[desc.origin_format].index("N")] if groups else 0
                if not (groups and filters % groups):  # filters that groups do not divide are refused by inference
                    assert is_shown_as_stored(
                        desc.origin_shape, desc.origin_format, layout, desc.data_type, groups, cubes=cubes
                    )


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_finder_knows_the_columns_of_each_of_many_nodes(data: st.DataObject) -> None:
    """Few types and tensors, so that some nodes are alike and others nearly so."""
    descs = st.builds(
        TensorDesc,
        st.sampled_from([(2, 16, 4, 4), (2, 3, 4, 4), (16,), (32, 32)]),
        st.sampled_from([Format.FORMAT_ND, Format.FORMAT_NCHW, Format.FORMAT_NHWC]),
        st.sampled_from([DataType.DT_FLOAT, DataType.DT_INT8, DataType.DT_BOOL]),
    )
    finder, graph = ColumnFinder(), Graph()
    for number in range(12):
        type_ = data.draw(st.sampled_from(["Relu", "Sigmoid", "Add", "AddN", "SoftmaxV2"]))
        count = {"Add": 2, "AddN": 3}.get(type_, 1)
        sources = [
            graph.add_node("Data", f"x{number}_{i}", output_descs=[data.draw(descs)]).output() for i in range(count)
        ]
        node = graph.add_node(type_, f"y{number}", sources, {"N": 3}, output_descs=[data.draw(descs)])
        assert finder.columns(node) == format_columns(node)
