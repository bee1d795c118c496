"""The names of ge.passes, patterns and captures, registration."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import ge.passes
from ge.es import GraphBuilder
from ge.es.all import Abs, LayerNorm
from ge.graph import Graph
from ge.passes import (
    DecomposePass,
    FusionBasePass,
    NodeIo,
    PassStage,
    Pattern,
    PatternFusionPass,
    clear_registered_passes,
    create_pattern,
    create_replacement,
    get_registered_pass_by_descriptor_key,
    get_registered_pass_dicts,
    get_registered_passes,
    register_decompose_pass,
    register_fusion_pass,
)
from ge.passes.registry import PassRegistry, RegistrationFault, registering_in

NAMES = set(
    """DecomposePass FuseCheckResult FusionBasePass MatchResult NodeIo PassStage PassContext Pattern
PatternMatcherConfig PatternMatcherConfigBuilder PatternFusionPass SubgraphInput SubgraphOutput SubgraphBoundary
SubgraphRewriter can_fuse clear_registered_passes create_pattern create_replacement
get_registered_pass_by_descriptor_key get_registered_pass_dicts get_registered_passes infer_shape pattern
register_decompose_pass register_fusion_pass report_fuse""".split()  # noqa: SIM905
)


# -- the package -----------------------------------------------------------------------------------------------------
def test_all_names_are_there() -> None:
    assert set(ge.passes.__all__) == NAMES
    for name in NAMES:
        assert getattr(ge.passes, name) is not None
    assert set(dir(ge.passes)) >= NAMES


@pytest.mark.parametrize("name", ["base", "pattern", "replacement", "registry", "bootstrap", "fuse_inspector"])
def test_submodules_are_there(name) -> None:
    importlib.import_module(f"ge.passes.{name}")


@pytest.mark.parametrize("name", ["PatternMatcher", "capture", "__wrapped__"])
def test_unknown_names_are_attribute_errors(name) -> None:
    with pytest.raises(AttributeError, match=f"module 'ge.passes' has no attribute '{name}'"):
        getattr(ge.passes, name)


@pytest.mark.parametrize(
    "first", ["import ge.passes.pattern", "from ge.passes.pattern import Pattern", "import ge.passes"]
)
def test_the_decorator_is_not_hidden_by_its_module(first) -> None:
    code = f"{first}\nfrom ge.passes import pattern\nassert pattern(lambda self, inputs: None)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_imported_when_they_are_asked_for() -> None:
    code = "import ge.passes, sys\nassert 'ge.passes.engine' not in sys.modules and 'ge.passes.base' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_stages() -> None:
    assert [(s.name, s.value) for s in PassStage] == [
        ("BEFORE_INFER_SHAPE", "BeforeInferShape"),
        ("AFTER_INFER_SHAPE", "AfterInferShape"),
        ("AFTER_BUILTIN_FUSION_PASS", "AfterBuiltinFusionPass"),
        ("AFTER_ORIGIN_GRAPH_OPTIMIZE", "AfterOriginGraphOptimize"),
    ]
    assert PassStage("AfterInferShape") == "AfterInferShape"
    assert isinstance(PassStage.AFTER_INFER_SHAPE, str)


# -- patterns --------------------------------------------------------------------------------------------------------
def two_nodes() -> tuple[Graph, list]:
    builder = GraphBuilder("p")
    x, gamma, beta = builder.create_inputs(3)
    norm = LayerNorm(x, gamma, beta)
    out = Abs(norm.mean)
    return builder.build_and_reset([out]), [x, norm, out]


def test_captures_chain_and_take_tensors_nodes_and_ends() -> None:
    graph, [x, norm, _] = two_nodes()
    node = norm.mean._get_node_snapshot()
    pattern = create_pattern(graph)
    chained = pattern.capture_tensor(x).capture_tensor(node).capture_tensor(node, 2).capture_tensor(NodeIo(node, 1))
    assert chained is pattern
    captured = pattern.get_captured_tensors()
    assert [(t.node.name, t.index) for t in captured] == [
        ("input_0", 0),
        (node.name, 0),
        (node.name, 2),
        (node.name, 1),
    ]


def test_quirk_a_tensor_without_index_is_captured_as_output_0() -> None:
    """GE: the index that a TensorHolder stands for is not looked at."""
    graph, [_, norm, _] = two_nodes()
    pattern = create_pattern(graph).capture_tensor(norm.mean).capture_tensor(norm.mean, 1)
    assert [t.index for t in pattern.get_captured_tensors()] == [0, 1]


@pytest.mark.parametrize("source", [None, "Abs_1", 3, object()])
def test_only_tensors_are_captured(source) -> None:
    with pytest.raises(TypeError, match="must be a TensorHolder, a Node or a NodeIo"):
        create_pattern(two_nodes()[0]).capture_tensor(source)


def test_captures_are_checked() -> None:
    graph, [_, norm, out] = two_nodes()
    pattern, stranger = create_pattern(graph), two_nodes()[1][2]
    with pytest.raises(RuntimeError, match="is not in the pattern graph p"):
        pattern.capture_tensor(stranger)
    with pytest.raises(RuntimeError, match="has 3 outputs, no output 3"):
        pattern.capture_tensor(norm.mean, 3)
    with pytest.raises(TypeError):
        pattern.capture_tensor(out, "0")
    with pytest.raises(TypeError, match="leave index out"):
        pattern.capture_tensor(NodeIo(out._get_node_snapshot()), 0)


def test_a_pattern_is_released_once() -> None:
    pattern = create_pattern(two_nodes()[0])
    assert pattern.is_valid()
    pattern.release()
    assert not pattern.is_valid()
    for call in (pattern.release, pattern.get_captured_tensors, lambda: pattern.capture_tensor(None)):
        with pytest.raises(RuntimeError, match="Pattern handle has been released"):
            call()


def test_a_pattern_takes_its_graph_over() -> None:
    graph = two_nodes()[0]
    Pattern(graph)
    with pytest.raises(RuntimeError, match="was given to a Pattern already"):
        Pattern(graph)
    with pytest.raises(TypeError):
        Pattern("graph")


def test_a_replacement_is_a_graph() -> None:
    graph = two_nodes()[0]
    assert create_replacement(graph) is graph
    with pytest.raises(TypeError):
        create_replacement(None)


def test_ends_of_edges_are_frozen() -> None:
    _, [_, _, out] = two_nodes()
    end = NodeIo(out._get_node_snapshot())
    assert end.index == 0
    with pytest.raises(AttributeError):
        end.index = 1  # type: ignore[misc]


# -- registration ------------------------------------------------------------------------------------------------------
@pytest.fixture(autouse=True)
def registry():
    found = PassRegistry()
    with registering_in(found):
        yield found


def test_registered_classes_are_described() -> None:
    @register_fusion_pass(name="B", stage=PassStage.AFTER_INFER_SHAPE)
    class Base(FusionBasePass):
        pass

    @register_fusion_pass(name="A", stage=PassStage.BEFORE_INFER_SHAPE)
    class Fusion(PatternFusionPass):
        pass

    @register_decompose_pass(name="C", stage="AfterBuiltinFusionPass", op_types=("Conv2D", "Abs"))
    class Split(DecomposePass):
        pass

    found = get_registered_passes()
    assert [(d.pass_name, d.kind, d.stage.name) for d in found] == [
        ("B", "fusion_base", "AFTER_INFER_SHAPE"),
        ("A", "pattern_fusion", "BEFORE_INFER_SHAPE"),
        ("C", "decompose", "AFTER_BUILTIN_FUSION_PASS"),
    ]
    assert Fusion.__ge_pass_descriptor__ is found[1]
    assert found[1].cls is Fusion
    assert Split.op_types == ["Conv2D", "Abs"]
    key = f"{__name__}:{Split.__qualname__}:C"
    assert get_registered_pass_by_descriptor_key(key) is found[2]
    assert get_registered_pass_by_descriptor_key("none") is None
    assert get_registered_pass_dicts()[2] == {
        "descriptor_key": key,
        "pass_name": "C",
        "module_name": __name__,
        "class_name": Split.__qualname__,
        "stage": "AfterBuiltinFusionPass",
        "kind": "decompose",
        "op_types": ["Conv2D", "Abs"],
    }
    clear_registered_passes()
    assert get_registered_passes() == []
    assert Base


def test_names_are_taken_once() -> None:
    decorate = register_fusion_pass(name="Same", stage=PassStage.BEFORE_INFER_SHAPE)
    decorate(type("One", (FusionBasePass,), {}))
    with pytest.raises(ValueError, match=r"^python pass name already exists: Same$"):
        decorate(type("Two", (FusionBasePass,), {}))


def test_keys_are_taken_once(registry) -> None:
    from dataclasses import replace

    cls = register_fusion_pass(name="N", stage=PassStage.BEFORE_INFER_SHAPE)(type("One", (FusionBasePass,), {}))
    twin = replace(cls.__ge_pass_descriptor__, pass_name="Other")
    with pytest.raises(ValueError, match=r"^python pass descriptor_key already exists: .*:One:N$"):
        registry.add(twin)


STAGE = PassStage.BEFORE_INFER_SHAPE


@pytest.mark.parametrize(
    ("register", "error"),
    [
        (lambda: register_fusion_pass(name="P", stage=STAGE)(int), TypeError),
        (lambda: register_fusion_pass(name="P", stage=STAGE)(FusionBasePass()), TypeError),
        (lambda: register_fusion_pass(name="P", stage=STAGE)(type("D", (DecomposePass,), {})), TypeError),
        (lambda: register_fusion_pass(name=3, stage=STAGE), TypeError),
        (lambda: register_fusion_pass(name=" ", stage=STAGE), ValueError),
        (lambda: register_fusion_pass(name="P", stage=3), TypeError),
        (lambda: register_fusion_pass(name="P", stage="Sometime"), ValueError),
        (lambda: register_fusion_pass(name="P", stage=STAGE, kind="pattern_fusion")(FusionBasePass), ValueError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types="Abs"), TypeError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types=b"Abs"), TypeError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types=7), TypeError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types=["Abs", 3]), TypeError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types=[]), ValueError),
        (lambda: register_decompose_pass(name="P", stage=STAGE, op_types=["A"])(PatternFusionPass), TypeError),
    ],
)
def test_what_cannot_be_registered(register, error) -> None:
    with pytest.raises(error) as fault:
        register()
    assert isinstance(fault.value, RegistrationFault)
    assert get_registered_passes() == []


def test_case_30_passes_of_a_stage_run_by_name(registry) -> None:
    for name in ("b", "C", "a", "B"):
        register_fusion_pass(name=name, stage=STAGE)(type(name, (FusionBasePass,), {}))
    assert [d.pass_name for d in registry.of_stage(STAGE)] == ["B", "C", "a", "b"]
    assert registry.of_stage(PassStage.AFTER_INFER_SHAPE) == []
