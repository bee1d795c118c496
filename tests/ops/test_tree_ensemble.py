"""Random forests against a walk over their nested form, and scores against formulas."""

from __future__ import annotations

import operator
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from ge.ops import lookup
from tests.ops.one_node import inferred, run_ge

COMPARISONS = [operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne]
MEMBER = 6
N_FEATURES, N_TARGETS = 4, 3


class Forest:
    """Trees as nested tuples (mode, feature, split or set, is NaN true, true side, false side); leaves are numbers."""

    def __init__(self, seed: int, n_trees: int = 5, depth: int = 4) -> None:
        self.rng = np.random.default_rng(seed)
        self.leaves: list[tuple[int, float]] = []
        self.trees = [self._grow(depth) for _ in range(n_trees)]

    def _grow(self, depth: int) -> Any:
        if depth == 0 or (depth < 3 and self.rng.random() < 0.3):
            self.leaves.append((int(self.rng.integers(N_TARGETS)), float(self.rng.normal())))
            return len(self.leaves) - 1
        mode = int(self.rng.integers(7))
        choice = self.rng.integers(-2, 3, 3).astype(float)
        what = set(choice.tolist()) if mode == MEMBER else choice[0]
        head = (mode, int(self.rng.integers(N_FEATURES)), what, bool(self.rng.integers(2)))
        return (*head, self._grow(depth - 1), self._grow(depth - 1))

    def leaf(self, tree: Any, row: np.ndarray) -> int:
        while isinstance(tree, tuple):
            mode, feature, what, missing, yes, no = tree
            value = float(row[feature])
            if np.isnan(value):
                answer = missing or mode == 5  # nothing but "not equal" holds for NaN
            else:
                answer = value in what if mode == MEMBER else COMPARISONS[mode](value, what)
            tree = yes if answer else no
        return tree

    def votes(self, row: np.ndarray) -> list[list[float]]:
        """Return the weights that each target gets."""
        found: list[list[float]] = [[] for _ in range(N_TARGETS)]
        for tree in self.trees:
            target, weight = self.leaves[self.leaf(tree, row)]
            found[target].append(weight)
        return found

    def encoded(self) -> tuple[list[np.ndarray | None], dict[str, Any]]:
        """Return inputs behind x, and attributes."""
        names = ("modes", "feature_ids", "missing_true", "true_ids", "false_ids", "true_leafs", "false_leafs")
        attrs: dict[str, Any] = {name: [] for name in names}
        splits: list[float] = []
        members: list[float] = []

        def add(tree: Any) -> int:
            mode, feature, what, missing, yes, no = tree
            index = len(splits)
            for name, value in zip(names, (mode, feature, int(missing), 0, 0, 0, 0), strict=True):
                attrs[name].append(value)
            splits.append(0.0 if mode == MEMBER else what)
            if mode == MEMBER:
                members.extend([*what, np.nan])
            for side, child in (("true", yes), ("false", no)):
                is_leaf = not isinstance(child, tuple)
                attrs[f"{side}_leafs"][index] = int(is_leaf)
                attrs[f"{side}_ids"][index] = child if is_leaf else add(child)
            return index

        attrs["roots"] = [add(tree) for tree in self.trees]
        attrs |= {"target_ids": [target for target, _ in self.leaves], "n_targets": N_TARGETS}
        weights = np.array([weight for _, weight in self.leaves])
        return [np.array(splits), weights, np.array(members) if members else None], attrs


def rows(seed: int, count: int = 60) -> np.ndarray:
    x = np.random.default_rng(seed).integers(-2, 3, (count, N_FEATURES)).astype(np.float64)
    x[::7, 1] = np.nan
    x[::5, 2] += 0.5
    return x


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("aggregate", ["average", "sum", "min", "max"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forest(seed: int, aggregate: str, dtype: Any) -> None:
    forest, x = Forest(seed), rows(seed)
    (splits, weights, members), attrs = forest.encoded()
    parts = [part if part is None else part.astype(dtype) for part in (splits, weights, members)]
    [found] = run_ge(
        "XTreeEnsemble",
        [x.astype(dtype), *parts],
        {**attrs, "aggregate_function": ["average", "sum", "min", "max"].index(aggregate)},
    )
    join = {"average": lambda v: sum(v) / len(forest.trees), "sum": sum, "min": min, "max": max}[aggregate]
    expected = [[join(votes) if votes else 0 for votes in forest.votes(row)] for row in x]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert found.dtype == dtype
    assert np.std(found) > 0.1


STUMP: dict[str, Any] = {
    "modes": [0], "feature_ids": [0], "true_ids": [0], "false_ids": [1], "true_leafs": [1], "false_leafs": [1],
    "roots": [0], "target_ids": [0, 1], "n_targets": 3,
}  # fmt: skip
STUMP_INPUTS = [np.float64([[0], [1]]), np.float64([0.5]), np.float64([0.25, 0.75])]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (0, [0.25, 0, 0]),
        (1, np.exp([0.25, 0, 0]) / np.exp([0.25, 0, 0]).sum()),
        (2, 1 / (1 + np.exp([-0.25, 0, 0]))),
        (3, [1, 0, 0]),
        (4, [NormalDist().inv_cdf(0.25), -np.inf, -np.inf]),
    ],
)
def test_post_transform(transform: int, expected: Any) -> None:
    [found] = run_ge("XTreeEnsemble", STUMP_INPUTS, {**STUMP, "post_transform": transform})
    np.testing.assert_allclose(found[0], expected)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"roots": [1]}, "roots holds 1"),
        ({"feature_ids": [1]}, "feature_ids holds 1"),
        ({"true_ids": [2]}, "true_ids holds 2"),
        ({"target_ids": [0, 3]}, "target_ids holds 3"),
        ({"modes": [7]}, "modes holds 7"),
        ({"modes": [0, 0]}, "2 nodes"),
        ({"target_ids": [0]}, "1 leaves"),
        ({"post_transform": 5}, "post_transform 5"),
    ],
)
def test_numbers_that_do_not_fit(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ReportedError) as caught:
        inferred("XTreeEnsemble", STUMP_INPUTS, {**STUMP, **changes})
    assert words in caught.value.message


def test_circle_stops() -> None:
    definition = lookup("XTreeEnsemble")
    types = [inferred("XTreeEnsemble", STUMP_INPUTS, STUMP)[0].data_type]
    attrs = {**STUMP, "true_ids": [0], "true_leafs": [0]}
    with pytest.raises(ValueError, match="circle"):
        definition.evaluate(attrs, [*STUMP_INPUTS, None], types)
