"""What precision lowering must know of operators: which inputs keep their type, which are cube operators, mix lists.

Lowering changes the element types that a node wants at its floating inputs; its outputs follow by inference. What is
not listed here is lowered at all floating inputs. Inputs whose values inference asks for are never lowered, and
operators of users neither: nobody knows what their functions take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum

from ge.graph.node import Node
from ge.graph.types import has_numpy_dtype
from ge.ops.registry import definition, is_built_in

ALL = "*"


def _table(rows: dict[str, str]) -> dict[str, frozenset[str]]:
    """``{"Type Type2": "input input2"}`` as a set of formal names per type; ``*`` stands for all."""
    return {name: frozenset(inputs.split()) for names, inputs in rows.items() for name in names.split()}


KEPT: dict[str, frozenset[str]] = _table(
    {
        # the border of a graph and calls: their types are agreements
        "NetOutput If StatelessIf Case While StatelessWhile PartitionedCall StatefulPartitionedCall": ALL,
        "Merge Switch Enter Exit NextIteration LoopCond": ALL,
        # the bits themselves, or whether two values are the same
        "Bitcast Unique UniqueWithCountsAndSorting XUnique XLabelEncoder": ALL,
        # scales of quantisation
        "XQuantizeLinear": "y_scale",
        "XDequantizeLinear": "x_scale",
        "XDynamicQuantizeLinear": "x",
        "Quantize": "scales",
        "AscendDequant": "deq_scale",
        "XQLinearConv": "x_scale w_scale y_scale",
        "XQLinearMatMul": "a_scale b_scale y_scale",
        # coordinates and thresholds
        "Resize": "roi scales",
        "NonMaxSuppressionV3 NonMaxSuppressionV6": "iou_threshold score_threshold",
        "ROIAlign ROIPooling": "rois",
        "CropAndResize": "boxes",
        "AffineGrid": "theta",
        "GridSampler2D GridSampler3D": "grid",
        # sequences and random numbers
        "Range": "start limit delta",
        "LinSpace": "start stop",
        "Multinomial": "logits",
        "StatelessBernoulliV2": "x",
        "RandomUniformInt": "min max",
        "XDropout": "ratio",
        # statistics that GE keeps in fp32 beside an x of any type
        "BatchNorm BNInfer": "scale offset mean variance",
        # transforms, decision trees and eliminations lose everything in half precision
        "XDFT XSTFT XMelWeightMatrix XTreeEnsemble MatrixDeterminant": ALL,
    }
)
"""Formal inputs that keep the type of the model, whatever the mode."""

AS_MADE: dict[str, frozenset[str]] = _table(
    {
        "Cast CastLike": "x target",
        "Identity IdentityN TensorMove TransData": "x src",
        # the result does not have the type of the input, and is exact for any
        "Shape ShapeN Size Rank IsNan IsInf IsFinite Where NonZero InvertPermutation": "x",
        "ArgMaxV2 ArgMaxD ArgMin": "x",
        "InTopK": "x1",
        "OneHot": "x",
        "NonMaxSuppressionV3 NonMaxSuppressionV6": "boxes scores",
        "AscendQuant Quantize XQuantizeLinear": "x",
    }
)
"""Formal inputs that are taken in whatever type their producer makes: a Cast in front would only lose something."""

_PRODUCTS = (
    "Conv2D Conv2DV2 Conv3D DepthwiseConv2D DeformableConv2D XDeformConv Conv2DTranspose Conv2DBackpropInput "
    "Conv3DTranspose MatMul MatMulV2 MatMulV3 BatchMatMul BatchMatMulV2 BatchMatMulV3 GEMM FullyConnection"
)
_RECURRENT = "CommonLSTM CommonGRU XCommonRNN DynamicRNN DynamicGRUV2 Einsum"
_DELICATE = (
    "Exp Expm1 Log Log1p Pow Power Square SquaredDifference Rsqrt Reciprocal Erfc Sinh Cosh Tan Atan2 Softplus "
    "ReduceSum ReduceSumD ReduceMean ReduceMeanD ReduceProd ReduceLogSumExp SquareSumV1 Cumsum Cumprod "
    "AccumulateNV2 SegmentSum UnsortedSegmentSum SoftmaxV2 LogSoftmaxV2 SoftmaxCrossEntropyLoss "
    "LayerNorm LayerNormV3 LayerNormV4 AddLayerNorm RmsNorm InstanceNorm GroupNorm BatchNorm BNInfer LpNormV2 "
    "MVNV2 LRN GlobalLpPool Resize ResizeBilinearV2 GridSampler2D GridSampler3D AffineGrid"
)

CUBE = frozenset(_PRODUCTS.split())
"""Operators of the matrix unit: products of narrow operands, summed in fp32."""

WIDE_RESULT = CUBE - {"DeformableConv2D", "XDeformConv", "GEMM"}
"""Cube operators that can give their fp32 sums without rounding them (attribute ``_x_output_type``)."""


class MixColour(Enum):
    """What mixed precision does with an operator: lower it, leave it, or follow the one before."""

    WHITE = "white"
    BLACK = "black"
    GRAY = "gray"


WHITE_LIST = CUBE | frozenset(_RECURRENT.split())
"""Operators that mixed precision lowers: those with many products per element."""

BLACK_LIST = frozenset(_DELICATE.split())
"""Operators that mixed precision leaves: large sums, and functions that magnify small differences."""

_WITH_BF16 = re.compile(r"Ascend(910B[1-4]C?|910_93\d\d|310B\w*|950\w*)")


def has_bf16(soc_version: str) -> bool:
    """Tell whether a chip computes in bf16: A2, A3, 310B and 950."""
    return _WITH_BF16.fullmatch(soc_version) is not None


def has_hif8(soc_version: str) -> bool:
    """Tell whether a chip computes in hifloat8: 950."""
    return soc_version.startswith("Ascend950")


def keeps_all(node: Node) -> bool:
    """Tell whether no input of ``node`` may be lowered. Both ends of a handle agree on the type that it carries."""
    descs = [*(desc for desc in node.input_descs if desc is not None), *node.output_descs]
    carries_handle = any(not has_numpy_dtype(desc.data_type) for desc in descs)
    return carries_handle or ALL in KEPT.get(node.type, ()) or not is_built_in(node.type)


def lowered_slots(node: Node) -> list[int]:
    """Return the input slots of ``node`` that may be lowered."""
    if keeps_all(node):
        return []
    listed = KEPT.get(node.type, frozenset()) | AS_MADE.get(node.type, frozenset())
    return _slots(node, lambda name: name not in listed)


def as_made_slots(node: Node) -> list[int]:
    """Return the input slots of ``node`` that take whatever type comes."""
    names = AS_MADE.get(node.type)
    if names is None or not is_built_in(node.type):
        return []
    return _slots(node, lambda name: name in names)


def bias_slots(node: Node) -> list[int]:
    """Return the input slots of a cube operator that are added to its sums."""
    return _slots(node, lambda name: name in ("bias", "b")) if node.type in CUBE else []


def _slots(node: Node, is_wanted: Callable[[str], bool]) -> list[int]:
    slices = definition(node).signature.input_slices(len(node.inputs))
    slots = range(len(node.inputs))
    return sorted(slot for name in slices if is_wanted(name) for slot in slots[slices[name]])


def mix_colour(type: str, white: Iterable[str] = WHITE_LIST, black: Iterable[str] = BLACK_LIST) -> MixColour:
    """Return what mixed precision does with operators of ``type``."""
    return MixColour.WHITE if type in white else MixColour.BLACK if type in black else MixColour.GRAY
