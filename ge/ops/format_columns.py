"""Which storage formats an operator can work in: its columns, one legal combination over all its tensors each.

``format_columns(node)`` is read by the selection of formats, by the verifier and by whoever writes kernels. The first
column of every operator is the origin column: all tensors lie as the user's model has them. Private layouts follow
in the order of ``HEAVY_FORMATS``, each only where the tensors at hand can lie so:

- element types of :data:`LAID_OUT`, where the operator computes with them (:data:`ELEMENT_TYPES`), all dims known, at
  least one element;
- NC1HWC0 and FRACTAL_Z for tensors with four named axes, NDC1HWC0 and FRACTAL_Z_3D for five, FRACTAL_NZ from rank 2 on.
  Tensors of fewer dims (a bias, statistics of a normalisation) stay as they are;
- FRACTAL_Z and its like for filters of convolutions only.

ND in a column is the origin format, whatever it is. Kernels leave zeros in the padding of what they write.
"""

from __future__ import annotations

from dataclasses import dataclass

from ge.formats import GROUPED_FORMATS, SERVER_CUBES, CubeSizes, is_origin_layout
from ge.graph.node import Node
from ge.graph.tensor_desc import TensorDesc
from ge.graph.types import DataType, Format
from ge.ops.format_columns_selectors import (
    LAID_OUT,
    MATRIX_PRODUCTS,
    NodeTensors,
    Row,
    Selector,
    by_agreement,
    by_blocks_of_parts,
    by_broadcast,
    by_last_axis,
    by_reduced_axes,
    by_rows,
    by_soft_axes,
    like_an_image,
    with_a_slope,
    with_statistics,
)
from ge.ops.registry import is_built_in, lookup

__all__ = [
    "COLUMNS",
    "ELEMENT_TYPES",
    "LAID_OUT",
    "ColumnFinder",
    "FormatColumn",
    "format_columns",
    "is_heavy",
    "is_laid_out_as",
    "origin_column",
]

_5HD = Format.FORMAT_NC1HWC0
_6HD = Format.FORMAT_NDC1HWC0
_5HD_C04 = Format.FORMAT_NC1HWC0_C04
_FZ = Format.FORMAT_FRACTAL_Z
_FZ_C04 = Format.FORMAT_FRACTAL_Z_C04
_FZ_3D = Format.FORMAT_FRACTAL_Z_3D
_NZ = Format.FORMAT_FRACTAL_NZ


@dataclass(frozen=True)
class FormatColumn:
    """One legal combination of storage formats: per input slot (``None``: absent) and per output.

    ``groups`` is the sub-format of tensors whose format has one (FRACTAL_Z, FRACTAL_Z_3D), 0 for none.
    ``is_origin_only`` marks an origin column that CANN does not have: for dynamic graphs and ``--format_refinement=0``,
    and for tensors that fit no other column; selection prefers any other.
    """

    inputs: tuple[Format | None, ...]
    outputs: tuple[Format, ...]
    is_origin_only: bool = False
    groups: int = 0

    def sub_format(self, format: Format | None) -> int:
        """Return the sub-format of a tensor that this column wants in ``format``."""
        return self.groups if format in GROUPED_FORMATS else 0

    @property
    def is_origin(self) -> bool:
        """True when no tensor lies in a private layout."""
        return all(layout in (None, Format.FORMAT_ND) for layout in (*self.inputs, *self.outputs))


# -- what the operators can do -----------------------------------------------------------------------------------------
_FILTERED = (Row(x=_5HD, filter=_FZ, y=_5HD),)
_CONV2D = (Row(x=_5HD_C04, filter=_FZ_C04, y=_5HD), *_FILTERED)
_IMAGE = (Row(x=_5HD, y=_5HD), Row(x=_6HD, y=_6HD))

_AGNOSTIC = (
    "Abs Acos Acosh Adds Asin Asinh Atan Atanh Cast Ceil Celu Cos Cosh Dropout Elu Erf Erfc Exp Expm1 FastGelu Floor "
    "Gelu GeluV2 HardSigmoid HardSwish Identity Invert IsFinite IsInf IsNan LeakyRelu Log Log1p LogicalNot Mish Muls "
    "Neg OnesLike Power Reciprocal Relu Relu6 Rint Round Rsqrt Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign "
    "Sqrt Square Swish Tan Tanh TensorMove Threshold ZerosLike"
)
"""One input, one output, element by element: any layout, the same on both sides."""

