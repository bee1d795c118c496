"""Placement as a data problem: no overlap, never below the bound, and close to it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passes.build import placement
from passes.build.placement import bound, height, load, place

MIB = 1 << 20


def assert_no_overlap(intervals, offsets) -> None:
    """Compare each pair."""
    assert len(offsets) == len(intervals)
    for i, (size, first, last) in enumerate(intervals):
        assert offsets[i] >= 0
        assert offsets[i] % 512 == 0
        for j in range(i):
            other_size, other_first, other_last = intervals[j]
            is_together = first <= other_last and other_first <= last
            is_apart = offsets[i] + size <= offsets[j] or offsets[j] + other_size <= offsets[i]
            assert not is_together or is_apart or size == 0 or other_size == 0


@st.composite
def interval_sets(draw):
    n = draw(st.integers(0, 40))
    steps = draw(st.integers(1, 30))
    firsts = st.integers(-1, steps)
    lengths = st.one_of(st.integers(0, 3), st.integers(0, steps))
    sizes = st.one_of(st.integers(0, 4), st.integers(1, 2000)).map(lambda units: 512 * units)
    found = []
    for _ in range(n):
        first = draw(firsts)
        found.append((draw(sizes), first, first + draw(lengths)))
    return found


@given(interval_sets())
def test_nothing_overlaps_and_the_total_is_between_the_bound_and_no_reuse(intervals) -> None:
    offsets = place(intervals, search_budget=20_000)
    assert_no_overlap(intervals, offsets)
    assert bound(intervals) <= height(intervals, offsets) <= sum(size for size, _, _ in intervals)


@pytest.mark.parametrize("crowd", [placement.MAX_CROWD, 0])
@given(intervals=interval_sets())
def test_crowded_sets_are_placed_as_safely(crowd, intervals) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "MAX_CONFLICTS", -1)
        patch.setattr(placement, "MAX_CROWD", crowd)
        offsets = place(intervals)
    assert_no_overlap(intervals, offsets)
    assert bound(intervals) <= height(intervals, offsets) <= sum(size for size, _, _ in intervals)


@given(interval_sets())
def test_each_way_of_placing_crowds_is_safe_by_itself(intervals) -> None:
    pieces = [piece for piece in intervals if piece[0]]
    assert_no_overlap(pieces, placement._sweep(pieces))
    assert_no_overlap(pieces, placement._sweep([(size, -last, -first) for size, first, last in pieces]))
    assert_no_overlap(pieces, placement._fill_crowded(pieces, list(range(len(pieces)))))


@given(interval_sets())
def test_the_bound_is_the_largest_sum_over_steps(intervals) -> None:
    steps = range(min((f for _, f, _ in intervals), default=0), max((e for _, _, e in intervals), default=-1) + 1)
    sums = [sum(size for size, first, last in intervals if first <= step <= last) for step in steps]
    assert load(intervals) == sums
    assert bound(intervals) == max(sums, default=0)


def units(*pieces):
    """Return intervals whose sizes are given in units of 512 bytes."""
    return [(512 * size, first, last) for size, first, last in pieces]


@pytest.mark.parametrize(
    ("intervals", "total"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([(0, 0, 9), (512, 0, 9), (0, 3, 4)], 512, id="pieces of no size take no room"),
        pytest.param([(512, 0, 0), (1024, 1, 1), (512, 2, 2)], 1024, id="one after the other"),
        pytest.param([(512, 0, 1), (1024, 1, 2), (512, 2, 3)], 1536, id="both ends of a lifetime count"),
        pytest.param([(512 * k, 3, 3) for k in range(1, 11)], 512 * 55, id="all at once"),
        pytest.param(units((2, 0, 1), (2, 0, 2), (1, 2, 4), (3, 1, 2), (3, 3, 5)), 512 * 7, id="sizes mixed"),
    ],
)
def test_small_sets_reach_their_optimum(intervals, total) -> None:
    offsets = place(intervals)
    assert_no_overlap(intervals, offsets)
    assert height(intervals, offsets) == total


def reuse_chain(buffers):
    """Return intervals of a chain of (size, last reader): buffer i is written by step i, read last by the next one."""
    return [(-(-size // 512) * 512, i, i + 1 if last is None else last) for i, (size, last) in enumerate(buffers)]


def mobilenet_v1():
    """The 28 activations of MobileNet v1 (fp32, 224x224): stem, 13 depthwise and pointwise pairs, pooled vector."""
    buffers = [112 * 112 * 32]
    size, channels = 112, 32
    early = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for out, stride in [*early, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        size //= stride
        buffers += [size * size * channels, size * size * out]
        channels = out
    return [(4 * elements, None) for elements in [*buffers, channels]]


def mobilenet_v2():
    """The 63 activations of MobileNet v2: stem, 17 inverted residuals (10 of them with a sum), head, pooled vector."""
    buffers = [[112 * 112 * 32, None]]
    size, channels = 112, 32
    for expansion, out, repeats, first_stride in [
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ]:  # fmt: skip
        for repeat in range(repeats):
            source = len(buffers) - 1
            if expansion != 1:
                buffers.append([size * size * channels * expansion, None])
            size //= first_stride if repeat == 0 else 1
            buffers += [[size * size * channels * expansion, None], [size * size * out, None]]
            if repeat:
                buffers[source][1] = len(buffers)
                buffers.append([size * size * out, None])
            channels = out
    buffers += [[size * size * 1280, None], [1280, None]]
    return [(4 * elements, last) for elements, last in buffers]


# Published figures: Pisarchyk & Lee 2020 (arXiv 2001.03288) and the TensorFlow Lite blog give 19 and 26 MB without
# reuse; the peaks are the two widest neighbours: 112*112*(32 + 64) and 112*112*96 + 56*56*96 floats.
@pytest.mark.parametrize(
    ("buffers", "count", "naive_mib", "peak_floats", "ratio"),
    [
        pytest.param(mobilenet_v1(), 28, 19.24, 112 * 112 * (32 + 64), 4.2, id="MobileNet v1"),
        pytest.param(mobilenet_v2(), 63, 26.31, 112 * 112 * 96 + 56 * 56 * 96, 4.6, id="MobileNet v2"),
    ],
)
def test_mobilenets_need_their_peak_and_no_more(buffers, count, naive_mib, peak_floats, ratio) -> None:
    intervals = reuse_chain(buffers)
    naive = sum(size for size, _ in buffers)
    assert len(intervals) == count
    assert naive / MIB == pytest.approx(naive_mib, abs=0.005)
    total = height(intervals, place(intervals))
    assert total == bound(intervals)
    assert total == pytest.approx(4 * peak_floats, rel=0.01)
    assert naive / total == pytest.approx(ratio, abs=0.05)


def transformer_like(n, chance):
    return [(512 * chance.choice([100, 400, 400, 1600]), i, i + chance.choice([1, 1, 1, 2, 3, 5, 9])) for i in range(n)]


def unrolled_recurrence(n, chance):
    steps = [(512 * chance.choice([8, 8, 32]), i, i + chance.choice([1, 1, 2, 3])) for i in range(n)]
    return steps + [(512 * 8, i, n) for i in range(0, n, 10)]


def scattered(n, chance):
    starts = [chance.randrange(n) for _ in range(n)]
    return [(512 * chance.randint(1, 2000), start, start + 1 + int(chance.expovariate(1 / 6))) for start in starts]


@pytest.mark.parametrize("make", [transformer_like, unrolled_recurrence, scattered])
@pytest.mark.parametrize("n", [100, 20_000])
def test_large_sets_stay_within_five_percent_of_the_bound(make, n) -> None:
    intervals = make(n, random.Random(11))
    total = height(intervals, place(intervals))
    assert bound(intervals) <= total <= 1.05 * bound(intervals)


def test_the_search_finds_what_no_order_finds() -> None:
    intervals = units((3, 3, 5), (4, 6, 8), (3, 0, 4), (3, 2, 6), (1, 5, 6))
    assert height(intervals, place(intervals, search_budget=0)) == 512 * 10
    assert height(intervals, place(intervals)) == bound(intervals) == 512 * 9


def test_placing_twice_gives_the_same_offsets() -> None:
    intervals = scattered(200, random.Random(3))
    assert place(intervals) == place(list(intervals))
