"""All passes over trans-ops in their order, on graphs at random: what is computed stays, and there is less to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ge.formats import AXES, lay_out, storage_fault
from ge.fusion_switches import FusionSwitches
from ge.graph import DataType, Format, Graph, Node, NodeOut, Tensor, TensorDesc
from ge.graph.types import FORMAT_TEXT, numpy_dtype
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.verify import verify
from passes.driver import Driver
from passes.format.trans_ops.stage_one import stage_one
from passes.format.trans_ops.trans_op import TRANS_OPS
from passes.prepare.add_net_output import AddNetOutput
from tests.passes.format.trans_ops.notation import BLOCKS, IMAGE, back, cast, trans
from tests.passes.format.trans_ops.rewritten import graph_of, session, shown

NCHW, NHWC, ND = Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_ND
TYPES = (DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16, DataType.DT_INT32)
LAYOUTS = (Format.FORMAT_NC1HWC0, Format.FORMAT_FRACTAL_NZ)
Array = NDArray[Any]


# -- graphs at random --------------------------------------------------------------------------------------------------
class Builder:
    """Adds operators that fit the tensors at hand."""

    def __init__(self) -> None:
        self.graph = Graph("g")
        self.tensors = [self.add("Data", [], TensorDesc([2, 18, 1, 3], NCHW), index=0)]

    def add(self, type: str, sources: list[NodeOut], desc: TensorDesc, **attrs: Any) -> NodeOut:
        name = f"{type}{len(self.graph)}"
        return self.graph.add_node(type, name, sources, attrs, output_descs=[desc]).output()

    def extend(self, source: NodeOut, choice: int) -> None:
        made = self._extended(source, choice)
        if made is not None:
            self.tensors.append(made)

    def _extended(self, source: NodeOut, choice: int) -> NodeOut | None:
        desc = source.desc.copy()
        kind, choice = choice % 6, choice // 6
        is_plain = desc.format == desc.origin_format
        if kind == 0:
            desc.data_type = TYPES[choice % len(TYPES)]
            return self.add("Cast", [source], desc, dst_type=int(desc.data_type))
        if kind in (1, 2):
            return self._moved(source, desc, choice)
        if kind == 3 and is_plain and desc.format in (NCHW, NHWC):
            return self._transposed(source, desc)
        if kind == 4 and is_plain:
            return self._reshaped(source, desc)
        return self.add("Neg", [source], desc) if kind == 5 else None

    def _moved(self, source: NodeOut, desc: TensorDesc, choice: int) -> NodeOut | None:
        is_plain = desc.format == desc.origin_format
        target = desc.origin_format if not is_plain else LAYOUTS[choice % 2] if desc.format != ND else LAYOUTS[1]
        before = desc.format
        lay_out(desc, target)
        return self.add("TransData", [source], desc, src_format=FORMAT_TEXT[before], dst_format=FORMAT_TEXT[target])

    def _transposed(self, source: NodeOut, desc: TensorDesc) -> NodeOut:
        perm, named = ([0, 2, 3, 1], NHWC) if desc.format == NCHW else ([0, 3, 1, 2], NCHW)
        made = TensorDesc([desc.shape[axis] for axis in perm], named, desc.data_type)
        return self.add("TransposeD", [source], made, perm=perm)

    def _reshaped(self, source: NodeOut, desc: TensorDesc) -> NodeOut:
        dims = [2, 54] if len(desc.shape) == 4 else [2, 18, 1, 3]
        made = TensorDesc(dims, ND if len(dims) == 2 else NCHW, desc.data_type)
        shape = self.graph.add_const(f"dims{len(self.graph)}", Tensor.of(np.array(dims, np.int64)))
        return self.add("Reshape", [source, shape], made)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    builder = Builder()
    for _ in range(draw(st.integers(1, 16))):
        # mostly from the last tensor: long runs
        place = draw(st.sampled_from([-1, -1, -1, 0, draw(st.integers(0, len(builder.tensors) - 1))]))
        builder.extend(builder.tensors[place], draw(st.integers(0, 47)))
    unread = [t for t in builder.tensors if not t.node.n_consumers()]
    # results are made by operators, in origin layouts, as those of models are
    for tensor in unread:
        builder.tensors.append(builder.add("Neg", [tensor], tensor.desc.copy()))
    builder.graph.outputs = [t for t in builder.tensors if not t.node.n_consumers()]
    AddNetOutput().run(builder.graph, session())
    return builder.graph


# -- what a graph computes, by what its operators mean in the origin view ----------------------------------------------
def results(graph: Graph) -> list[Array]:
    values: dict[NodeOut, Array] = {}
    for node in graph.topological_order():
        if node.output_descs:
            values[node.output()] = _value(node, [values[s] for s in node.inputs if s is not None])
    return [values[out] for out in graph.outputs]


def _value(node: Node, inputs: list[Array]) -> Array:
    made = node.output_descs[0]
    if node.type == "Data":  # small whole numbers: no type rounds them
        return np.arange(-54, 54).reshape(tuple(made.origin_shape)).astype(np.float32)
    if node.type == "Const":
        return node.attrs["value"].array
    if node.type == "Neg":
        return -inputs[0]
    if node.type == "Cast":
        return inputs[0].astype(numpy_dtype(made.data_type))
    if node.type == "TransposeD":
        return inputs[0].transpose(node.attrs["perm"])
    if node.type == "TransData":
        axes, wanted = (AXES.get(f, "") for f in (node.input_descs[0].origin_format, made.origin_format))
        return inputs[0] if axes == wanted else inputs[0].transpose([axes.index(axis) for axis in wanted])
    if node.type in ("Reshape", "Squeeze", "Unsqueeze"):
        return inputs[0].reshape(tuple(made.origin_shape))
    raise AssertionError(node.type)


def count(graph: Graph, *types: str) -> int:
    return len(graph.nodes_of_type(*types))


@given(graphs())
def test_what_is_computed_stays(graph: Graph) -> None:
    before, types = results(graph), [out.desc.layout for out in graph.outputs]
    numbers = {kind: count(graph, *kind) for kind in (("TransData",), ("Cast",), ("TransposeD",), tuple(TRANS_OPS))}
    for step in stage_one():
        if not isinstance(step, str):
            step.run(graph, session())
            verify(graph, with_layouts=False)
            assert not [d for n in graph for d in n.output_descs if storage_fault(d)], step.name
    assert [out.desc.layout for out in graph.outputs] == types
    for found, expected in zip(results(graph), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    squeezes = 2 * count(graph, "Squeeze")
    for kind, number in numbers.items():
        assert count(graph, *kind) <= number + (squeezes if len(kind) > 1 else 0)


def orders(graph: Graph) -> set[tuple[str, str]]:
    """Pairs of operators that are no trans-ops of which the second cannot run before the first."""
    before: dict[Node, set[str]] = {}
    found = set()
    for node in graph.topological_order():
        before[node] = set().union(*({p.name} | before[p] for p in node.predecessors()))
        if node.type == "Neg":
            found |= {(name, node.name) for name in before[node] if name.startswith("Neg")}
    return found


@given(graphs())
def test_who_waited_still_waits(graph: Graph) -> None:
    order = graph.topological_order()
    for first, last in zip(order[::3], order[2::3], strict=False):
        if last.type not in ("Data", "Const", "NetOutput") and first.type != "NetOutput":
            graph.add_control(first, last)
    before, needed = results(graph), orders(graph)
    for step in stage_one():
        if not isinstance(step, str):
            step.run(graph, session())
            assert needed <= orders(graph), step.name
    for found, expected in zip(results(graph), before, strict=True):
        np.testing.assert_array_equal(found, expected)


# -- switches, time ----------------------------------------------------------------------------------------------------
PAIR = [f"%a = {trans('%x', f'f32{BLOCKS}')}", f"%b = {back('%a', f'f32{IMAGE}')}", f"%y = Relu(%b) -> f32{IMAGE}"]


@pytest.mark.parametrize("is_level_one", [False, True])
def test_level_one_does_without(is_level_one: bool) -> None:
    graph = graph_of(*PAIR, params=f"%x: f32{IMAGE}")
    options = CompileOptions(fusion_switches=FusionSwitches(is_level_one=is_level_one))
    Driver(CompileSession(options, Environment())).run(graph, stage_one())
    assert ("a = TransData(x) -> f32[1,2,4,4,16]@NC1HWC0" in shown(graph)) is is_level_one


def test_a_long_run_takes_time_in_proportion() -> None:
    """20,000 operators: what is quadratic would take minutes."""
    types = [f"f16{IMAGE}", f"f32{IMAGE}"]
    nodes, last = [], "%x"
    for i in range(20_000):
        nodes.append(f"%n{i} = {cast(last, types[i % 2]) if i % 5 else f'Neg({last}) -> {types[(i + 1) % 2]}'}")
        last = f"%n{i}"
    graph = graph_of(*nodes, params=f"%x: f32{IMAGE}")
    Driver(CompileSession(CompileOptions(), Environment())).run(graph, stage_one())
    assert count(graph, "Neg") == 4000
