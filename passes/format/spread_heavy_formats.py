"""Pass spread-heavy-formats."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ge.formats import FRACTAL_NZ_FORMATS, HEAVY_FORMATS, CubeSizes, cube_sizes, is_private
from ge.graph import Format, Graph, Node, NodeOut
from ge.ops.format_columns import ColumnFinder, FormatColumn, is_heavy
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.verify import UNSETTLED
from passes.format.node_layouts import BOUNDARY, take_column

_WANTED, _OTHER_HEAVY, _ORIGIN, _OTHER = 2000, 200, 100, 1


class SpreadHeavyFormats:
    """Before: nodes that work in private layouts stand among others. After: their neighbours work in these layouts too.

    1. From each heavy node, in node order, the layout of its outputs goes forward to the readers and the layout of its
       inputs back to the producers, and on from every node that can take it.
    2. Of the columns that have the layout where it arrives, a node takes the one with the highest score: 2000 per
       tensor in the layout itself, 200 in another private one, 100 in its origin view. The first wins.
    3. What one source has decided stays: heavy nodes, and nodes that were reached before.
    4. It stops at nodes without such a column (scalars, bodies, constants computed at load) and, but for FRACTAL_NZ,
       where the two ends of an edge name their axes differently.
    5. Inputs of the model and constants stay as they are. Through an input it goes on to all other readers, through a
       constant only if all of them can take it.
    """

    name: ClassVar[str] = "spread-heavy-formats"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Spread in all graphs of the model; nothing goes from one into another."""
        if not graph.attrs.get(UNSETTLED):
            return False
        cubes = cube_sizes(session.options.soc_version)
        changed = False
        for part in graph.all_graphs():
            changed |= _Spreading(part, cubes).run()
        return changed


class Layout(NamedTuple):
    """A private layout on its way through the graph."""

    format: Format
    groups: int


class _Step(NamedTuple):
    """Where a layout goes next: from a tensor to its readers, or back to what makes it."""

    out: NodeOut
    layout: Layout
    is_forward: bool


class _Spreading:
    def __init__(self, graph: Graph, cubes: CubeSizes) -> None:
        self._graph = graph
        self._cubes = cubes
        self._decided = {node for node in graph if is_heavy(node)}
        self._visited: set[tuple[NodeOut, bool]] = set()
        self._finder = ColumnFinder(cubes)
        self._columns: dict[Node, list[FormatColumn]] = {}
        self._changed = False

    def run(self) -> bool:
        for source in [node for node in self._graph if node in self._decided]:
            steps = self._steps_from(source)
            while steps:
                steps += self._take(steps.pop())
        return self._changed

    def _steps_from(self, node: Node) -> list[_Step]:
        """Return where the layouts of a node go; what is first to go stands last."""
        back = [
            _Step(source, Layout(desc.format, desc.sub_format), False)
            for source, desc in zip(node.inputs, node.input_descs, strict=True)
            if source is not None and desc is not None and is_private(desc.format)
        ]
        ahead = [
            _Step(out, Layout(out.desc.format, out.desc.sub_format), True)
            for out in node.outputs()
            if is_private(out.desc.format)
        ]
        return [*reversed(back), *reversed(ahead)]

    def _take(self, step: _Step) -> list[_Step]:
        if (step.out, step.is_forward) in self._visited:
            return []
        self._visited.add((step.out, step.is_forward))
        return self._go_forward(step.out, step.layout) if step.is_forward else self._go_back(step.out, step.layout)

    # -- one tensor ----------------------------------------------------------------------------------------------------
    def _go_forward(self, out: NodeOut, layout: Layout) -> list[_Step]:
        found: list[_Step] = []
        for reader in out.node.consumers(out.index):
            if reader.node in self._decided:
                continue
            column = self._column(reader.node, reader.index, layout)
            if column is not None:
                found += self._settle(reader.node, column)
        return found[::-1]

    def _go_back(self, out: NodeOut, layout: Layout) -> list[_Step]:
        node = out.node
        if node.type == "Data":
            return [_Step(out, layout, True)] if node.graph.parent is None else []
        if node.type == "Const" or is_constant(node):
            return [_Step(out, layout, True)] if self._all_take(out, layout) else []
        if node in self._decided or node.type in BOUNDARY:
            return []
        column = _best([c for c in self._candidates(node) if _makes(c, out.index, layout)], layout)
        return [] if column is None else self._settle(node, column)

    def _all_take(self, weight: NodeOut, layout: Layout) -> bool:
        """Tell whether all readers of a constant can have it in a layout; if not, it goes through to none."""
        return all(
            self._column(reader.node, reader.index, layout) is not None
            if reader.node not in self._decided
            else _wants(reader.node, reader.index, layout)
            for reader in weight.node.consumers(weight.index)
        )

    def _settle(self, node: Node, column: FormatColumn) -> list[_Step]:
        self._decided.add(node)
        take_column(node, column, self._cubes)
        self._changed = True
        return self._steps_from(node)

    # -- columns -------------------------------------------------------------------------------------------------------
    def _candidates(self, node: Node) -> list[FormatColumn]:
        if node not in self._columns:
            is_fixed = node.type in BOUNDARY or node.type == "TransData" or node.subgraphs or is_constant(node)
            self._columns[node] = [] if is_fixed else self._finder.columns(node)[1:]
        return self._columns[node]

    def _column(self, node: Node, slot: int, layout: Layout) -> FormatColumn | None:
        """Return the column that a reader takes when a layout arrives at one of its inputs."""
        source, desc = node.input(slot), node.input_descs[slot]
        if source is None or desc is None:
            return None
        if layout.format not in FRACTAL_NZ_FORMATS and desc.origin_format != source.desc.origin_format:
            return None
        fitting = [
            column
            for column in self._candidates(node)
            if column.inputs[slot] == layout.format and column.sub_format(layout.format) == layout.groups
        ]
        return _best(fitting, layout)


def _makes(column: FormatColumn, index: int, layout: Layout) -> bool:
    return column.outputs[index] == layout.format and column.sub_format(layout.format) == layout.groups


def _best(columns: list[FormatColumn], layout: Layout) -> FormatColumn | None:
    return max(columns, key=lambda column: score(column, layout.format), default=None)


def score(column: FormatColumn, wanted: Format) -> int:
    """Return how well a column suits a layout that arrives: the sum over its tensors."""
    return sum(_worth(layout, wanted) for layout in (*column.inputs, *column.outputs) if layout is not None)


def _worth(layout: Format, wanted: Format) -> int:
    if layout == wanted:
        return _WANTED
    if layout in HEAVY_FORMATS:
        return _OTHER_HEAVY
    return _ORIGIN if layout == Format.FORMAT_ND else _OTHER


def _wants(node: Node, slot: int, layout: Layout) -> bool:
    desc = node.input_descs[slot]
    return desc is not None and (desc.format, desc.sub_format) == layout
