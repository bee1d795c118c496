"""Schedules: which axes become one loop, what kind of loop each is, how large a tile."""

from __future__ import annotations

import math

import pytest

from ge.ascir import parse_asc_graph
from passes.lowering.refusal import Refusal
from passes.lowering.schedule import TILE_BYTES, bytes_per_element, scheduled, tile_sizes
from passes.lowering.tiling import TilingGroups, groups_of

Z = frozenset


def program(sizes: str, *ops: str):
    lines = [f"%{number} = {op}" for number, op in enumerate(ops)]
    return parse_asc_graph("\n".join([f'ascgraph 1 "k" {sizes} {{', *lines, "}"]))


def load(view: str, whole: str) -> list[str]:
    return [f"Data {{index=0}} -> f32{view}", f"Load(%0) -> f32{whole}"]


WHOLE = "[4,6,8]:[48,8,1]"


@pytest.mark.parametrize(
    ("view", "loops"),
    [
        (WHOLE, ((0, 1, 2),)),
        ("[4,6,1]:[6,1,0]", ((0, 1), (2,))),
        ("[1,6,8]:[0,8,1]", ((0,), (1, 2))),
        ("[1,1,8]:[0,0,1]", ((0, 1), (2,))),
        ("[4,6,8]:[48,1,6]", ((0,), (1,), (2,))),
        ("[4,6,8]:[96,8,1]", ((0,), (1, 2))),
    ],
)
def test_neighbours_that_lie_side_by_side_are_one_loop(view: str, loops: tuple[tuple[int, ...], ...]) -> None:
    graph = program(
        "[4,6,8]", *load(view, WHOLE), f"Abs(%1) -> f32{WHOLE}", f"Store(%2) -> f32{WHOLE}", "Output(%3) {index=0}"
    )
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert schedule.loops == loops
    assert schedule.y == tuple(range(len(loops)))
    assert schedule.block == 0


def test_reduced_axes_are_loops_of_their_own() -> None:
    graph = program(
        "[4,6,8]", *load(WHOLE, WHOLE), "Sum(%1) -> f32[4,1,1]:[1,0,0]", "Store(%2) -> f32[4,1,1]:[1,0,0]",
        "Output(%3) {index=0}",
    )  # fmt: skip
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert (schedule.loops, schedule.y, schedule.r) == (((0,), (1, 2)), (0,), (1,))
    assert str(groups_of(graph)) == "()(z0)(z1,z2)()"


def test_guards_keep_axes_apart() -> None:
    store = f"Store(%1) {{guards=[[0,8,1,43]]}} -> f32{WHOLE}"
    graph = program("[4,6,8]", *load(WHOLE, WHOLE), store, "Output(%2) {index=0}")
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert schedule.loops == ((0,), (1,), (2,))


def test_axes_of_one_step_go_with_their_neighbours() -> None:
    view = "[4,1,8]:[8,0,1]"
    graph = program("[4,1,8]", *load(view, view), f"Store(%1) -> f32{view}", "Output(%2) {index=0}")
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert schedule.loops[0] == (0, 1) or schedule.loops == ((0, 1, 2),)


def test_concat_divides_what_lies_before_its_axis() -> None:
    graph = program(
        "[4,6]", "Data {index=0} -> f32[4,2]:[2,1]", "Load(%0) -> f32[4,2]:[2,1]", "Data {index=1} -> f32[4,4]:[4,1]",
        "Load(%2) -> f32[4,4]:[4,1]", "Concat(%1, %3) {axis=1} -> f32[4,6]:[6,1]", "Store(%4) -> f32[4,6]:[6,1]",
        "Output(%5) {index=0}",
    )  # fmt: skip
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert (schedule.x, schedule.n, schedule.tiles) == ((0,), (1,), (4, 6))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (TilingGroups(y=Z({0, 1})), TilingGroups(y=Z({0}), r=Z({1})), "()(z0)(z1)()"),
        (TilingGroups(y=Z({0}), r=Z({1})), TilingGroups(y=Z({0}), r=Z({1})), "()(z0)(z1)()"),
        (TilingGroups(y=Z({0}), r=Z({1})), TilingGroups(y=Z({1}), r=Z({0})), None),
        (TilingGroups(x=Z({0}), n=Z({1})), TilingGroups(y=Z({0, 1})), "(z0)()()(z1)"),
        (TilingGroups(x=Z({0}), n=Z({1})), TilingGroups(y=Z({0}), r=Z({1})), None),
    ],
)
def test_groups_of_two_kernels(first: TilingGroups, second: TilingGroups, expected: str | None) -> None:
    merged = first.merged(second)
    assert (None if merged is None else str(merged)) == expected


def test_contradicting_reductions_have_no_schedule() -> None:
    graph = program(
        "[4,6]", "Data {index=0} -> f32[4,6]:[6,1]", "Load(%0) -> f32[4,6]:[6,1]", "Sum(%1) -> f32[4,1]:[1,0]",
        "Store(%2) -> f32[4,1]:[1,0]", "Output(%3) {index=0}", "Sum(%1) -> f32[1,6]:[0,1]",
        "Store(%5) -> f32[1,6]:[0,1]", "Output(%6) {index=1}",
    )  # fmt: skip
    with pytest.raises(Refusal, match="two kinds of loop"):
        scheduled(graph)


@pytest.mark.parametrize(
    ("extents", "undivided", "budget", "expected"),
    [
        ([1000], [], 64, (64,)),
        ([10, 8], [], 64, (8, 8)),
        ([10, 100], [], 64, (1, 64)),
        ([10, 8], [1], 4, (1, 8)),
        ([10, 8], [0], 40, (10, 4)),
        ([0, 8], [], 64, (1, 8)),
        ([], [], 64, ()),
    ],
)
def test_tiles(extents: list[int], undivided: list[int], budget: int, expected: tuple[int, ...]) -> None:
    assert tile_sizes(extents, undivided, budget) == expected


def test_values_of_a_tile_fit_the_cache() -> None:
    whole = "[4096,512]:[512,1]"
    graph = program(
        "[4096,512]", *load(whole, whole), f"Exp(%1) -> f32{whole}", f"Add(%1, %2) -> f32{whole}",
        f"Store(%3) -> f32{whole}", "Output(%4) {index=0}",
    )  # fmt: skip
    schedule = scheduled(graph).schedule
    assert schedule is not None
    assert bytes_per_element(graph) == 12
    assert TILE_BYTES / 2 < math.prod(schedule.tiles) * 12 <= TILE_BYTES
