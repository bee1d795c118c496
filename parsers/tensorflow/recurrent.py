"""Recurrent layers as one node, and reading labels off their outputs."""

from __future__ import annotations

import numpy as np

from ge.graph import NodeOut
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows({"CTCGreedyDecoder": Row("CTCGreedyDecoder", merge_repeated=False, blank_index=-1)})


@maps("BlockLSTM", "BlockLSTMV2", inputs=9)
def block_lstm(n: NodeBuilder) -> Mapped:
    """Before: BlockLSTM(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b). After: DynamicRNN.

    Its outputs are i, cs, f, o, ci, co, h of all steps. Gates lie as i, ci, f, o; in V2 as i, f, ci, o.
    """
    steps, x, cell, hidden, weights, *peepholes, bias = n.inputs
    _check_steps(n, steps, x)
    is_second = n.op_type == "BlockLSTMV2"
    uses_peephole = n.attr("use_peephole", False)
    cell_clip = n.attr("cell_clip", 0.0 if is_second else 3.0)
    node = n.add(
        "DynamicRNN",
        x,
        weights,
        bias,
        None,
        _with_step(n, hidden, "InitH"),
        _with_step(n, cell, "InitC"),
        *(peepholes if uses_peephole else ()),
        cell_type="LSTM",
        use_peephole=uses_peephole,
        cell_clip=cell_clip if cell_clip > 0 else -1.0,
        forget_bias=n.attr("forget_bias", 0.0 if is_second else 1.0),
        gate_order="ifjo" if is_second else "ijfo",
    )
    y, _, output_c, i, j, f, o, tanh_c = node.outputs()
    return [i, output_c, f, o, j, tanh_c, y]


def _check_steps(n: NodeBuilder, steps: NodeOut | None, x: NodeOut | None) -> None:
    """Refuse sequences that end before their tensor does: what lies behind would be undefined."""
    count, shape = n.ints(steps), n.shape(x)
    length = -1 if shape.is_unknown_rank() or not shape else shape[0]
    if count is not None and length != -1 and count[0] < length:
        raise n.fail(f"seq_len_max is {count[0]}, but its input has {length} steps; cut it off before")


def _with_step(n: NodeBuilder, state: NodeOut | None, role: str) -> NodeOut:
    return n.add("ExpandDims", state, n.const(f"{role}_Axis", np.int32(0)), role=role).output()
