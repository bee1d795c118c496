"""Pass infer-origin-format."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ge.formats import full_rank, is_private
from ge.graph import Format, Graph, Node, Tensor, TensorDesc
from ge.ops.origin_format import NodeFormats, anchors, format_rule
from ge.session import CompileSession
from passes.format.reflection import Cell, Reflections

LOCKED = "_format_locked"
"""Attribute of nodes to which no format spreads."""
IS_INFERRED = "_is_graph_inferred"
"""Attribute of graphs that the pass has seen: only then the format of the model's inputs is asked for."""

_UNKNOWN = (Format.FORMAT_ND, Format.FORMAT_RESERVED)
_RANK_CHANGING = frozenset(
    {"Permute", "ExpandDims", "Squeeze", "SqueezeV2", "SqueezeV3", "Unsqueeze", "UnsqueezeV2", "UnsqueezeV3"}
)
_VOLUME_FORMS = {Format.FORMAT_NHWC: Format.FORMAT_NDHWC, Format.FORMAT_NCHW: Format.FORMAT_NCDHW}


class InferOriginFormat:
    """Before: formats at anchors, ND elsewhere. After: every tensor that an anchor reaches has its format.

    1. Anchors are tensors that have a format, and those whose axes the operator names (``ge.ops.origin_format``).
    2. From each anchor a format spreads backward to the producers of inputs and forward to the readers of outputs, and
       on from every node that takes it. It stops where there is one already, at scalars, at ``_format_locked`` nodes,
       at Squeeze and its like below rank 4, at results, and where the operator's rule leaves the other side ND.
    3. A tensor that a body shares with its call node gets the format at all its places.
    4. From the second run on, inputs of the model without a format get that of ``--input_format`` if they have as many
       dims as it has axes, and it spreads likewise.

    An edge is one tensor, so an input has the producer's storage format; its origin format is what the reader takes it
    for, which differs from the producer's where spreading stopped.
    """

    name: ClassVar[str] = "infer-origin-format"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Infer the root graph and all bodies; return whether any format changed. Needs NetOutput in bodies."""
        spreading = _Spreading(graph, is_first=not graph.attrs.get(IS_INFERRED))
        for part in graph.all_graphs():
            for node in part:
                spreading.spread_from(node)
        if graph.attrs.get(IS_INFERRED):
            spreading.name_inputs(graph, session.options.input_format)
        graph.attrs[IS_INFERRED] = True
        return spreading.write_back()


class _Spreading:
    """Origin formats while they are inferred, by cell. Cells that are not listed are ND."""

    def __init__(self, root: Graph, *, is_first: bool) -> None:
        self._root = root
        self._reflections = Reflections(root)
        self._formats: dict[Cell, Format] = {}
        for part in root.all_graphs():
            for node in part:
                self._formats.update(_given(node, is_first))
        for part in root.all_graphs():
            for node in part:
                for is_output, place, named in anchors(node):
                    self._formats.setdefault(Cell(node, is_output, place), named)
                if node.type in ("BiasAdd", "BiasAddGrad"):
                    self._settle_bias(node)

    def _settle_bias(self, node: Node) -> None:
        """Vectors of a bias addition have no format; volumes have that of a volume."""
        for cell in _cells(node):
            rank, found = len(self._desc(cell).origin_shape), self._formats.get(cell, Format.FORMAT_ND)
            if rank == 5 and found in _VOLUME_FORMS:
                self._formats[cell] = _VOLUME_FORMS[found]
            elif rank < 4 and not cell.is_output:
                self._formats.pop(cell, None)

    # -- spreading -----------------------------------------------------------------------------------------------------
    def spread_from(self, anchor: Node) -> None:
        """Spread the formats of a node, and on from all nodes that they reach, nearest first."""
        queue = deque([anchor])
        while queue:
            node = queue.popleft()
            for cell in _cells(node):
                found = self._formats.get(cell, Format.FORMAT_ND)
                if found not in _UNKNOWN:
                    for target in _other_ends(cell):
                        queue.extend(self._offer(target, found))

    def _offer(self, target: Cell, format: Format) -> Iterable[Node]:
        """Give a format to a cell if it takes one; return the nodes from which it may spread on."""
        if not self._takes_format(target):
            return ()
        reflected = self._reflections.of(target)
        if reflected:
            self._formats.update(dict.fromkeys(reflected, format))
            return dict.fromkeys(cell.node for cell in reflected)
        self._formats[target] = format
        if target.node.type == "NetOutput":
            return ()
        self._apply_rule(target.node)
        return (target.node,)

    def _takes_format(self, target: Cell) -> bool:
        node, rank = target.node, len(self._desc(target).origin_shape)
        is_free = self._formats.get(target, Format.FORMAT_ND) == Format.FORMAT_ND and node.attrs.get(LOCKED) is not True
        return is_free and rank > 0 and not (node.type in _RANK_CHANGING and rank < 4)

    def _apply_rule(self, node: Node) -> None:
        cells = list(_cells(node))
        known = {cell: self._formats.get(cell, Format.FORMAT_ND) for cell in cells}
        formats = NodeFormats(
            node,
            [known.get(Cell(node, False, slot), Format.FORMAT_ND) for slot in range(len(node.inputs))],
            [known[Cell(node, True, index)] for index in range(len(node.output_descs))],
        )
        format_rule(node.type)(formats)
        for cell in cells:
            found = (formats.outputs if cell.is_output else formats.inputs)[cell.place]
            if found != Format.FORMAT_ND:
                self._formats[cell] = found

    def name_inputs(self, root: Graph, format: Format) -> None:
        """Give ``format`` to the inputs of the model that have none and its rank, then spread it from each."""
        if format in _UNKNOWN or is_private(format):
            return
        found = []
        for data in root.data_nodes():
            cell = Cell(data, True, 0)
            if self._takes_format(cell) and len(self._desc(cell).origin_shape) == full_rank(format):
                self._formats[cell] = format
                found.append(data)
        for data in found:
            self.spread_from(data)

    # -- descriptors ---------------------------------------------------------------------------------------------------
    def _desc(self, cell: Cell) -> TensorDesc:
        if cell.is_output:
            return cell.node.output_descs[cell.place]
        source = cell.node.input(cell.place)
        assert source is not None
        return source.desc

    def write_back(self) -> bool:
        """Write the formats into the descriptors; return whether any changed."""
        nodes = [node for part in self._root.all_graphs() for node in part]
        changed = False
        for node in nodes:
            for index, desc in enumerate(node.output_descs):
                found = self._formats.get(Cell(node, True, index), Format.FORMAT_ND)
                changed |= desc.origin_format != found
                if desc.format == desc.origin_format:
                    desc.format = found
                desc.origin_format = found
        for node in nodes:
            for slot, source in enumerate(node.inputs):
                own = node.input_descs[slot]
                if source is None or own is None:
                    continue
                found = self._formats.get(Cell(node, False, slot), Format.FORMAT_ND)
                changed |= own.origin_format != found
                own.format, own.origin_format = source.desc.format, found
        return changed


def _given(node: Node, is_first: bool) -> Iterator[tuple[Cell, Format]]:
    """Yield what the descriptors of a node say already. An input says something where it differs from its producer."""
    for index, desc in enumerate(node.output_descs):
        found, value = _known(desc), node.attrs.get("value")
        if is_first and found == Format.FORMAT_ND and node.type == "Const" and isinstance(value, Tensor):
            found = _known(value.desc)
        if found != Format.FORMAT_ND:
            yield Cell(node, True, index), found
    for slot, source in enumerate(node.inputs):
        own = node.input_descs[slot]
        if source is not None and own is not None and own.origin_format != source.desc.origin_format:
            found = _known(own)
            if found != Format.FORMAT_ND:
                yield Cell(node, False, slot), found


def _known(desc: TensorDesc) -> Format:
    """Return the format of the origin view; that of the storage where the origin's is not set and it says something."""
    if desc.origin_format in _UNKNOWN and desc.format not in _UNKNOWN and not is_private(desc.format):
        return desc.format
    return desc.origin_format


def _cells(node: Node) -> Iterator[Cell]:
    """Yield the connected inputs, then the outputs of a node."""
    yield from (Cell(node, False, slot) for slot, source in enumerate(node.inputs) if source is not None)
    yield from (Cell(node, True, index) for index in range(len(node.output_descs)))


def _other_ends(cell: Cell) -> Iterator[Cell]:
    """Yield the cells at the other ends of a cell's edges: the producer of an input, the readers of an output."""
    if cell.is_output:
        yield from (Cell(reader.node, False, reader.index) for reader in cell.node.consumers(cell.place))
        return
    source = cell.node.input(cell.place)
    if source is not None:
        yield Cell(source.node, True, source.index)
