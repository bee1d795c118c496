"""The text of an AscGraph: what is printed is read, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.ascir import (
    MAX_TEXT_BYTES,
    OP_TYPES,
    AscGraph,
    AscGraphFault,
    AscOp,
    AscTensor,
    AscTextError,
    ComputeType,
    Schedule,
    parse_asc_graph,
    print_asc_graph,
)
from ge.graph import DataType

F32, F16, U8, I32 = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_UINT8, DataType.DT_INT32

CHAIN = """\
ascgraph 1 "autofuse_pointwise_0_Abs_Exp" [4,8] {
  %0 = Data {index=0} -> f32[4,8]:[8,1]
  %1 = Load(%0) -> f32[4,8]:[8,1] from "abs_1"
  %2 = Abs(%1) -> f32[4,8]:[8,1] from "abs_1"
  %3 = Exp(%2) -> f32[4,8]:[8,1] from "exp_1", "exp_2"
  %4 = Store(%3) -> f32[4,8]:[8,1]
  %5 = Output(%4) {index=0}
  schedule loops=[[0,1]] x=[] y=[0] r=[] n=[] tiles=[32] block=0
}
"""

SOFTMAX_OF_A_SLICE = """\
ascgraph 1 "s" [4,8] {
  %0 = Data {index=0} -> f16[4,8]:[32,2]
  %1 = Load(%0) {offset=3} -> f16[4,8]:[8,1]
  %2 = Max(%1) {guards=[[0,1,7]]} -> f16[4,1]:[1,0]
  %3 = Broadcast(%2) -> f16[4,8]:[8,1]
  %4 = Sub(%1, %3) -> f16[4,8]:[8,1]
  %5 = LeakyRelu(%4) {negative_slope=1e-05} -> f16[4,8]:[8,1]
  %6 = Scalar {value="-1.5e+00"} -> f16[1,1]:[0,0]
  %7 = Mul(%5, %6) -> f16[4,8]:[8,1]
  %8 = Store(%7) {guards=[[0,1,7]]} -> f16[4,8]:[8,1]
  %9 = Output(%8) {index=0}
}
"""

MOVEMENT = """\
ascgraph 1 "m" [2,5] {
  %0 = Data {index=0} -> f32[2,2]:[2,1]
  %1 = Load(%0) -> f32[2,2]:[2,1]
  %2 = Data {index=1} -> f32[2,3]:[3,1]
  %3 = Load(%2) -> f32[2,3]:[3,1]
  %4 = Concat(%1, %3) {axis=1} -> f32[2,5]:[5,1]
  %5 = Store(%4) -> f32[2,5]:[5,1]
  %6 = Output(%5) {index=0}
  %7 = Data {index=2} -> i32[4]:[1]
  %8 = Gather(%0, %7) {axis=1, negative_index_support=false} -> f32[2,4]:[4,1]
  %9 = Transpose(%8) {order=[1,0]} -> f32[4,2]:[2,1]
  %10 = Split(%9) {axis=0, gid=7, index=1, start=1} -> f32[3,2]:[2,1]
  %11 = Store(%10) -> f32[3,2]:[2,1]
  %12 = Output(%11) {index=1}
}
"""


@pytest.mark.parametrize("text", [CHAIN, SOFTMAX_OF_A_SLICE, MOVEMENT])
def test_text_is_read_and_printed_unchanged(text: str) -> None:
    assert print_asc_graph(parse_asc_graph(text)) == text


def test_a_graph_answers_what_its_readers_ask() -> None:
    graph = parse_asc_graph(CHAIN)
    assert graph.sizes == (4, 8)
    assert (graph.inputs, graph.outputs) == ((0,), (4,))
    assert graph.types() == ["Abs", "Exp"]
    assert graph.op_names()[1] == "autofuse_pointwise_0_Abs_Exp/Load_0"
    assert graph.ops[2].compute_type is ComputeType.ELEWISE
    assert graph.schedule is not None
    assert graph.schedule.loops == ((0, 1),)


def test_spans_tell_how_much_memory_is_within_reach() -> None:
    graph = parse_asc_graph(SOFTMAX_OF_A_SLICE)
    assert graph.input_span(0) == 3 + 3 * 32 + 7 * 2 + 1
    assert graph.output_span(0) == 32


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ascgraph 1", "ascgraph 2", "version 2 is not known"),
        ("Abs(%1)", "Eval(%1)", "there is no operator of type Eval"),
        ("Abs(%1)", "Abs(%3)", "reads what does not stand before it"),
        ("Abs(%1)", "Abs(%0)", "reads %0, which is a Data"),
        ("Abs(%1)", "Abs(%1, %1)", "has 2 inputs, takes 1 to 1"),
        ("Abs(%1)", "Abs", "has 0 inputs"),
        ("Load(%0)", "Load(%0) {offset=-1}", "offset -1 is out of range"),
        ("Load(%0)", "Load(%0) {offset=0}", "has its default"),
        ("Load(%0)", "Load(%0) {axis=0}", "there is no attribute axis"),
        ("Load(%0)", 'Load(%0) {offset="1"}', "attribute offset is no i"),
        ("{index=0} -> f32[4,8]:[8,1]", "{index=0} -> f32[4,8]:[8,-1]", "strides [8, -1] are out of range"),
        ("{index=0} -> f32[4,8]:[8,1]", "{index=0} -> f32[4,8]:[281474976710656,1]", "more than 2^48"),
        ("{index=0} -> f32[4,8]:[8,1]", "{index=0} -> f16[4,8]:[8,1]", "input 0 is DT_FLOAT16, the output DT_FLOAT"),
        ("{index=0} -> f32[4,8]:[8,1]", "{index=0} -> string[4,8]:[8,1]", "no element type of a kernel"),
        ("{index=0} -> f32[4,8]:[8,1]", "{index=1} -> f32[4,8]:[8,1]", "numbered [1], not 0, 1, ..."),
        ("{index=0} -> f32[4,8]:[8,1]", "-> f32[4,8]:[8,1]", "attribute index is missing"),
        ("Abs(%1) -> f32[4,8]:[8,1]", "Abs(%1) -> f32[4,1]:[1,0]", "has repeats [4, 8], the output [4, 1]"),
        ("Abs(%1) -> f32[4,8]:[8,1]", "Abs(%1) -> f32[4,9]:[9,1]", "do not fit the axes [4, 8]"),
        ("Abs(%1) -> f32[4,8]:[8,1]", "Abs(%1)", "exactly an Output has no tensor"),
        ("[4,8] {", "[4,-8] {", "-8 is no size of an axis"),
        ("[4,8] {", "[4294967296,4294967296] {", "more than 2^48 elements"),
        ("Output(%4)", "Output(%3)", "reads a Store"),
        ("%2 = Abs", "%7 = Abs", "expected %2"),
        ("loops=[[0,1]]", "loops=[[1,0]]", "the loops of the schedule hold the axes [1, 0]"),
        ("tiles=[32]", "tiles=[33]", "a tile of 33 steps in a loop of 32"),
        ("y=[0]", "y=[]", "the tiling groups hold"),
        ("block=0", "block=1", "no loop 1"),
        ('from "abs_1"', 'from ""', "an origin is a name"),
        ("}\n", "} }", "expected the end of the text"),
        ("Exp(%2)", "Exp(%2) {x=__import__}", "unexpected"),
        ("Exp(%2)", "Exp(%2) {x=nan}", "is no value"),
        ("Exp(%2)", "Exp(%99999999999999999999999)", "unexpected"),
    ],
)
def test_what_is_not_a_legal_graph_is_refused(old: str, new: str, reason: str) -> None:
    assert old in CHAIN
    with pytest.raises(AscTextError) as caught:
        parse_asc_graph(CHAIN.replace(old, new, 1))
    assert reason in str(caught.value)


def test_errors_say_where() -> None:
    with pytest.raises(AscTextError, match=r"line 3, column 8: there is no operator of type Lod"):
        parse_asc_graph(CHAIN.replace("Load", "Lod"))


@pytest.mark.parametrize(
    "text",
    ["", "ascgraph", "{", "\0", '"', "[" * 100_000, "ascgraph 1 " + "[" * 1000, CHAIN[:-2], CHAIN * 2, "(" * 1000],
)
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(AscTextError):
        parse_asc_graph(text)


def test_text_above_the_limit_is_not_looked_at() -> None:
    with pytest.raises(AscTextError, match=f"more than {MAX_TEXT_BYTES} bytes"):
        parse_asc_graph(CHAIN + " " * MAX_TEXT_BYTES)


@given(st.data())
def test_damaged_text_gives_a_graph_or_a_reason(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([CHAIN, SOFTMAX_OF_A_SLICE, MOVEMENT]))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 5)))
    damaged = text[:start] + data.draw(st.text('0123456789[]{}(),=:%->. "\\aexLoad\ud800', max_size=4)) + text[end:]
    try:
        graph = parse_asc_graph(damaged)
    except AscTextError:
        return
    assert parse_asc_graph(print_asc_graph(graph)) == graph


def test_only_legal_graphs_are_printed() -> None:
    graph = parse_asc_graph(CHAIN)
    broken = replace(graph, ops=(*graph.ops, AscOp("Exp", (99,), (), AscTensor.contiguous(F32, (4, 8)))))
    with pytest.raises(AscGraphFault, match="reads what does not stand before it"):
        print_asc_graph(broken)


ELEMENTWISE = sorted(name for name, op in OP_TYPES.items() if op.compute is ComputeType.ELEWISE)
REDUCTIONS = sorted(name for name, op in OP_TYPES.items() if op.compute is ComputeType.REDUCE)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@st.composite
def graphs(draw: st.DrawFn) -> AscGraph:
    """Legal graphs of loads, numbers, elementwise operators, reductions and broadcasts."""
    sizes = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    whole = AscTensor.contiguous(F32, sizes)
    ops: list[AscOp] = []
    for index in range(draw(st.integers(1, 3))):
        view = tuple(draw(st.sampled_from([1, size])) for size in sizes)
        strides = tuple(0 if r == 1 else draw(st.integers(0, 50)) for r in view)
        ops.append(AscOp.of("Data", output=AscTensor(F32, view, strides), index=index))
        ops.append(
            AscOp.of("Load", [len(ops) - 1], whole, draw(st.lists(names, max_size=2)), offset=draw(st.integers(0, 9)))
        )
    values = [k for k, op in enumerate(ops) if op.type == "Load"]
    for _ in range(draw(st.integers(0, 6))):
        made = draw(st.sampled_from(["number", "reduce", "elementwise"]))
        if made == "number":
            number = draw(st.floats(width=32).map(lambda v: f"{v:.6e}" if abs(v) < float("inf") else "inf"))
            ops.append(AscOp.of("Scalar", output=AscTensor(F32, (1,) * len(sizes), (0,) * len(sizes)), value=number))
        elif made == "reduce":
            left = tuple(draw(st.sampled_from([1, size])) for size in sizes)
            guards = draw(st.lists(st.tuples(*[st.integers(0, 99)] * (len(sizes) + 1)), max_size=2).map(tuple))
            source = draw(st.sampled_from([k for k in values if ops[k].tensor.repeats == sizes]))
            ops.append(
                AscOp.of(draw(st.sampled_from(REDUCTIONS)), [source], AscTensor.contiguous(F32, left), guards=guards)
            )
            ops.append(AscOp.of("Broadcast", [len(ops) - 1], whole))
        else:
            ops.append(draw(elementwise(ops, values, whole)))
        values.append(len(ops) - 1)
    ops.append(AscOp.of("Store", [values[0]], whole))
    ops.append(AscOp.of("Output", [len(ops) - 1], index=0))
    return AscGraph.of(draw(names), sizes, ops, draw(st.none() | st.just(schedule_of(sizes))))


@st.composite
def elementwise(draw: st.DrawFn, ops: list[AscOp], values: list[int], whole: AscTensor) -> AscOp:
    types = [name for name in ELEMENTWISE if name not in ("Where", "Isnan", "IsFinite", "IsInf")]
    name = draw(
        st.sampled_from([t for t in types if not t.startswith(("Logical", "Eq", "Ne", "G", "L")) or t == "Gelu"])
    )
    inputs = [draw(st.sampled_from(values)) for _ in range(OP_TYPES[name].least)]
    attrs = {attr: draw(st.floats(allow_nan=False)) for attr in OP_TYPES[name].attrs}
    return AscOp.of(name, inputs, whole, **attrs)


def schedule_of(sizes: tuple[int, ...]) -> Schedule:
    count = len(sizes)
    loops = tuple((k,) for k in range(count))
    return Schedule(loops, y=tuple(range(count)), tiles=(1,) * count, block=count - 1)


@given(graphs())
def test_what_is_printed_is_read_back(graph: AscGraph) -> None:
    text = print_asc_graph(graph)
    assert parse_asc_graph(text) == graph
    assert text.isascii()


def test_every_operator_says_what_it_means() -> None:
    for name, op in OP_TYPES.items():
        assert op.name == name
        assert op.meaning
        assert 0 <= op.least <= op.most


def test_operators_that_are_missing_in_cann_are_marked() -> None:
    """The types that CANN's AscIR emits (spec of lowering, section 1) are the others."""
    emitted = (
        "Abs Acos Asin Erf Exp IsFinite Isnan Ln LogicalNot Neg Reciprocal Relu Rsqrt Sigmoid Sign Sqrt Tanh Gelu Add "
        "Sub Mul Div TrueDiv FloorDiv Pow Minimum Maximum Eq Ne Ge Gt Le Lt LogicalAnd LogicalOr BitwiseAnd "
        "ClipByValue Where Cast LeakyRelu Axpy"
    )
    assert {name for name in ELEMENTWISE if not OP_TYPES[name].is_ours} == set(emitted.split())
