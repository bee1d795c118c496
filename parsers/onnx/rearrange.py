"""Moving elements: transposition, blocks between channels and space, reversal, triangles."""

from __future__ import annotations

from parsers.onnx.mapping import Mapped, Row, maps, maps_rows
from parsers.onnx.node_builder import NodeBuilder

maps_rows({"ReverseSequence": Row("ReverseSequence", time_axis="seq_dim", batch_axis="batch_dim")})


@maps("Transpose")
def transpose(n: NodeBuilder) -> Mapped:
    """Before: Transpose(perm attribute). After: Const(perm) -> Transpose; without perm the axes are reversed."""
    perm = n.attr("perm")
    order = list(reversed(range(n.rank()))) if perm is None else perm
    return n.add("Transpose", n.need(0), n.index("Const", order))


@maps("DepthToSpace")
def depth_to_space(n: NodeBuilder) -> Mapped:
    """Before: DepthToSpace. After: DepthToSpace(NCHW)."""
    mode = n.choice("mode", "DCR", "CRD") if n.since_version >= 11 else "DCR"
    return n.add("DepthToSpace", n.need(0), block_size=_block_size(n), mode=mode, data_format="NCHW")


@maps("SpaceToDepth")
def space_to_depth(n: NodeBuilder) -> Mapped | None:
    """Before: SpaceToDepth. After: SpaceToDepth(NCHW); mode CRD, which GE lacks, as ONNX defines it."""
    if n.attr("mode", "DCR") != "DCR":
        return None
    return n.add("SpaceToDepth", n.need(0), block_size=_block_size(n), data_format="NCHW")


def _block_size(n: NodeBuilder) -> int:
    size: int = n.attr("blocksize")
    if size < 1:
        raise n.fail(f"attribute blocksize is {size}, but must be positive")
    return size


@maps("Trilu")
def triangle(n: NodeBuilder) -> Mapped:
    """Before: Trilu(x, k). After: Trilu(upper)."""
    return n.add("Trilu", *n.inputs, upper=n.attr("upper"))
