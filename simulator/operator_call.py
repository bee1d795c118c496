"""One node, run at whatever shapes come: what is decided from shapes is decided once and kept while they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph import Graph, Node, NodeOut, Shape, TensorDesc
from ge.graph.types import DataType, has_numpy_dtype, numpy_dtype
from ge.ops.known_value import KnownValue
from ge.ops.registry import Misfit, infer_node
from ge.tensor_memory import VIEW_OPS
from simulator.binding import cannot_run, choose_kernel, definition_of, physical_memory, slow_kernel, stopped
from simulator.kernels import Kernel
from simulator.kernels.registry import Array

Value = Any
"""An array; or a handle, a Python object that only the operators for its kind look into."""
Prepare = Callable[[Kernel], Array]
"""Makes things ready for a run of a kernel and returns the scratch memory that it asks for."""

KEPT_DECISIONS = 4
"""Sets of shapes for which a node remembers its kernel."""
LARGE_BYTES = 64 << 20
"""Results from here on are compared with the memory of the machine before they are made."""
MAX_DECIDING_BYTES = 4096
"""Inputs that decide shapes by their values are small; larger ones are looked at anew every time."""


@dataclass(frozen=True)
class _Decision:
    """What follows from the shapes of the inputs: the kernel, and shapes (as far as known) and types of the results.

    A kernel that is the operator's reference semantics makes its results itself; for others they are allocated.
    """

    kernel: Kernel
    dims: tuple[Shape, ...]
    dtypes: tuple[np.dtype[Any], ...]


class OperatorCall:
    """A node made ready to run. ``constants`` are the inputs, by slot, that never change.

    Results are not changed afterwards by anybody, so they may be views of inputs.
    """

    def __init__(self, node: Node, constants: Mapping[int, Array], prepare: Prepare) -> None:
        self.node = node
        self._definition = definition_of(node)
        if self._definition.compute is None:
            raise cannot_run(node, "the operator has neither a kernel nor a meaning")
        self._constants = constants
        self._prepare = prepare
        self._types = [desc.data_type for desc in node.output_descs]
        self._is_view = node.type in VIEW_OPS
        inputs = [source.desc for source in node.inputs if source is not None]
        self._has_handles = not all(has_numpy_dtype(desc.data_type) for desc in (*inputs, *node.output_descs))
        self._stand_in: _StandIn | None = None
        self._varying = [slot for slot, s in enumerate(node.inputs) if s is not None and slot not in constants]
        self._deciding: list[int] = []
        self._decisions: dict[object, _Decision] = {}
        self._used = ""

    @property
    def kernel_name(self) -> str:
        """Name of the kernel that ran last; empty before the first run."""
        return self._used

    def __call__(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Run the node on one value per input slot (``None``: absent) and return one per output.

        Raises R1050 that names the node when the values do not fit or the kernel fails, R1062 without enough memory.
        """
        try:
            if self._has_handles:
                self._used = "reference"
                return self._evaluated(inputs)
            decision = self._decided(inputs)
            self._used = "view" if self._is_view else decision.kernel.name
            if self._is_view:
                return [inputs[0].view(decision.dtypes[0]).reshape(decision.dims[0])]
            scratch = self._prepare(decision.kernel)
            if decision.kernel.is_reference:
                return self._checked(self._evaluated(inputs), decision)
            outputs = [self._allocated(*spec) for spec in zip(decision.dims, decision.dtypes, strict=True)]
            decision.kernel.run(inputs, outputs, scratch)
            return outputs
        except ReportedError:
            raise
        except MemoryError:
            raise self._too_large("results") from None
        except Exception as fault:
            raise stopped(self._described(), fault) from fault

    def _described(self) -> str:
        kernel = f", kernel {self._used}" if self._used else ""
        return f"{self.node.name} ({self.node.type}{kernel})"

    # -- deciding ------------------------------------------------------------------------------------------------------
    def _decided(self, inputs: Sequence[Value]) -> _Decision:
        key = self._key(inputs)
        found = self._decisions.get(key) if key is not None else None
        if found is None:
            found = self._decide(inputs)
            key = self._key(inputs)  # by now it is known which values matter
            if key is not None:
                while len(self._decisions) >= KEPT_DECISIONS:
                    del self._decisions[next(iter(self._decisions))]
                self._decisions[key] = found
        return found

    def _key(self, inputs: Sequence[Value]) -> object | None:
        shapes = tuple([inputs[slot].shape for slot in self._varying])
        if not self._deciding:
            return shapes
        values = [inputs[slot] for slot in self._deciding]
        if any(value.nbytes > MAX_DECIDING_BYTES or value.dtype.hasobject for value in values):
            return None
        return shapes, tuple([value.tobytes() for value in values])

    def _decide(self, inputs: Sequence[Value]) -> _Decision:
        if self._stand_in is None:
            self._stand_in = _StandIn(self.node)
        node, asked = self._stand_in.inferred(inputs)
        new = [slot for slot in sorted(asked) if slot not in self._deciding and slot in self._varying]
        if new:
            self._deciding += new
            self._decisions.clear()
        for desc, dtype in zip(node.output_descs, self._types, strict=True):
            desc.data_type = dtype
        dims = tuple(desc.origin_shape for desc in node.output_descs)
        has_memory = not any(shape.is_unknown_shape() for shape in dims) and DataType.DT_STRING not in self._types
        fixed = {**self._constants, **{slot: inputs[slot] for slot in self._deciding}}
        kernel = choose_kernel(node, fixed) if has_memory else slow_kernel(node)  # kernels count on knowing all shapes
        return _Decision(kernel, dims, tuple(map(numpy_dtype, self._types)))

    # -- running -------------------------------------------------------------------------------------------------------
    def _evaluated(self, inputs: Sequence[Value]) -> list[Value]:
        results = self._definition.evaluate(self.node.attrs, inputs, self._types)
        return [_as_memory(r) if isinstance(r, np.ndarray) else r for r in results]

    def _checked(self, results: list[Value], decision: _Decision) -> list[Value]:
        for index, (known, result) in enumerate(zip(decision.dims, results, strict=False)):
            fits = known.is_unknown_rank() or len(known) == result.ndim
            if not fits or any(d not in (-1, n) for d, n in zip(known, result.shape, strict=False) if d != -2):
                reason = f"output {index} must have the shape {known}, the operator made {list(result.shape)}"
                raise self._definition.misfit(reason)
        return results

    def _allocated(self, dims: Shape, dtype: np.dtype[Any]) -> Array:
        size = prod(dims) * dtype.itemsize
        if size > LARGE_BYTES:
            available = physical_memory()
            if available is not None and size > available:
                raise self._too_large(size)
        return np.empty(dims, dtype)

    def _too_large(self, needed: object) -> ReportedError:
        available = physical_memory()
        return ReportedError(
            "R1062",
            needed="too many" if isinstance(needed, str) else needed,
            purpose=f"node {self.node.name} ({self.node.type})",
            available="too few" if available is None else available,
        )


