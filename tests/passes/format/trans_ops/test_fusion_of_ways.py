"""Ways through trans-ops from one operator to another, and TransDatas behind several Casts."""

from __future__ import annotations

import pytest

from ge.graph import DataType
from passes.format.trans_ops.same_transdata_breadth_fusion import SameTransdataBreadthFusion
from passes.format.trans_ops.without_reshape_fusion import MAX_LINKS, TransOpWithoutReshapeFusion
from tests.passes.format.trans_ops.notation import BLOCKS, IMAGE, LAST, back, cast, trans, transpose
from tests.passes.format.trans_ops.rewritten import after, graph_of, session, shown

X = f"%x: f32{IMAGE}"
LAST_BLOCKS = f"{LAST} | [1,2,4,4,16]@NC1HWC0"


def chain(*steps: str, end: str) -> list[str]:
    """Nodes a, b, ... of which each reads the one before, the first %x; then y = Relu."""
    names = ["x", *"abcdefgh"[: len(steps)]]
    nodes = [f"%{names[i + 1]} = {step.replace('@@', '%' + names[i])}" for i, step in enumerate(steps)]
    return [*nodes, f"%y = Relu(%{names[-1]}) -> {end}"]


# -- trans-op-without-reshape-fusion -----------------------------------------------------------------------------------
def test_between_equal_ends_nothing_is_left() -> None:
    nodes = chain(
        cast("@@", f"f16{IMAGE}"),
        trans("@@", f"f16{BLOCKS}"),
        back("@@", f"f16{IMAGE}"),
        transpose("@@", "0,2,3,1", f"f16{LAST}"),
        transpose("@@", "0,3,1,2", f"f16{IMAGE}"),
        cast("@@", f"f32{IMAGE}"),
        end=f"f32{IMAGE}",
    )
    assert after(TransOpWithoutReshapeFusion(), *nodes, params=X) == [
        "y = Relu(x) -> f32[1,32,4,4]@NCHW",
        "NetOutput(y)",
    ]


@pytest.mark.parametrize(
    ("start", "steps", "end", "left"),
    [
        # to half precision: cast first, so that less is moved
        (
            "f32",
            (
                trans("@@", f"f32{BLOCKS}"),
                back("@@", f"f32{IMAGE}"),
                cast("@@", f"f16{IMAGE}"),
                trans("@@", f"f16{BLOCKS}"),
            ),
            f"f16{BLOCKS}",
            ["Cast(x) -> f16[1,32,4,4]@NCHW", "TransData(x_0_Cast) -> f16[1,2,4,4,16]@NC1HWC0"],
        ),
        # from half precision: cast last
        (
            "f16",
            (
                cast("@@", f"f32{IMAGE}"),
                trans("@@", f"f32{BLOCKS}"),
                back("@@", f"f32{IMAGE}"),
                trans("@@", f"f32{BLOCKS}"),
            ),
            f"f32{BLOCKS}",
            ["TransData(x) -> f16[1,2,4,4,16]@NC1HWC0", "Cast(x_0_TransData) -> f32[1,2,4,4,16]@NC1HWC0"],
        ),
        (
            "f32",
            (trans("@@", f"f32{BLOCKS}"), back("@@", f"f32{IMAGE}"), trans("@@", f"f32{BLOCKS}")),
            f"f32{BLOCKS}",
            ["TransData(x) -> f32[1,2,4,4,16]@NC1HWC0"],
        ),
        (
            "f32",
            (trans("@@", f"f32{BLOCKS}"), back("@@", f"f32{IMAGE}"), cast("@@", f"f16{IMAGE}")),
            f"f16{IMAGE}",
            ["Cast(x) -> f16[1,32,4,4]@NCHW"],
        ),
    ],
    ids=["to f16", "from f16", "layout only", "type only"],
)
def test_between_other_ends_one_of_each_is_left(start: str, steps: tuple[str, ...], end: str, left: list[str]) -> None:
    found = after(TransOpWithoutReshapeFusion(), *chain(*steps, end=end), params=f"%x: {start}{IMAGE}")
    assert [line.partition(" = ")[2] for line in found if line.partition(" = ")[2] in left] == left
    assert len(found) == len(left) + 2


def test_what_is_left_stands_for_the_operators_of_the_model_that_went() -> None:
    nodes = chain(
        trans("@@", f"f32{BLOCKS}"),
        back("@@", f"f32{IMAGE}"),
        cast("@@", f"f64{IMAGE}", of_model=True),
        end=f"f64{IMAGE}",
    )
    nodes[:2] = [node.replace("}", ", _datadump_original_op_names=[]}", 1) for node in nodes[:2]]
    graph = graph_of(*nodes, params=X)
    assert TransOpWithoutReshapeFusion().run(graph, session())
    [left] = graph.nodes_of_type("Cast")
    assert left.attrs["_datadump_original_op_names"] == ["Cast_3"]


