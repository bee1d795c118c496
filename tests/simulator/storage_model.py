"""Nodes whose tensors lie in storage layouts, held to the meaning of their operator.

What goes in and what must come out is laid out element by element by the index formulas of the layout tests; which
layouts go together is read from the operator's columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ge.formats import AXES, SERVER_CUBES, is_private, storage_shape, transfer
from ge.graph import DataType, Graph, Node, NodeOut, Tensor, TensorDesc
from ge.graph.types import FORMAT_TEXT, Format, data_type_of
from ge.ops import infer_node
from ge.ops.format_columns import FormatColumn, format_columns
from simulator.kernels.registry import KernelCompiler
from simulator.loader import load
from tests.ge.formats.index_formulas import lay_out
from tests.simulator.differential import assert_equal_meaning, expected_values
from tests.simulator.planned_model import PlannedModel, plan_model, run_plan

ND, NCHW, NHWC, NCDHW = Format.FORMAT_ND, Format.FORMAT_NCHW, Format.FORMAT_NHWC, Format.FORMAT_NCDHW
NC1HWC0, NDC1HWC0, NZ = Format.FORMAT_NC1HWC0, Format.FORMAT_NDC1HWC0, Format.FORMAT_FRACTAL_NZ
HWCN = Format.FORMAT_HWCN
C04 = Format.FORMAT_NC1HWC0_C04
Array = np.ndarray


@dataclass
class Laid:
    """A tensor as it lies: its descriptor, and how the elements of its origin are found in it."""

    desc: TensorDesc

    @classmethod
    def of(cls, shape: Sequence[int], dtype: DataType, origin: Format, layout: Format, groups: int = 0) -> Laid:
        """Describe a tensor with the dims ``shape`` by ``origin`` in ``layout``."""
        shown = storage_shape(shape, origin, layout, dtype, max(groups, 1)) if is_private(layout) else shape
        desc = TensorDesc(shown, layout, dtype, shape, origin)
        desc.sub_format = groups
        return cls(desc)

    def places(self, groups: int = 1) -> Array:
        """Return, in the shape of the storage, the number of the element that lies there plus 1; 0 is padding."""
        desc = self.desc
        if not is_private(desc.format):
            return np.arange(1, desc.shape.elements + 1).reshape(desc.shape)
        c0 = SERVER_CUBES.block_length(desc.format, desc.data_type)
        found = numbers(tuple(desc.origin_shape), desc.origin_format, desc.format, c0, max(groups, 1))
        return found.reshape(desc.shape)

    def store(self, elements: Array, groups: int = 1) -> Array:
        """Lay elements out."""
        flat = np.concatenate([np.zeros(1, elements.dtype), elements.reshape(-1)])
        return flat[self.places(groups)]

    def store_fast(self, elements: Array, groups: int = 1) -> Array:
        """Lay elements out by the product's own transfer, where large tensors are not to be checked."""
        desc = self.desc
        if not is_private(desc.format):
            return elements
        stored = np.empty(desc.shape, elements.dtype)
        transfer(elements, stored, desc.origin_format, desc.format, max(groups, 1))
        return stored


@lru_cache
def numbers(shape: tuple[int, ...], origin: Format, layout: Format, c0: int, groups: int) -> Array:
    """Return the numbers of the elements in a layout, from 1 on."""
    elements = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    return lay_out(elements, FORMAT_TEXT[origin] if origin in AXES else "NCHW", FORMAT_TEXT[layout], c0, groups=groups)


def default_origin(array: Array | None) -> Format:
    """Return the format that tests give to an array by its rank."""
    return ND if array is None else {4: NCHW, 5: NCDHW}.get(array.ndim, ND)


