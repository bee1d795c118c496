"""What a pattern matches: cases 1 to 16 of the reference, and what else it says about searching."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ge.es import GraphBuilder
from ge.es.all import (
    Abs,
    Add,
    AddLayerNorm,
    Cast,
    ConcatV2,
    Exp,
    LayerNorm,
    MatMul,
    Mul,
    Relu,
    Reshape,
    SoftmaxV2,
    Split,
    Sub,
    TransData,
)
from ge.es.all import If as IfOperator
from ge.graph import Tensor
from ge.passes import PassContext, PatternFusionPass, PatternMatcherConfigBuilder, create_pattern
from ge.passes.bootstrap import load_pass_plugins
from ge.passes.engine import PassFailure, run_pass
from ge.passes.matcher import CompiledPattern, PatternFault
from ge.passes.origins import ORIGIN_NAMES, ORIGIN_TYPES
from ge.passes.registry import PassRegistry, registering_in
from ge.text import parse_graph
from tests.ge.passes.pass_run import fusion, matches, run, written

CONST_VALUES = PatternMatcherConfigBuilder().enable_const_value_match().build()
IR_ATTRS = PatternMatcherConfigBuilder().enable_ir_attr_match().build()


def graph(body: str, inputs: str = "x", shape: str = "[4]", result: str = "%out") -> str:
    """Graph text with float inputs; every node has one float output of ``shape``."""
    data = ", ".join(f"%{name}: f32{shape}@ND" for name in inputs.split())
    nodes = "\n".join(f"  {line.strip()} -> f32{shape}@ND" for line in body.strip().splitlines())
    return f"graph g({data}) {{\n{nodes}\n  return {result}\n}}"


def added(constant: str, dtype: str = "f32") -> str:
    """Graph text: an input plus a constant, which is given as a tensor of graph text."""
    return f"""graph g(%x: {dtype}[2]@ND) {{
  %c = Const {{value={constant}}} -> {constant.split("{")[0]}@ND
  %out = Add(%x, %c) -> {dtype}[2]@ND
  return %out
}}"""


ABS_TO_EXP_AND_RELU = graph("%abs = Abs(%x)\n%exp = Exp(%abs)\n%relu = Relu(%abs)\n%out = Add(%exp, %relu)")


def test_case_01_six_instances_are_rewritten_one_after_the_other() -> None:
    trans = 'TransData(%x) {src_format="ND", dst_format="ND"}'
    lines = [f"%t{i} = {trans}" for i in range(6)] + ["%out = AddN(%t0, %t1, %t2, %t3, %t4, %t5) {N=6}"]
    cls, _ = fusion(lambda i: TransData(i[0], src_format="ND", dst_format="ND"), into=lambda i: Relu(i[0]))
    first = run(cls, graph("\n".join(lines)), "Swap")
    assert first.changed
    assert first.times == (6, 6)
    relus = first.graph.nodes_of_type("Relu")
    assert [r.attrs[ORIGIN_NAMES] for r in relus] == [[f"t{i}"] for i in range(6)]
    assert all(r.attrs[ORIGIN_TYPES] == ["TransData"] for r in relus)
    assert all(r.attrs["pass_name"] == ["Swap"] for r in relus)
    assert not run(cls, first.graph).changed


TWO_RESHAPES = """graph g(%x: f32[1,256]@ND) {
  %s1 = Const {value=i64[3]{-1, 1, 256}} -> i64[3]@ND
  %s2 = Const {value=i64[2]{256, 1}} -> i64[2]@ND
  %r1 = Reshape(%x, %s1) -> f32[1,1,256]@ND
  %r2 = Reshape(%x, %s2) -> f32[256,1]@ND
  return %r1, %r2
}"""


def test_case_02_any_constant_matches_a_constant() -> None:
    assert matches(TWO_RESHAPES, lambda i: Reshape(i[0], [-1, 2, 256])) == [["s1", "r1"], ["s2", "r2"]]


@pytest.mark.parametrize(
    ("constant", "expected"),
    [([-1, 2, 256], []), ([-1, 1, 256], [["s1", "r1"]]), ([256, 1], [["s2", "r2"]])],
)
def test_case_03_constants_may_be_compared(constant, expected) -> None:
    assert matches(TWO_RESHAPES, lambda i: Reshape(i[0], constant), config=CONST_VALUES) == expected


@pytest.mark.parametrize(
    "value",
    ["f32[]{0.5}", "f32[1]{0.25}", "f64[]{0.25}", "f32[]{-0.25}"],
    ids=["value", "shape", "type", "sign"],
)
def test_compared_constants_differ_in_value_shape_and_type(value) -> None:
    assert matches(added(value), lambda i: i[0] + 0.25, config=CONST_VALUES) == []
    assert matches(added(value), lambda i: i[0] + 0.25) == [["c", "out"]]


@pytest.mark.parametrize(("value", "wanted", "count"), [("-0.0", 0.0, 0), ("0.0", 0.0, 1), ("nan", float("nan"), 1)])
def test_constants_are_compared_by_their_bytes(value, wanted, count) -> None:
    assert len(matches(added(f"f32[]{{{value}}}"), lambda i: i[0] + wanted, config=CONST_VALUES)) == count


def test_a_constant_without_value_in_the_pattern_fits_all() -> None:
    def pattern():
        builder = GraphBuilder("weightless")
        x, c = builder.create_input(0), builder.create_const_float(1.0)
        c._get_node_snapshot().attrs.pop("value")
        return create_pattern(builder.build_and_reset([x + c]))

    class Weightless(PatternFusionPass):
        def __init__(self) -> None:
            super().__init__(CONST_VALUES)

        def patterns(self):
            return [pattern()]

        def replacement(self, inputs):
            return inputs[0]

    assert run(Weightless, added("f32[2]{7.0, 8.0}")).times == (1, 1)


def test_the_old_name_of_constants_is_the_same_type() -> None:
    target = parse_graph(TWO_RESHAPES)
    target.set_type(target.find("s1"), "Constant")
    cls, seen = fusion(lambda i: Reshape(i[0], [1]))
    run_pass(cls, target, PassContext("P"))
    assert seen == [["s1", "r1"], ["s2", "r2"]]


def test_case_04_a_chain_with_a_constant() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %c = Const {value=i64[2]{2, 2}} -> i64[2]@ND
  %r = Reshape(%x, %c) -> f32[2,2]@ND
  %t = TransData(%r) {src_format="ND", dst_format="ND"} -> f32[2,2]@ND
  %u = TransData(%x) {src_format="ND", dst_format="ND"} -> f32[4]@ND
  return %t, %u
}"""
    found = matches(text, lambda i: TransData(Reshape(i[0], [1]), src_format="ND", dst_format="ND"))
    assert found == [["c", "r", "t"]]


