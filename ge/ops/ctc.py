"""Reading sequences of labels off the outputs of a network: CTCGreedyDecoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

INT64 = DataType.DT_INT64


def _infer_greedy(ctx: InferContext) -> Sequence[OutputSpec]:
    x = ctx.shape("inputs")
    if not x.is_unknown_rank() and len(x) != 3:
        raise ctx.fail(f"inputs have shape {x}, but [time, batch, classes] is needed", value="inputs")
    batch = -1 if x.is_unknown_rank() else x[1]
    return [([-1, 2], INT64), ([-1], INT64), ([2], INT64), ([batch, 1], ctx.dtype("inputs"))]


@operator(
    "CTCGreedyDecoder(inputs, sequence_length) -> decoded_indices, decoded_values, decoded_shape, log_probability "
    "[merge_repeated:b=F blank_index:i=-1]",
    infer=_infer_greedy,
)
def ctc_greedy_decoder(op: Any, inputs: Array, sequence_length: Array) -> tuple[Array, ...]:
    """Take the best class of each step; drop blanks, and repetitions where ``merge_repeated`` says so.

    The first three results are a sparse [batch, longest] matrix. ``log_probability`` is minus the sum of what the best
    classes scored. A negative ``blank_index`` counts from the last class.
    """
    steps, samples, classes = inputs.shape
    lengths = np.ravel(sequence_length).astype(np.int64)
    if len(lengths) != samples or (samples and not 0 <= lengths.min() <= lengths.max() <= steps):
        raise Misfit(f"sequence_length {lengths.tolist()} does not fit {samples} samples of {steps} steps")
    blank = op.blank_index + classes if op.blank_index < 0 else op.blank_index
    best = inputs.argmax(axis=2)
    scores = np.zeros((samples, 1), np.float64)
    rows: list[list[int]] = []
    for sample, length in enumerate(lengths):
        path = best[:length, sample]
        scores[sample] = -inputs[np.arange(length), sample, path].astype(np.float64).sum()
        is_kept = path != blank
        if op.merge_repeated:
            is_kept[1:] &= path[1:] != path[:-1]
        rows.append(path[is_kept].tolist())
    indices = [[sample, place] for sample, row in enumerate(rows) for place in range(len(row))]
    values = [label for row in rows for label in row]
    longest = max(map(len, rows), default=0)
    return (
        np.array(indices, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([samples, longest], np.int64),
        scores,
    )
