"""Scan: a loop over the slices of tensors along one axis each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ge.graph import DataType, NodeOut
from parsers.onnx.bodies import Argument, Turn, add_while, captures
from parsers.onnx.control import append_scans, scan_buffers, stack_scan
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder
from parsers.onnx.onnx_graph import OnnxGraph


@dataclass(frozen=True)
class _Form:
    """How a Scan goes over its inputs and joins its outputs; axes are those of one scan, without a batch."""

    content: OnnxGraph
    n_states: int
    input_axes: list[int]
    is_input_reversed: list[bool]
    output_axes: list[int]
    is_output_reversed: list[bool]


@maps("Scan")
def scan(n: NodeBuilder) -> Mapped:
    """Before: Scan(states..., inputs...) {body}. After: While over the index of a slice.

    The state is (captures..., inputs..., i, states..., handles...). A slice is GatherV2(input, i or length-1-i, axis).
    Before opset 9 all tensors have a batch axis in front: While over the batch, around the While over the slices.
    """
    is_batched = n.since_version < 9
    first = 1 if is_batched else 0
    content, n_inputs = n.node.graphs["body"], n.attr("num_scan_inputs")
    n_states = len(n.inputs) - first - n_inputs
    n_outputs = len(content.outputs) - n_states
    if n_inputs < 1 or n_states < 0 or len(content.inputs) != n_states + n_inputs or n_outputs < 0:
        raise n.fail(
            f"with {n_inputs} scan inputs of {len(n.inputs) - first} its body [{content.name}] must have "
            f"{len(n.inputs) - first} inputs and at least {max(n_states, 0)} outputs, "
            f"but has {len(content.inputs)} and {len(content.outputs)}"
        )
    if len(n.outputs) > len(content.outputs):
        raise n.fail(f"it has {len(n.outputs)} outputs, its body [{content.name}] has {len(content.outputs)}")
    form = _Form(
        content,
        n_states,
        [0] * n_inputs if is_batched else _list(n, "scan_input_axes", n_inputs),
        _directions(n, "directions" if is_batched else "scan_input_directions", n_inputs),
        [0] * n_outputs if is_batched else _list(n, "scan_output_axes", n_outputs),
        [False] * n_outputs if is_batched else _directions(n, "scan_output_directions", n_outputs),
    )
    states = [n.need(first + k) for k in range(n_states)]
    inputs = [n.need(first + n_states + k) for k in range(n_inputs)]
    captured = captures(n, [content])
    results = _batch(n, form, states, inputs, captured) if is_batched else _slices(n, form, states, inputs, captured)
    return results[: len(n.outputs)]


def _list(n: NodeBuilder, name: str, count: int) -> list[int]:
    given: list[int] = n.attr(name) or [0] * count
    if len(given) != count:
        raise n.fail(f"attribute {name} has {len(given)} numbers, but must have {count}")
    return given


def _directions(n: NodeBuilder, name: str, count: int) -> list[bool]:
    given = _list(n, name, count)
    if not set(given) <= {0, 1}:
        raise n.fail(f"attribute {name} is {given}, but must hold 0 (forward) and 1 (backward)")
    return [bool(value) for value in given]


# -- over the slices ---------------------------------------------------------------------------------------------------
def _slices(
    n: NodeBuilder,
    form: _Form,
    states: Sequence[NodeOut],
    inputs: Sequence[NodeOut],
    captured: Sequence[Argument],
    n_valid: NodeOut | None = None,
) -> list[NodeOut]:
    """Add the loop and return the final states, then the joined outputs.

    ``n_valid``: turns from this one on leave the states as they are and give zeros (a shorter sequence of a batch).
    """
    content, n_states = form.content, form.n_states
    names = [value.name for value in content.inputs]
    axes = [_axis(n, source, axis) for source, axis in zip(inputs, form.input_axes, strict=True)]
    length, count = _length(n, inputs, axes)
    fixed = [*captured, *(Argument(name, source) for name, source in zip(names[n_states:], inputs, strict=True))]
    fixed += [Argument("length", length), *([] if n_valid is None else [Argument("n_valid", n_valid)])]
    carried = [Argument("index", n.const("Index", np.int64(0)))]
    carried += [Argument(name, source) for name, source in zip(names, states, strict=False)]
    carried += scan_buffers(n, len(content.outputs) - n_states)
    collected: list[NodeOut] = []

    def turn(turn: Turn) -> list[NodeOut]:
        inner, index = turn.body.n, turn.carried[0]
        given, own = turn.captured(captured), turn.fixed[len(captured) :]
        given.update(zip(names, turn.carried[1 : 1 + n_states], strict=False))
        backward = _backward(inner, index, own[len(inputs)]) if any(form.is_input_reversed) else index
        for k, (source, axis) in enumerate(zip(own, axes, strict=False)):
            at = backward if form.is_input_reversed[k] else index
            given[names[n_states + k]] = _slice(inner, source, at, axis, f"Slice_{k}")
        outputs = turn.body.add_graph(content, given)
        if n_valid is not None:
            outputs = _only_valid(inner, outputs, turn.carried[1 : 1 + n_states], index, own[len(inputs) + 1])
        collected[:] = outputs[n_states:]
        following = inner.add("Add", index, inner.const("One", np.int64(1)), role="Next").output()
        return [following, *outputs[:n_states], *append_scans(inner, turn.carried[1 + n_states :], collected)]

    def goes_on(turn: Turn) -> NodeOut:
        return turn.body.n.add(
            "Less", turn.carried[0], turn.fixed[len(captured) + len(inputs)], role="Goes_On"
        ).output()

    results = add_while(n, fixed, carried, turn, goes_on)
    handles = zip(results[1 + n_states :], collected, form.output_axes, form.is_output_reversed, strict=True)
    return results[1 : 1 + n_states] + [
        stack_scan(n, handle, value, k, count=count, axis=axis, is_reversed=is_reversed)
        for k, (handle, value, axis, is_reversed) in enumerate(handles)
    ]


def _axis(n: NodeBuilder, source: NodeOut, axis: int) -> int:
    shape = n.shape(source)
    return axis if shape.is_unknown_rank() else n.axis(axis, len(shape), "scan axis")


def _length(n: NodeBuilder, inputs: Sequence[NodeOut], axes: Sequence[int]) -> tuple[NodeOut, int]:
    """Return the number of slices, as a tensor and, if it is known, as a number (else -1)."""
    known = {}
    for k, (source, axis) in enumerate(zip(inputs, axes, strict=True)):
        shape = n.shape(source)
        if not shape.is_unknown_rank() and shape[axis] >= 0:
            known[k] = shape[axis]
    if len(set(known.values())) > 1:
        found = ", ".join(f"{length} of scan input {k}" for k, length in known.items())
        raise n.fail(f"the scanned axes must have one length, but have {found}")
    if known:
        length = next(iter(known.values()))
        return n.const("Length", np.int64(length)), length
    shape_of = n.add("Shape", inputs[0], role="Shape", dtype=int(DataType.DT_INT64))
    return _slice(n, shape_of.output(), n.const("Axis", np.int64(axes[0])), 0, "Length"), -1


def _slice(n: NodeBuilder, source: NodeOut, index: NodeOut, axis: int, role: str) -> NodeOut:
    return n.add(
        "GatherV2", source, index, n.index(f"{role}_Axis", axis), role=role, negative_index_support=True
    ).output()


def _backward(n: NodeBuilder, index: NodeOut, length: NodeOut) -> NodeOut:
    last = n.add("Sub", length, n.const("Behind", np.int64(1)), role="Last")
    return n.add("Sub", last, index, role="Backward").output()


# -- over a batch, before opset 9 --------------------------------------------------------------------------------------
def _batch(
    n: NodeBuilder,
    form: _Form,
    states: Sequence[NodeOut],
    inputs: Sequence[NodeOut],
    captured: Sequence[Argument],
) -> list[NodeOut]:
    """Add the loop over the batch, in which the loop over the slices of one element lies."""
    whole = [*states, *inputs]
    lengths = n.input(0)
    size, count = _length(n, whole, [_axis(n, source, 0) for source in whole])
    fixed = [*captured, *(Argument(f"batch_{k}", source) for k, source in enumerate(whole))]
    fixed += [Argument("size", size), *([] if lengths is None else [Argument("sequence_lens", lengths)])]
    carried = [Argument("element", n.const("Element", np.int64(0))), *scan_buffers(n, len(form.content.outputs))]
    collected: list[NodeOut] = []

    def turn(turn: Turn) -> list[NodeOut]:
        inner, element = turn.body.n, turn.carried[0]
        given, own = turn.captured(captured), turn.fixed[len(captured) :]
        parts = [_slice(inner, source, element, 0, f"Part_{k}") for k, source in enumerate(own[: len(whole)])]
        n_valid = None
        if lengths is not None:
            n_valid = inner.cast(
                _slice(inner, own[len(whole) + 1], element, 0, "Valid"), DataType.DT_INT64, "Valid_Cast"
            )
        known = [Argument(name, source) for name, source in given.items()]
        collected[:] = _slices(inner, form, parts[: len(states)], parts[len(states) :], known, n_valid)
        following = inner.add("Add", element, inner.const("One_Element", np.int64(1)), role="Next_Element").output()
        return [following, *append_scans(inner, turn.carried[1:], collected)]

    def goes_on(turn: Turn) -> NodeOut:
        return turn.body.n.add("Less", turn.carried[0], turn.fixed[len(captured) + len(whole)], role="Goes_On").output()

    results = add_while(n, fixed, carried, turn, goes_on)
    return [
        stack_scan(n, handle, value, k, count=count)
        for k, (handle, value) in enumerate(zip(results[1:], collected, strict=True))
    ]


def _only_valid(
    n: NodeBuilder, outputs: Sequence[NodeOut], states: Sequence[NodeOut], index: NodeOut, n_valid: NodeOut
) -> list[NodeOut]:
    """Take the states of the turn before, and zeros for outputs, once the sequence is over."""
    is_valid = n.add("Less", index, n_valid, role="Is_Valid")
    found = []
    for k, out in enumerate(outputs):
        other = states[k] if k < len(states) else n.add("ZerosLike", out, role=f"Zeros_{k}")
        found.append(n.add("SelectV2", is_valid, out, other, role=f"Select_{k}").output())
    return found
