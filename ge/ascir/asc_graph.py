"""The dataclasses of an AscGraph.

A graph has axes ``z0 .. z(n-1)``; its operators stand in execution order and read results of earlier ones by number.
A tensor says, per axis, how many different elements it has (``repeats``) and how far apart they are (``strides``, in
elements; 0 where the repeat is 1). Views of memory are views of Data and of what Store writes; between Load and Store
strides only say how many elements there are.

Guards of a Store or a reduction tell real elements from padding of the layout: a guard ``(c0, .., c(n-1), extent)``
holds where ``c0 z0 + .. + c(n-1) z(n-1) < extent``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ge.ascir.op_types import OP_TYPES, AttrValue, ComputeType
from ge.graph.types import DataType


@dataclass(frozen=True)
class Axis:
    """One loop of the kernel."""

    name: str
    size: int


@dataclass(frozen=True)
class AscTensor:
    """Element type and extent of a value; ``strides`` in elements."""

    dtype: DataType
    repeats: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def contiguous(cls, dtype: DataType, repeats: Iterable[int]) -> AscTensor:
        """Return a row-major tensor."""
        dims = tuple(repeats)
        return cls(dtype, dims, contiguous_strides(dims))

    @property
    def span(self) -> int:
        """Elements of memory from the first to the last one of the view; 0 when there are none."""
        if 0 in self.repeats:
            return 0
        return 1 + sum((r - 1) * s for r, s in zip(self.repeats, self.strides, strict=True))


def contiguous_strides(dims: Iterable[int]) -> tuple[int, ...]:
    """Return row-major strides, 0 where a dim is 1 or 0."""
    strides, step = [], 1
    for dim in reversed(tuple(dims)):
        strides.append(step if dim > 1 else 0)
        step *= max(dim, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class AscOp:
    """One operator. ``inputs`` are numbers of earlier ones; ``attrs`` are sorted and leave defaults out.

    ``output`` is ``None`` for an Output. ``origins`` are the operators of the model that it came from.
    """

    type: str
    inputs: tuple[int, ...] = ()
    attrs: tuple[tuple[str, AttrValue], ...] = ()
    output: AscTensor | None = None
    origins: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        type: str,
        inputs: Iterable[int] = (),
        output: AscTensor | None = None,
        origins: Iterable[str] = (),
        **attrs: AttrValue,
    ) -> AscOp:
        """Make an operator of a known type; attributes are put in order and defaults left out."""
        formal = OP_TYPES[type].attrs
        given = sorted((name, value) for name, value in attrs.items() if formal[name].default != value)
        return cls(type, tuple(inputs), tuple(given), output, tuple(origins))

    def attr(self, name: str) -> Any:
        """Return an attribute, or its default."""
        for given, value in self.attrs:
            if given == name:
                return value
        return OP_TYPES[self.type].attrs[name].default

    @property
    def compute_type(self) -> ComputeType:
        """What kind of work this is. What a reduction made is written by a Store like any other."""
        return OP_TYPES[self.type].compute

    @property
    def tensor(self) -> AscTensor:
        """The output. Raises ``ValueError`` for an Output, which has none."""
        if self.output is None:
            raise ValueError(f"an operator of type {self.type} has no tensor")
        return self.output


@dataclass(frozen=True)
class Schedule:
    """How the loops are run.

    ``loops`` lists the axes, neighbours merged where every tensor allows it. ``x y r n`` are the tiling groups (before
    a concat axis, elementwise, reduced, not splittable) as numbers of loops. A tile covers ``tiles[k]`` steps of loop
    ``k``; ``block`` is the loop that is divided among cores, -1 for none.
    """

    loops: tuple[tuple[int, ...], ...]
    x: tuple[int, ...] = ()
    y: tuple[int, ...] = ()
    r: tuple[int, ...] = ()
    n: tuple[int, ...] = ()
    tiles: tuple[int, ...] = ()
    block: int = -1


@dataclass(frozen=True)
class AscGraph:
    """A kernel: axes, operators in execution order, and once it is scheduled, how it runs."""

    name: str
    axes: tuple[Axis, ...]
    ops: tuple[AscOp, ...]
    schedule: Schedule | None = None

    @classmethod
    def of(cls, name: str, sizes: Iterable[int], ops: Iterable[AscOp], schedule: Schedule | None = None) -> AscGraph:
        """Make a graph with axes ``z0, z1, ...`` of these sizes."""
        return cls(name, tuple(Axis(f"z{k}", size) for k, size in enumerate(sizes)), tuple(ops), schedule)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    def op_names(self) -> list[str]:
        """Return the name of each operator in dumps: ``<graph>/<type>_<n>``, counted per type."""
        counts: dict[str, int] = {}
        names = []
        for op in self.ops:
            number = counts.get(op.type, 0)
            counts[op.type] = number + 1
            names.append(f"{self.name}/{op.type}_{number}")
        return names

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The numbers of the Data operators, by their index."""
        found = [k for k, op in enumerate(self.ops) if op.type == "Data"]
        return tuple(sorted(found, key=lambda k: int(self.ops[k].attr("index"))))

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The numbers of the Store operators, by the index of the Output that reads them."""
        found = sorted((op for op in self.ops if op.type == "Output"), key=lambda op: int(op.attr("index")))
        return tuple(op.inputs[0] for op in found)

    def types(self) -> list[str]:
        """Return the types of the operators that compute: without Data, Load, Scalar, Store and Output."""
        return [op.type for op in self.ops if op.type not in ("Data", "Load", "Scalar", "Store", "Output")]

    def input_span(self, index: int) -> int:
        """Return how many elements of input ``index`` are within reach of this kernel; the memory must have them."""
        number = self.inputs[index]
        view = self.ops[number].tensor
        offsets = [int(op.attr("offset")) for op in self.ops if op.type == "Load" and op.inputs == (number,)]
        return view.span + max(offsets, default=0) if view.span else 0

    def output_span(self, index: int) -> int:
        """Return how many elements of result ``index`` this kernel may write."""
        return self.ops[self.outputs[index]].tensor.span
