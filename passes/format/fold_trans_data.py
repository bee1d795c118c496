"""Pass fold-trans-data."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ge.formats import CubeSizes, axis_order, cube_sizes, origin_array, stored_array
from ge.graph import Graph, Node, Tensor, TensorDesc
from ge.made_arrays import kept
from ge.mapped_file import note_read
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import relink

Array = np.ndarray[Any, np.dtype[Any]]


class FoldTransData:
    """Before: Const -> TransData. After: a Const that lies in the layout wanted.

    1. The new constant keeps name and attributes of the old one where nobody else reads that.
    2. Constants that share their elements share them afterwards, if they are wanted in the same layout.
    3. Behind constants that are computed at load TransData stay: they are computed then.
    """

    name: ClassVar[str] = "fold-trans-data"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Convert the constants of all graphs."""
        converted = _ConvertedArrays(cube_sizes(session.options.soc_version))
        changed = False
        for part in graph.all_graphs():
            for node in part.topological_order():
                source = node.input(0) if node.type in ("TransData", "ReFormat") else None
                if source is not None and source.node.type == "Const":
                    _fold(part, node, source.node, converted)
                    changed = True
        return changed


class _ConvertedArrays:
    """Arrays of constants by what they are made of and how they lie."""

    def __init__(self, cubes: CubeSizes) -> None:
        self._cubes = cubes
        self._arrays: dict[object, tuple[Array, Array]] = {}

    def of(self, array: Array, stored_as: TensorDesc, wanted: TensorDesc) -> Array:
        """Return the elements of ``array`` in another layout."""
        key = (id(array), stored_as.layout, wanted.layout, wanted.origin_shape, wanted.origin_format)
        if key not in self._arrays:
            origin = origin_array(array, stored_as, self._cubes)
            order = axis_order(stored_as.origin_format, wanted.origin_format, origin.ndim)
            if order is not None:
                origin = origin.transpose(order)
            # the first array is held so that its id stays its own
            self._arrays[key] = array, kept(stored_array(origin, wanted, self._cubes))
            note_read(array)
        return self._arrays[key][1]


def _fold(graph: Graph, node: Node, constant: Node, converted: _ConvertedArrays) -> None:
    value: Tensor = constant.attrs["value"]
    tensor = Tensor.of(converted.of(value.array, constant.output_descs[0], node.output_descs[0]))
    tensor.desc = node.output_descs[0].copy()
    tensor.placement = value.placement
    folded = graph.add_const(graph.unique_name(f"{constant.name}_{node.name}"), tensor)
    folded.node.attrs.update({key: value for key, value in constant.attrs.items() if key != "value"})
    for before in node.control_inputs:
        graph.add_control(before, folded.node)
    for after in node.control_outputs:
        graph.add_control(folded.node, after)
    relink(graph, node.output(), folded)
    graph.remove_unread(node)
    if not graph.is_read(constant):
        name = constant.name
        graph.remove_unread(constant)
        graph.rename(folded.node, name)
