"""Pass cast-remove."""

from __future__ import annotations

from typing import ClassVar

from ge.formats import cube_sizes, is_private
from ge.formats.cube_sizes import CubeSizes
from ge.graph import DataType, Graph, Node
from ge.session import CompileSession
from passes.format.trans_ops.trans_op import bypass, chains, has_gap, input_desc, is_lossy
from passes.format.trans_ops.trans_op_pass import TransOpPass


class CastRemove(TransOpPass):
    """Before: Cast(f32 -> f16), TransData, Cast(f16 -> f32). After: the TransData, in f32.

    1. A Cast to the type that it reads goes.
    2. In a run of trans-ops, each the only reader of the one before, Casts that lead back to a type that the run had
       before go with all between; the other operators among them get that type.

    Left alone:
    3. Casts on the way that lose something (``trans_op.is_lossy``);
    4. a layout between them that would have another shape in the other type (C0 follows from the type);
    5. operators whose input is of another type than what their producer makes, or that change the type without being
       a Cast.
    """

    name: ClassVar[str] = "cast-remove"

    def go_over(self, graph: Graph, session: CompileSession) -> bool:
        """Remove them along each run."""
        cubes = cube_sizes(session.options.soc_version)
        changed = False
        for chain in chains(graph):
            changed |= _shorten(graph, chain, cubes)
        return changed


def _shorten(graph: Graph, chain: list[Node], cubes: CubeSizes) -> bool:
    """Walk along a run; ``kept`` is what is left of it, ``seen`` by type how much of that was there at its last use."""
    changed = False
    kept: list[Node] = []
    seen: dict[DataType, int] = {input_desc(chain[0]).data_type: 0}
    for node in chain:
        before, after = input_desc(node).data_type, node.output_descs[0].data_type
        if node.type != "Cast" or has_gap(node):
            if has_gap(node):
                seen.clear()
            kept.append(node)
            seen[after] = len(kept)
            continue
        if before == after:
            bypass(graph, node)
            changed = True
            continue
        if is_lossy(node):
            seen.clear()
        start = seen.get(after)
        between = [] if start is None else [n for n in kept[start:] if n.type != "Cast"]
        if start is None or not all(_fits(n, after, cubes) for n in between):
            kept.append(node)
            seen[after] = len(kept)
            continue
        for cast in (*(n for n in kept[start:] if n.type == "Cast"), node):
            bypass(graph, cast)
        _retype(between, after)
        kept[start:] = between
        seen = {dtype: place for dtype, place in seen.items() if place <= start} | {after: len(kept)}
        changed = True
    return changed


def _fits(node: Node, dtype: DataType, cubes: CubeSizes) -> bool:
    """Tell whether the tensors of ``node`` are laid out alike when their type is ``dtype``."""
    return all(
        not is_private(desc.format)
        or cubes.block_length(desc.format, desc.data_type) == cubes.block_length(desc.format, dtype)
        for desc in (input_desc(node), node.output_descs[0])
    )


def _retype(nodes: list[Node], dtype: DataType) -> None:
    for node in nodes:
        input_desc(node).data_type = node.output_descs[0].data_type = dtype
        for reader in node.consumers():
            own = reader.node.input_descs[reader.index]
            assert own is not None
            own.data_type = dtype
