"""What is checked when a class of passes comes to be, how its hooks are called, and what their faults do."""

from __future__ import annotations

import pytest

from ge.es import GraphBuilder
from ge.es.all import Abs, Exp, Relu
from ge.graph import Graph
from ge.passes import (
    DecomposePass,
    FusionBasePass,
    MatchResult,
    PassContext,
    PatternFusionPass,
    PatternMatcherConfigBuilder,
    create_pattern,
    pattern,
)
from ge.passes.engine import PassFailure
from tests.ge.passes.pass_run import run

TEXT = "graph g(%x: f32[4]@ND) {\n  %a = Abs(%x) -> f32[4]@ND\n  return %a\n}"


# -- classes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("base", [PatternFusionPass, DecomposePass])
def test_run_may_not_be_overridden(base) -> None:
    with pytest.raises(TypeError, match=r"Odd overrides run\(\)"):
        type("Odd", (base,), {"run": lambda self, graph, context: None})


@pytest.mark.parametrize("base", [PatternFusionPass, DecomposePass])
@pytest.mark.parametrize("hook", ["meet_requirements", "replacement"])
@pytest.mark.parametrize(
    "function",
    [lambda self: None, lambda self, a, b, c: None, lambda self, a, *, needed: None],
    ids=["too few", "too many", "required keyword"],
)
def test_hooks_take_their_subject_and_perhaps_the_context(base, hook, function) -> None:
    with pytest.raises(TypeError, match=rf"Odd\.{hook}\(.*cannot be called"):
        type("Odd", (base,), {hook: function})


def test_an_expression_takes_no_more_than_inputs_match_and_context() -> None:
    with pytest.raises(TypeError, match="with four arguments must be"):

        class Odd(PatternFusionPass):
            def replacement(self, inputs, match_result, other):
                return inputs[0]

    with pytest.raises(TypeError, match="cannot be called"):

        class Odder(PatternFusionPass):
            def replacement(self, inputs, match_result, context, more):
                return inputs[0]


@pytest.mark.parametrize("function", [lambda self: None, lambda self, inputs, more: None], ids=["none", "two"])
def test_pattern_methods_take_inputs_only(function) -> None:
    function.__name__ = "odd"
    with pytest.raises(TypeError, match=r"Odd\.odd: @pattern methods only support method\(self, inputs\)"):
        type("Odd", (PatternFusionPass,), {"odd": pattern(function)})


def test_patterns_are_written_in_one_style() -> None:
    with pytest.raises(TypeError, match=r"Odd cannot combine @pattern methods with patterns\(\)"):

        class Odd(PatternFusionPass):
            @pattern
            def one(self, inputs):
                return Abs(inputs[0])

            def patterns(self):
                return []


def test_pattern_methods_are_not_inherited() -> None:
    class Base(PatternFusionPass):
        @pattern
        def one(self, inputs):
            return Abs(inputs[0])

        @pattern
        def two(self, inputs):
            return Exp(inputs[0])

    class Child(Base):
        @pattern
        def three(self, inputs):
            return Relu(inputs[0])

    assert [p.graph.name for p in Base().patterns()] == ["Base_one_pattern", "Base_two_pattern"]
    assert [p.graph.name for p in Child().patterns()] == ["Child_three_pattern"]
    assert [p.graph.name for p in type("Same", (Base,), {})().patterns()] == ["Same_one_pattern", "Same_two_pattern"]


# -- expressions ---------------------------------------------------------------------------------------------------
def expression(result) -> type[PatternFusionPass]:
    class Expression(PatternFusionPass):
        @pattern
        def found(self, inputs):
            return result(inputs)

        def replacement(self, inputs):
            return inputs[0]

    return Expression


def test_inputs_come_to_be_when_asked_for() -> None:
    [found] = expression(lambda inputs: Abs(inputs[2])).__call__().patterns()
    assert sorted(n.name for n in found.graph.nodes_of_type("Data")) == ["input_0", "input_1", "input_2"]


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda i: i["0"], TypeError),
        (lambda i: i[1.0], TypeError),
        (lambda i: i[-1], ValueError),
        (lambda i: i[:], ValueError),
        (lambda i: i[0:4:2], ValueError),
        (lambda i: i[-1:2], ValueError),
        (lambda i: i[3:1], ValueError),
        (lambda i: i[1 << 40], ValueError),
        (lambda i: i[:"2"], TypeError),
        (list, TypeError),
    ],
)
def test_inputs_are_asked_for_by_number(use, error) -> None:
    with pytest.raises(error):
        expression(use)().patterns()


