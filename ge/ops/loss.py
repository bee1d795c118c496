"""Losses.

``ignore_index`` counts only where the node carries it: GE's default 0 would leave out class 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.inference import broadcast_shapes, unify
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.softmax import log_softmax_along


def _infer_loss(ctx: InferContext) -> Sequence[OutputSpec]:
    scores, labels, dtype = ctx.shape("scores"), ctx.shape("labels"), ctx.dtype("scores")
    reduction = ctx.op.reduction
    if reduction not in ("none", "mean", "sum"):
        raise ctx.fail(f"reduction must be none, mean or sum, not {reduction}", value="reduction")
    if not (scores.is_unknown_rank() or labels.is_unknown_rank()):
        wanted = [scores[0], *scores[2:]]
        fits = len(labels) == len(scores) - 1 >= 1
        if not fits or any(-1 not in (a, b) and a != b for a, b in zip(labels, wanted, strict=True)):
            raise ctx.fail(f"labels {labels} do not fit scores {scores} [N, classes, ...]", value="labels")
    return [(labels if reduction == "none" else (), dtype), (scores, dtype)]


@operator(
    "SoftmaxCrossEntropyLoss(scores, labels, weights?) -> loss, log_prop [ignore_index:i=0 reduction:s=mean]",
    infer=_infer_loss,
)
def softmax_cross_entropy_loss(op: Any, scores: Array, labels: Array, weights: Array | None) -> tuple[Any, Array]:
    """The mean is weighted: it divides by the sum of the weights that count."""
    log_prop = log_softmax_along(scores, (1,))
    ignored = op.get("ignore_index")
    counts = np.ones(labels.shape, bool) if ignored is None else labels != ignored
    classes = np.where(counts, labels, 0)
    if classes.size and not (classes.min() >= 0 and classes.max() < scores.shape[1]):
        raise Misfit(f"labels reach from {classes.min()} to {classes.max()}, but there are {scores.shape[1]} classes")
    factor = counts.astype(scores.dtype) * (1 if weights is None else weights[classes])
    loss = -np.take_along_axis(log_prop, classes[:, None], 1)[:, 0] * factor
    if op.reduction == "none":
        return loss, log_prop
    total = loss.sum()
    return (total / factor.sum() if op.reduction == "mean" else total), log_prop


@operator("L2Loss(x)", infer=lambda ctx: [((), ctx.dtype("x"))])
def l2_loss(op: Any, x: Array) -> Any:
    """Half the sum of the squares."""
    return np.sum(np.square(x), dtype=np.float64) / 2


def _infer_cross_entropy(ctx: InferContext) -> Sequence[OutputSpec]:
    features, labels = ctx.shape("features"), ctx.shape("labels")
    shape = broadcast_shapes(ctx, [features, labels])
    return [(shape if shape.is_unknown_rank() else shape[:-1], ctx.dtype("features")), (shape, ctx.dtype("features"))]


@operator("SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop", infer=_infer_cross_entropy)
def softmax_cross_entropy_with_logits(op: Any, features: Array, labels: Array) -> tuple[Any, Any]:
    """``labels`` are probabilities per class; ``backprop`` is the gradient of the loss."""
    features, labels = np.broadcast_arrays(features, labels)
    log_prop = log_softmax_along(features, (features.ndim - 1,))
    return -np.sum(labels * log_prop, axis=-1), np.exp(log_prop) - labels


def _infer_sparse(ctx: InferContext) -> Sequence[OutputSpec]:
    features, labels = ctx.shape("features"), ctx.shape("labels")
    if not (features.is_unknown_rank() or labels.is_unknown_rank()):
        if len(features) != len(labels) + 1:
            raise ctx.fail(f"labels {labels} do not fit features {features} [N, classes]", value="labels")
        unify(ctx, [Shape(features[:-1]), labels])
    return [(labels, ctx.dtype("features")), (features, ctx.dtype("features"))]


@operator("SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop", infer=_infer_sparse)
def sparse_softmax_cross_entropy_with_logits(op: Any, features: Array, labels: Array) -> tuple[Any, Any]:
    """``labels`` are class numbers; one that is no class gives NaN."""
    classes = features.shape[-1]
    is_class = (labels >= 0) & (labels < classes)
    chosen = np.where(is_class, labels, 0).astype(np.int64)[..., np.newaxis]
    log_prop = log_softmax_along(features, (features.ndim - 1,))
    loss = -np.take_along_axis(log_prop, chosen, -1)[..., 0]
    backprop = np.exp(log_prop) - (np.arange(classes) == chosen)
    return np.where(is_class, loss, np.nan), np.where(is_class[..., np.newaxis], backprop, np.nan)
