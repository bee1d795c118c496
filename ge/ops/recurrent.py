"""Recurrent layers with ONNX's weights: CommonLSTM, CommonGRU, and XCommonRNN, which is ours for ONNX's RNN.

x is [time, batch, input]; w, r, b, p carry one slice per direction. ``hidden_size`` is taken from r. Extra attribute:
``_x_layout`` 1 puts the batch first in x, y and all states (ONNX's layout).

``clip`` above 0 bounds what enters the activations of the gates (of an LSTM not the cell state that enters the last
one, as in onnxruntime). A sequence shorter than the longest gives zeros in y after its end,
and its last real state in y_h and y_c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.ops.activation import sigmoid, softplus
from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator

_Activation = Callable[[Array], Array]
_State = tuple[Array, ...]

# name: (function of x, alpha, beta; defaults of alpha and beta as far as it has them)
_ACTIVATIONS: dict[str, tuple[Callable[..., Array], tuple[float, ...]]] = {
    "affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "elu": (lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), (1.0,)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), (0.2, 0.5)),
    "leakyrelu": (lambda x, a: np.where(x >= 0, x, a * x), (0.01,)),
    "relu": (lambda x: np.maximum(x, 0), ()),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "sigmoid": (sigmoid, ()),
    "softplus": (softplus, ()),
    "softsign": (lambda x: x / (1 + np.abs(x)), ()),
    "tanh": (np.tanh, ()),
    "thresholdedrelu": (lambda x, a: np.where(x > a, x, np.zeros_like(x)), (1.0,)),
}


def _activations(op: Any, defaults: Sequence[str], directions: int) -> list[list[_Activation]]:
    """Return the activations per direction; alpha and beta are handed to those that take them, in order."""
    names = [str(name) for name in op.activations] or list(defaults) * directions
    if len(names) != len(defaults) * directions:
        raise Misfit(f"activations {names} must be {len(defaults) * directions} names")
    alphas, betas = list(op.activation_alpha), list(op.activation_beta)
    found: list[_Activation] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise Misfit(f"activation {name} is unknown")
        function, values = _ACTIVATIONS[name.lower()]
        given = [(source.pop(0) if source else value) for source, value in zip((alphas, betas), values, strict=False)]
        clip = op.clip if len(found) % len(defaults) < 2 else -1.0
        found.append(partial(_clipped, partial(_apply, function, given), clip))
    return [found[i : i + len(defaults)] for i in range(0, len(found), len(defaults))]


def _apply(function: Callable[..., Array], values: Sequence[float], x: Array) -> Array:
    return function(x, *(x.dtype.type(value) for value in values))


def _clipped(function: _Activation, clip: float, x: Array) -> Array:
    return function(np.clip(x, -clip, clip) if clip > 0 else x)


def scan(
    step: Callable[[Array, _State], _State], x: Array, state: _State, lengths: Array | None, is_reverse: bool
) -> tuple[Array, _State]:
    """Run ``step`` over ``x`` [time, batch, ...]; return the first state at each time, and the last state.

    Beyond the length of a sequence the result is 0 and the state stays.
    """
    y = np.zeros((len(x), *state[0].shape), x.dtype)
    for time in range(len(x) - 1, -1, -1) if is_reverse else range(len(x)):
        new = step(x[time], state)
        if lengths is None:
            state, y[time] = new, new[0]
            continue
        is_running = (time < lengths)[:, None]
        state = tuple(np.where(is_running, n, old) for n, old in zip(new, state, strict=True))
        y[time] = np.where(is_running, new[0], 0)
    return y, state


def _lstm_step(
    r: Array, p: Array, functions: Sequence[_Activation], is_coupled: bool, x: Array, state: _State
) -> _State:
    h, c = state
    f, g, out = functions
    gates = x + h @ r.T
    i, o, forget, cell = np.split(gates, 4, axis=1)
    p_i, p_o, p_f = np.split(p, 3)
    i = f(i + p_i * c)
    forget = 1 - i if is_coupled else f(forget + p_f * c)
    c = forget * c + i * g(cell)
    o = f(o + p_o * c)
    return o * out(c), c


def _gru_step(r: Array, b: Array, functions: Sequence[_Activation], is_linear: bool, x: Array, state: _State) -> _State:
    """``b`` is the recurrent bias of the hidden gate; the other biases are part of ``x``."""
    (h,) = state
    f, g = functions
    size = h.shape[1]
    z, reset = np.split(f(x[:, : 2 * size] + h @ r[: 2 * size].T), 2, axis=1)
    hidden = r[2 * size :].T
    new = g(x[:, 2 * size :] + (reset * (h @ hidden + b) if is_linear else (reset * h) @ hidden + b))
    return ((1 - z) * new + z * h,)


def _rnn_step(r: Array, function: _Activation, x: Array, state: _State) -> _State:
    return (function(x + state[0] @ r.T),)


_StepMaker = Callable[[int, Array], tuple[Array, Callable[[Array, _State], _State]]]


def _run(
    op: Any, x: Array, w: Array, r: Array, lengths: Array | None, initial: Sequence[Array | None], make: _StepMaker
) -> tuple[Array, ...]:
    """Run all directions; ``make(direction, w x)`` returns the input of each step and the step."""
    is_batch_first = op.get("_x_layout", 0) == 1
    if is_batch_first:
        x = x.swapaxes(0, 1)
        initial = [None if state is None else state.swapaxes(0, 1) for state in initial]
    directions, hidden = len(r), r.shape[2]
    outputs, states = [], []
    for direction in range(directions):
        entering, step = make(direction, x @ w[direction].T)
        zero = np.zeros((x.shape[1], hidden), x.dtype)
        start = tuple(zero if state is None else state[direction] for state in initial)
        is_reverse = op.direction == "reverse" or direction == 1
        y, state = scan(step, entering, start, lengths, is_reverse)
        outputs.append(y)
        states.append(state)
    ends = [np.stack([state[i] for state in states]) for i in range(len(initial))]
    if is_batch_first:
        return np.stack(outputs, 2).swapaxes(0, 1), *(end.swapaxes(0, 1) for end in ends)
    return np.stack(outputs, 1), *ends


def _fits(found: Sequence[int], dims: Sequence[int]) -> bool:
    if list(found) == [-2]:
        return True
    return len(found) == len(dims) and all(min(a, b) < 0 or a == b for a, b in zip(found, dims, strict=True))


def _infer(ctx: InferContext, gates: int, states: Sequence[str], activations: Sequence[str]) -> Sequence[OutputSpec]:
    op, x, w, r, dtype = ctx.op, ctx.shape("x"), ctx.shape("w"), ctx.shape("r"), ctx.dtype("x")
    if op.direction not in ("forward", "reverse", "bidirectional"):
        raise ctx.fail(f"direction {op.direction} must be forward, reverse or bidirectional", value="direction")
    directions = 2 if op.direction == "bidirectional" else 1
    _activations(op, activations, directions)
    if any(s.is_unknown_rank() for s in (x, w, r)):
        return [([-1] * 4, dtype)] + [([-1] * 3, dtype)] * len(states)
    if not len(x) == len(w) == len(r) == 3:
        raise ctx.fail(f"x {x}, w {w} and r {r} must have rank 3")
    hidden = r[2]
    time, batch = (x[1], x[0]) if op.get("_x_layout", 0) == 1 else (x[0], x[1])
    wanted: dict[str, tuple[Sequence[int], list[int]]] = {
        "w": (w, [directions, gates * hidden, x[2]]),
        "r": (r, [directions, gates * hidden, hidden]),
    }
    if ctx.has("b"):
        wanted["b"] = (ctx.shape("b"), [directions, 2 * gates * hidden])
    state = [batch, directions, hidden] if op.get("_x_layout", 0) == 1 else [directions, batch, hidden]
    for name in states:
        if ctx.has(name):
            wanted[name] = (ctx.shape(name), state)
    for name, (found, dims) in wanted.items():
        if hidden != -1 and not _fits(found, dims):
            raise ctx.fail(f"{name} has shape {Shape(found)}, but {Shape(dims)} is needed", value=name)
    whole = [batch, time, directions, hidden] if op.get("_x_layout", 0) == 1 else [time, directions, batch, hidden]
    return [(whole, dtype)] + [(state, dtype)] * len(states)


def _biases(b: Array | None, r: Array) -> tuple[Array, Array]:
    """Return input and recurrent biases, [direction, gates * hidden] each."""
    if b is None:
        zero = np.zeros(r.shape[:2], r.dtype)
        return zero, zero
    return b[:, : r.shape[1]], b[:, r.shape[1] :]


_RNN_ATTRS = "activation_alpha:F=[] activation_beta:F=[] activations:S=[] clip:f=-1 direction:s=forward hidden_size:i!"
_LSTM_FUNCTIONS = ("Sigmoid", "Tanh", "Tanh")
_GRU_FUNCTIONS = ("Sigmoid", "Tanh")


@operator(
    f"CommonLSTM(x, w, r, b?, sequence_lens?, initial_h?, initial_c?, p?) -> y, y_h, y_c "
    f"[{_RNN_ATTRS} input_forget:i=0]",
    infer=lambda ctx: _infer(ctx, 4, ("initial_h", "initial_c"), _LSTM_FUNCTIONS),
)
def common_lstm(
    op: Any,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
) -> tuple[Array, ...]:
    """Gates in the order input, output, forget, cell."""
    functions = _activations(op, _LSTM_FUNCTIONS, len(r))
    w_bias, r_bias = _biases(b, r)
    peepholes = np.zeros((len(r), 3 * r.shape[2]), r.dtype) if p is None else p

    def make(d: int, projected: Array) -> Any:
        step = partial(_lstm_step, r[d], peepholes[d], functions[d], op.input_forget == 1)
        return projected + (w_bias[d] + r_bias[d]), step

    return _run(op, x, w, r, sequence_lens, (initial_h, initial_c), make)


@operator(
    f"CommonGRU(x, w, r, b?, sequence_lens?, initial_h?) -> y, y_h [{_RNN_ATTRS} linear_before_reset:i=0]",
    infer=lambda ctx: _infer(ctx, 3, ("initial_h",), _GRU_FUNCTIONS),
)
def common_gru(
    op: Any,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
) -> tuple[Array, ...]:
    """Gates in the order update, reset, hidden."""
    functions = _activations(op, _GRU_FUNCTIONS, len(r))
    w_bias, r_bias = _biases(b, r)
    hidden = 2 * r.shape[2]

    def make(d: int, projected: Array) -> Any:
        entering = projected + w_bias[d]
        entering[..., :hidden] += r_bias[d, :hidden]
        step = partial(_gru_step, r[d], r_bias[d, hidden:], functions[d], op.linear_before_reset != 0)
        return entering, step

    return _run(op, x, w, r, sequence_lens, (initial_h,), make)


@operator(
    f"XCommonRNN(x, w, r, b?, sequence_lens?, initial_h?) -> y, y_h [{_RNN_ATTRS}]",
    infer=lambda ctx: _infer(ctx, 1, ("initial_h",), ("Tanh",)),
)
def common_rnn(
    op: Any,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
) -> tuple[Array, ...]:
    functions = _activations(op, ("Tanh",), len(r))
    w_bias, r_bias = _biases(b, r)

    def make(d: int, projected: Array) -> Any:
        return projected + (w_bias[d] + r_bias[d]), partial(_rnn_step, r[d], functions[d][0])

    return _run(op, x, w, r, sequence_lens, (initial_h,), make)