def test_inputs_and_outputs_are_captured() -> None:
    [found] = expression(lambda i: [Abs(i[1]), Exp(i[0])])().patterns()
    assert [t.node.name for t in found.get_captured_tensors()] == ["input_0", "input_1", "Abs_0", "Exp_1"]


@pytest.mark.parametrize("result", [None, [], 1.0, [1], "y"])
def test_a_pattern_method_returns_tensors(result) -> None:
    with pytest.raises(TypeError, match="must return a TensorHolder or a non-empty list or tuple"):
        expression(lambda inputs: result)().patterns()


def test_a_pattern_method_makes_one_pattern() -> None:
    def graph() -> Graph:
        builder = GraphBuilder("own")
        return builder.build_and_reset([Abs(builder.create_input(0))])

    assert [p.graph.name for p in expression(lambda i: graph())().patterns()] == ["own"]
    assert [p.graph.name for p in expression(lambda i: create_pattern(graph()))().patterns()] == ["own"]
    with pytest.raises(TypeError, match="supports a single pattern only"):
        expression(lambda i: [graph(), graph()])().patterns()


# -- how hooks are called ------------------------------------------------------------------------------------------
def replacing(replacement, meets=None) -> type[PatternFusionPass]:
    members = {"found": pattern(lambda self, inputs: Abs(inputs[0])), "replacement": replacement}
    members["found"].__name__ = "found"
    if meets is not None:
        members["meet_requirements"] = meets
    return type("Replacing", (PatternFusionPass,), members)


def built(name: str = "own") -> Graph:
    builder = GraphBuilder(name)
    return builder.build_and_reset([Exp(builder.create_input(0))])


REPLACEMENTS = {
    "inputs": lambda self, inputs: Exp(inputs[0]),
    "inputs, context": lambda self, inputs, context: Exp(inputs[0]) if context.get_pass_name() == "P" else None,
    "inputs, match": lambda self, inputs, match: Exp(inputs[0]) if match.get_matched_nodes() else None,
    "inputs, match, context": lambda self, inputs, match, context: [Exp(inputs[0])] if context else None,
    "graph from expression": lambda self, inputs: built(),
    "match": lambda self, match: built() if match.get_matched_nodes() else None,
    "match, context": lambda self, match, context: built(context.get_pass_name()),
}


@pytest.mark.parametrize("style", REPLACEMENTS)
def test_all_styles_of_replacement(style) -> None:
    result = run(replacing(REPLACEMENTS[style]), TEXT)
    assert result.types() == ["Exp"]


def test_the_context_reaches_meet_requirements() -> None:
    seen = []

    def meets(self, match_result, context):
        seen.append((str(match_result), context.get_pass_name()))
        return False

    run(replacing(REPLACEMENTS["inputs"], meets), TEXT, "Named")
    assert seen == [("pattern Replacing_found_pattern: a (Abs)", "Named")]


def test_the_replacement_graph_is_named_after_the_class() -> None:
    names = []

    def replacement(self, inputs):
        names.append(inputs[0].get_owner_builder().name)
        return inputs[0]

    run(replacing(replacement), TEXT)
    assert names == ["Replacing_replacement"]


@pytest.mark.parametrize(("answer", "expected"), [([1], True), ("", False), (0, False), (None, False)])
def test_truth_is_enough_for_meet_requirements(answer, expected) -> None:
    assert run(replacing(REPLACEMENTS["inputs"], lambda self, match: answer), TEXT).changed is expected


def test_a_match_result_expires_with_its_hook() -> None:
    kept: list[MatchResult] = []
    cls = replacing(REPLACEMENTS["inputs"], lambda self, match: kept.append(match) or True)
    run(cls, TEXT)
    for question in (kept[0].get_matched_nodes, kept[0].get_pattern_graph_name, lambda: kept[0].get_captured_tensor(0)):
        with pytest.raises(RuntimeError, match="MatchResult handle has expired"):
            question()


