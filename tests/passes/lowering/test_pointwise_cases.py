"""The walk-through and the cases of pointwise operators (specification of lowering, section 8), profile `cann`.

The numbers in the names of the tests are those of the specification; `wiring` is explained in `lowered.py`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ge.graph import DataType
from passes.lowering.lower_graph import LoweredGraph, lower_graph
from passes.lowering.lower_model import lower_model
from tests.passes.lowering.lowered import CANN, cann, chain, graph_of, lowered, wiring

CONVOLUTIONS = """
graph net(%x: f32[1,3,8,8]@NCHW, %w: f32[3,3,1,1]@NCHW) {
  %conv1 = Conv2D(%x, %w, _, _) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"}
  %abs = Abs(%conv1)
  %exp = Exp(%abs)
  %conv2 = Conv2D(%exp, %w, _, _) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"}
  return %conv2
}"""


def state(lowered_graph: LoweredGraph, name: str) -> str:
    """What became of the first result of an operator."""
    node = lowered_graph.graph.find(name)
    assert node is not None
    box = lowered_graph.box(node.output())
    return "extern" if box.is_extern else "realized" if box.is_realized else "fusible"


def test_walk_through_boxes() -> None:
    boxes = lower_graph(graph_of(CONVOLUTIONS), CANN)
    assert [state(boxes, name) for name in ("conv1", "abs", "exp", "conv2")] == [
        "extern", "fusible", "realized", "extern",
    ]  # fmt: skip
    exp = boxes.graph.find("exp")
    assert exp is not None
    root = boxes.box(exp.output()).root
    assert root is not None
    assert root.readable() == "\n".join(
        [
            'tmp0 = ops.Load("conv1:0")',
            "tmp1 = ops.Abs(tmp0)",
            'tmp2 = ops.Store("abs:0", tmp1)',
            "tmp3 = ops.Exp(tmp2)",
            'tmp4 = ops.Store("exp:0", tmp3)',
        ]
    )


def test_1_walk_through() -> None:
    result = lowered(CONVOLUTIONS)
    assert result.before == [
        "conv1 = Conv2D(x, w, _, _)",
        "autofuse_pointwise_0_Abs_Exp = AscBackend(conv1)",
        "conv2 = Conv2D(autofuse_pointwise_0_Abs_Exp, w, _, _)",
    ]
    assert result.after == result.before
    assert result.graph.find("abs") is None
    assert result.graph.find("exp") is None
    assert result.text() == (
        'ascgraph 1 "autofuse_pointwise_0_Abs_Exp" [1,3,8,8] {\n'
        "  %0 = Data {index=0} -> f32[1,3,8,8]:[0,64,8,1]\n"
        "  %1 = Load(%0) -> f32[1,3,8,8]:[0,64,8,1]\n"
        "  %2 = Abs(%1) -> f32[1,3,8,8]:[0,64,8,1]\n"
        "  %3 = Exp(%2) -> f32[1,3,8,8]:[0,64,8,1]\n"
        "  %4 = Store(%3) -> f32[1,3,8,8]:[0,64,8,1]\n"
        "  %5 = Output(%4) {index=0}\n"
        "}\n"
    )


def test_2_fusion_ends_behind_exp() -> None:
    result = lowered(chain("Abs", "Exp", "Abs"))
    assert result.before == [
        "autofuse_pointwise_0_Abs_Exp = AscBackend(x)",
        "autofuse_pointwise_1_Abs = AscBackend(autofuse_pointwise_0_Abs_Exp)",
    ]
    assert result.after == ["autofuse_pointwise_0_Abs_Exp = AscBackend(x)", "n2 = Abs(autofuse_pointwise_0_Abs_Exp)"]
    assert "[heavy-operator] n1: Exp is not computed twice" in result.rules


@pytest.mark.parametrize(("merges", "loads", "inputs"), [(True, 1, 1), (False, 2, 2)])
def test_3_equal_loads_merge(merges: bool, loads: int, inputs: int) -> None:
    text = "graph net(%d: f32[2,3,5]@ND) { %n0 = Add(%d, %d) %n1 = Abs(%n0) %n2 = Exp(%n1) return %n2 }"
    result = lowered(text, cann(merges_equal_parts=merges))
    types = [op.type for op in result.program().ops]
    assert (types.count("Load"), types.count("Data")) == (loads, inputs)
    assert len(result.kernels[0].sources) == inputs


def test_4_equal_expressions_merge() -> None:
    text = """
    graph net(%a: f32[2,3,5]@ND, %b: f32[2,3,5]@ND) {
      %d1 = SquaredDifference(%a, %b)
      %d2 = SquaredDifference(%a, %b)
      %n = Add(%d1, %d2)
      return %n
    }"""
    result = lowered(text, cann(max_loop_loads=8))
    [program] = result.programs()
    assert program == "pointwise[Sub,Mul,Add]"
    add = next(op for op in result.program().ops if op.type == "Add")
    assert add.inputs[0] == add.inputs[1]
    assert [op.type for op in result.program().ops].count("Load") == 2


def test_5_fusion_ends_at_the_operators_allowed() -> None:
    boxes = lower_graph(graph_of(chain(*["Abs"] * 50)), cann(max_loop_ops=5))
    realized = [k for k in range(50) if state(boxes, f"n{k}") == "realized"]
    assert realized == [k for k in range(50) if (k + 1) % 5 == 0 or k == 49]


def test_6_fusion_ends_at_the_loads_allowed() -> None:
    params = ", ".join(f"%x{k}: f32[2,3]@ND" for k in range(51))
    lines = [f"%n{k} = Add(%{f'n{k - 1}' if k else 'x50'}, %x{k})" for k in range(50)]
    text = "\n".join([f"graph net({params}) {{", *lines, "return %n49", "}"])
    boxes = lower_graph(graph_of(text), cann(max_loop_loads=5))
    realized = [k for k in range(50) if state(boxes, f"n{k}") == "realized"]
    assert realized == [k for k in range(50) if k % 4 == 3 or k == 49]


def test_7_what_would_load_too_much_is_lowered_again() -> None:
    text = """
    graph net(%a: f32[2,3]@ND, %b: f32[2,3]@ND, %c: f32[2,3]@ND, %d: f32[2,3]@ND, %e: f32[2,3]@ND) {
      %n0 = AddN(%a, %b, %c) {N=3}
      %n1 = AddN(%n0, %d, %e) {N=3}
      return %n1
    }"""
    result = lowered(text)
    assert result.before == [
        "autofuse_pointwise_0_AddN = AscBackend(a, b, c)",
        "autofuse_pointwise_1_AddN = AscBackend(autofuse_pointwise_0_AddN, d, e)",
    ]
    assert "[oversize] n0 -> n1: 5 loads, at most 4" in result.rules


FIVE_OPERATORS = "AddN({0}, {0}, {0}, {0}, {0}, {0}) {{N=6}}"


@pytest.mark.parametrize(
    ("first", "most", "second"),
    [
        (FIVE_OPERATORS, 6, "autofuse_pointwise_1_AddN = AscBackend(autofuse_pointwise_0_AddN)"),
        ("Abs({0})", 4, f"n1 = AddN({', '.join(['autofuse_pointwise_0_Abs'] * 6)})"),
    ],
    ids=["8", "9"],
)
def test_8_9_oversize(first: str, most: int, second: str) -> None:
    text = f"""
    graph net(%x: f32[2,3]@ND) {{
      %n0 = {first.format("%x")}
      %n1 = {FIVE_OPERATORS.format("%n0")}
      return %n1
    }}"""
    result = lowered(text, cann(max_loop_ops=most, max_loop_loads=64))
    assert result.before == [f"autofuse_pointwise_0_{first.split('(')[0]} = AscBackend(x)", second]


def test_13_one_operator_is_given_back() -> None:
    result = lowered(chain("Abs"))
    assert result.before == ["autofuse_pointwise_0_Abs = AscBackend(x)"]
    assert result.after == ["n0 = Abs(x)"]
    assert result.graph.nodes_of_type("AscBackend") == []


def test_14_unless_lifting_is_off() -> None:
    result = lowered(chain("Abs"), cann(disables_lifting=True))
    assert result.after == ["autofuse_pointwise_0_Abs = AscBackend(x)"]
    assert result.kept[0].node.attrs["_disable_lifting"] is True


def labelled(labels: list[str], priority: str = "") -> str:
    lines = []
    for k, label in enumerate(labels):
        attrs = [f'_user_stream_label="{label}"'] * bool(label) + [f'_user_stream_priority="{priority}"'] * bool(
            priority
        )
        lines.append(f"%n{k} = Abs(%{f'n{k - 1}' if k else 'x'}) {{{', '.join(attrs)}}}".replace(" {}", ""))
    return "\n".join(["graph net(%x: f32[2,3]@ND) {", *lines, f"return %n{len(labels) - 1}", "}"])


@pytest.mark.parametrize(
    ("labels", "programs", "label"),
    [
        (["stream1", "stream2"], ["pointwise[Abs]", "pointwise[Abs]"], "stream1"),
        (["stream1", ""], ["pointwise[Abs,Abs]"], "stream1"),
        (["", "stream1"], ["pointwise[Abs,Abs]"], "stream1"),
        (["s1", "", "s2"], ["pointwise[Abs,Abs]", "pointwise[Abs]"], "s1"),
    ],
    ids=["16", "18 first", "18 second", "19"],
)
def test_16_18_19_stream_labels(labels: list[str], programs: list[str], label: str) -> None:
    result = lowered(labelled(labels))
    assert result.programs() == programs
    assert result.kernels[0].node.attrs["_user_stream_label"] == label


def test_17_label_and_priority_are_handed_on() -> None:
    result = lowered(labelled(["stream1", "stream1"], "2"))
    [kernel] = result.kernels
    assert kernel.graph.types() == ["Abs", "Abs"]
    assert kernel.node.attrs["_user_stream_label"] == "stream1"
    assert kernel.node.attrs["_user_stream_priority"] == "2"


def test_20_control_edges_keep_operators_apart() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %b = Abs(%a) ctrl(%a) return %b }"
    result = lowered(text)
    assert result.before == [
        "autofuse_pointwise_0_Abs = AscBackend(x)",
        "autofuse_pointwise_1_Abs = AscBackend(autofuse_pointwise_0_Abs) after(autofuse_pointwise_0_Abs)",
    ]
    assert result.after == ["a = Abs(x)", "b = Abs(a) after(a)"]


TWO_READERS = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %b = Abs(%a) %c = Abs(%a) return %b, %c }"


def test_21_several_readers_load_a_tensor() -> None:
    assert lowered(TWO_READERS).before == [
        "autofuse_pointwise_0_Abs = AscBackend(x)",
        "autofuse_pointwise_1_Abs = AscBackend(autofuse_pointwise_0_Abs)",
        "autofuse_pointwise_2_Abs = AscBackend(autofuse_pointwise_0_Abs)",
    ]


def test_22_or_compute_it_again() -> None:
    assert lowered(TWO_READERS, cann(recomputation_threshold=2)).before == [
        "autofuse_pointwise_0_Abs_Abs = AscBackend(x)",
        "autofuse_pointwise_1_Abs_Abs = AscBackend(x)",
    ]


def test_23_what_is_not_read_is_computed_beside_it() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %a = Abs(%x) %z = ZerosLike(%a) %e = Erfc(%z) return %e }"
    result = lowered(text)
    assert result.kernels[1].graph.types() == ["Broadcast"]
    assert result.kernels[1].sources == []
    assert result.before == [
        "autofuse_pointwise_0_Abs = AscBackend(x)",
        "autofuse_pointwise_1_ZerosLike = AscBackend() after(autofuse_pointwise_0_Abs)",
        "e = Erfc(autofuse_pointwise_1_ZerosLike)",
    ]
    assert result.after == [
        "a = Abs(x)",
        "autofuse_pointwise_1_ZerosLike = AscBackend() after(a)",
        "e = Erfc(autofuse_pointwise_1_ZerosLike)",
    ]


OUTSIDE_AND_INSIDE = ["a = Abs(x)", "autofuse_pointwise_0_Abs = AscBackend(a)"]
INSIDE_AND_OUTSIDE = ["autofuse_pointwise_0_Abs = AscBackend(x)", "b = Abs(autofuse_pointwise_0_Abs)"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", '{_super_kernel_scope="s"}', INSIDE_AND_OUTSIDE),
        ('{_super_kernel_scope="s"}', "", OUTSIDE_AND_INSIDE),
        ("", "{_disable_autofuse_scope=true}", INSIDE_AND_OUTSIDE),
    ],
    ids=["24", "25", "26"],
)
def test_24_25_26_scopes(first: str, second: str, expected: list[str]) -> None:
    text = f"graph net(%x: f32[2,3]@ND) {{ %a = Abs(%x) {first} %b = Abs(%a) {second} return %b }}"
    result = lowered(text)
    assert result.before == expected
    assert result.after == ["a = Abs(x)", "b = Abs(a)"]


def test_27_cast_to_an_undefined_type() -> None:
    graph = graph_of("graph net(%x: f32[2,3]@ND) { %a = Cast(%x) {dst_type=0} %b = Cast(%a) {dst_type=0} return %b }")
    first = graph.find("a")
    assert first is not None
    first.attrs["dst_type"] = int(DataType.DT_UNDEFINED)
    assert lowered(graph).before == ["a = Cast(x)", "autofuse_pointwise_0_Cast = AscBackend(a)"]


def test_28_a_type_that_kernels_do_not_convert_ends_fusion() -> None:
    text = """
    graph net(%x: f32[2,3]@ND) {
      %a = Abs(%x)
      %b = Abs(%a)
      %c = Cast(%b) {dst_type=4}
      %d = LogicalNot(%c)
      %e = LogicalNot(%d)
      return %e
    }"""
    result = lowered(text)
    assert result.programs() == ["pointwise[Abs,Abs]", "pointwise[LogicalNot,LogicalNot]"]
    assert "c = Cast(autofuse_pointwise_0_Abs_Abs)" in result.before
    assert "[element-type] c: no Cast of f32 to u8" in result.rules


@pytest.mark.parametrize("shape", [[], [1]])
def test_29_one_element_is_no_kernel(shape: list[int]) -> None:
    result = lowered(chain("Abs", "Abs", shape=shape))
    assert result.before == ["n0 = Abs(x)", "n1 = Abs(n0)"]


def test_30_empty_results_need_no_kernel() -> None:
    text = """
    graph net(%x: f32[0,2,16]@ND) {
      %a = Abs(%x)
      %b = Abs(%a)
      %c = ReduceSumD(%b) {axes=[0]}
      return %c
    }"""
    result = lowered(text, cann("reduce"))
    assert result.before == [
        "autofuse_pointwise_0_Abs_Abs = AscBackendNoKernelOp(x)",
        "c = ReduceSumD(autofuse_pointwise_0_Abs_Abs)",
    ]


def test_31_skip_lists() -> None:
    text = "graph net(%x: f32[2,3]@ND) { %Abs_0 = Abs(%x) %Relu_1 = Relu(%Abs_0) return %Relu_1 }"
    strategy = cann(skipped_types=frozenset({"Abs"}), skipped_names=frozenset({"Relu_1"}))
    assert lowered(text, strategy).before == ["Abs_0 = Abs(x)", "Relu_1 = Relu(Abs_0)"]


def test_35_broadcasts_become_strides_of_loads() -> None:
    text = """
    graph net(%a: f32[5]@ND, %b: f32[3,5]@ND, %c: f32[2,3,5]@ND) {
      %n0 = Add(%a, %b)
      %n1 = Add(%n0, %c)
      return %n1
    }"""
    assert lowered(text).text() == (
        'ascgraph 1 "autofuse_pointwise_0_Add_Add" [2,3,5] {\n'
        "  %0 = Data {index=0} -> f32[1,1,5]:[0,0,1]\n"
        "  %1 = Load(%0) -> f32[2,3,5]:[15,5,1]\n"
        "  %2 = Data {index=1} -> f32[1,3,5]:[0,5,1]\n"
        "  %3 = Load(%2) -> f32[2,3,5]:[15,5,1]\n"
        "  %4 = Add(%1, %3) -> f32[2,3,5]:[15,5,1]\n"
        "  %5 = Data {index=2} -> f32[2,3,5]:[15,5,1]\n"
        "  %6 = Load(%5) -> f32[2,3,5]:[15,5,1]\n"
        "  %7 = Add(%4, %6) -> f32[2,3,5]:[15,5,1]\n"
        "  %8 = Store(%7) -> f32[2,3,5]:[15,5,1]\n"
        "  %9 = Output(%8) {index=0}\n"
        "}\n"
    )


def test_41_a_second_run_changes_nothing() -> None:
    graph = graph_of(chain("Abs", "Abs"))
    lower_model(graph, CANN)
    once = wiring(graph)
    assert once == ["autofuse_pointwise_0_2Abs = AscBackend(x)"]
    assert lower_model(graph, CANN) == []
    assert wiring(graph) == once


def test_42_core_numbers_keep_operators_apart() -> None:
    text = 'graph net(%x: f32[2,3]@ND) { %a = Abs(%x) {_op_vectorcore_num="20"} %b = Abs(%a) return %b }'
    result = lowered(text)
    assert [kernel.vector_core_num for kernel in result.kernels] == [20, 0]
    assert result.programs() == ["pointwise[Abs]", "pointwise[Abs]"]


def test_multiple_runs_number_kernels_alike() -> None:
    names = [lowered(chain("Abs", "Exp", "Abs", "Abs")).after for _ in range(2)]
    assert names[0] == names[1]


def test_names_are_cut() -> None:
    [kernel] = lowered(chain(*["Abs", "Neg"] * 30), replace(CANN, max_loop_ops=100)).kept
    assert len(kernel.node.name) == 140
    assert kernel.node.name.startswith("autofuse_pointwise_0_Abs_Neg_Abs")