def test_case_05_two_outputs_of_one_producer() -> None:
    def pattern(i):
        shared = Abs(i[0])
        return Exp(shared), Relu(shared)

    assert matches(ABS_TO_EXP_AND_RELU, pattern) == [["abs", "exp", "relu"]]


def test_case_06_a_placeholder_binds_anything() -> None:
    assert matches(ABS_TO_EXP_AND_RELU, lambda i: (Exp(i[0]), Relu(i[0]))) == [["exp", "relu"]]


def test_case_07_a_placeholder_used_twice_is_one_tensor() -> None:
    text = graph("%a1 = Abs(%x)\n%a2 = Abs(%x)\n%exp = Exp(%a1)\n%relu = Relu(%a2)\n%out = Add(%exp, %relu)")
    assert matches(text, lambda i: (Exp(i[0]), Relu(i[0]))) == []


def test_quirk_a_placeholder_used_twice_is_one_output_not_only_one_node() -> None:
    """GE compares the producers of a placeholder only by node; here by output."""
    text = """graph g(%x: f32[4]@ND) {
  %s:2 = SplitD(%x) {split_dim=0, num_split=2} -> f32[2]@ND, f32[2]@ND
  %exp = Exp(%s:0) -> f32[2]@ND
  %relu = Relu(%s:SLOT) -> f32[2]@ND
  return %exp, %relu
}"""
    found = [matches(text.replace("SLOT", slot), lambda i: (Exp(i[0]), Relu(i[0]))) for slot in "01"]
    assert found == [[["exp", "relu"]], []]


def test_two_placeholders_may_bind_one_tensor() -> None:
    assert matches(graph("%out = Add(%x, %x)"), lambda i: i[0] + i[1]) == [["out"]]


