"""Random graphs compute the same before and after lowering, under every profile. Whole numbers do not round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.graph import DataType, Graph, NodeOut, Tensor, TensorDesc
from ge.graph.types import numpy_dtype
from ge.graph_inference import infer_graph
from ge.verify import verify
from passes.lowering.lower_model import lower_model
from passes.lowering.strategy import LOOP_PASSES, LoweringStrategy, profile
from tests.passes.lowering.asc_numpy import Array, run_graph
from tests.passes.lowering.lowered import HOST

F32, F16, I32, BOOL = DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_INT32, DataType.DT_BOOL
STRATEGIES = {
    "host": HOST,
    "host, nothing given back": replace(HOST, disables_lifting=True),
    "host, computed again": replace(HOST, recomputation_threshold=3, disables_lifting=True),
    "A2": replace(profile("cann"), passes=LOOP_PASSES, disables_lifting=True),
    "A5": replace(profile("cann", "Ascend950PR_9599"), passes=LOOP_PASSES),
    "A2, small kernels": replace(profile("cann"), passes=LOOP_PASSES, max_loop_ops=3, recomputation_threshold=2),
}


class Network:
    """A graph that grows by one operator at a time, on tensors that it has."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.graph = Graph("random")
        self.tensors: list[NodeOut] = []
        rank = draw(st.sampled_from([3, 3, 2, 4, 1, 0]))
        shape = [draw(st.sampled_from([2, 3, 4, 5, 1, 0])) for _ in range(rank)]
        for index in range(draw(st.integers(1, 3))):
            dims = [draw(st.sampled_from([d, d, d, 1])) for d in shape]
            desc = TensorDesc(dims, data_type=draw(st.sampled_from([F32, F32, F16, I32, BOOL])))
            self.tensors.append(
                self.graph.add_node("Data", f"x{index}", attrs={"index": index}, output_descs=[desc]).output()
            )

    def add(self, kind: str, *inputs: NodeOut, outputs: int = 1, **attrs: object) -> None:
        name = self.graph.unique_name(kind.lower())
        node = self.graph.add_node(kind, name, inputs, attrs, outputs)
        infer_graph(self.graph)
        if all(out.desc.shape.elements <= 4000 and len(out.desc.shape) <= 5 for out in node.outputs()):
            self.tensors += node.outputs()
        else:
            self.graph.remove_node(node)

    def const(self, *values: int) -> NodeOut:
        return self.graph.add_const(self.graph.unique_name("c"), Tensor.of(np.array(values, np.int32)))

    def grow(self) -> None:
        x = self.draw(st.sampled_from(self.tensors[:-4:-1]))
        dtype, dims = x.desc.data_type, list(x.desc.shape)
        kinds = (
            ["move", "move", "reduce", "join"]
            if dtype is BOOL
            else ["unary", "binary", "binary", "move", "reduce", "join"]
        )
        match self.draw(st.sampled_from(kinds)):
            case "unary":
                self.add(self.draw(st.sampled_from(["Abs", "Neg", "Relu", "Sign"])), x)
            case "binary":
                self.binary(x)
            case "move":
                self.move(x, dims)
            case "reduce":
                self.reduce(x, dims)
            case "join":
                self.join(x, dims)

    def binary(self, x: NodeOut) -> None:
        others = [t for t in self.tensors if t.desc.data_type is x.desc.data_type and fits(t, x)]
        y = self.draw(st.sampled_from(others))
        kind = self.draw(st.sampled_from(["Add", "Sub", "Maximum", "Minimum", "Less", "SelectV2"]))
        if kind != "SelectV2":
            self.add(kind, x, y)
            return
        truths = [t for t in self.tensors if t.desc.data_type is BOOL and fits(t, x) and fits(t, y)]
        if truths:
            self.add(kind, self.draw(st.sampled_from(truths)), x, y)

    def move(self, x: NodeOut, dims: list[int]) -> None:
        kind = self.draw(
            st.sampled_from(["TransposeD", "BroadcastTo", "Unsqueeze", "Squeeze", "Slice", "Cast", "Reshape"])
        )
        if kind == "TransposeD" and len(dims) > 1:
            self.add(kind, x, perm=self.draw(st.permutations(range(len(dims)))))
        elif kind == "BroadcastTo" and dims:
            self.add(kind, x, self.const(*(3 if d == 1 else d for d in dims)))
        elif kind == "Unsqueeze":
            self.add(kind, x, axes=[self.draw(st.integers(0, len(dims)))])
        elif kind == "Squeeze" and 1 in dims:
            self.add(kind, x, axis=[dims.index(1)])
        elif kind == "Slice" and dims and 0 not in dims:
            begin = [self.draw(st.integers(0, d - 1)) for d in dims]
            self.add(kind, x, self.const(*begin), self.const(*(d - b for d, b in zip(dims, begin, strict=True))))
        elif kind == "Cast":
            self.add(kind, x, dst_type=int(self.draw(st.sampled_from([F32, F16, I32]))))
        elif kind == "Reshape" and dims and 0 not in dims:
            self.add(kind, x, self.const(1, *dims))

    def reduce(self, x: NodeOut, dims: list[int]) -> None:
        if not dims or x.desc.data_type is BOOL:
            return
        axes = self.draw(st.lists(st.integers(0, len(dims) - 1), min_size=1, max_size=2, unique=True))
        keeps = self.draw(st.booleans())
        if self.draw(st.booleans()) or any(dims[axis] == 0 for axis in axes):
            self.add("ReduceSumD", x, axes=axes, keep_dims=keeps)
        else:
            self.add("ReduceMax", x, self.const(*axes), keep_dims=keeps)

    def join(self, x: NodeOut, dims: list[int]) -> None:
        if not dims:
            return
        axis = self.draw(st.integers(0, len(dims) - 1))
        if self.draw(st.booleans()) and dims[axis] % 2 == 0 and dims[axis]:
            self.add("SplitD", x, outputs=2, split_dim=axis, num_split=2)
        else:
            self.add("ConcatD", x, x, concat_dim=axis, N=2)


def fits(t: NodeOut, x: NodeOut) -> bool:
    pairs = zip(reversed(t.desc.shape), reversed(x.desc.shape), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    network = Network(draw)
    for _ in range(draw(st.integers(4, 14))):
        network.grow()
    graph = network.graph
    graph.outputs = [t for t in network.tensors if not t.node.consumers(t.index)]
    return graph


def whole_numbers(graph: Graph, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    found = {}
    for data in graph.data_nodes():
        desc = data.output_descs[0]
        found[data.name] = rng.integers(-3, 4, tuple(desc.shape)).astype(numpy_dtype(desc.data_type))
    return found


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=80)
@given(graph=networks(), seed=st.integers(0, 99))
def test_results_are_the_same(name: str, graph: Graph, seed: int) -> None:
    strategy: LoweringStrategy = STRATEGIES[name]
    feeds = whole_numbers(graph, seed)
    with np.errstate(all="ignore"):
        expected = run_graph(graph, feeds)
        lower_model(graph, strategy)
        verify(graph)
        found = run_graph(graph, feeds)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