def test_captured_tensors_are_asked_for_by_number() -> None:
    def meets(self, match):
        assert match.get_captured_tensor(1).node.name == "a"
        with pytest.raises(RuntimeError):
            match.get_captured_tensor(-1)
        with pytest.raises(TypeError):
            match.get_captured_tensor("0")
        return True

    assert not run(replacing(REPLACEMENTS["inputs"], meets), TEXT).warnings


# -- faults of hooks: case 33 ----------------------------------------------------------------------------------------
def boom(*args: object) -> None:
    raise ValueError("boom")


def test_case_33_patterns_that_raise_leave_the_pass_idle() -> None:
    class Odd(PatternFusionPass):
        patterns = boom

        def replacement(self, inputs):
            return inputs[0]

    result = run(Odd, TEXT)
    assert not result.changed
    assert ["does nothing: patterns() failed: ValueError: boom" in w for w in result.warnings] == [True]


def leave(*args: object) -> None:
    raise SystemExit(0)


def test_hooks_cannot_end_the_process() -> None:
    idle = type("Idle", (replacing(REPLACEMENTS["inputs"]),), {"patterns": leave})
    assert "does nothing: patterns() failed: SystemExit" in run(idle, TEXT).warnings[0]
    refusing = replacing(REPLACEMENTS["inputs"], lambda self, match: leave())
    assert "meet_requirements() failed: SystemExit" in run(refusing, TEXT).warnings[0]
    with pytest.raises(PassFailure, match=r"replacement\(\) raised SystemExit"):
        run(replacing(lambda self, match: leave()), TEXT)


@pytest.mark.parametrize("given", ["text", 7, [3], [None]])
def test_patterns_that_are_none_leave_the_pass_idle(given) -> None:
    class Odd(PatternFusionPass):
        def patterns(self):
            return given

        def replacement(self, inputs):
            return inputs[0]

    result = run(Odd, TEXT)
    assert not result.changed
    assert "TypeError" in result.warnings[0]


def test_case_33_meet_requirements_that_raises_says_no() -> None:
    result = run(replacing(REPLACEMENTS["inputs"], lambda self, match: boom()), TEXT)
    assert not result.changed
    assert result.times == (1, 0)
    assert "leaves a match alone: meet_requirements() failed: ValueError: boom" in result.warnings[0]


@pytest.mark.parametrize(
    ("replacement", "reason"),
    [
        (lambda self, match: boom(), r"replacement\(\) raised ValueError: boom .*test_pass_classes.py, line"),
        (lambda self, match: None, "PatternFusionPass.replacement must return ge.graph.Graph, not NoneType"),
        (lambda self, match: "graph", "PatternFusionPass.replacement must return ge.graph.Graph, not str"),
        (lambda self, inputs: None, "replacement must return a TensorHolder or a non-empty list"),
        (lambda self, inputs: [], "replacement must return a TensorHolder or a non-empty list"),
    ],
)
def test_case_33_a_replacement_that_fails_fails_the_pass(replacement, reason) -> None:
    with pytest.raises(PassFailure, match=reason):
        run(replacing(replacement), TEXT)


def test_a_constructor_that_fails_fails_the_pass() -> None:
    cls = replacing(REPLACEMENTS["inputs"])
    with pytest.raises(PassFailure, match=r"the constructor raised ValueError: boom"):
        run(type("Odd", (cls,), {"__init__": boom}), TEXT)


def test_a_constructor_must_call_its_base() -> None:
    cls = replacing(REPLACEMENTS["inputs"])
    with pytest.raises(PassFailure, match="matcher_config raised AttributeError"):
        run(type("Odd", (cls,), {"__init__": lambda self: None}), TEXT)


def test_the_matcher_config_is_a_matcher_config() -> None:
    cls = replacing(REPLACEMENTS["inputs"])
    odd = type("Odd", (cls,), {"__init__": lambda self: PatternFusionPass.__init__(self, "strict")})
    with pytest.raises(PassFailure, match="matcher_config must be a PatternMatcherConfig or None, not str"):
        run(odd, TEXT)