def test_quirk_two_pattern_nodes_may_bind_one_node() -> None:
    """As in GE nothing asks for different nodes: both operands of the Add are the one Abs."""
    assert matches(graph("%abs = Abs(%x)\n%out = Add(%abs, %abs)"), lambda i: Abs(i[0]) + Abs(i[1])) == [["abs", "out"]]


def test_case_08_a_placeholder_stands_for_the_same_tensor_in_all_outputs() -> None:
    assert matches(ABS_TO_EXP_AND_RELU, lambda i: (Exp(Abs(i[0])), Relu(i[0]))) == []


def _with_control_edge(builder, x):
    a, b = Abs(x), Exp(x)
    builder.add_control_dependency(b, [a])
    return [a + b]


def _with_body(builder, x):
    bodies = []
    for name in ("then", "else"):
        body = GraphBuilder(name)
        bodies.append(body.build_and_reset([Abs(body.create_input(0))]))
    return IfOperator(builder.create_scalar_int32(1), [x], 1, *bodies)


def _with_cycle(builder, x):
    a = Abs(x)
    b = Relu(a)
    builder._graph.set_input(a._get_node_snapshot(), 0, b._output())
    return [b + x]


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (_with_control_edge, "has control edges"),
        (_with_body, "bodies of control flow"),
        (lambda builder, x: [ConcatV2([x, x], 0, N=2)], "x of node ConcatV2_1 (ConcatV2) is dynamic"),
        (lambda builder, x: Split(0, x, 2, num_split=2), "y of node Split_1 (Split) is dynamic"),
        (_with_cycle, "cycle"),
        (lambda builder, x: [], "has no output"),
    ],
    ids=["control edge", "If", "ConcatV2", "dynamic output", "cycle", "no output"],
)
def test_case_09_an_invalid_pattern_is_logged_and_never_matches(build, reason, caplog) -> None:
    class Invalid(PatternFusionPass):
        def patterns(self):
            builder = GraphBuilder("odd")
            return [builder.build_and_reset(build(builder, builder.create_input(0)))]

        def replacement(self, inputs):
            raise AssertionError("nothing can have matched")

    with caplog.at_level(logging.ERROR, "atc"):
        result = run(Invalid, ABS_TO_EXP_AND_RELU)
    assert not result.changed
    assert result.times == (0, 0)
    assert reason in caplog.text
    assert [w for w in result.warnings if reason in w and "pattern odd of custom pass P is never matched" in w]


def test_an_invalid_pattern_does_not_stop_the_others() -> None:
    cls, _ = fusion(lambda i: ConcatV2([i[0], i[1]], 0, N=2), lambda i: Abs(i[0]), into=lambda i: Relu(i[0]))
    assert run(cls, ABS_TO_EXP_AND_RELU).types() == ["Add", "Exp", "Relu", "Relu"]


CHAIN_BEHIND_A_DIAMOND = graph(
    "%a1 = Abs(%x)\n%exp = Exp(%a1)\n%r1 = Relu(%a1)\n%sum = Add(%exp, %r1)\n%a2 = Abs(%sum)\n%out = Relu(%a2)"
)


def test_case_10_what_others_read_too_must_be_an_output() -> None:
    assert matches(CHAIN_BEHIND_A_DIAMOND, lambda i: Relu(Abs(i[0]))) == [["a2", "out"]]


def test_case_11_as_an_output_it_may_be_read() -> None:
    def pattern(i):
        inner = Abs(i[0])
        return Relu(inner), inner

    assert matches(CHAIN_BEHIND_A_DIAMOND, pattern) == [["a1", "r1"], ["a2", "out"]]


def test_case_12_instances_in_any_order_and_a_decoy() -> None:
    lines = [f"%a{i} = Abs(%x)" for i in range(4)] + [f"%e{i} = Exp(%a{i})" for i in range(4)]
    lines += [f"%r{i} = Relu(%a{i})" for i in reversed(range(4))] + ["%decoy = Exp(%x)"]
    lines += ["%out = AddN(%e0, %e1, %e2, %e3, %r0, %r1, %r2, %r3, %decoy) {N=9}"]

    def pattern(i):
        shared = Abs(i[0])
        return Exp(shared), Relu(shared)

    assert matches(graph("\n".join(lines)), pattern) == [[f"a{i}", f"e{i}", f"r{i}"] for i in range(4)]