def test_ways_to_the_same_form_share_what_is_left() -> None:
    nodes = []
    for name in "ab":
        nodes += [f"%{name}1 = {trans('%x', f'f32{BLOCKS}')}", f"%{name}2 = {back(f'%{name}1', f'f32{IMAGE}')}"]
        nodes += [f"%{name}3 = {cast(f'%{name}2', f'f16{IMAGE}')}", f"%{name} = Relu(%{name}3) -> f16{IMAGE}"]
    found = after(TransOpWithoutReshapeFusion(), *nodes, params=X, results="%a, %b")
    assert sorted(found) == [
        "NetOutput(a, b)",
        "a = Relu(x_0_Cast) -> f16[1,32,4,4]@NCHW",
        "b = Relu(x_0_Cast) -> f16[1,32,4,4]@NCHW",
        "x_0_Cast = Cast(x) -> f16[1,32,4,4]@NCHW",
    ]


def test_what_other_ways_need_stays() -> None:
    """The way to %z has a Reshape, so %a and %b stay; %y reads %x all the same, for it needs %c no more."""
    nodes = [f"%a = {trans('%x', f'f32{BLOCKS}')}", f"%b = {back('%a', f'f32{IMAGE}')}"]
    nodes += [
        f"%c = {trans('%b', f'f32{BLOCKS}')}",
        f"%d = {back('%c', f'f32{IMAGE}')}",
        f"%y = Relu(%d) -> f32{IMAGE}",
    ]
    nodes += ["%s = Const {value=i64[2]{32,16}} -> i64[2]@ND", "%r = Reshape(%b, %s) -> f32[32,16]@ND"]
    nodes += ["%z = Relu(%r) -> f32[32,16]@ND"]
    assert after(TransOpWithoutReshapeFusion(), *nodes, params=X, results="%y, %z") == [
        "a = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "b = TransData(a) -> f32[1,32,4,4]@NCHW",
        "y = Relu(x) -> f32[1,32,4,4]@NCHW",
        "r = Reshape(b, s) -> f32[32,16]@ND",
        "z = Relu(r) -> f32[32,16]@ND",
        "NetOutput(y, z)",
    ]


def test_who_waited_still_waits() -> None:
    nodes = [f"%w = Exp(%x) -> f32{IMAGE}", f"%a = {trans('%x', f'f32{BLOCKS}', ctrl='%w')}"]
    nodes += [f"%b = {back('%a', f'f32{IMAGE}')}", f"%y = Relu(%b) -> f32{IMAGE}"]
    found = after(TransOpWithoutReshapeFusion(), *nodes, params=X, results="%y, %w")
    assert "y = Relu(x) -> f32[1,32,4,4]@NCHW after w" in found


@pytest.mark.parametrize(
    ("start", "steps", "end"),
    [
        (f"f32{IMAGE}", (cast("@@", f"i32{IMAGE}"), cast("@@", f"f32{IMAGE}")), f"f32{IMAGE}"),
        (f"f32{IMAGE}", (cast("@@", f"f16{IMAGE}", of_model=True), cast("@@", f"f32{IMAGE}")), f"f32{IMAGE}"),
        # spec case 51
        (f"f32{IMAGE}", (cast("@@", f"i32{IMAGE}"), cast("@@", f"bool{IMAGE}")), f"bool{IMAGE}"),
        # spec case 48: the type changes without a Cast
        (f"f16{BLOCKS}", (back("@@", f"f32{IMAGE}"), trans("@@", f"f16{BLOCKS}")), f"f16{BLOCKS}"),
        # a Transpose of equal formats means what its permutation says
        (
            "f32[1,4,4,4]@NCHW",
            (transpose("@@", "0,2,3,1", "f32[1,4,4,4]@NCHW"), transpose("@@", "0,2,3,1", "f32[1,4,4,4]@NCHW")),
            "f32[1,4,4,4]@NCHW",
        ),
        (
            "f32[-1,32,4,4]@NCHW",
            (
                trans("@@", "f32[-1,32,4,4]@NCHW | [-1,2,4,4,16]@NC1HWC0"),
                back("@@", "f32[-1,32,4,4]@NCHW"),
            ),
            "f32[-1,32,4,4]@NCHW",
        ),
        # a layout that is not looked at
        (
            f"f32{IMAGE} | [1,32,1,1,16,16]@FRACTAL_NZ",
            (
                trans("@@", f"f32{IMAGE}", "FRACTAL_NZ NCHW"),
                trans("@@", f"f32{IMAGE} | [1,32,1,1,16,16]@FRACTAL_NZ", "NCHW FRACTAL_NZ"),
            ),
            f"f32{IMAGE} | [1,32,1,1,16,16]@FRACTAL_NZ",
        ),
        # nothing would be gained
        (f"f32{IMAGE}", (cast("@@", f"f16{IMAGE}"), trans("@@", f"f16{BLOCKS}")), f"f16{BLOCKS}"),
        # the layout has another C0 in the other type
        (
            f"i8{IMAGE} | [1,1,4,4,32]@NC1HWC0",
            (
                back("@@", f"i8{IMAGE}"),
                cast("@@", f"f32{IMAGE}"),
                cast("@@", f"f16{IMAGE}"),
                trans("@@", f"f16{BLOCKS}"),
            ),
            f"f16{BLOCKS}",
        ),
    ],
    ids=["loss", "rounding", "bool", "type gap", "equal formats", "unknown dims", "FRACTAL_NZ", "no gain", "C0"],
)
def test_left_alone(start: str, steps: tuple[str, ...], end: str) -> None:
    assert len(after(TransOpWithoutReshapeFusion(), *chain(*steps, end=end), params=f"%x: {start}")) == len(steps) + 2


