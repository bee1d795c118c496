"""Loop IR: views become offsets and strides of loads; what has no such form is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.ascir import AscGraph
from ge.graph import DataType, Graph, NodeOut, TensorDesc
from passes.lowering.emission import emit
from passes.lowering.kernel_box import FuseType, KernelBox, Realization
from passes.lowering.loop_builder import LoopBuilder
from passes.lowering.loop_ir import LoopOp
from passes.lowering.refusal import Refusal, Rule
from tests.passes.lowering.asc_numpy import run_kernel

Build = Callable[[LoopBuilder, LoopOp], LoopOp]


class Bench:
    """A graph with one input, and a builder for expressions over it."""

    def __init__(self, dims: list[int], platform: str = "host", dtype: DataType = DataType.DT_FLOAT) -> None:
        self.graph = Graph("bench")
        self.dtype = dtype
        self.x = self.tensor("x", dims)
        self.boxes: dict[NodeOut, KernelBox] = {}
        self.loops = LoopBuilder(platform, self.boxes.get)
        self.loops.origin = "bench"

    def tensor(self, name: str, dims: list[int]) -> NodeOut:
        return self.graph.add_node("Data", name, output_descs=[TensorDesc(dims, data_type=self.dtype)]).output()

    def emit(self, value: LoopOp) -> AscGraph:
        target = self.tensor("result", list(value.dims))
        return emit("kernel", self.loops.store(target, value)).graph


def views(graph: AscGraph) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Repeats, strides and offset of every load."""
    found = []
    for op in graph.ops:
        if op.type == "Load":
            data = graph.ops[op.inputs[0]].tensor
            found.append((data.repeats, data.strides, op.attr("offset")))
    return found


@pytest.mark.parametrize(
    ("dims", "build", "expected"),
    [
        ([4, 6], lambda b, x: x, ((4, 6), (6, 1), 0)),
        ([4, 6], lambda b, x: b.permute(x, [1, 0]), ((6, 4), (1, 6), 0)),
        ([6], lambda b, x: b.broadcast(x, [4, 6]), ((1, 6), (0, 1), 0)),
        ([4, 1], lambda b, x: b.broadcast(x, [2, 4, 6]), ((1, 4, 1), (0, 1, 0), 0)),
        ([4, 1, 6], lambda b, x: b.squeeze(x, -2), ((4, 6), (6, 1), 0)),
        ([4, 6], lambda b, x: b.unsqueeze(x, -1), ((4, 6, 1), (6, 1, 0), 0)),
        ([4, 6], lambda b, x: b.reshape(x, [2, 2, 6]), ((2, 2, 6), (12, 6, 1), 0)),
        ([2, 2, 6], lambda b, x: b.reshape(x, [4, 6]), ((4, 6), (6, 1), 0)),
        ([2, 2, 6], lambda b, x: b.reshape(x, [2, 12]), ((2, 12), (12, 1), 0)),
        ([1, 4, 1, 6], lambda b, x: b.reshape(x, [4, 6, 1, 1]), ((4, 6, 1, 1), (6, 1, 0, 0), 0)),
        ([4, 6], lambda b, x: b.strided_slice(x, [1, 2], [2, 1], [2, 3]), ((2, 3), (12, 1), 8)),
        ([4, 6], lambda b, x: b.strided_slice(b.permute(x, [1, 0]), [1, 0], [2, 1], [2, 4]), ((2, 4), (2, 6), 1)),
        ([4, 6], lambda b, x: b.permute(b.reshape(x, [4, 2, 3]), [2, 0, 1]), ((3, 4, 2), (1, 6, 3), 0)),
        ([1, 4], lambda b, x: b.transpose(x, [1, 0]), ((4, 1), (1, 0), 0)),
    ],
)
def test_views_are_strides_of_loads(dims: list[int], build: Build, expected: object) -> None:
    bench = Bench(dims)
    graph = bench.emit(build(bench.loops, bench.loops.load(bench.x)))
    assert views(graph) == [expected]
    assert graph.types() == []