@pytest.mark.parametrize(("config", "expected"), [(None, [["out"]]), (IR_ATTRS, [])], ids=["off", "on"])
def test_case_13_attributes_may_be_compared(config, expected) -> None:
    text = "graph g(%x: f32[4]@ND) {\n  %out = Cast(%x) {dst_type=9} -> i64[4]@ND\n  return %out\n}"
    assert matches(text, lambda i: Cast(i[0], dst_type=0), config=config) == expected
    assert matches(text, lambda i: Cast(i[0], dst_type=9), config=config) == [["out"]]


def test_defaults_are_filled_in_before_attributes_are_compared() -> None:
    text = "graph g(%x: f32[2,2]@ND) {\n  %out = MatMul(%x, %x) ATTRS -> f32[2,2]@ND\n  return %out\n}"

    def found(attrs: str) -> int:
        return len(matches(text.replace("ATTRS", attrs), lambda i: MatMul(i[0], i[1]), config=IR_ATTRS))

    assert [found(a) for a in ("", "{transpose_x1=false}", "{transpose_x1=true}", "{_private=1}")] == [1, 1, 0, 1]


def test_attributes_that_hold_meaning_of_ours_are_compared_too() -> None:
    text = "graph g(%x: f32[2,2]@ND) {\n  %out = SoftmaxV2(%x) ATTRS -> f32[2,2]@ND\n  return %out\n}"
    found = [
        len(matches(text.replace("ATTRS", attrs), lambda i: SoftmaxV2(i[0]), config=IR_ATTRS))
        for attrs in ("", "{_x_flatten=true}")
    ]
    assert found == [1, 0]


def test_quirk_types_inside_the_pattern_count_when_attributes_are_compared() -> None:
    """GE then compares the attributes of inner nodes only; Abs and Exp have none, so both would match."""
    text = graph("%abs = Abs(%x)\n%out = Relu(%abs)")
    assert matches(text, lambda i: Relu(Exp(i[0])), config=IR_ATTRS) == []
    assert matches(text, lambda i: Relu(Abs(i[0])), config=IR_ATTRS) == [["abs", "out"]]


def test_case_14_an_operator_with_several_outputs() -> None:
    text = """graph g(%a: f32[2,4]@ND, %b: f32[2,4]@ND, %gamma: f32[4]@ND, %beta: f32[4]@ND) {
  %n:4 = AddLayerNorm(%a, %b, %gamma, %beta) -> f32[2,4]@ND, f32[2,1]@ND, f32[2,1]@ND, f32[2,4]@ND
  return %n:0, %n:1
}"""

    def pattern(i):
        result = AddLayerNorm(i[0], i[1], i[2], i[3])
        return result.y, result.mean

    assert matches(text, pattern) == [["n"]]


def test_case_15_a_path_that_comes_back_is_left_alone() -> None:
    text = graph("%a1 = Abs(%x)\n%between = Neg(%x) ctrl(%a1)\n%r = Relu(%a1)\n%a2 = Abs(%r) ctrl(%between)").replace(
        "%out", "%a2, %between"
    )
    cls, seen = fusion(lambda i: Abs(Relu(Abs(i[0]))), into=lambda i: Exp(i[0]))
    result = run(cls, text)
    assert seen == [["a1", "r", "a2"]]
    assert not result.changed
    assert result.times == (1, 0)
    assert [r.reason for r in result.context.statistics.refusals] == ["fusing it would close a cycle"]


def test_case_16_captures_are_producers_for_placeholders() -> None:
    found = []

    def look(match) -> bool:
        found.append([(t.node.name, t.index) for t in map(match.get_captured_tensor, range(3))])
        with pytest.raises(RuntimeError, match="captures 3 tensors, there is no 5"):
            match.get_captured_tensor(5)
        return False

    text = """graph g(%x: f32[4]@ND) {
  %s:2 = SplitD(%x) {split_dim=0, num_split=2} -> f32[2]@ND, f32[2]@ND
  %abs = Abs(%s:0) -> f32[2]@ND
  %sum = Add(%abs, %s:1) -> f32[2]@ND
  return %sum
}"""
    cls, _ = fusion(lambda i: i[0] + i[1], into=lambda i: i[0], meets=look)
    run(cls, text)
    assert found == [[("abs", 0), ("s", 1), ("sum", 0)]]


