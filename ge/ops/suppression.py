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
