"""Memory plans of whole graphs, executed on a symbolic memory and measured without the planner's own notions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph import Graph, TensorDesc
from ge.plan import Plan, Task, align
from ge.plan_check import check_plan
from ge.text import parse_graph
from passes.build.memory_plan import PlanMemory
from passes.build.output_copies import CopyIntoOutputs
from passes.build.task_list import BuildTasks
from passes.build.topological_order import SortingMode, SortTopologically
from tests.passes.build.memory_machine import build_session, most_bytes_in_use, run_symbolically
from tests.passes.build.random_graph import random_graph

ROOT = Path(__file__).resolve().parents[3]


def planned(graph: Graph, mode: int = SortingMode.DFS, is_reusing: bool = True) -> Plan:
    session = build_session()
    for step in (CopyIntoOutputs(), SortTopologically(mode), BuildTasks(), PlanMemory(is_reusing)):
        step.run(graph, session)
    return session.plan


@given(st.integers(0, 2**32), st.integers(0, 40), st.sampled_from(SortingMode), st.booleans())
def test_random_graphs_compute_what_they_say(seed, n_nodes, mode, is_reusing) -> None:
    graph = random_graph(seed, n_nodes)
    plan = planned(graph, mode, is_reusing)
    part = plan.graphs[graph.name]
    check_plan(graph, plan)
    run_symbolically(graph, part)
    assert part.bound == most_bytes_in_use(graph, part)
    assert part.bound <= part.arena_size <= part.naive_size
    assert part.arena_size == max((block.offset + align(block.size) for block in part.blocks.values()), default=0)
    if not is_reusing:
        assert part.arena_size == part.naive_size


def test_a_diamond_keeps_the_skipped_tensor_alive() -> None:
    graph = parse_graph("""graph g(%x: f32[256]@ND) {
  %a = MatMulV2(%x) -> f32[1024]@ND
  %b = MatMulV2(%a) -> f32[2048]@ND
  %c = MatMulV2(%b) -> f32[1024]@ND
  %y = ConcatD(%a, %c) -> f32[256]@ND
  return %y
}""")
    part = planned(graph).graphs["g"]
    run_symbolically(graph, part)
    assert [task.node for task in part.tasks] == ["a", "b", "c", "y"]
    assert part.naive_size == 1024 + 4096 + 8192 + 4096 + 1024
    assert part.bound == part.arena_size == 4096 + 8192 + 4096


def test_blocks_have_exact_sizes_at_multiples_of_512() -> None:
    graph = parse_graph("""graph g(%x: f16[3]@ND, %e: f32[0]@ND) {
  %a = Cast(%x) -> i4[5]@ND
  %b = MatMulV2(%a) -> i64[]@ND
  %c = ConcatD(%b, %e) -> bool[513]@ND
  return %c
}""")
    part = planned(graph).graphs["g"]
    sizes = {name: block.size for (name, _), block in part.blocks.items()}
    assert sizes == {"x": 6, "e": 0, "a": 5, "b": 8, "c": 513}, "a sub-byte element takes one byte in memory"
    assert all(block.offset % 512 == 0 for block in part.blocks.values())
    assert part.bound == 512 + 1024


def test_a_constant_result_and_a_passed_on_input_get_blocks_of_their_own() -> None:
    graph = parse_graph("""graph g(%x: f32[2]@ND) {
  %c = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  return %c, %x, %x
}""")
    graph.add_node("NetOutput", "NetOutput", graph.outputs, output_descs=[])
    part = planned(graph).graphs["g"]
    run_symbolically(graph, part)
    assert part.tasks == [Task("x_0_copy"), Task("x_0_copy_1"), Task("c_0_copy")]
    assert len({part.blocks[out.node.name, out.index].offset for out in graph.outputs}) == 3


CONTROL_FLOW = """graph g(%p: bool[]@ND, %x: f32[512]@ND) {
  %a = MatMulV2(%x) -> f32[512]@ND
  %i = If(%p, %a) {then_branch=@big, else_branch=@small} -> f32[512]@ND
  %w = While(%i) {cond=@again, body=@outer} -> f32[512]@ND
  %y = ConcatD(%w, %a) -> f32[512]@ND
  return %y
}
graph big(%x: f32[512]@ND) {
  %u = MatMulV2(%x) -> f32[4096]@ND
  %v = MatMulV2(%u) -> f32[512]@ND
  return %v
}
graph small(%x: f32[512]@ND) { %v = Neg(%x) -> f32[512]@ND return %v }
graph again(%x: f32[512]@ND) { %r = ReduceAnyD(%x) -> bool[]@ND return %r }
graph outer(%x: f32[512]@ND) {
  %q = ReduceAnyD(%x) -> bool[]@ND
  %v = If(%q, %x) {then_branch=@inner_big, else_branch=@inner_small} -> f32[512]@ND
  return %v
}
graph inner_big(%x: f32[512]@ND) {
  %u = MatMulV2(%x) -> f32[4096]@ND
  %v = MatMulV2(%u) -> f32[512]@ND
  return %v
}
graph inner_small(%x: f32[512]@ND) { %v = Neg(%x) -> f32[512]@ND return %v }"""


def test_bodies_lie_in_the_workspace_of_their_caller() -> None:
    graph = parse_graph(CONTROL_FLOW)
    plan = planned(graph)
    check_plan(graph, plan)
    for name, part in plan.graphs.items():
        whole = graph if name == "g" else graph.subgraphs[name]
        run_symbolically(whole, part)
        assert part.bound == most_bytes_in_use(whole, part)
    arenas = {name: part.arena_size for name, part in plan.graphs.items()}
    assert arenas["big"] == 4 * (4096 + 512)
    assert arenas["small"] == 4 * 512, "the input of a body lies where the caller has it"
    assert arenas["again"] == 512
    (workspace,) = plan.graphs["g"].workspaces["i"]
    assert workspace.size == arenas["big"], "branches never run together"
    assert [block.size for block in plan.graphs["g"].workspaces["w"]] == [arenas["outer"]]
    assert arenas["outer"] == 512 + 2048 + arenas["inner_big"], "a body's own call lies inside its arena"
    # the loop carries a and its state over the call; p is dead by then
    assert arenas["g"] == 3 * 2048 + arenas["outer"]


def test_a_graph_that_calls_itself_is_reported() -> None:
    body = "(%p: bool[]@ND) { %y = If(%p) {then_branch=@t, else_branch=@t} -> bool[]@ND return %y }"
    graph = parse_graph(f"graph g{body} graph t{body}")
    with pytest.raises(ReportedError, match=r"E19999[^$]*graph t is called twice: by y and by y"):
        planned(graph)


def test_an_unknown_dimension_anywhere_leaves_places_to_run_time() -> None:
    graph = parse_graph("""graph g(%p: bool[]@ND, %x: f32[512]@ND) {
  %i = If(%p, %x) {then_branch=@t, else_branch=@t} -> f32[512]@ND
  %v = Reshape(%i) -> f32[2,256]@ND
  return %v
}
graph t(%x: f32[512]@ND) {
  %n = NonZero(%x) -> i64[1,-1]@ND
  %r = Reshape(%n) -> i64[-1]@ND
  %y = MatMulV2(%r) -> f32[512]@ND
  return %y
}""")
    plan = planned(graph)
    check_plan(graph, plan)
    assert not plan.is_static
    assert [task.node.split("/")[-1] for task in plan.graphs["t"].tasks] == ["n", "r", "y"], "no view without a size"
    assert all((part.blocks, part.workspaces, part.arena_size) == ({}, {}, 0) for part in plan.graphs.values())


def test_impossible_sizes_name_the_largest_tensor() -> None:
    graph = parse_graph("""graph g(%x: f32[1000000,1000000,1000000]@ND) {
  %y = MatMulV2(%x) -> f32[2]@ND
  return %y
}""")
    with pytest.raises(ReportedError, match=r"E10055[^$]*output 0 of x with shape \[1000000,1000000,1000000\]"):
        planned(graph)


def test_planning_needs_tasks() -> None:
    graph = parse_graph("graph g(%x: f32[2]@ND) { %y = Neg(%x) -> f32[2]@ND return %y }")
    with pytest.raises(ReportedError, match="build-tasks comes first"):
        PlanMemory().run(graph, build_session())


def test_twenty_thousand_nodes_stay_comfortable() -> None:
    graph = Graph("deep")
    out = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[TensorDesc([64, 64])]).output()
    skipped = out
    for i in range(5000):
        wide = graph.add_node("MatMulV2", f"m{i}", [out], output_descs=[TensorDesc([64, 256])]).output()
        act = graph.add_node("Relu", f"r{i}", [wide], output_descs=[TensorDesc([64, 256])]).output()
        down = graph.add_node("MatMulV2", f"d{i}", [act], output_descs=[TensorDesc([64, 64])]).output()
        out = graph.add_node("Add", f"a{i}", [down, skipped], output_descs=[TensorDesc([64, 64])]).output()
        skipped = out
    graph.outputs = [out]
    plan = planned(graph)
    check_plan(graph, plan)
    part = plan.graphs["deep"]
    assert len(part.tasks) == 20_000
    # the residual, the wide tensor (its activation in place) and the narrow one
    assert part.arena_size == part.bound == 4 * 64 * (64 + 256 + 64)


_PRINT_PLAN = """
from tests.passes.build.test_memory_plan import planned, random_graph
for seed in range(3):
    graph = random_graph(seed, 60)
    part = planned(graph, seed).graphs[graph.name]
    print(part.tasks, sorted(part.blocks.items()), part.arena_size, part.bound)
"""


def test_plans_do_not_depend_on_hash_seeds() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_PLAN],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(texts) == 1
    assert len(texts.pop()) > 1000
