"""Decision trees that vote. GE has no such operator; this is ours.

Inner nodes and leaves are numbered apart. ``true_ids`` and ``false_ids`` name a leaf where ``true_leafs`` or
``false_leafs`` says so, else an inner node; ``roots`` are inner nodes. ``members`` holds a NaN-terminated set for each
node of mode MEMBER, in the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from ge.ops.registry import Array, Attributes, InferContext, Misfit, OutputSpec, operator

_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal,
)  # fmt: skip
"""What the modes 0 to 5 ask of feature and split."""
_MEMBER = 6
_AVERAGE, _SUM, _MIN, _MAX = range(4)
_PER_NODE = ("feature_ids", "true_ids", "false_ids", "true_leafs", "false_leafs")


def _check(op: Attributes, n_splits: int, n_weights: int, n_features: int) -> None:
    """Raise ``Misfit`` unless all numbers fit each other. Negative counts are not known."""
    n_nodes = len(op.modes)
    lengths = {name: len(getattr(op, name)) for name in _PER_NODE}
    if n_splits >= 0:
        lengths["splits"] = n_splits
    if op.missing_true:
        lengths["missing_true"] = len(op.missing_true)
    for name, length in lengths.items():
        if length != n_nodes:
            raise Misfit(f"it has {n_nodes} nodes by modes, but {length} by {name}")
    if n_weights not in (-1, len(op.target_ids)):
        raise Misfit(f"it has {len(op.target_ids)} leaves by target_ids, but {n_weights} weights")
    limits = {"modes": _MEMBER + 1, "target_ids": op.n_targets, "roots": n_nodes}
    if n_features >= 0:
        limits["feature_ids"] = n_features
    for name, limit in limits.items():
        _check_range(name, getattr(op, name), limit)
    for side in ("true", "false"):
        is_leaf = np.asarray(getattr(op, f"{side}_leafs"), bool)
        ids = np.asarray(getattr(op, f"{side}_ids"), np.int64)
        _check_range(f"{side}_ids", ids[is_leaf], len(op.target_ids))
        _check_range(f"{side}_ids", ids[~is_leaf], n_nodes)


def _check_range(name: str, values: Sequence[int] | Array, limit: int) -> None:
    outside = [int(v) for v in values if not 0 <= v < limit]
    if outside:
        raise Misfit(f"{name} holds {outside[0]}, but must be from 0 to {limit - 1}")


def _infer(ctx: InferContext) -> Sequence[OutputSpec]:
    op, shape = ctx.op, ctx.shape("x")
    if not 0 <= op.aggregate_function <= _MAX or not 0 <= op.post_transform < len(_TRANSFORMS):
        raise ctx.fail(f"aggregate_function {op.aggregate_function} or post_transform {op.post_transform} is unknown")
    if not shape.is_unknown_rank() and len(shape) != 2:
        raise ctx.fail(f"its input has the shape {shape}, but must be [N, features]")
    n_features = -1 if shape.is_unknown_rank() else shape[1]
    _check(op, ctx.shape("splits").elements, ctx.shape("weights").elements, n_features)
    return [([-1 if shape.is_unknown_rank() else shape[0], op.n_targets], ctx.dtype("x"))]


def _member_sets(op: Attributes, members: Array | None) -> dict[int, Array]:
    nodes = [i for i, mode in enumerate(op.modes) if mode == _MEMBER]
    values = np.zeros(0) if members is None else members.reshape(-1).astype(np.float64)
    sets = np.split(values, np.flatnonzero(np.isnan(values)) + 1)
    if sets and not sets[-1].size:
        sets.pop()
    if len(sets) != len(nodes):
        raise Misfit(f"it has {len(nodes)} nodes that ask for membership, but {len(sets)} sets of members")
    return {node: found[~np.isnan(found)] for node, found in zip(nodes, sets, strict=True)}


class _Forest:
    """The nodes as arrays, and the way of rows from a root to a leaf."""

    def __init__(self, op: Attributes, splits: Array, members: Array | None) -> None:
        self.modes = np.asarray(op.modes, np.int64)
        self.features = np.asarray(op.feature_ids, np.int64)
        self.splits = splits.reshape(-1)
        self.missing = np.asarray(op.missing_true or [0] * len(op.modes), bool)
        self.next_ids = np.asarray([op.false_ids, op.true_ids], np.int64)
        self.is_leaf = np.asarray([op.false_leafs, op.true_leafs], bool)
        self.sets = _member_sets(op, members)

    def leaves(self, x: Array, root: int) -> Array:
        """Return the leaf that each row of ``x`` [N, features] reaches."""
        leaves = np.empty(len(x), np.int64)
        rows, nodes = np.arange(len(x)), np.full(len(x), root)
        for _ in range(len(self.modes)):
            if not rows.size:
                return leaves
            side = self._answers(x[rows, self.features[nodes]], nodes).astype(np.int64)
            reached, is_end = self.next_ids[side, nodes], self.is_leaf[side, nodes]
            leaves[rows[is_end]] = reached[is_end]
            rows, nodes = rows[~is_end], reached[~is_end]
        if rows.size:
            raise Misfit(f"the tree with root {root} leads in a circle")
        return leaves

    def _answers(self, values: Array, nodes: Array) -> Array:
        answers: Array = np.isnan(values) & self.missing[nodes]
        for node in np.unique(nodes):
            here = nodes == node
            if node in self.sets:
                answers[here] |= np.isin(values[here], self.sets[node])
            else:
                answers[here] |= _COMPARISONS[self.modes[node]](values[here], self.splits[node])
        return answers


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    total: Array = powers / powers.sum(axis=1, keepdims=True)
    return total


def _softmax_of_others(scores: Array) -> Array:
    """Softmax over the scores that are not 0; those stay 0."""
    is_other = scores != 0
    masked = np.where(is_other, scores, -np.inf)
    powers = np.where(is_other, np.exp(masked - masked.max(axis=1, keepdims=True, initial=-np.inf)), 0)
    total: Array = powers / np.maximum(powers.sum(axis=1, keepdims=True), np.finfo(scores.dtype).tiny)
    return total


def _probit(scores: Array) -> Array:
    normal = NormalDist()
    edges = {0.0: -np.inf, 1.0: np.inf}
    flat = [normal.inv_cdf(p) if 0 < p < 1 else edges.get(p, np.nan) for p in scores.reshape(-1).tolist()]
    return np.asarray(flat, scores.dtype).reshape(scores.shape)


_TRANSFORMS: tuple[Callable[[Array], Array], ...] = (
    lambda scores: scores,
    _softmax,
    lambda scores: 1 / (1 + np.exp(-scores)),
    _softmax_of_others,
    _probit,
)


@operator(
    "XTreeEnsemble(x, splits, weights, members?) [modes:I! feature_ids:I! true_ids:I! false_ids:I! true_leafs:I! "
    "false_leafs:I! missing_true:I=[] roots:I! target_ids:I! n_targets:i! aggregate_function:i=1 post_transform:i=0]",
    infer=_infer,
)
def tree_ensemble(op: Any, x: Array, splits: Array, weights: Array, members: Array | None) -> Array:
    """Send each row through all trees; each leaf gives its weight to its target.

    ``aggregate_function`` is average (0), sum, minimum, maximum; a target that no leaf names is 0. ``post_transform``
    is none (0), softmax, logistic, softmax over what is not 0, probit.
    """
    _check(op, splits.size, weights.size, x.shape[1])
    forest = _Forest(op, splits, members)
    targets, weights = np.asarray(op.target_ids, np.int64), weights.reshape(-1)
    start = {_MIN: np.inf, _MAX: -np.inf}.get(op.aggregate_function, 0)
    combine = {_MIN: np.minimum, _MAX: np.maximum}.get(op.aggregate_function, np.add)
    scores = np.full((len(x), op.n_targets), start, x.dtype)
    is_named = np.zeros(scores.shape, bool)
    rows = np.arange(len(x))
    for root in op.roots:
        leaves = forest.leaves(x, root)
        at = rows, targets[leaves]
        scores[at] = combine(scores[at], weights[leaves])
        is_named[at] = True
    if op.aggregate_function == _AVERAGE:
        scores /= max(len(op.roots), 1)
    result: Array = _TRANSFORMS[op.post_transform](np.where(is_named, scores, 0))
    return result
