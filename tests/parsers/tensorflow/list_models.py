"""Recurrent models as TensorFlow 1 and 2 write them, with what numpy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parsers.tensorflow import graph_def_pb2 as pb
from tests.parsers.tensorflow.programs import function
from tests.parsers.tensorflow.tf_models import Array, Func, Type, const, graph, node, placeholder, shape_proto

FLOAT = Type(pb.DT_FLOAT)
F, V, B = f":{pb.DT_FLOAT}", f":{pb.DT_VARIANT}", f":{pb.DT_BOOL}"
LIST = {"element_dtype": FLOAT}


def rnn(x: Array, w: Array, u: Array) -> tuple[Array, Array]:
    """Return all states and the last one of ``h = tanh(x w + h u)`` over ``x`` (time, batch, features)."""
    state = np.zeros((x.shape[1], w.shape[1]))
    states = []
    for row in x.astype(np.float64):
        state = np.tanh(row @ w + state @ u)
        states.append(state)
    return np.array(states).reshape(len(x), *state.shape), state


def _cell(x: str, state: str, w: str, u: str) -> list[pb.NodeDef]:
    return [
        node("MatMul", "xw", f"{x} {w}"),
        node("MatMul", "hu", f"{state} {u}"),
        node("AddV2", "sum", "xw hu"),
        node("Tanh", "h", "sum"),
    ]


def dynamic_rnn(x: Sequence[int | None], w: Array, u: Array, *, is_dynamic: bool = False) -> pb.GraphDef:
    """TensorFlow 1: TensorArrays, whose handles are constants of the frame and whose flows go round.

    Outputs are ``states`` and ``last``. ``is_dynamic``: the arrays begin empty and grow.
    """

    def enter(name: str, source: str, *, is_constant: bool) -> pb.NodeDef:
        return node("Enter", name, source, frame_name="rnn/while", is_constant=is_constant)

    variables = {"i": "zero", "flow": "out:1", "state": "first"}
    constants = {"in/handle": "in", "in/flow": "unstacked", "out/handle": "out", "w/in": "w", "u/in": "u", "n/in": "n"}
    size = "zero" if is_dynamic else "n"
    array: dict[str, Any] = {"dtype": FLOAT, "dynamic_size": is_dynamic}
    loop = [enter(f"{name}/enter", source, is_constant=False) for name, source in variables.items()]
    loop += [enter(name, source, is_constant=True) for name, source in constants.items()]
    for name in variables:
        loop.append(node("Merge", name, f"{name}/enter {name}/back", N=2))
        loop.append(node("Switch", f"{name}/switch", f"{name} goes_on"))
        loop.append(node("Identity", f"{name}/now", f"{name}/switch:1"))
    loop += [node("Exit", f"{name}/exit", f"{name}/switch") for name in ("flow", "state")]
    one = const("step", np.int32(1))
    one.input.append("^i/now")
    loop += [
        node("Less", "less", "i n/in"),
        node("LoopCond", "goes_on", "less"),
        one,
        node("TensorArrayReadV3", "row", "in/handle i/now in/flow", dtype=FLOAT),
        *_cell("row", "state/now", "w/in", "u/in"),
        node("TensorArrayWriteV3", "written", "out/handle i/now h flow/now", T=FLOAT),
        node("AddV2", "next", "i/now step"),
        node("NextIteration", "i/back", "next"),
        node("NextIteration", "flow/back", "written"),
        node("NextIteration", "state/back", "h"),
    ]
    batch = x[1]
    return graph(
        placeholder("x", [-1 if d is None else d for d in x]),
        const("w", w),
        const("u", u),
        const("first", np.zeros((batch or 1, w.shape[1]), np.float32)),
        const("zero", np.int32(0)),
        const("one", np.int32(1)),
        node("Shape", "x/shape", "x", out_type=Type(pb.DT_INT32)),
        const("begin", np.array([0], np.int32)),
        const("end", np.array([1], np.int32)),
        node("StridedSlice", "n", "x/shape begin end end", shrink_axis_mask=1),
        node("TensorArrayV3", "in", size, element_shape=shape_proto([batch or -1, w.shape[0]]), **array),
        node("TensorArrayV3", "out", size, element_shape=shape_proto([batch or -1, w.shape[1]]), **array),
        node("Range", "rows", "zero n one"),
        node("TensorArrayScatterV3", "unstacked", "in rows x in:1", T=FLOAT),
        *loop,
        node("TensorArraySizeV3", "length", "out flow/exit"),
        node("Range", "all", "zero length one"),
        node(
            "TensorArrayGatherV3",
            "states",
            "out all flow/exit",
            dtype=FLOAT,
            element_shape=shape_proto([batch or -1, w.shape[1]]),
        ),
        node("Identity", "last", "state/exit"),
        node("TensorArrayCloseV3", "close", "out"),
    )


def keras_rnn(x: Sequence[int], w: Array, u: Array) -> pb.GraphDef:
    """TensorFlow 2: TensorLists that a While hands round. Outputs are ``states`` and ``last``."""
    shape_in, shape_out = (np.array([x[1], width], np.int32) for width in w.shape)
    arguments = ["i", f"in{V}", f"out{V}", f"state{F}", f"w{F}", f"u{F}"]
    turn = function(
        "turn",
        arguments,
        [
            const("one", np.int32(1)),
            const("shape", shape_in),
            node("TensorListGetItem", "row", "in i shape:output:0", **LIST),
            *_cell("row:item:0", "state", "w", "u"),
            node("TensorListSetItem", "set", "out i h:y:0", **LIST),
            node("AddV2", "next", "i one:output:0"),
        ],
        {
            "r0": "next:z:0",
            f"r1{V}": "in",
            f"r2{V}": "set:output_handle:0",
            f"r3{F}": "h:y:0",
            f"r4{F}": "w",
            f"r5{F}": "u",
        },
    )
    for made in turn.node_def:
        outputs = {"MatMul": "product", "AddV2": "z", "Tanh": "y"}
        names = {part.name: outputs.get(part.op, "output") for part in turn.node_def}
        for k, text in enumerate(made.input):
            if text in names:
                made.input[k] = f"{text}:{names[text]}:0"
    goes_on = function(
        "goes_on", arguments, [const("n", np.int32(x[0])), node("Less", "less", "i n:output:0")], {f"r{B}": "less:z:0"}
    )
    return graph(
        placeholder("x", x),
        const("w", w),
        const("u", u),
        const("zero", np.int32(0)),
        const("n", np.int32(x[0])),
        const("first", np.zeros((x[1], w.shape[1]), np.float32)),
        const("shape/in", shape_in),
        const("shape/out", shape_out),
        node("TensorListFromTensor", "in", "x shape/in", **LIST),
        node("TensorListReserve", "out", "shape/out n", **LIST),
        node("While", "loop", "zero in out first w u", cond=Func("goes_on"), body=Func("turn")),
        node("TensorListStack", "states", "loop:2 shape/out", **LIST),
        node("Identity", "last", "loop:3"),
        turn=turn,
        goes_on=goes_on,
    )