def test_operands_are_not_exchanged() -> None:
    text = graph("%abs = Abs(%x)\n%out = Add(%x, %abs)")
    assert matches(text, lambda i: Abs(i[0]) + i[1]) == []
    assert matches(text, lambda i: i[0] + Abs(i[1])) == [["abs", "out"]]


@pytest.mark.parametrize(
    ("inputs", "expected"), [("%x, %w", 1), ("%x, %w, %b", 0), ("%x, %w, _", 1)], ids=["two", "three", "absent third"]
)
def test_the_number_of_connected_inputs_counts(inputs, expected) -> None:
    text = f"""graph g(%x: f32[2,2]@ND, %w: f32[2,2]@ND, %b: f32[2]@ND) {{
  %out = MatMul({inputs}) -> f32[2,2]@ND
  return %out
}}"""
    assert len(matches(text, lambda i: MatMul(i[0], i[1]))) == expected


def test_the_output_of_the_producer_counts_inside_the_pattern() -> None:
    text = """graph g(%x: f32[4]@ND, %gamma: f32[4]@ND, %beta: f32[4]@ND) {
  %n:3 = LayerNorm(%x, %gamma, %beta) -> f32[4]@ND, f32[1]@ND, f32[1]@ND
  %out = Relu(%n:SLOT)
  return %out
}"""
    found = [
        len(matches(text.replace("SLOT", slot), lambda i: Relu(LayerNorm(i[0], i[1], i[2]).mean))) for slot in "012"
    ]
    assert found == [0, 1, 0]


def test_undeclared_outputs_of_an_output_node_are_not_looked_at() -> None:
    """The node survives a rewrite then, because somebody reads its other output."""
    text = """graph g(%x: f32[4]@ND, %gamma: f32[4]@ND, %beta: f32[4]@ND) {
  %n:3 = LayerNorm(%x, %gamma, %beta) -> f32[4]@ND, f32[1]@ND, f32[1]@ND
  %neg = Neg(%n:1) -> f32[1]@ND
  return %n:0, %neg
}"""
    cls, _ = fusion(lambda i: LayerNorm(i[0], i[1], i[2]).y, into=lambda i: Abs(i[:3][0]))
    result = run(cls, text)
    assert result.types() == ["Abs", "LayerNorm", "Neg"]
    assert [out.node.type for out in result.graph.outputs] == ["Abs", "Neg"]


def test_a_shared_constant_blocks_the_match() -> None:
    text = """graph g(%x: f32[4]@ND) {
  %c = Const {value=f32[]{1.0}} -> f32[]@ND
  %sum = Add(%x, %c) -> f32[4]@ND
  %out = Mul(%sum, SECOND) -> f32[4]@ND
  return %out
}"""
    found = [len(matches(text.replace("SECOND", other), lambda i: i[0] + 1.0)) for other in ("%c", "%x")]
    assert found == [0, 1]


def test_results_of_the_model_are_readers_without_a_net_output() -> None:
    text = graph("%abs = Abs(%x)\n%out = Relu(%abs)")
    assert matches(text, lambda i: Relu(Abs(i[0]))) == [["abs", "out"]]
    assert matches(text.replace("return %out", "return %out, %abs"), lambda i: Relu(Abs(i[0]))) == []


def test_outputs_without_anything_in_common_are_looked_for_among_all_nodes() -> None:
    text = graph("%e1 = Exp(%x)\n%e2 = Exp(%y)\n%r = Relu(%y)\n%out = AddN(%e1, %e2, %r) {N=3}", inputs="x y")
    assert matches(text, lambda i: (Relu(i[0]), Exp(i[1]))) == [["e1", "r"]]
    # going back: the first Exp does not fit the second output, the other one does
    assert matches(text, lambda i: (Exp(i[0]), Relu(i[0]))) == [["e2", "r"]]


def test_overlapping_matches_the_first_in_node_order_wins() -> None:
    text = graph("%a = Abs(%x)\n%b = Abs(%a)\n%c = Abs(%b)\n%out = Abs(%c)")
    cls, seen = fusion(lambda i: Abs(Abs(i[0])), into=lambda i: Exp(i[0]))
    assert run(cls, text).types() == ["Exp", "Exp"]
    assert seen == [["a", "b"], ["c", "out"]]


