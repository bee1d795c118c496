"""Recurrent layers in GE's own form: DynamicRNN (an LSTM) and DynamicGRUV2.

x is [time, batch, input], weights multiply from the right. ``time_major`` false puts the batch first in x and in all
results. ``direction`` is UNIDIRECTIONAL or REDIRECTIONAL (from the last step to the first). ``seq_length`` is [batch];
behind the end of a sequence results are 0 and states stay. Projection, several cells and dropout are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.activation import sigmoid
from ge.ops.registry import Array, InferContext, OutputSpec, operator

_State = tuple[Array, ...]
_ACTIVATIONS: dict[str, Callable[[Array], Any]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "clip": lambda x: np.clip(x, -1, 1),
}


def _check(ctx: InferContext, gate_orders: Sequence[str]) -> None:
    op = ctx.op
    wanted: dict[str, Sequence[object]] = {
        "direction": ("UNIDIRECTIONAL", "REDIRECTIONAL"),
        "cell_depth": (1,),
        "keep_prob": (1.0,),
        "num_proj": (0,),
        "activation": tuple(_ACTIVATIONS),
        "gate_order": gate_orders,
    }
    for name, values in wanted.items():
        if getattr(op, name) not in values:
            raise ctx.fail(f"{name} must be {' or '.join(map(str, values))}, not {getattr(op, name)}", value=name)


def _infer(ctx: InferContext, x: Shape, hidden: int, count: int) -> Sequence[OutputSpec]:
    """All outputs are [time, batch, hidden]."""
    dims = [-1, -1, hidden] if x.is_unknown_rank() else [*x[:2], hidden]
    return [(dims, ctx.dtype("x"))] * count


def _rank_3(ctx: InferContext) -> Shape:
    x = ctx.shape("x")
    if not x.is_unknown_rank() and len(x) != 3:
        raise ctx.fail(f"x has shape {x}, but needs rank 3", value="x")
    return x


def _hidden(ctx: InferContext, name: str, gates: int) -> int:
    shape = ctx.shape(name)
    if shape.is_unknown_rank() or shape[-1] == -1:
        return -1
    if len(shape) != 2 or shape[1] % gates:
        raise ctx.fail(f"{name} has shape {shape}, but [rows, {gates} * hidden size] is needed", value=name)
    return shape[1] // gates


def _scan(
    op: Any, step: Callable[[Array, _State], tuple[_State, tuple[Array, ...]]], x: Array, state: _State, alive: Any
) -> list[Array]:
    """Run ``step`` (-> new state, results) over time; return each result stacked over time."""
    order = range(len(x) - 1, -1, -1) if op.direction == "REDIRECTIONAL" else range(len(x))
    rows: list[tuple[Array, ...]] = [()] * len(x)
    for time in order:
        new, results = step(x[time], state)
        if alive is not None:
            keeps = alive[time]
            new = tuple(np.where(keeps, n, old) for n, old in zip(new, state, strict=True))
            results = tuple(np.where(keeps, r, 0) for r in results)
        state, rows[time] = new, results
    stacked = [np.stack(column) for column in zip(*rows, strict=True)]
    return stacked if op.time_major else [column.swapaxes(0, 1) for column in stacked]


def _alive(x: Array, lengths: Array | None, mask: Array | None = None) -> Array | None:
    """Return [time, batch, 1 or hidden]: whether the sequences still run."""
    if lengths is not None:
        return np.arange(len(x))[:, None, None] < lengths.reshape(1, -1, 1)
    return None if mask is None else mask != 0


def _initial(state: Array | None, x: Array, hidden: int) -> Array:
    return np.zeros((x.shape[1], hidden), x.dtype) if state is None else state.reshape(-1, hidden)


# -- LSTM ----------------------------------------------------------------------------------------------------------
def _infer_rnn(ctx: InferContext) -> Sequence[OutputSpec]:
    _check(ctx, ("ijfo", "ifjo"))
    if ctx.op.cell_type != "LSTM":
        raise ctx.fail(f"cell_type must be LSTM, not {ctx.op.cell_type}", value="cell_type")
    if ctx.op.use_peephole and not all(ctx.has(name) for name in ("wci", "wcf", "wco")):
        raise ctx.fail("use_peephole needs wci, wcf and wco", value="use_peephole")
    x, w, hidden = _rank_3(ctx), ctx.shape("w"), _hidden(ctx, "w", 4)
    if hidden != -1 and not x.is_unknown_rank() and -1 not in (x[2], w[0]) and w[0] != x[2] + hidden:
        raise ctx.fail(f"w has {w[0]} rows, but input {x[2]} and hidden size {hidden} make {x[2] + hidden}", value="w")
    return _infer(ctx, x, hidden, 8)


def _lstm_step(
    op: Any, recurrent: Array, peepholes: Sequence[Any], x: Array, state: _State
) -> tuple[_State, tuple[Array, ...]]:
    h, c = state
    parts = dict(zip(op.gate_order, np.split(x + h @ recurrent, 4, axis=1), strict=True))
    act = _ACTIVATIONS[op.activation]
    wci, wcf, wco = peepholes
    i, j = sigmoid(parts["i"] + wci * c), act(parts["j"])
    f = sigmoid(parts["f"] + x.dtype.type(op.forget_bias) + wcf * c)
    c = f * c + i * j
    if op.cell_clip > 0:
        c = np.clip(c, -op.cell_clip, op.cell_clip)
    o, tanhc = sigmoid(parts["o"] + wco * c), act(c)
    h = o * tanhc
    return (h, c), (h, h, c, i, j, f, o, tanhc)


@operator(
    "DynamicRNN(x, w, b, seq_length?, init_h?, init_c?, wci?, wcf?, wco?, mask?) -> y, output_h, output_c, i, j, f, o, "
    "tanhc [cell_type:s=LSTM direction:s=UNIDIRECTIONAL cell_depth:i=1 use_peephole:b=F keep_prob:f=1 cell_clip:f=-1 "
    "num_proj:i=0 time_major:b=T activation:s=tanh forget_bias:f=0 gate_order:s=ijfo is_training:b=T]",
    infer=_infer_rnn,
)
def dynamic_rnn(
    op: Any,
    x: Array,
    w: Array,
    b: Array,
    seq_length: Array | None,
    init_h: Array | None,
    init_c: Array | None,
    wci: Array | None,
    wcf: Array | None,
    wco: Array | None,
    mask: Array | None,
) -> list[Array]:
    """``w`` is [input + hidden, 4 * hidden]; every result is given for every step."""
    x = x if op.time_major else x.swapaxes(0, 1)
    hidden, inputs = w.shape[1] // 4, x.shape[2]
    peepholes = [p.reshape(-1) if op.use_peephole and p is not None else 0 for p in (wci, wcf, wco)]
    step = partial(_lstm_step, op, w[inputs:], peepholes)
    state = (_initial(init_h, x, hidden), _initial(init_c, x, hidden))
    return _scan(op, step, x @ w[:inputs] + b, state, _alive(x, seq_length, mask))


# -- GRU -----------------------------------------------------------------------------------------------------------
def _infer_gru(ctx: InferContext) -> Sequence[OutputSpec]:
    _check(ctx, ("zrh", "rzh"))
    x, hidden = _rank_3(ctx), _hidden(ctx, "weight_input", 3)
    recurrent = ctx.shape("weight_hidden")
    if hidden != -1 and not recurrent.is_unknown_shape() and list(recurrent) != [hidden, 3 * hidden]:
        raise ctx.fail(
            f"weight_hidden has shape {recurrent}, but {Shape([hidden, 3 * hidden])} is needed", value="weight_hidden"
        )
    return _infer(ctx, x, hidden, 6)


def _gru_step(op: Any, recurrent: Array, bias: Array, x: Array, state: _State) -> tuple[_State, tuple[Array, ...]]:
    (h,) = state
    entering = dict(zip(op.gate_order, np.split(x, 3, axis=1), strict=True))
    weights = dict(zip(op.gate_order, np.split(recurrent, 3, axis=1), strict=True))
    biases = dict(zip(op.gate_order, np.split(bias, 3), strict=True))
    z = sigmoid(entering["z"] + h @ weights["z"] + biases["z"])
    r = sigmoid(entering["r"] + h @ weights["r"] + biases["r"])
    carried = (h if op.reset_after else r * h) @ weights["h"] + biases["h"]
    n = _ACTIVATIONS[op.activation](entering["h"] + (r * carried if op.reset_after else carried))
    h = (1 - z) * n + z * h
    if op.cell_clip > 0:
        h = np.clip(h, -op.cell_clip, op.cell_clip)
    return (h,), (h, h, z, r, n, carried)


@operator(
    "DynamicGRUV2(x, weight_input, weight_hidden, bias_input?, bias_hidden?, seq_length?, init_h?) -> y, output_h, "
    "update, reset, new, hidden_new [direction:s=UNIDIRECTIONAL cell_depth:i=1 keep_prob:f=1 cell_clip:f=-1 "
    "num_proj:i=0 time_major:b=T activation:s=tanh gate_order:s=zrh reset_after:b=T is_training:b=T]",
    infer=_infer_gru,
)
def dynamic_gru_v2(
    op: Any,
    x: Array,
    weight_input: Array,
    weight_hidden: Array,
    bias_input: Array | None,
    bias_hidden: Array | None,
    seq_length: Array | None,
    init_h: Array | None,
) -> list[Array]:
    """``reset_after`` applies the reset gate behind the recurrent product. Every result is given for every step."""
    x = x if op.time_major else x.swapaxes(0, 1)
    hidden = weight_hidden.shape[0]
    zero = np.zeros(3 * hidden, x.dtype)
    entering = x @ weight_input + (zero if bias_input is None else bias_input.reshape(-1))
    step = partial(_gru_step, op, weight_hidden, zero if bias_hidden is None else bias_hidden.reshape(-1))
    return _scan(op, step, entering, (_initial(init_h, x, hidden),), _alive(x, seq_length))