def test_a_hook_may_not_remove_what_is_about_to_be_replaced() -> None:
    def meets(self, match):
        [node] = match.get_matched_nodes()
        node.graph.remove_node(node)
        return True

    graph = "graph g(%x: f32[4]@ND) {\n  %a = Abs(%x)\n  %b = Neg(%x)\n  %c = Exp(%a)\n  return %b\n}"
    with pytest.raises(PassFailure, match=r"meet_requirements\(\) removed node a"):
        run(replacing(REPLACEMENTS["inputs"], meets), graph)


def test_base_classes_say_what_is_missing() -> None:
    class Bare(PatternFusionPass):
        @pattern
        def found(self, inputs):
            return Abs(inputs[0])

    with pytest.raises(PassFailure, match=r"Bare does not define replacement\(\)"):
        run(Bare, TEXT)
    with pytest.raises(PassFailure, match=r"FusionBasePass does not define run\(\)"):
        run(FusionBasePass, TEXT)
    assert "has no patterns" in run(PatternFusionPass, TEXT).warnings[0]


# -- run(): case 32 --------------------------------------------------------------------------------------------------
def returning(value) -> type[FusionBasePass]:
    return type("Returning", (FusionBasePass,), {"run": lambda self, graph, context: value})


@pytest.mark.parametrize("value", [None, True, 0])
def test_case_32_successes_of_run(value) -> None:
    assert run(returning(value), TEXT).changed


@pytest.mark.parametrize("value", [1343225920, 1343242304])
def test_not_changed_is_no_failure(value) -> None:
    assert not run(returning(value), TEXT).changed


@pytest.mark.parametrize(
    ("value", "reason", "status"),
    [
        (False, r"run\(\) returned False", "FAILED"),
        (7, r"run\(\) returned the status 7", "7"),
        (-1, r"run\(\) returned the status -1", "-1"),
        ("x", "python pass returned unsupported type: str", "FAILED"),
        (1.0, "python pass returned unsupported type: float", "FAILED"),
    ],
)
def test_case_32_failures_of_run(value, reason, status) -> None:
    with pytest.raises(PassFailure, match=reason) as failure:
        run(returning(value), TEXT)
    assert failure.value.retcode == status


@pytest.mark.parametrize("fault", [ValueError("boom"), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_case_32_run_that_raises(fault) -> None:
    def odd(self, graph, context):
        raise fault

    with pytest.raises(PassFailure, match=rf"run\(\) raised {type(fault).__name__}"):
        run(type("Odd", (FusionBasePass,), {"run": odd}), TEXT)


def test_the_message_of_the_context_comes_first() -> None:
    def odd(self, graph, context):
        context.set_error_message("the weights are missing")
        return False

    with pytest.raises(PassFailure, match=r"the weights are missing \(run\(\) returned False\)"):
        run(type("Odd", (FusionBasePass,), {"run": odd}), TEXT)


# -- context and configuration -------------------------------------------------------------------------------------
def test_a_context_by_itself() -> None:
    context = PassContext()
    assert (context.get_pass_name(), context.get_error_message()) == ("", "")
    context.set_pass_name("P")
    context.set_error_message("oh")
    assert (context.get_pass_name(), context.get_error_message()) == ("P", "oh")
    with pytest.raises(RuntimeError, match=r"^Failed to get option value for key: ge\.x$"):
        context.get_option_value("ge.x")
    with pytest.raises(TypeError):
        context.set_pass_name(3)


def test_a_context_knows_the_options() -> None:
    assert PassContext("P", options={"ge.socVersion": "A"}).get_option_value("ge.socVersion") == "A"


def test_matcher_configurations() -> None:
    plain = PatternMatcherConfigBuilder().build()
    both = PatternMatcherConfigBuilder().enable_const_value_match().enable_ir_attr_match().build()
    assert [plain.is_enable_const_value_match(), plain.is_enable_ir_attr_match()] == [False, False]
    assert [both.is_enable_const_value_match(), both.is_enable_ir_attr_match()] == [True, True]