def test_patterns_run_one_after_the_other_to_exhaustion() -> None:
    text = graph("%a = Abs(%x)\n%e = Exp(%a)\n%b = Abs(%e)\n%out = Relu(%b)")
    cls, seen = fusion(lambda i: Abs(i[0]), lambda i: Relu(i[0]), into=lambda i: Exp(i[0]))
    run(cls, text)
    assert seen == [["a"], ["b"], ["out"]]


def test_new_nodes_are_candidates() -> None:
    """A Sub becomes an Add of an Abs; the second pattern finds that Abs."""
    cls, seen = fusion(lambda i: i[0] - i[1], lambda i: Abs(i[0]), into=lambda i: i[0])

    class Two(cls):  # type: ignore[misc, valid-type]
        def replacement(self, inputs, match_result):
            if match_result.get_pattern_graph_name() == "pattern0":
                return inputs[0] + Abs(inputs[1])
            return Relu(inputs[0])

    result = run(Two, graph("%out = Sub(%x, %y)", inputs="x y"))
    assert result.types() == ["Add", "Relu"]
    assert len(seen) == 2


def test_a_replacement_that_contains_its_pattern_is_stopped() -> None:
    cls, _ = fusion(lambda i: Relu(i[0]), into=lambda i: Relu(Abs(i[0])))
    with pytest.raises(PassFailure, match=r"rewrote the graph 1040 times .* contain its own pattern\?"):
        run(cls, graph("%a = Relu(%x)\n%b = Exp(%a)\n%out = Exp(%b)"))


def test_matched_nodes_are_listed_producers_first() -> None:
    text = graph("%out = Sub(%e, %m)\n%m = Mul(%e, %x)\n%e = Exp(%x)")

    def pattern(i):
        shared = Exp(i[0])
        return Sub(shared, Mul(shared, i[1]))

    assert matches(text, pattern) == [["e", "m", "out"]]


def test_what_is_read_by_a_reader_twice() -> None:
    text = graph("%e = Exp(%x)\n%out = Mul(%e, %e)")
    assert matches(text, lambda i: (lambda e: Mul(e, e))(Exp(i[0]))) == [["e", "out"]]


def test_a_placeholder_may_be_bound_to_a_matched_node() -> None:
    """That node is read by the replacement then, and stays."""
    cls, seen = fusion(lambda i: Mul(Exp(i[0]), i[1]), into=lambda i: Sub(Abs(i[0]), i[1]))
    result = run(cls, graph("%e = Exp(%x)\n%out = Mul(%e, %e)"))
    assert seen == [["e", "out"]]
    assert result.types() == ["Abs", "Exp", "Sub"]
    sub = result.graph.outputs[0].node
    assert [source.node.type for source in sub.inputs] == ["Abs", "Exp"]


def test_unreachable_placeholders_are_no_inputs() -> None:
    compiled = CompiledPattern(written("p", lambda i: Relu(i[:3][1])))
    assert [compiled.nodes[number].attrs["index"] for number in compiled.inputs] == [1]


def test_a_tensor_returned_twice_is_one_output() -> None:
    def twice(i):
        y = Relu(i[0])
        return y, y

    compiled = CompiledPattern(written("p", twice))
    assert len(compiled.output_ports) == 2
    assert len(compiled.result_ports) == 1


def test_a_pattern_needs_its_graph() -> None:
    builder = GraphBuilder("p")
    builder.create_input(0)
    with pytest.raises(PatternFault, match="no output"):
        CompiledPattern(create_pattern(builder.build_and_reset()))


def test_strings_in_constants_are_compared() -> None:
    text = added('str[1]{"a"}', "str")

    def pattern(value: str):
        def written_with(i):
            tensor = Tensor.of(np.array([value], dtype=object))
            holder = i[0] + 1.0
            node = holder._get_node_snapshot().input(1).node
            node.attrs["value"] = tensor
            return holder

        return written_with

    found = [len(matches(text, pattern(value), config=CONST_VALUES)) for value in ("a", "b")]
    assert found == [1, 0]


def test_add_needs_both_inputs_where_the_pattern_has_them() -> None:
    assert matches(graph("%out = Add(%x, %y)", inputs="x y"), lambda i: Add(i[0], i[1])) == [["out"]]


# -- several outputs over one tensor -----------------------------------------------------------------------------------
def siblings(*types: str) -> str:
    """Graph text: one node per type, all of which read x."""
    names = [f"%n{place}" for place in range(len(types))]
    lines = [f"{name} = {type_}(%x)" for name, type_ in zip(names, types, strict=True)]
    return graph("\n".join(lines), result=", ".join(names))