def test_one_expression_through_two_views_is_two_loads() -> None:
    bench = Bench([4, 4])
    x = bench.loops.functor("Exp", bench.loops.load(bench.x))
    graph = bench.emit(bench.loops.functor("Add", x, bench.loops.permute(x, [1, 0])))
    assert views(graph) == [((4, 4), (4, 1), 0), ((4, 4), (1, 4), 0)]
    assert graph.types() == ["Exp", "Exp", "Add"]


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda b, x: b.broadcast(x, [4, 5]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.broadcast(x, [6]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.reshape(x, [3, 8]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.squeeze(x, 0), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.permute(x, [0, 0]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.strided_slice(x, [1, 0], [1, 1], [4, 6]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.strided_slice(x, [0, 0], [-1, 1], [2, 6]), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.functor("BitwiseAnd", x, x), Rule.ELEMENT_TYPE),
        (lambda b, x: b.functor("Add", x, b.scalar(1, DataType.DT_INT32)), Rule.ELEMENT_TYPE),
        (lambda b, x: b.functor("Add", x, b.permute(x, [1, 0])), Rule.NOT_EXPRESSIBLE),
        (lambda b, x: b.cast(x, DataType.DT_STRING), Rule.ELEMENT_TYPE),
    ],
)
def test_what_has_no_meaning_is_refused(build: Build, rule: Rule) -> None:
    bench = Bench([4, 6])
    with pytest.raises(Refusal) as caught:
        build(bench.loops, bench.loops.load(bench.x))
    assert caught.value.rule is rule


def test_a_dim_joined_from_dims_that_lie_apart_is_not_emitted() -> None:
    bench = Bench([4, 6])
    value = bench.loops.reshape(bench.loops.permute(bench.loops.load(bench.x), [1, 0]), [24])
    with pytest.raises(Refusal, match="its parts lie apart"):
        bench.emit(value)


@pytest.mark.parametrize(
    ("functor", "platform", "refused"),
    [("Exp", "2201", "bf16"), ("Sin", "3510", "not an operator of CANN's kernels"), ("Acos", "2201", "f32")],
)
def test_platforms_differ_in_what_they_take(functor: str, platform: str, refused: str) -> None:
    dtype = DataType.DT_BF16 if refused == "bf16" else DataType.DT_FLOAT
    bench = Bench([4], platform, dtype)
    with pytest.raises(Refusal, match=refused):
        bench.loops.functor(functor, bench.loops.load(bench.x))


def test_counts_follow_paths() -> None:
    bench = Bench([4])
    x = bench.loops.load(bench.x)
    twice = bench.loops.functor("Mul", x, x)
    four = bench.loops.functor("Mul", twice, twice)
    assert (twice.loads, twice.ops) == (2, 1)
    assert (four.loads, four.ops) == (4, 3)
    assert len(list(four.walk())) == 3


def test_boxes_hand_out_their_expression_until_they_are_persistent() -> None:
    bench = Bench([4])
    result = bench.tensor("result", [4])
    box = bench.boxes[result] = KernelBox(result, bench.loops.store(result, bench.loops.load(bench.x)))
    assert bench.loops.load(result) is box.root
    assert box.realize(persistent=False)
    assert (box.is_realized, box.realization) == (True, Realization.MARKED)
    assert bench.loops.load(result) is box.root
    assert box.realize()
    assert not box.realize()
    loaded = bench.loops.load(result)
    assert (loaded.type, loaded.anchor) == ("Load", result)


def test_extern_boxes_are_loaded_and_never_realized() -> None:
    bench = Bench([4])
    box = bench.boxes[bench.x] = KernelBox(bench.x)
    assert (box.is_extern, box.fuse_type, box.realize()) == (True, FuseType.EXTERN, False)
    assert bench.loops.load(bench.x).type == "Load"


@pytest.mark.parametrize(
    ("build", "fuse_type"),
    [
        (lambda b, x: b.functor("Abs", x), FuseType.POINTWISE),
        (lambda b, x: b.reduce_then_broadcast("SUM", b.functor("Abs", x), 1), FuseType.REDUCE),
        (lambda b, x: b.functor("Abs", b.strided_slice(x, [0, 0], [1, 1], [4, 6])), FuseType.SLICE),
    ],
)
def test_fuse_types(build: Build, fuse_type: FuseType) -> None:
    bench = Bench([4, 6])
    result = bench.tensor("result", [4, 6])
    box = KernelBox(result, bench.loops.store(result, build(bench.loops, bench.loops.load(bench.x))))
    assert box.fuse_type is fuse_type


@given(st.data())
def test_chains_of_views_read_what_numpy_reads(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    bench = Bench(dims)
    memory = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    value, expected = bench.loops.load(bench.x), memory
    for _ in range(data.draw(st.integers(1, 5))):
        value, expected = data.draw(one_view(bench.loops, value, expected))
    try:
        graph = bench.emit(bench.loops.functor("Neg", value))
    except Refusal as refusal:
        if refusal.rule is Rule.SCALAR_KERNEL or "divided" in refusal.detail:
            return
        raise
    [found] = run_kernel(graph, [memory])
    np.testing.assert_array_equal(found, -expected)


@st.composite
def one_view(draw: st.DrawFn, loops: LoopBuilder, value: LoopOp, array: np.ndarray) -> tuple[LoopOp, np.ndarray]:
    rank = len(value.dims)
    kind = draw(st.sampled_from(["permute", "broadcast", "unsqueeze", "slice", "divide", "join"]))
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return loops.permute(value, order), array.transpose(order)
    if kind == "broadcast":
        wanted = [draw(st.integers(2, 3)) if d == 1 else d for d in value.dims]
        wanted = [2] * draw(st.integers(0, 1)) + wanted
        return loops.broadcast(value, wanted), np.broadcast_to(array, wanted)
    if kind == "unsqueeze":
        place = draw(st.integers(0, rank))
        return loops.unsqueeze(value, place), np.expand_dims(array, place)
    if kind == "slice":
        begin = [draw(st.integers(0, d - 1)) for d in value.dims]
        step = [draw(st.integers(1, 2)) for _ in value.dims]
        taken = array[tuple(slice(b, None, s) for b, s in zip(begin, step, strict=True))]
        return loops.strided_slice(value, begin, step, taken.shape), taken
    dims = list(value.dims)
    place = draw(st.integers(0, max(rank - 1, 0)))
    if kind == "divide" and dims[place] == 4:
        dims[place : place + 1] = [2, 2]
    elif kind == "join" and place + 1 < rank:
        dims[place : place + 2] = [dims[place] * dims[place + 1]]
    return loops.reshape(value, dims), array.reshape(dims)