def test_an_input_taken_for_another_type_is_left_alone() -> None:
    """Spec case 49."""
    nodes = chain(cast("@@", f"f32{IMAGE}"), cast("@@", f"f16{IMAGE}"), end=f"f16{IMAGE}")
    graph = graph_of(*nodes, params=f"%x: f16{IMAGE}")
    graph.nodes_of_type("Cast")[0].input_descs[0].data_type = DataType.DT_BOOL
    before = shown(graph)
    assert not TransOpWithoutReshapeFusion().run(graph, session())
    assert shown(graph) == before


@pytest.mark.parametrize(("count", "is_left"), [(MAX_LINKS, False), (MAX_LINKS + 2, True)])
def test_ways_are_followed_up_to_a_length(count: int, is_left: bool) -> None:
    names = ["x", *(f"n{i}" for i in range(count))]
    types = [f"f16{IMAGE}", f"f32{IMAGE}"]
    nodes = [f"%{names[i + 1]} = {cast('%' + names[i], types[i % 2])}" for i in range(count)]
    found = after(TransOpWithoutReshapeFusion(), *nodes, f"%y = Relu(%{names[-1]}) -> f32{IMAGE}", params=X)
    assert (len(found) > 2) is is_left


# -- same-transdata-breadth-fusion -------------------------------------------------------------------------------------
def behind_casts(*types: str) -> list[str]:
    nodes = []
    for i, dtype in enumerate(types):
        source = "%x"
        if dtype != "f32":
            source = f"%c{i}"
            nodes.append(f"%c{i} = {cast('%x', f'{dtype}{IMAGE}')}")
        nodes += [f"%t{i} = {trans(source, f'{dtype}{BLOCKS}')}", f"%y{i} = Relu(%t{i}) -> {dtype}{BLOCKS}"]
    return nodes


def test_one_trans_data_stays_in_front_of_the_casts() -> None:
    found = after(SameTransdataBreadthFusion(), *behind_casts("f16", "bf16"), params=X, results="%y0, %y1")
    assert sorted(found) == [
        "NetOutput(y0, y1)",
        "c0 = Cast(x_0_TransData) -> f16[1,2,4,4,16]@NC1HWC0",
        "c1 = Cast(x_0_TransData) -> bf16[1,2,4,4,16]@NC1HWC0",
        "x_0_TransData = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "y0 = Relu(c0) -> f16[1,2,4,4,16]@NC1HWC0",
        "y1 = Relu(c1) -> bf16[1,2,4,4,16]@NC1HWC0",
    ]


def test_one_without_a_cast_is_taken() -> None:
    found = after(SameTransdataBreadthFusion(), *behind_casts("f16", "f32"), params=X, results="%y0, %y1")
    assert sorted(found) == [
        "NetOutput(y0, y1)",
        "c0 = Cast(t1) -> f16[1,2,4,4,16]@NC1HWC0",
        "t1 = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0",
        "y0 = Relu(c0) -> f16[1,2,4,4,16]@NC1HWC0",
        "y1 = Relu(t1) -> f32[1,2,4,4,16]@NC1HWC0",
    ]


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        (behind_casts("f16", "f16"), 7),
        (behind_casts("f16"), 4),
        (behind_casts("f16", "i32"), 7),
        (
            [
                n.replace(" -> f16[1,32,4,4]@NCHW", " ctrl(%y0) -> f16[1,32,4,4]@NCHW", n.startswith("%c"))
                for n in behind_casts("f32", "f16")
            ],
            6,
        ),
        (
            [
                f"%a = {trans('%x', f'f32{BLOCKS}')}",
                f"%c = {cast('%x', f'i8{IMAGE}')}",
                f"%b = {trans('%c', f'i8{IMAGE} | [1,1,4,4,32]@NC1HWC0')}",
            ],
            4,
        ),
    ],
    ids=["one type", "one way", "loss", "waiting", "C0"],
)
def test_ways_that_are_left_alone(nodes: list[str], count: int) -> None:
    ends = [n.split(" ")[0] for n in nodes if not n.startswith(("%c", "%t"))]
    assert len(after(SameTransdataBreadthFusion(), *nodes, params=X, results=", ".join(ends))) == count


def test_a_cast_that_others_read_is_left_alone() -> None:
    nodes = behind_casts("f16", "bf16")
    assert len(after(SameTransdataBreadthFusion(), *nodes, params=X, results="%y0, %y1, %c0")) == 7