def test_two_outputs_are_never_one_tensor() -> None:
    two = siblings("Relu", "Relu")
    assert matches(two, lambda i: [Relu(i[0]), Relu(i[0])]) == [["n0", "n1"], ["n0", "n1"]]
    assert matches(siblings("Relu"), lambda i: [Relu(i[0]), Relu(i[0])]) == []
    assert matches(siblings("Relu", "Abs"), lambda i: [Relu(i[0]), Relu(i[0]), Abs(i[0])]) == []


def test_two_outputs_of_one_type_are_rewritten() -> None:
    cls, seen = fusion(lambda i: [Relu(i[0]), Relu(i[0])], into=lambda i: [Exp(i[0]), Abs(i[0])])
    assert run(cls, siblings("Relu", "Relu", "Relu")).types() == ["Abs", "Exp", "Relu"]
    assert seen == [["n0", "n1"]]


def test_an_inner_output_is_another_tensor_too() -> None:
    def pattern(i):
        first, second = Relu(i[0]), Relu(i[0])
        return [Add(first, second), first, second]

    one = graph("%r = Relu(%x)\n%out = Add(%r, %r)")
    two = graph("%r = Relu(%x)\n%s = Relu(%x)\n%out = Add(%r, %s)")
    assert matches(one, pattern) == []
    assert matches(two, pattern) == [["r", "s", "out"]]


def test_the_search_goes_back_to_an_output_that_was_bound_wrongly() -> None:
    def pattern(i):
        first, second = Abs(i[0]), Abs(i[0])
        return [Relu(i[0]), first, second, Exp(first)]

    text = graph("%r = Relu(%x)\n%b = Abs(%x)\n%a = Abs(%x)\n%e = Exp(%a)", result="%r, %a, %e, %b")
    assert [set(match) for match in matches(text, pattern)] == [{"r", "a", "b", "e"}]


@pytest.mark.parametrize(
    "pattern",
    [
        lambda i: [*(Relu(i[0]) for _ in range(4)), Exp(i[0])],
        lambda i: [*(Relu(i[0]) for _ in range(4)), Add(Relu(i[0]), Relu(i[0]))],
        lambda i: [*(Abs(Relu(i[0])) for _ in range(4)), Exp(Relu(i[0]))],
        lambda i: [Relu(i[0]) for _ in range(301)],
    ],
    ids=["no candidate", "no pair", "behind two", "one too few"],
)
def test_many_siblings_are_not_tried_in_all_combinations(pattern) -> None:
    lines = [f"%r{k} = Relu(%x)\n%a{k} = Abs(%r{k})" for k in range(300)]
    text = graph("\n".join(lines), result=", ".join(f"%a{k}" for k in range(300)))
    begin = time.process_time()
    assert matches(text, pattern) == []
    assert time.process_time() - begin < 5  # all combinations would take hours


UNARY = {"Relu": Relu, "Abs": Abs, "Exp": Exp}
TYPES = st.sampled_from(sorted(UNARY))


