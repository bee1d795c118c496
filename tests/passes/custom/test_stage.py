"""Custom passes inside the pipeline: order, switches, what is checked behind them, what is repaired."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.es import GraphBuilder
from ge.es.all import Abs, ConcatV2, Exp, Maximum, Neg, Relu, Split
from ge.fusion_switches import FusionSwitches, parse_switch_list
from ge.graph import DataType, Format, Graph, Tensor, TensorDesc
from ge.options import CompileOptions, Environment
from ge.passes import (
    DecomposePass,
    FusionBasePass,
    PassStage,
    PatternFusionPass,
    infer_shape,
    pattern,
    register_decompose_pass,
    register_fusion_pass,
)
from ge.passes.registry import registering_in
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from passes.custom.stage import (
    AfterBuiltinFusion,
    AfterInferShape,
    AfterOriginGraphOptimize,
    BeforeInferShape,
    CustomStage,
)
from passes.driver import Driver
from passes.fusion.drop_idle_node import DropIdleNode
from passes.fusion.fuse_graph import run_fusion
from passes.pipeline import compile_passes

STAGES = [BeforeInferShape, AfterInferShape, AfterBuiltinFusion, AfterOriginGraphOptimize]

TEXT = """graph g(%x: f32[4]@ND) {
  %a = Abs(%x) -> f32[4]@ND
  %b = Neg(%a) -> f32[4]@ND
  %out:0 = NetOutput(%b)
  return %b as "y"
}"""


def session(**options: object) -> CompileSession:
    """A session whose pipeline has no built-in fusions."""
    switches = {"fusion_switches": FusionSwitches(is_level_one=True)}
    return CompileSession(CompileOptions(**(switches | options)), Environment())


def register(
    target: CompileSession, run: Callable[[Graph], object], name: str = "P", stage: str = "BeforeInferShape"
) -> None:
    """Register a pass that calls ``run`` with the graph."""
    with registering_in(target.passes):
        members = {"run": lambda self, graph, context: run(graph)}
        register_fusion_pass(name=name, stage=PassStage(stage))(type(name, (FusionBasePass,), members))


def failure(run: Callable[[Graph], object], text: str = TEXT, stage: type[CustomStage] = BeforeInferShape) -> str:
    """Return the E13028 with which a compile stops behind this pass."""
    target = session()
    register(target, run, "Culprit", stage.stage.value)
    with pytest.raises(ReportedError) as fault:
        stage().run(parse_graph(text), target)
    assert fault.value.code == "E13028"
    assert fault.value.fields["passname"] == "Culprit"
    return fault.value.message


# -- order and instances -----------------------------------------------------------------------------------------------
def test_case_30_passes_run_by_ascending_name() -> None:
    target, ran = session(), []
    for name in ("B", "A", "a"):
        register(target, lambda graph, name=name: ran.append(name), name)
    BeforeInferShape().run(parse_graph(TEXT), target)
    assert ran == ["A", "B", "a"]


def test_each_stage_runs_its_own_passes() -> None:
    target, ran = session(), []
    for stage in STAGES:
        register(target, lambda graph, s=stage: ran.append(s.stage.value), stage.stage.name, stage.stage.value)
    for stage in STAGES:
        stage().run(parse_graph(TEXT), target)
    assert ran == [stage.stage.value for stage in STAGES]


def test_instances_are_fresh() -> None:
    target, made = session(), []
    with registering_in(target.passes):

        @register_fusion_pass(name="P", stage=PassStage.BEFORE_INFER_SHAPE)
        class Counting(FusionBasePass):
            def __init__(self) -> None:
                made.append(self)

            def run(self, graph, context):
                assert not hasattr(self, "ran")
                self.ran = True

    for _ in range(2):
        BeforeInferShape().run(parse_graph(TEXT), target)
    assert len(made) == 2
    assert Counting


def test_stages_stand_where_their_dumps_are() -> None:
    steps = [step if isinstance(step, str) else type(step).__name__ for step in compile_passes()]
    for stage, dump in (
        ("BeforeInferShape", "RunCustomPassBeforeInfershape"),
        ("AfterInferShape", "RunCustomPass_AfterInferShape"),
        ("AfterBuiltinFusion", "RunCustomPassAfterBuiltinFusionPass"),
        ("AfterOriginGraphOptimize", "RunCustomPassAfterOriginGraphOptimize"),
    ):
        assert steps[steps.index(stage) + 1] == dump
    marks = (
        "PreRunBegin",
        "BeforeInferShape",
        "InferShapes",
        "AfterInfershape",
        "AfterInferShape",
        "PreRunAfterPrepare",
        "FuseGraph",
        "OptimizeOriginalGraph_FeGraphFusionAfter",
        "AfterBuiltinFusion",
        "PreRunAfterOptimizeOriginalGraph",
        "AfterOriginGraphOptimize",
        "PreRunAfterOptimizeGraphBeforeBuild",
    )
    places = [steps.index(mark) for mark in marks]
    assert places == sorted(places)


# -- switches: case 29 -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("file", "overrides", "runs"),
    [
        ({}, "", True),
        ({"P": False}, "", False),
        ({"ALL": False}, "", False),
        ({"ALL": False, "P": True}, "", True),
        ({"ALL": True, "P": False}, "", False),
        ({"p": False, "Other": False}, "", True),
        ({"P": True}, "P:off", False),
        ({"P": False}, "P:on", True),
        ({"ALL": False}, "P:on", True),
        ({}, "ALL:off", True),
    ],
)
def test_case_29_switches(file, overrides, runs) -> None:
    switches = FusionSwitches(graph=file, overrides=parse_switch_list(overrides))
    target, ran = session(fusion_switches=switches), []
    register(target, lambda graph: ran.append(1))
    BeforeInferShape().run(parse_graph(TEXT), target)
    assert bool(ran) is runs


def test_passes_that_are_off_are_not_even_made() -> None:
    target = session(fusion_switches=FusionSwitches(graph={"P": False}))
    with registering_in(target.passes):

        @register_fusion_pass(name="P", stage=PassStage.BEFORE_INFER_SHAPE)
        class Untouchable(FusionBasePass):
            def __init__(self) -> None:
                raise AssertionError

    assert not BeforeInferShape().run(parse_graph(TEXT), target)
    assert Untouchable


def test_the_level_of_optimisation_does_not_concern_custom_passes() -> None:
    assert FusionSwitches(is_level_one=True).allows_custom("P")
    assert not FusionSwitches(is_level_one=True).allows_builtin("P")


def test_options_reach_the_context() -> None:
    target, seen = session(ge_options={"ge.socVersion": "Ascend310P3"}), []
    with registering_in(target.passes):

        @register_fusion_pass(name="P", stage=PassStage.BEFORE_INFER_SHAPE)
        class Asking(FusionBasePass):
            def run(self, graph, context):
                seen.append((context.get_pass_name(), context.get_option_value("ge.socVersion")))

    BeforeInferShape().run(parse_graph(TEXT), target)
    assert seen == [("P", "Ascend310P3")]
    assert Asking


# -- what a pass must not leave ----------------------------------------------------------------------------------------
def rewire(graph: Graph) -> None:
    a, b = graph.find("a"), graph.find("b")
    graph.remove_edge(graph.find("x"), 0, a, 0)
    graph.add_data_edge(b, 0, a, 0)


def test_a_cycle() -> None:
    assert "it leaves an illegal graph: graph g, node b (Neg): cycle: b -> a" in failure(rewire)


def test_a_cycle_by_control_edges() -> None:
    message = failure(lambda graph: graph.add_control_edge(graph.find("b"), graph.find("a")))
    assert "cycle" in message


def test_an_unregistered_operator() -> None:
    message = failure(lambda graph: graph.set_type(graph.find("a"), "NoSuchOperator"))
    assert "node a (NoSuchOperator): the operator type is not registered" in message


def test_an_unconnected_input() -> None:
    message = failure(lambda graph: graph.remove_edge(graph.find("x"), 0, graph.find("a"), 0))
    assert "node a (Abs): required input x is not connected" in message


def test_arguments_that_do_not_fit() -> None:
    def concatenate(graph: Graph) -> None:
        perm = graph.add_const("perm", Tensor.of(np.array([0, 1, 2])))
        wrong = graph.add_node("Transpose", "wrong", [graph.find("x").output(), perm])
        graph.set_input(graph.find("a"), 0, wrong.output())

    message = failure(concatenate)
    assert "what it leaves cannot be inferred" in message
    assert "wrong" in message


def halve(graph: Graph) -> None:
    cast = graph.add_node("Cast", "half", [graph.find("b").output()], {"dst_type": 1})
    graph.set_input(graph.net_output(), 0, cast.output())


def test_a_result_of_another_type() -> None:
    message = failure(halve)
    assert "it changes the interface: result 0 of the model (half:0) was TensorDesc(DT_FLOAT, [4]@FORMAT_ND)" in message


def test_another_number_of_results() -> None:
    def add(graph: Graph) -> None:
        graph.append_input(graph.net_output(), graph.find("a").output())

    message = failure(add)
    assert "the model had 1 results, now it has 2" in message


def test_inputs_that_are_gone_renamed_or_retyped() -> None:
    text = TEXT.replace("(%x: f32[4]@ND)", "(%x: f32[4]@ND, %unused: f32[2]@ND)")
    message = failure(lambda graph: graph.remove_node(graph.find("unused")), text)
    assert "the inputs of the model were x (index 0), unused (index 1), now they are x (index 0)" in message
    assert "now they are y (index 0)" in failure(lambda graph: graph.rename(graph.find("x"), "y"))
    half = TensorDesc([4], data_type=DataType.DT_FLOAT16)
    assert "input x of the model was" in failure(lambda graph: graph.find("x").update_output_desc(0, half))


def test_inputs_in_another_order() -> None:
    def exchange(graph: Graph) -> None:
        graph.find("x").attrs["index"], graph.find("z").attrs["index"] = 1, 0

    text = TEXT.replace("(%x: f32[4]@ND)", "(%x: f32[4]@ND, %z: f32[4]@ND)")
    assert "x (index 0), z (index 1), now they are z (index 0), x (index 1)" in failure(exchange, text)


def test_a_net_output_that_is_gone() -> None:
    # what NetOutput read stays a result, but the passes that follow would look for it in vain
    found = failure(lambda graph: graph.remove_node(graph.net_output()))
    assert "the NetOutput of graph g was removed" in found


def test_a_body_with_other_results() -> None:
    text = """graph g(%c: bool[]@ND, %x: f32[4]@ND) {
  %y = If(%c, %x) {then_branch=@t, else_branch=@e} -> f32[4]@ND
  return %y
}
graph t(%t/in: f32[4]@ND) {
  return %t/in
}
graph e(%e/in: f32[4]@ND) {
  return %e/in
}"""

    def double(graph: Graph) -> None:
        body = graph.get_subgraph("t")
        body.outputs = [*body.outputs, *body.outputs]

    message = failure(double, text)
    assert "graph t, a body of a node, has other inputs or another number of results" in message


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [(False, "FAILED", "returned False"), (7, "7", "the status 7"), ("x", "FAILED", "unsupported type: str")],
)
def test_case_32_results_that_fail_the_compile(result, status, reason) -> None:
    target = session()
    register(target, lambda graph: result, "Culprit")
    with pytest.raises(ReportedError) as fault:
        BeforeInferShape().run(parse_graph(TEXT), target)
    assert fault.value.fields["retcode"] == status
    assert reason in fault.value.message


def test_a_pass_that_raises_is_named_with_the_line() -> None:
    def odd(graph: Graph) -> None:
        raise KeyError("weights")

    message = failure(odd)
    assert "The custom pass [Culprit] failed with FAILED. Reason: run() raised KeyError: 'weights'" in message
    assert "test_stage.py, line" in message


# -- descriptors: case 31 ----------------------------------------------------------------------------------------------
OPEN = """graph g(%x: f32[-1,8]@ND) {
  %a = Abs(%x) -> f32[-1,8]@ND
  %b = Neg(%a) -> f32[-1,8]@ND
  return %b
}"""


def replacing(target: CompileSession, stage: PassStage, *, infers: bool) -> list[list[int]]:
    """Register a pass that replaces Abs; return where it puts the shapes of its new nodes."""
    seen: list[list[int]] = []
    with registering_in(target.passes):

        @register_fusion_pass(name="P", stage=stage)
        class Replacing(PatternFusionPass):
            @pattern
            def found(self, inputs):
                return Abs(inputs[0])

            def replacement(self, match_result):
                builder = GraphBuilder("r")
                graph = builder.build_and_reset([Relu(Exp(builder.create_input(0)))])
                if infers:
                    infer_shape(graph, match_result)
                seen.extend(n.output_descs[0].shape.dims for n in graph if n.type in ("Exp", "Relu"))
                return graph

    assert Replacing
    return seen


@pytest.mark.parametrize(("infers", "expected"), [(False, [-2]), (True, [-1, 8])])
def test_case_31_descriptors_of_new_nodes(infers, expected) -> None:
    target = session()
    seen = replacing(target, PassStage.AFTER_INFER_SHAPE, infers=infers)
    graph = parse_graph(OPEN)
    AfterInferShape().run(graph, target)
    assert seen == [expected, expected]
    # ours: an omission is repaired, and said
    assert [n.output_descs[0].shape for n in graph if n.type in ("Exp", "Relu")] == [[-1, 8]] * 2
    said = [w for w in target.warnings if "leaves nodes without shapes: Exp_0_a_0 (Exp), Relu_1_a_1 (Relu)" in w]
    assert len(said) == (0 if infers else 1)


def test_nothing_is_said_before_shapes_are_inferred() -> None:
    target = session()
    replacing(target, PassStage.BEFORE_INFER_SHAPE, infers=False)
    BeforeInferShape().run(parse_graph(OPEN), target)
    assert target.warnings == []


STORED = """graph g(%x: f16[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0) {
  %a = Abs(%x) -> f16[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0
  %b = Neg(%a) -> f16[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0
  return %b
}"""


def test_storage_formats_are_left_alone_by_the_checks() -> None:
    """Inference knows origin shapes only: what has a descriptor keeps it, what has none gets the origin view."""
    target = session()
    replacing(target, PassStage.AFTER_ORIGIN_GRAPH_OPTIMIZE, infers=False)
    graph = parse_graph(STORED)
    AfterOriginGraphOptimize().run(graph, target)
    shapes = {n.type: (n.output_descs[0].shape.dims, n.output_descs[0].origin_shape.dims) for n in graph}
    assert shapes["Data"] == shapes["Neg"] == ([1, 2, 4, 4, 16], [1, 32, 4, 4])
    assert shapes["Exp"] == shapes["Relu"] == ([1, 32, 4, 4], [1, 32, 4, 4])
    assert "leaves nodes without shapes" in target.warnings[0]


TRANSFERRED = """graph g(%x: f16[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0) {
  %a = Abs(%x) -> f16[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0
  %c = Cast(%a) {dst_type=0} -> f32[1,32,4,4]@NCHW | [1,2,4,4,16]@NC1HWC0
  %t = TransData(%c) {src_format="NC1HWC0", dst_format="NCHW"} -> f32[1,32,4,4]@NCHW
  %out:0 = NetOutput(%t)
  return %t
}"""


@pytest.mark.parametrize(
    ("removed", "reason"),
    [
        ("t", "graph g, node out (NetOutput): result 0 lies in NC1HWC0, which nobody asked for"),
        ("c", "node t (TransData): it cannot turn DT_FLOAT16, which it reads of a:0, into DT_FLOAT"),
    ],
)
def test_what_moves_or_casts_a_result_cannot_be_taken_away(removed: str, reason: str) -> None:
    def take_away(graph: Graph) -> None:
        node = graph.find(removed)
        for end in list(node.consumers(0)):
            graph.set_input(end.node, end.index, node.input(0))
        graph.remove_unread(node)

    assert reason in failure(take_away, TRANSFERRED, AfterOriginGraphOptimize)


# -- the whole pipeline ------------------------------------------------------------------------------------------------
def test_what_becomes_of_constants_is_folded() -> None:
    """A constant that a pass splits is split when the model is compiled."""
    target = session()
    with registering_in(target.passes):

        @register_fusion_pass(name="P", stage=PassStage.AFTER_INFER_SHAPE)
        class Halves(PatternFusionPass):
            @pattern
            def found(self, inputs):
                return inputs[0] * inputs[1]

            def replacement(self, inputs, match_result):
                x, w = inputs[:2]
                xs, ws = Split(0, x, 2, num_split=2), Split(0, w, 2, num_split=2)
                return ConcatV2([Maximum(a, b) for a, b in zip(xs, ws, strict=True)], 0, N=2)

    graph = parse_graph("""graph g(%x: f32[4]@ND) {
  %w = Const {value=f32[4]{1.0, 2.0, 3.0, 4.0}} -> f32[4]@ND
  %m = Mul(%x, %w) -> f32[4]@ND
  return %m
}""")
    Driver(target).run(graph, compile_passes())
    assert sorted(n.type for n in graph if n.type not in ("Data", "Const", "NetOutput")) == [
        "ConcatV2",
        "Maximum",
        "Maximum",
        "Split",
    ]
    halves = [n.attrs["value"].data for n in graph.nodes_of_type("Const") if n.attrs["value"].desc.shape == [2]]
    assert sorted(halves) == [[1.0, 2.0], [3.0, 4.0]]
    assert Halves


@pytest.mark.parametrize("stage", list(PassStage))
def test_a_pass_at_every_stage_of_a_compile(stage) -> None:
    target = session()
    replacing(target, stage, infers=True)
    graph = parse_graph(TEXT)
    Driver(target).run(graph, compile_passes())
    assert [n.type for n in graph if n.type not in ("Data", "NetOutput")] == ["Exp", "Relu", "Neg"]
    assert target.plan.is_static
    assert [n.node for n in target.plan.graphs["g"].tasks] == ["Exp_0_a_0", "Relu_1_a_1", "b"]


def test_without_custom_passes_nothing_changes() -> None:
    graph = parse_graph(TEXT)
    for stage in STAGES:
        assert not stage().run(graph, session())
    assert print_graph(graph) == TEXT


# -- passes that change what they say that they leave alone ------------------------------------------------------------
def exchange_inputs(graph: Graph) -> None:
    graph.find("x").set_attr("index", 1)
    graph.find("z").set_attr("index", 0)


def close_cycle(graph: Graph) -> None:
    graph.set_input(graph.find("a"), 0, graph.find("b").output())


SILENT_FAULTS = {
    "the inputs of the model were x (index 0), z (index 1), now they are z (index 0), x (index 1)": exchange_inputs,
    "the NetOutput of graph g was removed": lambda graph: graph.remove_node(graph.net_output()),
    "cycle: ": close_cycle,
    "required input x is not connected": lambda graph: graph.remove_edge(graph.find("a"), 0, graph.find("b"), 0),
    "result 0 of the model": halve,
}
TWO_INPUTS = TEXT.replace("(%x: f32[4]@ND)", "(%x: f32[4]@ND, %z: f32[4]@ND)")


@pytest.mark.parametrize("reason", SILENT_FAULTS)
@pytest.mark.parametrize("status", [0x50100040, 0x50104040])
def test_faults_of_a_pass_that_says_that_it_changed_nothing(reason: str, status: int) -> None:
    def run(graph: Graph) -> int:
        SILENT_FAULTS[reason](graph)
        return status

    assert reason in failure(run, TWO_INPUTS)


@pytest.mark.parametrize("kind", [PatternFusionPass, DecomposePass])
@pytest.mark.parametrize("reason", SILENT_FAULTS)
def test_faults_of_a_hook_that_should_only_look(reason: str, kind: type) -> None:
    target = session()
    with registering_in(target.passes):
        _register_meddler(kind, SILENT_FAULTS[reason])
    with pytest.raises(ReportedError) as fault:
        BeforeInferShape().run(parse_graph(TWO_INPUTS), target)
    assert fault.value.code == "E13028"
    assert fault.value.fields["passname"] == "Culprit"
    assert reason in fault.value.message


def _register_meddler(kind: type, meddle: Callable[[Graph], None]) -> None:
    """Register a pass whose meet_requirements changes the graph and says no."""

    def meets(self: object, subject: object) -> bool:
        node = subject if kind is DecomposePass else subject.get_matched_nodes()[0]
        meddle(node.graph)
        return False

    members = {"meet_requirements": meets, "replacement": lambda self, subject: None}
    if kind is DecomposePass:
        register_decompose_pass(name="Culprit", stage=PassStage.BEFORE_INFER_SHAPE, op_types=["Neg"])(
            type("Culprit", (kind,), members)
        )
    else:
        members["negative"] = pattern(lambda self, inputs: Neg(inputs[0]))
        register_fusion_pass(name="Culprit", stage=PassStage.BEFORE_INFER_SHAPE)(type("Culprit", (kind,), members))


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.set_type(graph.find("b"), "Exp"),
        lambda graph: graph.find("b").set_attr("_note", 1),
        lambda graph: graph.add_control_edge(graph.find("x"), graph.find("b")),
        lambda graph: graph.rename(graph.find("b"), "c"),
        lambda graph: graph.find("b").update_output_desc(0, TensorDesc([4], origin_format=Format.FORMAT_NCHW)),
    ],
    ids=["type", "attribute", "control edge", "name", "descriptor"],
)
def test_a_legal_change_that_is_not_told_is_taken_with_a_warning(change: Callable[[Graph], None]) -> None:
    def run(graph: Graph) -> int:
        change(graph)
        return 0x50100040

    target = session()
    register(target, run, "Quiet")
    assert BeforeInferShape().run(parse_graph(TEXT), target)
    [warning] = target.warnings
    assert "custom pass Quiet changes the graph although it says that it does not" in warning


def test_looking_at_the_graph_is_no_change() -> None:
    def run(graph: Graph) -> int:
        for node in graph.get_all_nodes():
            node.get_input_desc(0) if node.inputs else node.get_output_desc(0)
            str(graph), [node.get_attr(name) for name in node.attrs]
        return 0x50100040

    target = session()
    register(target, run)
    assert not BeforeInferShape().run(parse_graph(TEXT), target)
    assert target.warnings == []


def test_a_node_that_reads_an_input_cannot_be_computed_when_the_model_is_loaded() -> None:
    message = failure(lambda graph: graph.find("a").set_attr("_load_time_const", True))
    assert "node a (Abs): is computed when the model is loaded, but reads x:0, which is not constant" in message


def test_a_built_in_fusion_that_fails_is_no_custom_pass(monkeypatch) -> None:
    monkeypatch.setattr(DropIdleNode, "run", lambda self, graph, context: 1 / 0)
    with pytest.raises(ReportedError) as fault:
        run_fusion(DropIdleNode, parse_graph(TEXT), CompileSession(CompileOptions(), Environment()))
    assert fault.value.code == "E19999"
    assert f"fusion {DropIdleNode.name} failed: run() raised ZeroDivisionError" in fault.value.message


@pytest.mark.parametrize("kind", [PatternFusionPass, DecomposePass])
@pytest.mark.parametrize("hook", ["meet_requirements", "replacement"])
@pytest.mark.parametrize("victim", ["x", "a", "b"])
def test_hooks_that_take_away_what_is_to_be_replaced(kind: type, hook: str, victim: str) -> None:
    def meddle(self: object, subject: object) -> object:
        node = subject if kind is DecomposePass else subject.get_matched_nodes()[0]
        graph = node.graph
        graph.remove_node(graph.find(victim))
        if hook == "meet_requirements":
            return True
        builder = GraphBuilder("r")
        return builder.build_and_reset([Exp(*builder.create_inputs(1))])

    members = {hook: meddle}
    if hook == "meet_requirements":
        members["replacement"] = lambda self, subject: None
    target = session()
    with registering_in(target.passes):
        if kind is DecomposePass:
            register = register_decompose_pass(name="Culprit", stage=PassStage.BEFORE_INFER_SHAPE, op_types=["Neg"])
        else:
            members["negative"] = pattern(lambda self, inputs: Neg(inputs[0]))
            register = register_fusion_pass(name="Culprit", stage=PassStage.BEFORE_INFER_SHAPE)
        register(type("Culprit", (kind,), members))
    with pytest.raises(ReportedError) as fault:
        BeforeInferShape().run(parse_graph(TEXT), target)
    assert (fault.value.code, fault.value.fields["passname"]) == ("E13028", "Culprit")
