"""Recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import assert_close, data, inferred, run_ge, run_onnx

TIME, BATCH, INPUT, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TYPES = {"LSTM": "CommonLSTM", "GRU": "CommonGRU", "RNN": "XCommonRNN"}
OUTPUTS = {"LSTM": 3, "GRU": 2, "RNN": 2}


def operands(onnx_type: str, direction: str, *, optional: bool = True, peephole: bool = False) -> list[Any]:
    """Return seeded inputs: x, w, r, and on demand b, sequence_lens, initial states, peepholes."""
    gates, directions = GATES[onnx_type], 2 if direction == "bidirectional" else 1
    found: list[Any] = [
        data(1, TIME, BATCH, INPUT),
        data(2, directions, gates * HIDDEN, INPUT, low=-0.6, high=0.6),
        data(3, directions, gates * HIDDEN, HIDDEN, low=-0.6, high=0.6),
    ]
    if not optional:
        return found
    state = (directions, BATCH, HIDDEN)
    found += [data(4, directions, 2 * gates * HIDDEN), np.array([5, 2, 3], np.int32), data(5, *state)]
    if onnx_type == "LSTM":
        found += [data(6, *state), data(7, directions, 3 * HIDDEN) if peephole else None]
    return found


def check(onnx_type: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    """Compare all results with onnxruntime's."""
    whole = {"hidden_size": HIDDEN, **attrs}
    n = OUTPUTS[onnx_type]
    expected = run_onnx(onnx_type, inputs, whole, n, opset=14)
    for found, wanted in zip(run_ge(TYPES[onnx_type], inputs, whole, n), expected, strict=True):
        assert_close(found, wanted)


DIRECTIONS = ["forward", "reverse", "bidirectional"]


