"""Non-maximum suppression. Selected indices are int32, as in GE; a parser adds a Cast where its model says int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.registry import Array, InferContext, OutputSpec, operator

INT32 = DataType.DT_INT32


def _corners(boxes: Array, is_centred: bool) -> Array:
    """Return rows of two opposite corners, lower first."""
    if is_centred:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlap(box: Array, others: Array, offset: float) -> Array:
    """Return intersection over union of one box with others."""
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]) + offset, 0)
    shared = sides[:, 0] * sides[:, 1]
    area = np.prod(others[:, 2:] - others[:, :2] + offset, axis=1)
    own = np.prod(box[2:] - box[:2] + offset)
    whole = area + own - shared
    return np.where((area > 0) & (own > 0) & (whole > 0), shared / whole, 0)


def select(boxes: Array, scores: Array, limit: int, iou: float, lowest: float | None, offset: float = 0.0) -> Array:
    """Return the indices of the kept boxes, best score first (ties: lower index first).

    A box is kept unless it overlaps a kept one by more than ``iou``, or its score is not above ``lowest``.
    """
    order = np.argsort(-scores, kind="stable")
    if lowest is not None:
        order = order[scores[order] > lowest]
    kept: list[int] = []
    while order.size and len(kept) < limit:
        best, order = order[0], order[1:]
        kept.append(int(best))
        order = order[_overlap(boxes[best], boxes[order], offset) <= iou]
    return np.array(kept, np.int32)


def _scalar(value: Array | None, default: float) -> float:
    return default if value is None or value.size == 0 else float(np.ravel(value)[0])


def _infer_v3(ctx: InferContext) -> Sequence[OutputSpec]:
    boxes = ctx.shape("boxes")
    if not boxes.is_unknown_rank() and (len(boxes) != 2 or boxes[1] not in (4, -1)):
        raise ctx.fail(f"boxes have shape {boxes}, but rows of four values are needed", value="boxes")
    return [([-1], INT32)]


@operator(
    "NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold, score_threshold) -> selected_indices "
    "[offset:i=0]",
    infer=_infer_v3,
)
def non_max_suppression_v3(
    op: Any, boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array, score_threshold: Array
) -> Array:
    """``offset`` 1 counts boxes with both border elements."""
    limit, iou, lowest = (_scalar(v, 0) for v in (max_output_size, iou_threshold, score_threshold))
    return select(_corners(boxes, False), scores, int(limit), iou, lowest, float(op.offset))


def _infer_v6(ctx: InferContext) -> Sequence[OutputSpec]:
    boxes, scores = ctx.shape("boxes"), ctx.shape("scores")
    if not (boxes.is_unknown_rank() or scores.is_unknown_rank()):
        fits = len(boxes) == len(scores) == 3 and boxes[2] in (4, -1)
        if not fits or any(
            -1 not in pair and pair[0] != pair[1] for pair in ((boxes[0], scores[0]), (boxes[1], scores[2]))
        ):
            raise ctx.fail(f"boxes {boxes} and scores {scores} must be [N, boxes, 4] and [N, classes, boxes]")
    return [([-1, 3], INT32)]


@operator(
    "NonMaxSuppressionV6(boxes, scores, max_output_size?, iou_threshold?, score_threshold?) -> selected_indices "
    "[center_point_box:i=0 max_boxes_size:i=0]",
    infer=_infer_v6,
)
def non_max_suppression_v6(
    op: Any,
    boxes: Array,
    scores: Array,
    max_output_size: Array | None,
    iou_threshold: Array | None,
    score_threshold: Array | None,
) -> Array:
    """Rows are [sample, class, box]. Without ``max_output_size`` nothing is selected, as in ONNX."""
    limit, iou = int(_scalar(max_output_size, 0)), _scalar(iou_threshold, 0)
    lowest = None if score_threshold is None or score_threshold.size == 0 else _scalar(score_threshold, 0)
    rows = []
    for sample in range(len(boxes)):
        corners = _corners(boxes[sample], op.center_point_box == 1)
        for kind in range(scores.shape[1]):
            kept = select(corners, scores[sample, kind], limit, iou, lowest)
            rows.append(np.stack([np.full_like(kept, sample), np.full_like(kept, kind), kept], 1))
    return np.concatenate(rows) if rows else np.zeros((0, 3), np.int32)


# -- TensorFlow's later ones -------------------------------------------------------------------------------------------
def _kept_length(ctx: InferContext) -> int:
    limit = ctx.ints("max_output_size")
    return limit[0] if ctx.op.pad_to_max_output_size and limit else -1


def _padded(values: Array, op: Any, limit: Array) -> Array:
    missing = int(_scalar(limit, 0)) - len(values) if op.pad_to_max_output_size else 0
    return np.concatenate([values, np.zeros(max(missing, 0), values.dtype)])


def _infer_v4(ctx: InferContext) -> Sequence[OutputSpec]:
    _infer_v3(ctx)
    return [([_kept_length(ctx)], INT32), ((), INT32)]


@operator(
    "NonMaxSuppressionV4(boxes, scores, max_output_size, iou_threshold, score_threshold) -> selected_indices, "
    "valid_outputs [pad_to_max_output_size:b=F]",
    infer=_infer_v4,
)
def non_max_suppression_v4(
    op: Any, boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array, score_threshold: Array
) -> tuple[Array, Array]:
    """Like V3; with ``pad_to_max_output_size`` index 0 fills up behind the ``valid_outputs`` selected ones."""
    limit, iou, lowest = (_scalar(v, 0) for v in (max_output_size, iou_threshold, score_threshold))
    kept = select(_corners(boxes, False), scores, int(limit), iou, lowest)
    return _padded(kept, op, max_output_size), np.array(len(kept), np.int32)


def _infer_v5(ctx: InferContext) -> Sequence[OutputSpec]:
    _infer_v3(ctx)
    return [([_kept_length(ctx)], INT32), ([_kept_length(ctx)], ctx.dtype("scores")), ((), INT32)]


@operator(
    "NonMaxSuppressionV5(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma) -> "
    "selected_indices, selected_scores, valid_outputs [pad_to_max_output_size:b=F]",
    infer=_infer_v5,
)
def non_max_suppression_v5(
    op: Any,
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    soft_nms_sigma: Array,
) -> tuple[Array, Array, Array]:
    """Like V4. With a sigma above 0 overlapping boxes are not dropped, but lose score by a Gaussian of the overlap."""
    limit, iou, lowest, sigma = (
        _scalar(v, 0) for v in (max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    )
    corners = _corners(boxes, False)
    if sigma > 0:
        kept, values = _select_softly(corners, scores, int(limit), lowest, sigma)
    else:
        kept = select(corners, scores, int(limit), iou, lowest)
        values = scores[kept]
    count = np.array(len(kept), np.int32)
    return _padded(kept, op, max_output_size), _padded(values, op, max_output_size), count


def _select_softly(boxes: Array, scores: Array, limit: int, lowest: float, sigma: float) -> tuple[Array, Array]:
    """Return the indices and the lowered scores of the kept boxes, in the order in which they are chosen."""
    remaining = scores.astype(np.float32).copy()
    remaining[~(remaining > lowest)] = -np.inf
    kept: list[int] = []
    values: list[float] = []
    while len(kept) < limit and remaining.size and np.max(remaining) > -np.inf:
        best = int(np.argmax(remaining))
        kept.append(best)
        values.append(float(remaining[best]))
        overlap = _overlap(boxes[best], boxes, 0.0)
        remaining *= np.exp(np.float32(-0.5 / sigma) * overlap * overlap).astype(np.float32)
        remaining[~(remaining > lowest)] = -np.inf
        remaining[best] = -np.inf
    return np.array(kept, np.int32), np.array(values, scores.dtype)


def _infer_combined(ctx: InferContext) -> Sequence[OutputSpec]:
    boxes, scores, dtype = ctx.shape("boxes"), ctx.shape("scores"), ctx.dtype("boxes")
    ranks = [len(s) for s in (boxes, scores) if not s.is_unknown_rank()]
    if not all(rank == wanted for rank, wanted in zip(ranks, (4, 3), strict=False)) and len(ranks) == 2:
        raise ctx.fail(f"boxes {boxes} and scores {scores} must be [N, boxes, 1 or classes, 4] and [N, boxes, classes]")
    classes = -1 if scores.is_unknown_rank() else scores[2]
    samples = -1 if scores.is_unknown_rank() else scores[0]
    total, each = ctx.ints("max_total_size"), ctx.ints("max_output_size_per_class")
    count = total[0] if total else -1
    if ctx.op.pad_per_class:
        count = -1 if -1 in (count, classes) or not each else min(count, each[0] * classes)
    rows = [samples, count]
    return [([*rows, 4], dtype), (rows, dtype), (rows, dtype), ([samples], INT32)]


@operator(
    "CombinedNonMaxSuppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, "
    "score_threshold) -> nmsed_boxes, nmsed_scores, nmsed_classes, valid_detections [pad_per_class:b=F clip_boxes:b=T]",
    infer=_infer_combined,
)
def combined_non_max_suppression(
    op: Any,
    boxes: Array,
    scores: Array,
    max_output_size_per_class: Array,
    max_total_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
) -> tuple[Array, ...]:
    """Suppress class by class, then keep the best of all classes of a sample; zeros fill up behind them."""
    each, count, iou, lowest = (
        _scalar(v, 0) for v in (max_output_size_per_class, max_total_size, iou_threshold, score_threshold)
    )
    samples, _, classes = scores.shape
    length = int(min(count, each * classes) if op.pad_per_class else count)
    found_boxes = np.zeros((samples, length, 4), boxes.dtype)
    found_scores, found_classes = (np.zeros((samples, length), boxes.dtype) for _ in range(2))
    valid = np.zeros(samples, np.int32)
    for sample in range(samples):
        rows: list[tuple[int, int]] = []
        for kind in range(classes):
            own = boxes[sample, :, kind if boxes.shape[2] > 1 else 0]
            rows += [(i, kind) for i in select(_corners(own, False), scores[sample, :, kind], int(each), iou, lowest)]
        rows.sort(key=lambda row: -scores[sample, row[0], row[1]])
        valid[sample] = len(rows[:length])
        for at, (index, kind) in enumerate(rows[:length]):
            found_boxes[sample, at] = boxes[sample, index, kind if boxes.shape[2] > 1 else 0]
            found_scores[sample, at] = scores[sample, index, kind]
            found_classes[sample, at] = kind
    return np.clip(found_boxes, 0, 1) if op.clip_boxes else found_boxes, found_scores, found_classes, valid