@given(
    st.lists(st.tuples(TYPES, st.integers(0, 9)), min_size=1, max_size=6),
    st.lists(st.tuples(TYPES, st.none() | TYPES), min_size=1, max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_a_match_is_found_where_trying_everything_finds_one(
    nodes: list[tuple[str, int]], wanted: list[tuple[str, str | None]]
) -> None:
    """Nodes of one input in a random tree; a pattern of single nodes and pairs that start from one tensor."""
    reads = {f"n{k}": "x" if at % (k + 1) == k else f"n{at % (k + 1)}" for k, (_, at) in enumerate(nodes)}
    types = {f"n{k}": type_ for k, (type_, _) in enumerate(nodes)}

    def pattern(i):
        outputs = []
        for first, second in wanted:
            outputs.append(UNARY[first](i[0]))
            if second is not None:
                outputs.append(UNARY[second](outputs[-1]))
        return outputs

    def assignments(start: str, place: int, used: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if place == len(wanted):
            yield used
            return
        first, second = wanted[place]
        for one in (n for n in types if (types[n], reads[n]) == (first, start) and n not in used):
            others = [n for n in types if (types[n], reads[n]) == (second, one) and n not in used]
            for more in [()] if second is None else [(n,) for n in others]:
                yield from assignments(start, place + 1, (*used, one, *more))

    lines = "\n".join(f"%{name} = {types[name]}(%{reads[name]})" for name in types)
    possible = [set(found) for start in ("x", *types) for found in assignments(start, 0, ())]
    drivers = {found[0] for start in ("x", *types) for found in assignments(start, 0, ())}
    seen = matches(graph(lines, result=", ".join(f"%{name}" for name in types)), pattern)
    assert len(seen) == len(drivers)
    assert all(set(match) in possible for match in seen)


# -- what is said of places that are left alone ------------------------------------------------------------------------
def test_near_misses_are_told_at_info_level_but_not_all_of_them(caplog) -> None:
    lines = ["%c = Const {value=f32[4]{1, 1, 1, 1}}"]
    lines += [f"%a{k} = Add(%x, %c)" for k in range(50)]
    text = graph("\n".join(lines), result=", ".join(f"%a{k}" for k in range(50)))
    with caplog.at_level(logging.INFO, logger="atc"):
        assert matches(text, lambda i: i[0] + 1.0) == []
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "P left c, a0 alone: a1 reads the constant c too"
    assert len(told) == 21
    assert told[-1] == "P left 30 more places alone, because others read what would lie inside"


def test_a_pattern_that_is_returned_twice_is_used_once() -> None:
    class Twice(PatternFusionPass):
        def patterns(self):
            one = written("p", lambda i: Abs(i[0]))
            return [one, one]

        def replacement(self, inputs):
            return Exp(inputs[0])

    result = run(Twice, siblings("Abs"))
    assert result.types() == ["Exp"]
    assert result.warnings == [
        "pattern number 1 of custom pass P is never matched: "
        "patterns() returns it twice, and a Pattern can be used once"
    ]


def test_a_pattern_that_is_kept_from_graph_to_graph() -> None:
    kept = written("p", lambda i: Abs(i[0]))

    class Kept(PatternFusionPass):
        def patterns(self):
            return [kept]

        def replacement(self, inputs):
            return Exp(inputs[0])

    assert run(Kept, siblings("Abs")).types() == ["Exp"]
    [warning] = run(Kept, siblings("Abs")).warnings
    assert "must make new Patterns" in warning


# -- where faults are -------------------------------------------------------------------------------------------------
HOOKS = """from ge.es.all import Relu
from ge.passes import DecomposePass, FusionBasePass, PassStage, PatternFusionPass, pattern, register_fusion_pass


class Base(PatternFusionPass):
    @pattern
    def a(self, inputs):
        return PATTERN

    def replacement(self, inputs):
        return REPLACEMENT


@register_fusion_pass(name="P", stage=PassStage.BEFORE_INFER_SHAPE)
class P(Base):
    def meet_requirements(self, match_result):
        return MEETS
"""


@pytest.mark.parametrize(
    ("hook", "value", "fault", "line"),
    [
        ("PATTERN", "1 / 0", "ZeroDivisionError", 8),
        ("PATTERN", "None", "TypeError: @pattern method a must return", 6),
        ("PATTERN", "Relu(3, 4, 5)", "TypeError", 8),
        ("REPLACEMENT", "1 / 0", "ZeroDivisionError", 11),
        ("REPLACEMENT", "None", "TypeError: replacement must return", 10),
        ("REPLACEMENT", "Relu('x')", "Error", 11),
        ("MEETS", "match_result.get_captured_tensor(9)", "Error", 17),
        ("MEETS", "undefined", "NameError", 17),
    ],
)
def test_faults_point_at_the_file_of_the_pass(tmp_path, hook, value, fault, line) -> None:
    path = tmp_path / "p.py"
    text = HOOKS.replace(hook, value)
    for name, sound in (("PATTERN", "Relu(inputs[0])"), ("REPLACEMENT", "inputs[0]"), ("MEETS", "True")):
        text = text.replace(name, sound)
    path.write_text(text)
    with registering_in(PassRegistry()):
        [descriptor] = load_pass_plugins(str(path))
    try:
        [told] = run(descriptor.cls, siblings("Relu")).warnings
    except PassFailure as failure:
        told = str(failure)
    assert fault in told
    at = re.search(r"\(([^()]*), line (\d+)\)$", told)
    assert at is not None
    assert at[1] == str(path)
    assert line in (int(at[2]), int(at[2]) + 1)  # a method begins with its decorator
