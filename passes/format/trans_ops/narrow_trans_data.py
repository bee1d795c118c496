"""Pass narrow-trans-data."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, Node
from ge.graph.types import numpy_dtype
from ge.passes.origins import OUTPUT_ATTRS
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import ORIGINS, following, has_gap, input_desc, is_trans_op, relink
from passes.format.trans_ops.trans_op_pass import TransOpPass


class NarrowTransData(TransOpPass):
    """Before: TransData in f32, Cast(f32 -> f16); or Cast(f16 -> f32), TransData in f32. After: the two have changed
    places, and the TransData moves half the bytes.

    1. The Cast is the compiler's: a Cast of the user's model stays where its tensor is looked for.
    2. The first of the two has no other reader.
    3. Both types have blocks of the same length: a Cast works on blocks as they lie, so those that there are have.
    """

    name: ClassVar[str] = "narrow-trans-data"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Let them change places, once for each TransData."""
        changed = False
        for node in [node for node in graph if node.type == "TransData"]:
            changed |= _cast_first(graph, node) or _cast_last(graph, node)
        return changed


def _cast_first(graph: Graph, trans: Node) -> bool:
    cast = following(trans.output())
    if cast is None or not _are_free(trans, cast) or _growth(cast) >= 0:
        return False
    _swap(graph, trans, cast)
    return True


def _cast_last(graph: Graph, trans: Node) -> bool:
    source = trans.input(0)
    cast = None if source is None else source.node
    if cast is None or following(cast.output()) is not trans or not _are_free(trans, cast) or _growth(cast) <= 0:
        return False
    _swap(graph, cast, trans)
    return True


def _are_free(trans: Node, cast: Node) -> bool:
    """Tell whether nothing but their order binds the two."""
    return (
        cast.type == "Cast"
        and cast.attrs.get(ORIGINS) == []
        and all(is_trans_op(node) and not has_gap(node) for node in (trans, cast))
        and not any(node.control_inputs or node.control_outputs for node in (trans, cast))
    )


def _growth(cast: Node) -> int:
    """Return by how many bytes a Cast widens each element."""
    before, after = input_desc(cast).data_type, cast.output_descs[0].data_type
    return int(numpy_dtype(after).itemsize - numpy_dtype(before).itemsize)


def _swap(graph: Graph, first: Node, second: Node) -> None:
    """Let ``second`` read what ``first`` reads, and ``first`` what ``second`` makes."""
    source, between, last = first.input(0), first.output_descs[0], second.output_descs[0]
    assert source is not None
    trans = first if first.type == "TransData" else second
    laid_out, typed = (source.desc, last) if trans is first else (last, source.desc)
    middle = laid_out.copy()
    middle.data_type = typed.data_type
    middle.attrs = {key: value for key, value in between.attrs.items() if key not in OUTPUT_ATTRS}
    relink(graph, second.output(), first.output())
    graph.set_input(second, 0, source)
    second.output_descs[0] = middle
    first.output_descs[0] = last
    graph.set_input(first, 0, second.output())
    for reader in first.consumers(0):
        meant = reader.node.input_descs[reader.index]
        reader.node.take_desc(reader.index)
        own = reader.node.input_descs[reader.index]
        if meant is not None and own is not None:
            own.origin_format = meant.origin_format
