"""Models with Scan in its forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, ValueInfoProto

from tests.control_case import I64, VECTOR, Array, Case, arrays, body
from tests.parsers.onnx_models import model, node, value


def scan(
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    content: GraphProto,
    *,
    opset: int = 13,
    initializers: dict[str, Any] | None = None,
    first: str = "",
    captured: Sequence[ValueInfoProto] = (),
    **attributes: Any,
) -> ModelProto:
    names = f"{first} {' '.join(v.name for v in inputs)}".strip()
    made = node("Scan", names, " ".join(v.name for v in outputs), "scan", body=content, **attributes)
    extra = [] if first in ("", "_") else [value(first, [3], I64)]
    return model([made], [*extra, *inputs, *captured], outputs, initializers, opset=opset)


def running_sum(*dims: int) -> GraphProto:
    """Two slices are added to the state; collects the sum so far and its square."""
    return body(
        [
            node("Add", "a b", "ab", "ab"),
            node("Add", "s ab", "s2", "add"),
            node("Mul", "s2 w", "scaled", "mul"),
        ],
        [value("s", dims), value("a", dims), value("b", dims)],
        [value("s2", dims), value("s2", dims), value("scaled", dims)],
    )


def random_values(*dims: Any) -> Array:
    return np.random.default_rng(7).standard_normal(dims).astype(np.float32)


WEIGHT = {"w": np.float32([2, -3, 0.5])}
SCANS: dict[str, Case] = {
    "scan": Case(
        scan(
            [value("s0", [3]), value("x", [4, 3]), value("z", [4, 3])],
            [value("s", [3]), value("sums", [4, 3]), value("scaleds", [4, 3])],
            running_sum(3),
            initializers=WEIGHT,
            num_scan_inputs=2,
        ),
        [arrays(s0=VECTOR, x=random_values(4, 3), z=random_values(4, 3) + 1)],
    ),
    "scan_axes_and_directions": Case(
        scan(
            [value("s0", [2, 3]), value("x", [2, 4, 3]), value("z", [4, 2, 3])],
            [value("s", [2, 3]), value("sums", [2, 3, 4]), value("scaleds", [2, 4, 3])],
            running_sum(2, 3),
            initializers=WEIGHT,
            num_scan_inputs=2,
            scan_input_axes=[1, 0],
            scan_input_directions=[0, 1],
            scan_output_axes=[-1, 1],
            scan_output_directions=[1, 0],
        ),
        [arrays(s0=random_values(2, 3), x=random_values(2, 4, 3), z=random_values(4, 2, 3) + 1)],
    ),
    "scan_negative_axis": Case(
        scan(
            [value("s0", [2, 3]), value("x", [2, 3, 5]), value("z", [2, 3, 5])],
            [value("s", [2, 3]), value("sums", [5, 2, 3]), value("scaleds", [2, 5, 3])],
            running_sum(2, 3),
            initializers=WEIGHT,
            num_scan_inputs=2,
            scan_input_axes=[-1, 2],
            scan_input_directions=[1, 1],
            scan_output_axes=[0, -2],
        ),
        [arrays(s0=random_values(2, 3), x=random_values(2, 3, 5), z=random_values(2, 3, 5) + 1)],
    ),
    "scan_opset_9": Case(
        scan(
            [value("s0", [3]), value("x", [4, 3]), value("z", [4, 3])],
            [value("s", [3]), value("sums", [4, 3]), value("scaleds", [4, 3])],
            running_sum(3),
            initializers=WEIGHT,
            opset=9,
            num_scan_inputs=2,
        ),
        [arrays(s0=VECTOR, x=random_values(4, 3), z=random_values(4, 3) + 1)],
    ),
    "scan_without_state": Case(
        scan(
            [value("x", [3, 2])],
            [value("y", [3, 2])],
            body([node("Mul", "a x0", "b", "mul")], [value("a", [2])], [value("b", [2])]),
            captured=[value("x0", [2])],
            num_scan_inputs=1,
        ),
        [arrays(x=random_values(3, 2), x0=random_values(2))],
    ),
    "scan_scalars": Case(
        scan(
            [value("s0", []), value("x", [5])],
            [value("s", []), value("y", [5])],
            body(
                [node("Add", "s a", "s2", "add"), node("Neg", "s2", "t", "neg")],
                [value("s", []), value("a", [])],
                [value("s2", []), value("t", [])],
            ),
            num_scan_inputs=1,
        ),
        [arrays(s0=np.float32(1), x=random_values(5))],
    ),
    "scan_of_nothing": Case(
        scan(
            [value("s0", [3]), value("x", [0, 3]), value("z", [0, 3])],
            [value("s", [3]), value("sums", [0, 3]), value("scaleds", [0, 3])],
            running_sum(3),
            initializers=WEIGHT,
            num_scan_inputs=2,
        ),
        [arrays(s0=VECTOR, x=np.empty((0, 3), np.float32), z=np.empty((0, 3), np.float32))],
        [[VECTOR, np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)]],
    ),
    "scan_in_batches": Case(
        scan(
            [value("s0", [2, 3]), value("x", [2, 4, 3]), value("z", [2, 4, 3])],
            [value("s", [2, 3]), value("sums", [2, 4, 3]), value("scaleds", [2, 4, 3])],
            running_sum(3),
            initializers=WEIGHT,
            opset=8,
            first="_",
            num_scan_inputs=2,
            directions=[0, 1],
        ),
        [arrays(s0=random_values(2, 3), x=random_values(2, 4, 3), z=random_values(2, 4, 3) + 1)],
    ),
    "scan_in_batches_of_different_lengths": Case(
        scan(
            [value("s0", [3, 3]), value("x", [3, 4, 3]), value("z", [3, 4, 3])],
            [value("s", [3, 3]), value("sums", [3, 4, 3]), value("scaleds", [3, 4, 3])],
            running_sum(3),
            initializers=WEIGHT,
            opset=8,
            first="lengths",
            num_scan_inputs=2,
        ),
        [
            arrays(
                lengths=np.int64([4, 2, 1]),
                s0=random_values(3, 3),
                x=random_values(3, 4, 3),
                z=random_values(3, 4, 3) + 1,
            )
        ],
    ),
}