_BROADCAST = (
    "Add AddN AddV2 AccumulateNV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor ClipByValue Div DivNoNan Equal FloorDiv "
    "FloorMod Greater GreaterEqual LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul NotEqual Pow "
    "RealDiv RightShift Select SelectV2 SquaredDifference Sub TruncateDiv TruncateMod"
)

_REDUCE = (
    "ReduceAll ReduceAny ReduceLogSumExp ReduceMax ReduceMean ReduceMeanD ReduceMin ReduceProd ReduceSum ReduceSumD "
    "SquareSumV1"
)

COLUMNS: dict[str, Selector] = {
    "Conv2D": by_rows(*_CONV2D),
    "Conv2DV2": by_rows(*_CONV2D),
    "DepthwiseConv2D": by_rows(*_FILTERED),
    "Conv2DTranspose": by_rows(*_FILTERED),
    "Conv2DBackpropInput": by_rows(Row(out_backprop=_5HD, filter=_FZ, y=_5HD)),
    "Conv3D": by_rows(Row(x=_6HD, filter=_FZ_3D, y=_6HD)),
    **dict.fromkeys(MATRIX_PRODUCTS, by_rows(Row(x1=_NZ, x2=_NZ, y=_NZ), has_channels=False)),
    **dict.fromkeys(("MaxPool", "MaxPoolV3", "AvgPool", "AvgPoolV2"), by_rows(*_IMAGE[:1])),
    **dict.fromkeys(("MaxPool3D", "AvgPool3D"), by_rows(*_IMAGE[1:])),
    "GlobalAveragePool": by_rows(*_IMAGE),
    **dict.fromkeys(("ResizeBilinearV2", "ResizeNearestNeighborV2", "Resize"), like_an_image(*_IMAGE[:1])),
    "BatchNorm": with_statistics(*_IMAGE),
    **dict.fromkeys(("BNInfer", "BiasAdd"), by_rows(*_IMAGE)),
    "PRelu": with_a_slope(*_IMAGE),
    **dict.fromkeys(_AGNOSTIC.split(), by_agreement),
    **dict.fromkeys(_BROADCAST.split(), by_broadcast),
    **dict.fromkeys(_REDUCE.split(), by_reduced_axes),
    **dict.fromkeys(("ConcatD", "Concat", "ConcatV2", "Pack"), by_blocks_of_parts),
    **dict.fromkeys(("SplitD", "Split", "SplitV", "SplitVD"), by_blocks_of_parts),
    **dict.fromkeys(("SoftmaxV2", "LogSoftmaxV2"), by_soft_axes),
    **dict.fromkeys(("LayerNorm", "LayerNormV3", "LayerNormV4", "RmsNorm", "AddLayerNorm"), by_last_axis),
}
"""Per operator type what makes its private columns; all others have their origin column alone."""

_FLOATS = frozenset({DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_BF16})
_NUMBERS = LAID_OUT - {DataType.DT_BOOL}
_WHOLE = LAID_OUT - _FLOATS

ELEMENT_TYPES: dict[str, frozenset[DataType]] = {
    **dict.fromkeys(
        ("AvgPool", "AvgPoolV2", "AvgPool3D", "GlobalAveragePool", "BatchNorm", "BNInfer", "PRelu"), _FLOATS
    ),
    **dict.fromkeys(("SoftmaxV2", "LogSoftmaxV2", "ReduceLogSumExp", "SquareSumV1"), _FLOATS),
    **dict.fromkeys(("LayerNorm", "LayerNormV3", "LayerNormV4", "RmsNorm", "AddLayerNorm"), _FLOATS),
    **dict.fromkeys(("MaxPool", "MaxPoolV3", "MaxPool3D", "BiasAdd", "Sub", "SquaredDifference"), _NUMBERS),
    **dict.fromkeys(("FastGelu", "Mish", "Neg", "Sigmoid", "Sign", "Softplus", "Swish"), _NUMBERS),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMeanD", "ReduceMin", "ReduceProd"), _NUMBERS),
    **dict.fromkeys(("ReduceSum", "ReduceSumD"), _NUMBERS),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift"), _WHOLE),
    **dict.fromkeys(("ReduceAll", "ReduceAny"), frozenset({DataType.DT_BOOL})),
}
"""Element types of the first input with which a type of operator works in private layouts; all of them where it does
not stand here. Inference may take more: such nodes keep the origin column."""