@dataclass
class StorageCase:
    """A node, its inputs by origin, and one of its columns."""

    type: str
    inputs: Sequence[Array | None]
    attrs: Mapping[str, Any]
    layout: Format
    origins: Sequence[Format]
    constant: Sequence[int] = ()
    n_outputs: int = 1
    output_origins: Sequence[Format] | None = None

    def plain(self) -> PlannedModel:
        """Return the node in origin formats."""
        graph = Graph("plain")
        sources = [
            None if x is None else self._source(graph, slot, Tensor.of(x), x) for slot, x in enumerate(self.inputs)
        ]
        node = graph.add_node(self.type, "node", sources, dict(self.attrs), self.n_outputs)
        infer_node(node)
        self._name_outputs(node)
        return plan_model(graph, list(node.outputs()))

    def _source(self, graph: Graph, slot: int, tensor: Tensor, stored: Array) -> NodeOut:
        desc = tensor.desc
        if desc.origin_format is ND and desc.format is ND:
            desc.format = desc.origin_format = self.origins[slot]
        if slot in self.constant:
            return graph.add_const(f"x{slot}", tensor)
        index = len(graph.data_nodes())
        return graph.add_node("Data", f"x{slot}", attrs={"index": index}, output_descs=[desc]).output()

    def _name_outputs(self, node: Node) -> None:
        for index, desc in enumerate(node.output_descs):
            rank = len(desc.origin_shape)
            same = rank == len(AXES.get(self.origins[0], ""))
            origin = self.origins[0] if same else {4: NCHW, 5: NCDHW}.get(rank, ND)
            if self.layout is NZ and self.origins[0] is ND:
                origin = ND
            desc.format = desc.origin_format = self.output_origins[index] if self.output_origins else origin

    def column(self, node: Node) -> FormatColumn:
        """Return the column of the wanted layout."""
        columns = format_columns(node)
        found = [c for c in columns if self.layout in (*c.inputs, *c.outputs) and not c.is_origin]
        first = [c for c in found if c.inputs[0] is self.layout or c.inputs[0] is ND] or found
        assert first, f"{self.type} has no column with {self.layout.name}: {columns}"
        return first[0]

    def stored(self, node: Node, *, fast: bool = False) -> tuple[PlannedModel, list[Array], list[Laid], FormatColumn]:
        """Return the model in storage formats, its feeds, and how its outputs lie."""
        column = self.column(node)
        graph = Graph("stored")
        sources: list[NodeOut | None] = []
        feeds = []
        for slot, (array, layout) in enumerate(zip(self.inputs, column.inputs, strict=True)):
            if array is None or layout is None:
                sources.append(None)
                continue
            layout = self.origins[slot] if layout is ND else layout
            groups = column.sub_format(layout)
            laid = Laid.of(array.shape, data_type_of(array.dtype), self.origins[slot], layout, groups)
            storage = laid.store_fast(array, groups) if fast else laid.store(array, groups)
            tensor = Tensor.of(storage)
            tensor.desc = laid.desc
            sources.append(self._source(graph, slot, tensor, storage))
            if slot not in self.constant:
                feeds.append(storage)
        new = graph.add_node(self.type, "node", sources, dict(self.attrs), self.n_outputs)
        results = []
        for desc, layout in zip(node.output_descs, column.outputs, strict=True):
            layout = desc.origin_format if layout is ND else layout
            results.append(Laid.of(desc.origin_shape, desc.data_type, desc.origin_format, layout))
        for index, laid in enumerate(results):
            new.output_descs[index] = laid.desc
        return plan_model(graph, list(new.outputs())), feeds, results, column


def check_stored(
    type: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    layout: Format = NC1HWC0,
    origins: Sequence[Format] | None = None,
    output_origins: Sequence[Format] | None = None,
    constant: Sequence[int] = (),
    n_outputs: int = 1,
    kernel: str | None = None,
    tolerance: float | None = None,
    may_be_reference: bool = False,
    expected: Sequence[Array] | None = None,
    compiler: KernelCompiler | None = None,
) -> None:
    """Hold a node in ``layout`` to its meaning, on memory full of NaN; padding must come out as zeros."""
    origins = list(origins) if origins is not None else [default_origin(x) for x in inputs]
    case = StorageCase(type, inputs, attrs or {}, layout, origins, constant, n_outputs, output_origins)
    plain = case.plain()
    node = plain.graph.find("node")
    assert node is not None
    model, feeds, laid, _ = case.stored(node)
    plan = load(model, compiler)
    [step] = plan.steps
    assert may_be_reference or not step.kernel.is_reference
    assert kernel is None or step.kernel.name == kernel, step.kernel.name
    found = run_plan(plan, feeds, poison=0xFF)
    again = run_plan(plan, feeds, poison=0x00)
    assert [y.tobytes() for y in found] == [y.tobytes() for y in again]
    wanted = expected_values(plain, inputs) if expected is None else expected
    for y, how, values in zip(found, laid, wanted, strict=True):
        places = how.places()
        assert not y[places == 0].any(), "padding is not zero"
        assert_equal_meaning(y, how.store(values), tolerance)


def uniform(*shape: int, dtype: Any = np.float32, low: float = -2, high: float = 2, seed: int = 0) -> Array:
    """Return random numbers."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(dtype)
