"""Moving elements: transposition, padding, blocks between axes, reversal, diagonals."""

from __future__ import annotations

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

maps_rows(
    {
        "BatchToSpaceND": "BatchToSpaceND",
        "DepthToSpace": Row("DepthToSpace", block_size=int, data_format="NHWC"),
        "Diag": "Diag",
        "DiagPart": "DiagPart",
        "MatrixBandPart": "MatrixBandPart",
        "MatrixDiag": "MatrixDiag",
        "BatchMatrixDiag": "MatrixDiag",
        "MatrixDiagV2": "MatrixDiagV2",
        "MirrorPad": Row("MirrorPad", mode=str),
        "Pad": "Pad",
        "PadV2": "PadV2",
        "ReverseSequence": Row("ReverseSequence", seq_dim=int, batch_dim=0),
        "ReverseV2": "ReverseV2",
        "SpaceToBatchND": "SpaceToBatchND",
        "SpaceToDepth": Row("SpaceToDepth", block_size=int, data_format="NHWC"),
        "Transpose": "Transpose",
    }
)


@maps("MatrixDiagV3", inputs=5)
def matrix_diagonal(n: NodeBuilder) -> Mapped:
    """Before: MatrixDiagV3 with the alignment RIGHT_LEFT, or one diagonal. After: MatrixDiagV2."""
    first = n.ints(n.need(1))
    if n.choice("align", "RIGHT_LEFT", "RIGHT_RIGHT", "LEFT_LEFT", "LEFT_RIGHT") != "LEFT_LEFT" and (
        first is None or len(set(first)) != 1
    ):
        raise n.fail("several diagonals are supported with the alignment LEFT_LEFT only")
    return n.add("MatrixDiagV2", *n.inputs)


@maps("ConjugateTranspose", inputs=2)
def conjugate_transpose(n: NodeBuilder) -> Mapped:
    """Before: ConjugateTranspose of real numbers. After: Transpose."""
    if n.dtype(n.need(0)) in (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128):
        raise n.fail("complex numbers are not supported here")
    return n.add("Transpose", *n.inputs)


@maps("SpaceToBatch", "BatchToSpace", inputs=2)
def blocks(n: NodeBuilder) -> Mapped:
    """Before: SpaceToBatch, BatchToSpace over height and width. After: SpaceToBatchND, BatchToSpaceND."""
    size = n.attr("block_size", int)
    return n.add(f"{n.op_type}ND", n.need(0), n.index("BlockShape", [size, size]), n.need(1))


@maps("Roll", inputs=3)
def roll(n: NodeBuilder) -> Mapped:
    """Before: Roll(x, shift, axis). After: RollV2."""
    return n.add("RollV2", *n.inputs)
