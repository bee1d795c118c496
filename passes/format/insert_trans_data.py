"""Pass insert-trans-data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from ge.errors import ReportedError
from ge.formats import FRACTAL_NZ_FORMATS, can_transfer, cube_sizes, is_origin_layout, is_private, lay_out
from ge.graph import Format, Graph, Node, NodeIn, NodeOut, TensorDesc
from ge.graph.types import FORMAT_TEXT
from ge.layout_check import STORAGE_FORMAT
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST, is_constant
from ge.verify import UNSETTLED
from passes.format.node_layouts import take_layout

ORIGINS = "_datadump_original_op_names"


class InsertTransData:
    """Before: a reader wants another layout than its producer makes. After: TransData between them, each one hop.

    1. A private layout is turned into another by way of the origin view: two TransData.
    2. Where the ends name the axes differently, and the layout depends on it, a ReFormat changes the name between.
    3. All readers of a tensor that want the same layout read one TransData; what lies in the wanted layout before a
       TransData that is there already is read from there.
    4. Behind a constant computed at load, a TransData is one too.
    5. A result for which its user wants its axes in another order (NHWC of NCHW) gets one as well.
    6. What the pass makes stands for no operator of the user's model: ``_datadump_original_op_names`` is empty.

    Afterwards both ends of every edge agree, and ``_descs_unsettled`` goes. Raises E19999 for layouts that no TransData
    connects: a fault of whoever chose them.
    """

    name: ClassVar[str] = "insert-trans-data"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Reconcile the layouts of all edges of the model."""
        if not graph.attrs.pop(UNSETTLED, None):
            return False
        changed = False
        for part in graph.all_graphs():
            changed |= _Reconciling(part, session).run()
        return changed


class _Storage(NamedTuple):
    """How a tensor is stored, and by which names of its axes."""

    format: Format
    groups: int
    origin_format: Format


class _Reconciling:
    def __init__(self, graph: Graph, session: CompileSession) -> None:
        self._graph = graph
        self._session = session
        self._cubes = cube_sizes(session.options.soc_version)
        self._made: dict[tuple[NodeOut, _Storage], NodeOut] = {}
        self._new: list[Node] = []

    def run(self) -> bool:
        changed = False
        order: list[Node] = []
        for node in self._graph.topological_order():
            for slot in range(len(node.inputs)):
                changed |= self._reconcile(NodeIn(node, slot))
            order += [*self._new, node]  # in front of its first reader: what was in topological order stays so
            self._new.clear()
        if changed:
            self._graph.reorder([node for node in order if not node.is_removed])
        return changed

    def _reconcile(self, end: NodeIn) -> bool:
        source, wanted = end.node.input(end.index), end.node.input_descs[end.index]
        if source is None or wanted is None:
            return False
        found = source
        for storage in self._hops(source.desc, wanted, is_result=end.node.type == "NetOutput"):
            found = self._stored(found, storage, end)
        if found != source:
            self._graph.set_input(end.node, end.index, found)
            end.node.input_descs[end.index] = wanted
            self._remove_idle(source.node)
        take_layout(wanted, found.desc)
        return found != source

    def _hops(self, made: TensorDesc, wanted: TensorDesc, *, is_result: bool) -> Iterator[_Storage]:
        """Yield the storages that a tensor goes through from what is made to what is wanted."""
        named = wanted.origin_format if _depends_on_names(wanted.format) else made.origin_format
        is_made_in_origin = is_origin_layout(made.format, made.origin_format)
        if not is_private(wanted.format):
            is_chosen = is_result and STORAGE_FORMAT in wanted.attrs
            is_chosen &= not is_origin_layout(wanted.format, made.origin_format)
            if is_chosen and made.format == wanted.format:
                return
            if not is_made_in_origin:
                yield _Storage(made.origin_format, 0, made.origin_format)
            if is_chosen:  # a result with its axes in another order
                yield _Storage(wanted.format, 0, made.origin_format)
            return
        is_same = (made.format, made.sub_format) == (wanted.format, wanted.sub_format)
        if is_same and (made.origin_format == named or not _depends_on_names(wanted.format)):
            return
        if not is_made_in_origin:
            yield _Storage(made.origin_format, 0, made.origin_format)
        if made.origin_format != named:
            yield _Storage(named, 0, named)
        yield _Storage(wanted.format, wanted.sub_format, named)

    def _stored(self, source: NodeOut, storage: _Storage, end: NodeIn) -> NodeOut:
        """Return the tensor in another storage: what is there already, or what a new node makes."""
        before = _undone(source, storage)
        if before is not None:
            return before
        found = self._made.get((source, storage))
        if found is None:
            if storage.origin_format != source.desc.origin_format:
                found = self._add("ReFormat", source, storage, {})
            else:
                found = self._add_trans_data(source, storage, end)
            self._made[source, storage] = found
        return found

    # -- new nodes -----------------------------------------------------------------------------------------------------
    def _add_trans_data(self, source: NodeOut, storage: _Storage, end: NodeIn) -> NodeOut:
        made, target = source.desc, storage.format
        is_plain = is_origin_layout(made.format, made.origin_format)
        start = made.origin_format if is_plain else made.format
        if not can_transfer(start, target):
            raise ReportedError(
                "E19999",
                reason=f"no TransData turns {FORMAT_TEXT[made.format]} (axes {FORMAT_TEXT[made.origin_format]}) into "
                f"{FORMAT_TEXT[target]}, which input {end.index} of node {end.node.name} ({end.node.type}) wants of "
                f"{source}",
            )
        groups = storage.groups or made.sub_format
        attrs = {
            "src_format": FORMAT_TEXT[start],
            "dst_format": FORMAT_TEXT[target],
            "input_format": int(start),
            "output_format": int(target),
            "groups": max(groups, 1),
            "src_subformat": made.sub_format,
            "dst_subformat": storage.groups,
        }
        return self._add("TransData", source, storage, attrs)

    def _add(self, type: str, source: NodeOut, storage: _Storage, attrs: dict[str, object]) -> NodeOut:
        made = source.desc
        desc = TensorDesc(made.origin_shape, storage.origin_format, made.data_type)
        desc.shape_range = list(made.shape_range)
        lay_out(desc, storage.format, storage.groups, cubes=self._cubes)
        name = self._graph.unique_name(f"trans_{type}_{self._session.count(f'trans_{type}')}")
        node = self._graph.add_node(type, name, [source], {**attrs, ORIGINS: []}, output_descs=[desc])
        self._new.append(node)
        if is_constant(source.node) and source.node.type != "Const":
            node.attrs[LOAD_TIME_CONST] = True
        return node.output()

    def _remove_idle(self, node: Node) -> None:
        """Remove TransData that nobody reads any more."""
        while node.type in ("TransData", "ReFormat") and not self._graph.is_read(node):
            before = node.input(0)
            self._graph.remove_unread(node)
            if before is None:
                return
            node = before.node


def _depends_on_names(format: Format) -> bool:
    """Tell whether a layout is made from named axes; that of matrices counts the last two, whatever they are called."""
    return format not in FRACTAL_NZ_FORMATS


def _undone(source: NodeOut, storage: _Storage) -> NodeOut | None:
    """Return what a TransData before ``source`` reads, if that is the tensor in the storage looked for."""
    node = source.node
    before = node.input(0)
    if node.type != "TransData" or before is None:
        return None
    desc = before.desc
    is_same = (desc.format, desc.sub_format, desc.origin_format) == storage
    is_plain = not is_private(storage.format) and is_origin_layout(desc.format, desc.origin_format)
    return before if is_same or (is_plain and desc.origin_format == storage.origin_format) else None