_NOT_IN_ORIGIN = frozenset(
    {
        *("Conv2D", "Conv2DV2", "DepthwiseConv2D", "Conv2DTranspose", "Conv2DBackpropInput", "Conv3D"),
        *("MaxPool", "MaxPoolV3", "AvgPool", "AvgPoolV2", "MaxPool3D", "AvgPool3D", "GlobalAveragePool"),
        *("ResizeBilinearV2", "ResizeNearestNeighborV2", "Resize"),
    }
)
"""Types that CANN has in private layouts only."""

_HEAVY = frozenset({"Conv2D", "Conv2DV2", "DepthwiseConv2D", "Conv2DTranspose", "Conv2DBackpropInput", "Conv3D"})
"""Types from which layouts spread."""

HEAVY_MARK = "_is_heavy_op"
"""Attribute of a node from which the layout that a user asked for spreads."""


def origin_column(node: Node) -> FormatColumn:
    """Return the column in which every tensor has its origin format."""
    return FormatColumn(
        tuple(None if source is None else Format.FORMAT_ND for source in node.inputs),
        (Format.FORMAT_ND,) * len(node.output_descs),
        is_origin_only=node.type in _NOT_IN_ORIGIN,
    )


def format_columns(node: Node, cubes: CubeSizes = SERVER_CUBES) -> list[FormatColumn]:
    """Return the legal combinations of storage formats for the tensors of ``node`` as they are described.

    The first is the origin column. Only origin views of descriptors are looked at, so a node has the same columns
    before and after its formats are chosen.
    """
    columns = [origin_column(node)]
    select, definition = COLUMNS.get(node.type), lookup(node.type)
    if select is None or definition is None or not is_built_in(node.type) or not node.output_descs:
        return columns
    if not _has_element_type(node):
        return columns
    tensors = NodeTensors(node, definition, cubes)
    columns += [FormatColumn(found.inputs, found.outputs, groups=found.groups) for found in select(tensors)]
    return columns


class ColumnFinder:
    """``format_columns`` for many nodes: those that work element by element share it where their tensors are alike."""

    def __init__(self, cubes: CubeSizes = SERVER_CUBES) -> None:
        self._cubes = cubes
        self._found: dict[tuple[object, ...], list[FormatColumn]] = {}

    def columns(self, node: Node) -> list[FormatColumn]:
        """Return the columns of ``node``; the list is not to be changed."""
        if COLUMNS.get(node.type) not in (by_agreement, by_broadcast):
            return format_columns(node, self._cubes)
        key: list[object] = [node.type, len(node.output_descs)]
        for desc in (*node.input_descs, *node.output_descs):
            key += (None,) if desc is None else (desc.origin_shape, desc.origin_format, desc.data_type)
        found = self._found.get(tuple(key))
        if found is None:
            found = self._found[tuple(key)] = format_columns(node, self._cubes)
        return found


def _has_element_type(node: Node) -> bool:
    """Tell whether ``node`` computes with the type of its first input in private layouts."""
    known = ELEMENT_TYPES.get(node.type)
    first = node.input_descs[0] if known is not None and node.input_descs else None
    return known is None or first is None or first.data_type in known


def is_heavy(node: Node) -> bool:
    """Tell whether layouts spread from ``node``: convolutions, matrix products with ``allow_nz``, marked nodes."""
    if node.type in MATRIX_PRODUCTS:
        return node.attrs.get("allow_nz") is True
    return node.type in _HEAVY or node.attrs.get(HEAVY_MARK) is True


def is_laid_out_as(column: FormatColumn, node: Node) -> bool:
    """Tell whether the descriptors of ``node`` say what ``column`` asks for."""
    sources = [None if source is None else source.desc for source in node.inputs]
    inputs = zip(column.inputs, node.input_descs, sources, strict=True)
    if not all(_agrees(column, layout, desc, source) for layout, desc, source in inputs if layout is not None):
        return False
    outputs = zip(column.outputs, node.output_descs, strict=True)
    return all(_agrees(column, layout, desc, desc) for layout, desc in outputs)


def _agrees(column: FormatColumn, layout: Format, desc: TensorDesc | None, made: TensorDesc | None) -> bool:
    """Tell whether a descriptor has the layout. In its origin view a tensor lies as its producer names the axes."""
    if desc is None or made is None:
        return False
    if layout != Format.FORMAT_ND:
        return desc.format == layout and desc.sub_format == column.sub_format(layout)
    return is_origin_layout(desc.format, made.origin_format)