class _StandIn:
    """A copy of a node on inputs of its own, which are described as they are in a run: the model stays as it is."""

    def __init__(self, node: Node) -> None:
        self._graph = Graph(node.graph.name)
        self._name = f"{node.name} ({node.type})"
        self._node = self._graph.add_node(
            node.type,
            node.name,
            [None] * len(node.inputs),
            node.attrs,
            output_descs=[desc.copy() for desc in node.output_descs],
        )
        self._descs: list[TensorDesc | None] = []
        for slot, source in enumerate(node.inputs):
            self._descs.append(None if source is None else self._connect(slot, source))

    def _connect(self, slot: int, source: NodeOut) -> TensorDesc:
        name = self._graph.unique_name(f"input_{slot}")
        data = self._graph.add_node("Data", name, output_descs=[source.desc.copy()])
        self._graph.set_input(self._node, slot, data.output())
        return data.output_descs[0]

    def inferred(self, inputs: Sequence[Value]) -> tuple[Node, set[int]]:
        """Describe the inputs, infer the outputs; return the node and the slots whose values were asked for.

        Raises R1050 when they do not fit.
        """
        asked: set[int] = set()

        def known(node: Node, slot: int) -> KnownValue:
            asked.add(slot)
            return KnownValue(inputs[slot])

        for desc, value in zip(self._descs, inputs, strict=True):
            if desc is not None:
                desc.shape = desc.origin_shape = Shape(value.shape)
        try:
            infer_node(self._node, known)
        except ReportedError as fault:
            reason = str(fault.fields.get("reason", fault.message))
            raise ReportedError("R1050", node=self._name, reason=reason, solution=_remedy_of(fault)) from fault
        return self._node, asked


def _remedy_of(fault: ReportedError) -> str | None:
    """Return what is to be done about inputs that do not fit: only the file of a custom operator is something else."""
    cause = fault.__cause__
    return cause.solution if isinstance(cause, Misfit) else None


def _as_memory(array: Array) -> Array:
    """Return an array as kernels take it: one block of memory, in row-major order."""
    return array if array.flags.c_contiguous and array.flags.aligned else array.copy()