@pytest.mark.parametrize("onnx_type", TYPES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("attrs", [{}, {"clip": 0.4}])
@pytest.mark.parametrize("optional", [False, True])
def test_recurrent(onnx_type: str, direction: str, attrs: dict[str, Any], optional: bool) -> None:
    check(onnx_type, operands(onnx_type, direction, optional=optional), {"direction": direction, **attrs})


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("attrs", [{}, {"input_forget": 1}, {"input_forget": 1, "clip": 0.5}])
@pytest.mark.parametrize("peephole", [False, True])
def test_lstm_variants(direction: str, attrs: dict[str, Any], peephole: bool) -> None:
    check("LSTM", operands("LSTM", direction, peephole=peephole), {"direction": direction, **attrs})


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("attrs", [{}, {"clip": 0.4}])
def test_gru_with_late_reset(direction: str, attrs: dict[str, Any]) -> None:
    check("GRU", operands("GRU", direction), {"direction": direction, "linear_before_reset": 1, **attrs})


# name: alpha and beta, as far as it takes them
ACTIVATIONS: dict[str, tuple[float, ...]] = {
    "HardSigmoid": (0.3, 0.4),
    "Elu": (0.7,),
    "ScaledTanh": (0.8, 0.6),
    "LeakyRelu": (0.2,),
    "ThresholdedRelu": (0.5,),
    "Affine": (0.5, 0.1),
}


@pytest.mark.parametrize("onnx_type", TYPES)
@pytest.mark.parametrize(
    "names",
    [
        ("HardSigmoid", "Elu", "ScaledTanh"),
        ("Sigmoid", "LeakyRelu", "Softsign"),
        ("Tanh", "ThresholdedRelu", "Tanh"),
        ("HardSigmoid", "Affine", "Softplus"),
        ("Sigmoid", "Relu", "Relu"),
    ],
)
def test_activations_take_their_values_in_order(onnx_type: str, names: tuple[str, ...]) -> None:
    chosen = list({"LSTM": names, "GRU": names[:2], "RNN": names[1:2]}[onnx_type]) * 2
    values = [ACTIVATIONS.get(name, ()) for name in chosen]
    attrs: dict[str, Any] = {"activations": chosen, "direction": "bidirectional"}
    for index, name in enumerate(("activation_alpha", "activation_beta")):
        if found := [v[index] for v in values if len(v) > index]:
            attrs[name] = found
    check(onnx_type, operands(onnx_type, "bidirectional"), attrs)


def test_activations_without_values_have_those_of_the_onnx_operators() -> None:
    x = data(1, 1, BATCH, INPUT)
    w, r = data(2, 1, HIDDEN, INPUT), np.zeros((1, HIDDEN, HIDDEN), np.float32)
    entering = (x[0] @ w[0].T).astype(np.float64)
    expected = {
        "LeakyRelu": np.where(entering < 0, 0.01 * entering, entering),
        "Elu": np.where(entering < 0, np.expm1(entering), entering),
        "ThresholdedRelu": np.where(entering > 1, entering, 0),
        "HardSigmoid": np.clip(0.2 * entering + 0.5, 0, 1),
    }
    for name, wanted in expected.items():
        _, y = run_ge("XCommonRNN", [x, w, r], {"hidden_size": HIDDEN, "activations": [name]}, 2)
        assert_close(y[0], wanted)


@pytest.mark.parametrize("onnx_type", TYPES)
def test_batch_may_come_first(onnx_type: str) -> None:
    """Layout 1 swaps the first two axes of x and of the states, and puts the batch first in y."""
    n = OUTPUTS[onnx_type]
    inputs = operands(onnx_type, "bidirectional")
    attrs = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    expected = run_onnx(onnx_type, inputs, attrs, n, opset=14)
    swapped = [v if v is None or i in (1, 2, 3, 4, 7) else v.swapaxes(0, 1).copy() for i, v in enumerate(inputs)]
    y, *states = run_ge(TYPES[onnx_type], swapped, {**attrs, "_x_layout": 1}, n)
    assert_close(y, expected[0].transpose(2, 0, 1, 3))
    for found, wanted in zip(states, expected[1:], strict=True):
        assert_close(found, wanted.swapaxes(0, 1))


# -- GE's own form -------------------------------------------------------------------------------------------------
ONNX_DIRECTION = {"UNIDIRECTIONAL": "forward", "REDIRECTIONAL": "reverse"}


def gates(columns: np.ndarray, order: str, wanted: str) -> np.ndarray:
    """Reorder blocks of HIDDEN columns from one gate order to another."""
    blocks = dict(zip(order, np.split(columns, len(order), axis=-1), strict=True))
    return np.concatenate([blocks[gate] for gate in wanted], axis=-1)


@pytest.mark.parametrize("direction", ONNX_DIRECTION)
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize(("peephole", "order"), [(False, "ijfo"), (True, "ifjo")])
def test_dynamic_rnn(direction: str, time_major: bool, peephole: bool, order: str) -> None:
    x, lengths = data(1, TIME, BATCH, INPUT), np.array([5, 2, 3], np.int32)
    w, r, b = data(2, INPUT, 4 * HIDDEN), data(3, HIDDEN, 4 * HIDDEN), data(4, 4 * HIDDEN)
    h, c, p = data(5, 1, BATCH, HIDDEN), data(6, 1, BATCH, HIDDEN), data(7, 3, HIDDEN)  # p: input, forget, output
    bias = gates(b + np.repeat([0, 0, 0.5, 0] if order == "ijfo" else [0, 0.5, 0, 0], HIDDEN), order, "iofj")
    onnx_inputs = [
        x,
        gates(w, order, "iofj").T[None],
        gates(r, order, "iofj").T[None],
        np.concatenate([bias, np.zeros_like(bias)])[None].astype(np.float32),
        lengths,
        h,
        c,
        p[[0, 2, 1]].reshape(1, -1) if peephole else None,
    ]
    onnx_attrs = {"hidden_size": HIDDEN, "direction": ONNX_DIRECTION[direction]}
    y, last_h, last_c = run_onnx("LSTM", onnx_inputs, onnx_attrs, 3, opset=14)
    attrs = {
        "direction": direction,
        "time_major": time_major,
        "gate_order": order,
        "forget_bias": 0.5,
        "use_peephole": peephole,
    }
    inputs = [x if time_major else x.swapaxes(0, 1), np.concatenate([w, r]), b, lengths, h, c]
    found = run_ge("DynamicRNN", [*inputs, *(p if peephole else [None] * 3)], attrs, 8)
    found = found if time_major else [v.swapaxes(0, 1) for v in found]
    assert_close(found[0], y[:, 0])
    np.testing.assert_array_equal(found[0], found[1])
    for sample, length in enumerate(lengths):
        end = 0 if direction == "REDIRECTIONAL" else length - 1
        assert_close(found[1][end, sample], last_h[0, sample])
        assert_close(found[2][end, sample], last_c[0, sample])
    _, _, cell, i, j, f, o, tanhc = found
    assert_close(o * tanhc, y[:, 0])
    before = np.concatenate([c, cell[:-1]]) if direction == "UNIDIRECTIONAL" else np.concatenate([cell[1:], c])
    full = slice(0, 1)  # the sample that runs to the end
    assert_close((f * before + i * j)[:, full], cell[:, full])


@pytest.mark.parametrize("direction", ONNX_DIRECTION)
@pytest.mark.parametrize("late_reset", [True, False])
@pytest.mark.parametrize("order", ["zrh", "rzh"])
def test_dynamic_gru(direction: str, late_reset: bool, order: str) -> None:
    x, lengths, h = data(1, TIME, BATCH, INPUT), np.array([5, 2, 3], np.int32), data(5, 1, BATCH, HIDDEN)
    w, r = data(2, INPUT, 3 * HIDDEN), data(3, HIDDEN, 3 * HIDDEN)
    b_in, b_hidden = data(4, 3 * HIDDEN), data(6, 3 * HIDDEN)
    weights = [gates(v, order, "zrh").T[None] for v in (w, r)]
    biases = np.concatenate([gates(b_in, order, "zrh"), gates(b_hidden, order, "zrh")])[None]
    onnx_attrs = {
        "hidden_size": HIDDEN,
        "direction": ONNX_DIRECTION[direction],
        "linear_before_reset": int(late_reset),
    }
    y, _ = run_onnx("GRU", [x, *weights, biases, lengths, h], onnx_attrs, 2, opset=14)
    attrs = {"direction": direction, "reset_after": late_reset, "gate_order": order}
    found, output_h, z, reset, new, carried = run_ge("DynamicGRUV2", [x, w, r, b_in, b_hidden, lengths, h], attrs, 6)
    assert_close(found, y[:, 0])
    np.testing.assert_array_equal(output_h, found)
    entering = gates(x @ w + b_in, order, "h")
    full = slice(0, 1)
    assert_close(new[:, full], np.tanh(entering + (reset * carried if late_reset else carried))[:, full])
    assert ((z >= 0) & (z <= 1)).all()


def test_a_mask_ends_sequences_too() -> None:
    x, w, b = data(1, TIME, BATCH, INPUT), data(2, INPUT + HIDDEN, 4 * HIDDEN), data(4, 4 * HIDDEN)
    lengths = np.array([5, 2, 3], np.int32)
    mask = np.broadcast_to((np.arange(TIME)[:, None, None] < lengths[:, None]), (TIME, BATCH, HIDDEN))
    by_length = run_ge("DynamicRNN", [x, w, b, lengths], {}, 8)
    by_mask = run_ge("DynamicRNN", [x, w, b, *[None] * 6, mask.astype(np.float16)], {}, 8)
    for mine, theirs in zip(by_length, by_mask, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("type", "attrs", "message"),
    [
        ("CommonLSTM", {"direction": "sideways"}, "direction sideways must be forward, reverse or bidirectional"),
        ("CommonLSTM", {"direction": "bidirectional"}, r"w has shape \[1,24,4\], but \[2,24,4\] is needed"),
        ("CommonLSTM", {"activations": ["Tanh"]}, r"activations \['Tanh'\] must be 3 names"),
        ("CommonLSTM", {"activations": ["Tanh", "Tanh", "Cube"]}, "activation Cube is unknown"),
    ],
)
def test_recurrent_refuses(type: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ReportedError, match=message) as caught:
        inferred(type, operands("LSTM", "forward", optional=False), {"hidden_size": HIDDEN, **attrs}, 3)
    assert caught.value.code == "E14001"


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"direction": "BIDIRECTIONAL"}, "direction must be UNIDIRECTIONAL or REDIRECTIONAL, not BIDIRECTIONAL"),
        ({"keep_prob": 0.5}, "keep_prob must be 1.0, not 0.5"),
        ({"num_proj": 3}, "num_proj must be 0, not 3"),
        ({"use_peephole": True}, "use_peephole needs wci, wcf and wco"),
        ({"cell_type": "GRU"}, "cell_type must be LSTM, not GRU"),
    ],
)
def test_dynamic_rnn_refuses(attrs: dict[str, Any], message: str) -> None:
    inputs = [data(1, TIME, BATCH, INPUT), data(2, INPUT + HIDDEN, 4 * HIDDEN), data(4, 4 * HIDDEN)]
    with pytest.raises(ReportedError, match=message):
        inferred("DynamicRNN", inputs, attrs, 8)
