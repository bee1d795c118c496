"""Pass spare-trans-data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ge.formats import CubeSizes, cube_sizes, is_private
from ge.graph import Format, Graph, Node, NodeIn, NodeOut
from ge.ops.format_columns import ColumnFinder, FormatColumn, is_heavy
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.verify import UNSETTLED
from passes.format.minimum_cut import ENDLESS, SINK, SOURCE, Network
from passes.format.node_layouts import BOUNDARY, take_column
from passes.format.spread_heavy_formats import score

IMAGES = (Format.FORMAT_NC1HWC0, Format.FORMAT_NDC1HWC0)


class SpareTransData:
    """Before: layouts of images have spread as far as they go. After: fewer TransData are needed, where that can be.

    1. Nodes that have columns both for the origin view and for a layout of images may change sides; all others, heavy
       ones above all, stay. A tensor costs one TransData as soon as anybody reads it on another side than it is made.
    2. Free nodes that share tensors are looked at together. Their cheapest sides are a minimum cut; they take them only
       if that saves something, and then as many as can stay in the layout of images.

    Spreading alone cannot do it: it decides for an operator before it knows what the operator's other inputs and its
    readers are.
    """

    name: ClassVar[str] = "spare-trans-data"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Look at all graphs of the model."""
        if not graph.attrs.get(UNSETTLED) or not session.options.format_refinement:
            return False
        cubes = cube_sizes(session.options.soc_version)
        changed = False
        for part in graph.all_graphs():
            changed |= _Sides(part, cubes).improve()
        return changed


class _Sides:
    """Free nodes with the columns that they may take."""

    def __init__(self, graph: Graph, cubes: CubeSizes) -> None:
        self._cubes = cubes
        self._columns: dict[Node, tuple[FormatColumn, FormatColumn]] = {}
        finder = ColumnFinder(cubes)
        for node in graph:
            choice = None if _is_fixed(node) else _two_columns(finder.columns(node))
            if choice is not None:
                self._columns[node] = choice

    def improve(self) -> bool:
        changed = False
        for group in self._groups():
            changed |= self._improve_group(group)
        return changed

    # -- groups of free nodes ------------------------------------------------------------------------------------------
    def _groups(self) -> Iterator[list[Node]]:
        seen: set[Node] = set()
        for first in self._columns:
            if first in seen:
                continue
            seen.add(first)
            group = [first]
            for node in group:
                fresh = [other for other in self._neighbours(node) if other not in seen]
                for other in dict.fromkeys(fresh):
                    seen.add(other)
                    group.append(other)
            yield group

    def _neighbours(self, node: Node) -> Iterator[Node]:
        for out in _tensors(node):
            ends = [out.node, *(reader.node for reader in out.node.consumers(out.index))]
            yield from (end for end in ends if end in self._columns)

    # -- one group -----------------------------------------------------------------------------------------------------
    def _improve_group(self, group: list[Node]) -> bool:
        network = Network()
        sides = {node: network.vertex() for node in group}
        tensors = dict.fromkeys(out for node in group for out in _tensors(node))
        before = 0
        for out in tensors:
            made, readers = self._made(out, sides), self._readers(out, sides)
            _charge(network, made, readers)
            before += self._costs_now(out)
        price, origin_side = network.cut()
        if price >= before:
            return False
        for node in group:
            origin, private = self._columns[node]
            take_column(node, origin if sides[node] in origin_side else private, self._cubes)
        return True

    def _made(self, out: NodeOut, sides: dict[Node, int]) -> int:
        if out.node in sides:
            return sides[out.node] if self._columns[out.node][1].outputs[out.index] in IMAGES else SINK
        return SOURCE if out.desc.format in IMAGES else SINK

    def _readers(self, out: NodeOut, sides: dict[Node, int]) -> list[int]:
        found = []
        for reader in out.node.consumers(out.index):
            if reader.node in sides and _agree(out, reader):
                found.append(
                    sides[reader.node] if self._columns[reader.node][1].inputs[reader.index] in IMAGES else SINK
                )
            else:
                found.append(SOURCE if _reads_images(reader) and _agree(out, reader) else SINK)
        return found

    def _costs_now(self, out: NodeOut) -> bool:
        """Tell whether somebody reads a tensor on another side than it is made on."""
        made = out.desc.format in IMAGES
        readers = out.node.consumers(out.index)
        return any((_reads_images(reader) and _agree(out, reader)) != made for reader in readers)


def _is_fixed(node: Node) -> bool:
    if node.type in BOUNDARY or node.type == "TransData" or node.subgraphs or is_heavy(node) or is_constant(node):
        return True
    descs = (*node.input_descs, *node.output_descs)
    return any(desc is not None and is_private(desc.format) and desc.format not in IMAGES for desc in descs)


def _two_columns(columns: list[FormatColumn]) -> tuple[FormatColumn, FormatColumn] | None:
    """Return the origin column and the best one for images, if an operator may take either."""
    images = [c for c in columns if any(layout in IMAGES for layout in (*c.inputs, *c.outputs))]
    if not images or columns[0].is_origin_only:
        return None
    wanted = next(layout for layout in (*images[0].inputs, *images[0].outputs) if layout in IMAGES)
    return columns[0], max(images, key=lambda column: score(column, wanted))


def _tensors(node: Node) -> Iterator[NodeOut]:
    """Yield what a node reads and makes, constants aside: they are converted by the compiler."""
    yield from (source for source in node.inputs if source is not None and not is_constant(source.node))
    yield from node.outputs()


def _reads_images(reader: NodeIn) -> bool:
    desc = reader.node.input_descs[reader.index]
    return desc is not None and desc.format in IMAGES


def _agree(out: NodeOut, reader: NodeIn) -> bool:
    """Tell whether both ends of an edge name the axes alike; if not, the tensor passes through its origin view."""
    desc = reader.node.input_descs[reader.index]
    return desc is not None and desc.origin_format == out.desc.origin_format


def _charge(network: Network, made: int, readers: list[int]) -> None:
    """Let a tensor cost one as soon as any reader is on another side than its producer."""
    others = [reader for reader in dict.fromkeys(readers) if reader != made]
    if not others:
        return
    wanted, kept = network.vertex(), network.vertex()
    network.join(wanted, made, 1)
    network.join(made, kept, 1)
    for reader in others:
        network.join(reader, wanted, ENDLESS)
        network.join(kept, reader, ENDLESS)
