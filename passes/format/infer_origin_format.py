"""Pass infer-origin-format."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from ge.formats import full_rank, is_private, lies_in_origin
from ge.graph import Format, Graph, Node, Tensor, TensorDesc
from ge.layout_check import STORAGE_FORMAT
from ge.ops.origin_format import ANCHORS, NodeFormats, anchors, format_rule, has_axes_for
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
        is_first = not graph.attrs.get(IS_INFERRED)
        asked = Format.FORMAT_ND if is_first else session.options.input_format
        if not (_nameless_inputs(graph, asked) or _has_formats(graph)):
            graph.attrs[IS_INFERRED] = True
            return False
        spreading = _Spreading(graph, is_first=is_first)
        spreading.spread_from_anchors()
        spreading.name_inputs(graph, asked)
        graph.attrs[IS_INFERRED] = True
        return spreading.write_back()


class _Spreading:
    """Origin formats while they are inferred, by node."""

    def __init__(self, root: Graph, *, is_first: bool) -> None:
        self._reflections = Reflections(root)
        nodes = [node for part in root.all_graphs() for node in part]
        self._formats = {node: _given(node, is_first) for node in nodes}
        for node, formats in self._formats.items():
            for is_output, place, named in anchors(node) if node.type in ANCHORS else ():
                own = formats.outputs if is_output else formats.inputs
                if own[place] == Format.FORMAT_ND:
                    own[place] = named
            if node.type in ("BiasAdd", "BiasAddGrad"):
                _settle_bias(formats)

    # -- spreading -----------------------------------------------------------------------------------------------------
    def spread_from_anchors(self) -> None:
        """Spread what is known in the beginning, node by node."""
        known = [f for f in self._formats.values() if f.is_known]
        for formats in known:
            self._spread_from(formats)

    def _spread_from(self, anchor: NodeFormats) -> None:
        """Spread the formats of a node, and on from all nodes that they reach, nearest first."""
        queue = deque([anchor])
        while queue:
            formats = queue.popleft()
            node = formats.node
            for slot, found in enumerate(formats.inputs):
                source = node.input(slot)
                if found not in _UNKNOWN and source is not None:
                    producer = self._formats[source.node]
                    if producer.outputs[source.index] == Format.FORMAT_ND:
                        queue.extend(self._offer(producer, True, source.index, found))
            for index, found in enumerate(formats.outputs):
                if found not in _UNKNOWN:
                    for name, slot in node.consumers(index):
                        reader = self._formats[name]
                        if reader.inputs[slot] == Format.FORMAT_ND:
                            queue.extend(self._offer(reader, False, slot, found))

    def _offer(self, target: NodeFormats, is_output: bool, place: int, format: Format) -> Iterable[NodeFormats]:
        """Give a format to a tensor that has none, if it takes one; return the nodes from which it may spread on."""
        node = target.node
        if not _takes_formats(node, _desc(node, is_output, place)):
            return ()
        reflected = self._reflections.of(Cell(node, is_output, place))
        if reflected:
            for cell in reflected:
                self._set(cell, format)
            return [self._formats[other] for other in dict.fromkeys(cell.node for cell in reflected)]
        (target.outputs if is_output else target.inputs)[place] = format
        if node.type == "NetOutput":
            return ()
        format_rule(node.type)(target)
        return (target,)

    def _set(self, cell: Cell, format: Format) -> None:
        own = self._formats[cell.node]
        (own.outputs if cell.is_output else own.inputs)[cell.place] = format

    def name_inputs(self, root: Graph, format: Format) -> None:
        """Give ``format`` to the inputs of the model that have none and its rank, then spread it from each."""
        nameless = [self._formats[data] for data in _nameless_inputs(root, format)]
        found = [own for own in nameless if own.outputs[0] == Format.FORMAT_ND]
        for own in found:
            own.outputs[0] = format
        for own in found:
            self._spread_from(own)

    # -- descriptors ---------------------------------------------------------------------------------------------------
    def write_back(self) -> bool:
        """Write the formats into the descriptors; return whether any changed."""
        changed = False
        for node, formats in self._formats.items():
            for desc, found in zip(node.output_descs, formats.outputs, strict=True):
                if desc.origin_format != found:
                    changed = True
                    if desc.format == desc.origin_format:
                        desc.format = found
                    desc.origin_format = found
        for node, formats in self._formats.items():
            for slot, own in enumerate(node.input_descs):
                source, found = node.input(slot), formats.inputs[slot]
                if source is not None and own is not None:
                    changed |= own.origin_format != found
                    own.origin_format = found
                    if not _is_chosen(node, own):
                        own.format = source.desc.format
        return changed


def _is_chosen(node: Node, desc: TensorDesc) -> bool:
    """Tell whether this is a result in the layout that its user has chosen, which its producer does not make."""
    return node.type == "NetOutput" and STORAGE_FORMAT in desc.attrs and not lies_in_origin(desc)


def _has_formats(root: Graph) -> bool:
    """Tell whether there is anything that a format could come from."""
    nd = Format.FORMAT_ND
    for part in root.all_graphs():
        for node in part:
            if node.type in ANCHORS or any(d.origin_format != nd or d.format != nd for d in node.output_descs):
                return True
            if any(d is not None and d.origin_format != nd for d in node.input_descs):
                return True
            value = node.attrs.get("value") if node.type == "Const" else None
            if isinstance(value, Tensor) and _known(value.desc) != nd:
                return True
    return False


def _nameless_inputs(root: Graph, format: Format) -> list[Node]:
    """Return the inputs of the model that may have ``format``: it says what axes mean, and they have as many."""
    if format in _UNKNOWN or is_private(format):
        return []
    rank = full_rank(format)
    return [
        data
        for data in root.data_nodes()
        if len(data.output_descs[0].origin_shape) == rank and _takes_formats(data, data.output_descs[0])
    ]


def _given(node: Node, is_first: bool) -> NodeFormats:
    """Return what the descriptors of a node say already. An input says something where it differs from its producer.

    A format with fewer axes than the tensor turned out to have dims says nothing: it was given when the rank was open.
    """
    nd = Format.FORMAT_ND
    formats = NodeFormats(node, [nd] * len(node.input_descs), [nd] * len(node.output_descs))
    for index, desc in enumerate(node.output_descs):
        found = _known(desc)
        if is_first and found == nd and node.type == "Const" and isinstance(node.attrs.get("value"), Tensor):
            found = _known(node.attrs["value"].desc)
        if found != nd and has_axes_for(found, desc):
            formats.outputs[index] = found
    for slot, own in enumerate(node.input_descs):
        if own is None or own.origin_format == own.format == nd:
            continue
        source = node.input(slot)
        if source is not None and own.origin_format != source.desc.origin_format:
            found = _known(own)
            if found != nd and has_axes_for(found, own):
                formats.inputs[slot] = found
    return formats


def _known(desc: TensorDesc) -> Format:
    """Return the format of the origin view; that of the storage where the origin's is not set and it says something."""
    if desc.origin_format in _UNKNOWN and desc.format not in _UNKNOWN and not is_private(desc.format):
        return desc.format
    return desc.origin_format


def _settle_bias(formats: NodeFormats) -> None:
    """Vectors that are added to channels have no format; volumes have that of a volume."""
    node = formats.node
    for is_output, own in ((False, formats.inputs), (True, formats.outputs)):
        for place, found in enumerate(own):
            if found == Format.FORMAT_ND:
                continue
            rank = len(_desc(node, is_output, place).origin_shape)
            if rank == 5:
                own[place] = _VOLUME_FORMS.get(found, found)
            elif rank < 4 and not is_output:
                own[place] = Format.FORMAT_ND


def _takes_formats(node: Node, desc: TensorDesc) -> bool:
    rank = len(desc.origin_shape)
    return rank > 0 and node.attrs.get(LOCKED) is not True and not (node.type in _RANK_CHANGING and rank < 4)


def _desc(node: Node, is_output: bool, place: int) -> TensorDesc:
    if is_output:
        return node.output_descs[place]
    source = node.input(place)
    assert source is not None
    return source.desc
