"""What holds for every operator: a row below, agreement of inference and computation, untouched inputs.

The other files of this folder test what the operators compute; here one small row per operator feeds the same checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ge.graph.types import DataType, data_type_of
from ge.ops import definition, infer_node, lookup, registered_types
from tests.ops.one_node import build_node, data, fits, run_ge


@dataclass(frozen=True)
class Row:
    """Arguments of one operator."""

    inputs: Sequence[np.ndarray | None] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    n_outputs: int = 1


def f(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    """Return seeded floats."""
    return data(sum(shape) + len(shape), *shape, low=low, high=high)


def i(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    """Return integers; a single number gives a scalar."""
    return np.array(values[0] if len(values) == 1 else values, dtype)


def b(*shape: int) -> np.ndarray:
    """Return seeded booleans."""
    return f(*shape) > 0


def u8(*shape: int) -> np.ndarray:
    """Return seeded bytes."""
    return f(*shape, low=0, high=255).astype(np.uint8)


def text(*values: str) -> np.ndarray:
    """Return strings."""
    return np.array(values, object)


X, POSITIVE, UNIT = f(2, 3, 4), f(2, 3, 4, low=1, high=3), f(2, 3, 4, low=-0.9, high=0.9)
IMAGE = f(2, 4, 6, 6)
AXES = i(0, 2)
FLOAT = DataType.DT_FLOAT
POOL: dict[str, Any] = {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "data_format": "NCHW"}
POOL_3D: dict[str, Any] = {"ksize": [2, 2, 2], "strides": [1, 1, 2], "pads": [0] * 6, "data_format": "NCDHW"}
CONV: dict[str, Any] = {"strides": [1, 1, 1, 2], "pads": [1, 1, 1, 1], "data_format": "NCHW"}
CONV_3D: dict[str, Any] = {"strides": [1, 1, 1, 2, 1], "pads": [0] * 6, "data_format": "NCDHW"}
LAST = {"begin_norm_axis": 2, "begin_params_axis": 2}
RNN: dict[str, Any] = {"hidden_size": 5}
SCATTER = [f(4, 3), i([[1], [3]]), f(2, 3)]
MASKS = {"begin_mask": 1}
STUMP: dict[str, Any] = {
    "modes": [0], "feature_ids": [1], "true_ids": [0], "false_ids": [1], "true_leafs": [1], "false_leafs": [1],
    "roots": [0], "target_ids": [0, 1], "n_targets": 2,
}  # fmt: skip
REGION = {"spatial_scale": 1.0, "pooled_height": 2, "pooled_width": 3}
ROIS = np.float32([[0, 0, 0, 3, 3], [1, 1, 2, 5, 4]])
PATCHES: dict[str, Any] = {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1]}
SUPPRESSION = [i(2), np.float32(0.5), np.float32(0.1)]

UNARY = (
    "Abs Acos Asin Asinh Atan Atanh Ceil Cos Cosh Erf Erfc Exp Expm1 FastGelu Floor Gelu GeluV2 HardSwish "
    "IsFinite IsInf IsNan Mish Neg OnesLike Reciprocal Relu Relu6 Rint Round Selu Sigmoid Sign Sin Sinh Softplus "
    "Softsign Square Tan Tanh TensorMove ZerosLike Celu Elu HardSigmoid LeakyRelu Shrink Swish Threshold Dropout "
    "Identity Power SoftmaxV2 LogSoftmaxV2 HardMax Flatten LpNormV2 GlobalAveragePool GlobalLpPool LRN"
)
POSITIVE_UNARY = "Acosh Log Log1p Rsqrt Sqrt"
BINARY = (
    "Add AddV2 Atan2 Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual Less LessEqual Maximum Minimum Mod Mul "
    "NotEqual Pow RealDiv SquaredDifference Sub TruncateDiv TruncateMod"
)
INTEGER_BINARY = "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift"
LOGICAL_BINARY = "LogicalAnd LogicalOr"
REDUCTIONS = "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
SCATTERS = "ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate TensorScatterUpdate XScatterNdMul"

ROWS: dict[str, Row] = {
    **{name: Row([UNIT]) for name in UNARY.split()},
    **{name: Row([POSITIVE]) for name in POSITIVE_UNARY.split()},
    **{name: Row([X, f(3, 1, low=1, high=3)]) for name in BINARY.split()},
    **{name: Row([i(5, 6, 7), i([[1], [2]])]) for name in INTEGER_BINARY.split()},
    **{name: Row([b(2, 3), b(3)]) for name in LOGICAL_BINARY.split()},
    **{name: Row([X, AXES]) for name in REDUCTIONS.split()},
    **{name: Row(SCATTER) for name in SCATTERS.split()},
    # mathematics
    "AccumulateNV2": Row([X, f(3, 1)], {"N": 2}),
    "AddN": Row([X, X], {"N": 2}),
    "Adds": Row([X], {"value": 1.5}),
    "ClipByValue": Row([X, np.float32(-1), np.float32(1)]),
    "Cumprod": Row([X, i(1)]),
    "Cumsum": Row([X, i(1)]),
    "Einsum": Row([f(2, 3), f(3, 4)], {"equation": "ij,jk->ik", "N": 2}),
    "Invert": Row([i(1, 2, 3)]),
    "LogicalNot": Row([b(3)]),
    "Cholesky": Row([np.float32([[4, 9], [2, 5]])]),
    "MatrixDeterminant": Row([f(2, 3, 3)]),
    "Muls": Row([X], {"value": 1.5}),
    "ReduceAll": Row([b(2, 3, 4), AXES]),
    "ReduceAny": Row([b(2, 3, 4), AXES]),
    "ReduceMeanD": Row([X], {"axes": [1]}),
    "ReduceSumD": Row([X], {"axes": [1]}),
    "SquareSumV1": Row([X], {"axis": [1]}),
    # convolution and products
    "BatchMatMul": Row([f(2, 3, 4), f(4, 5)]),
    "BatchMatMulV2": Row([f(2, 3, 4), f(4, 5), f(5)]),
    "BatchMatMulV3": Row([f(2, 3, 4), f(4, 5)]),
    "BiasAdd": Row([IMAGE, f(4)], {"data_format": "NCHW"}),
    "Conv2D": Row([IMAGE, f(6, 2, 3, 3), f(6)], {**CONV, "groups": 2}),
    "Conv2DV2": Row([IMAGE, f(6, 2, 3, 3), f(6)], {**CONV, "groups": 2, "pad_mode": "SAME"}),
    "Conv2DBackpropInput": Row([i(2, 3, 6, 6), f(4, 3, 3, 3), f(2, 4, 6, 3)], CONV),
    "Conv2DTranspose": Row([i(0, 0, 0, 0), IMAGE, f(4, 3, 3, 3), f(3)], CONV),
    "Conv3D": Row([f(1, 2, 4, 5, 4), f(3, 2, 2, 2, 2)], CONV_3D),
    "Conv3DTranspose": Row([i(0, 0, 0, 0, 0), f(1, 2, 4, 5, 4), f(2, 3, 2, 2, 2)], CONV_3D),
    "DeformableConv2D": Row([IMAGE, f(3, 4, 3, 3), f(2, 27, 6, 3)], CONV),
    "DepthwiseConv2D": Row([IMAGE, f(2, 4, 3, 3), f(8)], CONV),
    "FullyConnection": Row([f(2, 3, 2), f(5, 6), f(5)], {"num_output": 5}),
    "GEMM": Row([f(2, 3), f(3, 4), f(4), np.float32([2]), np.float32([0.5])]),
    "MatMul": Row([f(2, 3), f(3, 4), f(4)]),
    "MatMulV2": Row([f(3, 2), f(4, 3), f(4)], {"transpose_x1": True, "transpose_x2": True}),
    "MatMulV3": Row([f(2, 3), f(3, 4)]),
    "XDeformConv": Row([IMAGE, f(3, 4, 3, 3), f(2, 18, 6, 3), f(3), f(2, 9, 6, 3)], CONV),
    # pooling
    "AdaptiveAvgPool2d": Row([IMAGE], {"output_size": [2, 3]}),
    "AvgPool": Row([IMAGE], {**POOL, "padding": "SAME"}),
    "AvgPool3D": Row([f(1, 2, 4, 4, 5)], POOL_3D),
    "AvgPoolV2": Row([IMAGE], {**POOL, "ceil_mode": True, "pads": [1, 1, 0, 0]}),
    "MaxPool": Row([IMAGE], {**POOL, "padding": "VALID"}),
    "MaxPool3D": Row([f(1, 2, 4, 4, 5)], {**POOL_3D, "padding": "CALCULATED"}),
    "MaxPoolV3": Row([IMAGE], {**POOL, "ceil_mode": True, "pads": [1, 1, 0, 0]}),
    "MaxPoolWithArgmax": Row([IMAGE], {**POOL, "padding": "SAME"}, 2),
    "XMaxPoolWithIndices": Row([IMAGE], {"ksize": [2], "strides": [2]}, 2),
    "XMaxUnpool": Row([f(1, 1, 2, 2), i([[[[0, 3], [9, 10]]]], dtype=np.int64)], {"ksize": [2], "strides": [2]}),
    # normalisation
    "BNInfer": Row([IMAGE, f(4), f(4), f(4), f(4, low=1)], {"epsilon": 1e-3}),
    "BatchNorm": Row([IMAGE, f(4), f(4), f(4), f(4, low=1)], {"data_format": "NCHW", "is_training": False}, 6),
    "GroupNorm": Row([IMAGE, f(4), f(4)], {"num_groups": 2}, 3),
    "InstanceNorm": Row([IMAGE, f(4), f(4)], {"data_format": "NCHW"}, 3),
    "LayerNorm": Row([X, f(4), f(4)], LAST, 3),
    "LayerNormV3": Row([X, f(4), f(4)], LAST, 3),
    "LayerNormV4": Row([X, i(3, 4), f(3, 4), f(3, 4)], {}, 3),
    "MVNV2": Row([IMAGE]),
    "AddLayerNorm": Row([X, X, f(3, 4), f(3, 4), f(4)], {}, 4),
    "RmsNorm": Row([X, f(4)], {}, 2),
    # activations with more operands, losses
    "PRelu": Row([IMAGE, f(4)]),
    "L2Loss": Row([X]),
    "SoftmaxCrossEntropyLoss": Row([f(3, 5), i(0, 4, 2)], {}, 2),
    "SoftmaxCrossEntropyWithLogits": Row([f(3, 5), f(3, 5, low=0, high=1)], {}, 2),
    "SparseSoftmaxCrossEntropyWithLogits": Row([f(3, 5), i(0, 4, 2)], {}, 2),
    # image
    "AffineGrid": Row([f(2, 2, 3), i(2, 3, 4, 5)]),
    "Col2ImV2": Row([f(1, 8, 20), i(5, 6), i(2, 2)], {"dilation": [1], "padding": [0], "stride": [1]}),
    "CropAndResize": Row([IMAGE, f(3, 4), i(1, 0, 1), i(4, 5)]),
    "DepthToSpace": Row([IMAGE], {"block_size": 2, "data_format": "NCHW"}),
    "GridSampler2D": Row([IMAGE, f(2, 3, 5, 2)]),
    "GridSampler3D": Row([f(1, 2, 3, 4, 5), f(1, 2, 3, 4, 3)]),
    "CombinedNonMaxSuppression": Row(
        [f(2, 8, 1, 4), f(2, 8, 3), i(4), i(6), np.float32(0.5), np.float32(0.1)], {"clip_boxes": False}, 4
    ),
    "ExtractImagePatches": Row([f(2, 6, 5, 3)], {**PATCHES, "padding": "SAME"}),
    "NonMaxSuppressionV3": Row([f(8, 4), f(8), *SUPPRESSION]),
    "NonMaxSuppressionV4": Row([f(8, 4), f(8), *SUPPRESSION], {}, 2),
    "NonMaxSuppressionV5": Row([f(8, 4), f(8), *SUPPRESSION, np.float32(0.5)], {}, 3),
    "NonMaxSuppressionV6": Row([f(2, 8, 4), f(2, 3, 8), *SUPPRESSION]),
    "ROIAlign": Row([IMAGE, ROIS], REGION),
    "ROIPooling": Row([IMAGE, ROIS], {"pooled_h": 2, "pooled_w": 3, "spatial_scale_h": 1.0, "spatial_scale_w": 1.0}),
    "Resize": Row([IMAGE, None, np.float32([1, 1, 1.5, 0.5])], {"mode": "linear"}),
    "ResizeBicubic": Row([IMAGE, i(4, 9)]),
    "ResizeBilinearV2": Row([IMAGE, i(4, 9)]),
    "ResizeNearestNeighborV2": Row([IMAGE, i(4, 9)]),
    "SpaceToDepth": Row([IMAGE], {"block_size": 2, "data_format": "NCHW"}),
    # recurrent
    "CommonGRU": Row([f(3, 2, 4), f(1, 15, 4), f(1, 15, 5)], RNN, 2),
    "CommonLSTM": Row([f(3, 2, 4), f(1, 20, 4), f(1, 20, 5)], RNN, 3),
    "DynamicGRUV2": Row([f(3, 2, 4), f(4, 15), f(5, 15)], {}, 6),
    "DynamicRNN": Row([f(3, 2, 4), f(9, 20), f(20)], {}, 8),
    "XCommonRNN": Row([f(3, 2, 4), f(1, 5, 4), f(1, 5, 5)], RNN, 2),
    # quantisation
    "FakeQuantWithMinMaxVars": Row([X, np.float32(-1), np.float32(1.5)]),
    "FakeQuantWithMinMaxVarsPerChannel": Row([f(2, 3), np.float32([-1, -2, 0]), np.float32([1, 3, 4])]),
    "AscendAntiQuant": Row([i([[1, -2]], dtype=np.int8)], {"scale": 0.5, "offset": 3.0}),
    "AscendDequant": Row([i([[1, -2]]), np.float32([0.5, 2])], {"dtype": 1}),
    "AscendQuant": Row([X], {"scale": 9.0, "offset": 1.0}),
    "Quantize": Row([X, np.float32([0.1])], {"dtype": "torch.qint8"}),
    "XConvInteger": Row([u8(1, 2, 5, 5), u8(3, 2, 3, 3)], {"strides": [1], "pads": [0] * 4}),
    "XDequantizeLinear": Row([u8(2, 3), np.float32([0.1, 0.2, 0.3])]),
    "XDynamicQuantizeLinear": Row([X], {}, 3),
    "XMatMulInteger": Row([u8(2, 3), u8(3, 4)]),
    "XQLinearConv": Row(
        [u8(1, 2, 5, 5), np.float32(0.1), u8(), u8(3, 2, 3, 3), f(3, low=0.1), u8(), np.float32(9), u8()],
        {"strides": [1], "pads": [0] * 4},
    ),
    "XQLinearMatMul": Row([u8(2, 3), np.float32(0.1), u8(), u8(3, 4), np.float32(0.1), u8(), np.float32(9), u8()]),
    "XQuantizeLinear": Row([X, np.float32(0.1), u8()]),
    # strings
    "RegexFullMatch": Row([text("a1", "b"), text("[a-z][0-9]")]),
    "StringJoin": Row([text("a", "b"), text("c")], {"N": 2, "separator": "-"}),
    "StringNormalizer": Row([text("a", "The")], {"stopwords": ["the"]}),
    "XStringSplit": Row([text("a b", "c")], {}, 2),
    "XTfIdfVectorizer": Row(
        [i([[1, 2, 1], [2, 2, 3]])],
        {
            "mode": "TF",
            "min_gram_length": 1,
            "max_gram_length": 2,
            "max_skip_count": 0,
            "ngram_counts": [0, 2],
            "ngram_indexes": [0, 1, 2],
            "pool_int64s": [1, 2, 2, 1],
        },
    ),
    # spectra
    "XDFT": Row([f(2, 6, 1), None, i(1, dtype=np.int64)]),
    "XMelWeightMatrix": Row([i(8), i(16), i(8192), np.float32(0), np.float32(4096)]),
    "XSTFT": Row([f(1, 16, 1), i(4, dtype=np.int64), f(8)]),
    # types, creation, random numbers
    "Bitcast": Row([i(1, 2)], {"type": FLOAT}),
    "Cast": Row([X], {"dst_type": int(DataType.DT_INT32)}),
    "CastLike": Row([X, i(1)]),
    "Empty": Row([i(2, 3)], {"dtype": int(FLOAT), "init": True}),
    "Fill": Row([i(2, 3), np.float32(7)]),
    "LinSpace": Row([np.float32(0), np.float32(1), i(5)]),
    "Multinomial": Row([f(2, 4), i(3)], {"seed": 1}),
    "RandomStandardNormal": Row([i(2, 3)], {"dtype": FLOAT, "seed": 1}),
    "RandomUniform": Row([i(2, 3)], {"dtype": FLOAT, "seed": 1}),
    "RandomUniformInt": Row([i(2, 3), i(1), i(9)], {"seed": 1}),
    "Range": Row([i(1), i(9), i(2)]),
    "StatelessBernoulliV2": Row([f(2, 3, low=0, high=1), i(1, dtype=np.int64), i(2, dtype=np.int64)]),
    "XDropout": Row([X, np.array(True), np.float32(0.25)], {"seed": 3, "is_seeded": True}, 2),
    "TruncatedNormal": Row([i(2, 3)], {"dtype": FLOAT, "seed": 1}),
    # shapes
    "BroadcastArgs": Row([i(2, 1), i(1, 3)]),
    "BroadcastTo": Row([f(3, 1), i(2, 3, 4)]),
    "Expand": Row([f(3, 1), i(2, 1, 4)]),
    "ExpandDims": Row([X, i(1)]),
    "Rank": Row([X]),
    "ReFormat": Row([X]),
    "Reshape": Row([X, i(4, -1)]),
    "Shape": Row([X]),
    "ShapeN": Row([X, f(2)], {}, 2),
    "Size": Row([X]),
    "Squeeze": Row([f(1, 2, 1)], {"axis": [0]}),
    "SqueezeV3": Row([f(1, 2, 1), i([2])]),
    "Tile": Row([f(2, 3), i(2, 1)]),
    "TileD": Row([f(2, 3)], {"multiples": [2, 1]}),
    "Unsqueeze": Row([X], {"axes": [1]}),
    "UnsqueezeV3": Row([X, i([1])]),
    # movement
    "BatchToSpaceND": Row([f(4, 2, 3, 1), i(2, 2), i([[0, 0], [1, 0]])]),
    "Concat": Row([i(1), f(2, 3), f(2, 1)], {"N": 2}),
    "ConcatD": Row([f(2, 3), f(2, 1)], {"concat_dim": 1, "N": 2}),
    "ConcatV2": Row([f(2, 3), f(2, 1), i(1)], {"N": 2}),
    "Diag": Row([f(3)]),
    "DiagPart": Row([f(3, 3)]),
    "IdentityN": Row([f(2), f(3)], {}, 2),
    "InvertPermutation": Row([i(2, 0, 1)]),
    "MatrixBandPart": Row([f(3, 4), i(1), i(0)]),
    "MatrixDiag": Row([f(2, 3)]),
    "MatrixDiagV2": Row([f(3), i(0), i(3), i(3), np.float32(0)]),
    "MirrorPad": Row([f(3, 4), i([[1, 0], [0, 2]])], {"mode": "REFLECT"}),
    "Pack": Row([f(2, 3), f(2, 3)], {"axis": 1, "N": 2}),
    "Pad": Row([f(3, 4), i([[1, 0], [0, 2]])]),
    "PadD": Row([f(3, 4)], {"paddings": [[1, 0], [0, 2]]}),
    "PadV2": Row([f(3, 4), i([[1, 0], [0, 2]]), np.float32(7)]),
    "PadV3": Row([f(3, 4), i([[1, 0], [0, 2]]), np.float32(7)]),
    "ReverseSequence": Row([X, i(1, 2)], {"seq_dim": 1}),
    "ReverseV2": Row([X, i([1])]),
    "RollV2": Row([X, i([1, -2]), i([0, 2])]),
    "Slice": Row([X, i(0, 1, 0), i(2, 2, -1)]),
    "SpaceToBatchND": Row([f(1, 4, 5, 1), i(2, 2), i([[0, 0], [1, 0]])]),
    "Split": Row([i(1), f(2, 4)], {"num_split": 2}, 2),
    "SplitD": Row([f(2, 4)], {"split_dim": 1, "num_split": 2}, 2),
    "SplitV": Row([f(2, 4), i(1, 3), i(1)], {"num_split": 2}, 2),
    "SplitVD": Row([f(2, 4)], {"size_splits": [1, 3], "split_dim": 1, "num_split": 2}, 2),
    "StridedSlice": Row([X, i(0, 1, 0), i(2, 3, 4), i(1, 1, 2)], MASKS),
    "StridedSliceV2": Row([X, i(1, 0), i(3, 4), i(1, 2), i(1, 2)]),
    "Transpose": Row([X, i(2, 0, 1)]),
    "TransposeD": Row([X], {"perm": [2, 0, 1]}),
    "Trilu": Row([f(3, 4), i(1)]),
    "Unpack": Row([f(2, 3)], {"num": 2}, 2),
    "XPad": Row([f(3, 4), i(1, 2), np.float32(7), i([1])]),
    # indices
    "ArgMaxD": Row([X], {"dimension": 1}),
    "ArgMaxV2": Row([X, i(1)]),
    "ArgMin": Row([X, i(1)]),
    "Gather": Row([X, i(1, 0)]),
    "GatherElements": Row([f(2, 3), i([[0, 1, 1]])]),
    "GatherNd": Row([X, i([[1, 2], [0, 0]])]),
    "GatherV2": Row([X, i([[1, 0]]), i(1)]),
    "InTopK": Row([f(3, 4), i(1, 0, 3)], {"k": 2}),
    "NonZero": Row([b(2, 3)]),
    "OneHot": Row([i(1, 0, 2), i(4), np.float32(1), np.float32(0)]),
    "ScatterElements": Row([f(3, 3), i([[1, 0, 2]]), f(1, 3)]),
    "ScatterNd": Row([i([[1], [3]]), f(2, 3), i(4, 3)]),
    "SegmentSum": Row([f(3, 2), i(0, 0, 1)]),
    "Select": Row([b(2, 3), f(2, 3), f(2, 3)]),
    "SelectV2": Row([b(3), f(2, 3), f(2, 1)]),
    "TopK": Row([X, i(2)], {}, 2),
    "Unique": Row([i(3, 1, 3)], {}, 2),
    "UniqueWithCountsAndSorting": Row([i(3, 1, 3)], {"return_inverse": True, "return_counts": True}, 3),
    "UnsortedSegmentSum": Row([f(3, 2), i(2, 0, 2), i(4)]),
    "Where": Row([b(2, 3)]),
    "XUnique": Row([i(3, 1, 3)], {}, 4),
    # features and labels
    "CTCGreedyDecoder": Row([f(5, 2, 4), i(5, 3)], {}, 4),
    "XLabelEncoder": Row([text("a", "c"), text("c", "b"), f(2), f(1)]),
    "XTreeEnsemble": Row([f(5, 2), f(1), f(2)], STUMP),
}

HANDLES = {
    "ConcatFromSequence": "test_sequence.py",
    "EmptyTensorList": "test_tensor_list.py",
    "SequenceAt": "test_sequence.py",
    "SequenceConstruct": "test_sequence.py",
    "SequenceEmpty": "test_sequence.py",
    "SequenceErase": "test_sequence.py",
    "SequenceInsert": "test_sequence.py",
    "SequenceLength": "test_sequence.py",
    "SplitToSequence": "test_sequence.py",
    "TensorListConcatLists": "test_tensor_list.py",
    "TensorListConcatV2": "test_tensor_list.py",
    "TensorListElementShape": "test_tensor_list.py",
    "TensorListFromTensor": "test_tensor_list.py",
    "TensorListGather": "test_tensor_list.py",
    "TensorListGetItem": "test_tensor_list.py",
    "TensorListLength": "test_tensor_list.py",
    "TensorListPopBack": "test_tensor_list.py",
    "TensorListPushBack": "test_tensor_list.py",
    "TensorListReserve": "test_tensor_list.py",
    "TensorListResize": "test_tensor_list.py",
    "TensorListScatterIntoExistingList": "test_tensor_list.py",
    "TensorListScatterV2": "test_tensor_list.py",
    "TensorListSetItem": "test_tensor_list.py",
    "TensorListSplit": "test_tensor_list.py",
    "TensorListStack": "test_tensor_list.py",
    "XFail": "test_control.py",
    "XScanAppend": "test_scan.py",
    "XScanBuffer": "test_scan.py",
    "XScanStack": "test_scan.py",
}
"""Operators on handles need the graph around them, one never gives a value: where they are tested."""


def test_every_operator_that_computes_has_a_row() -> None:
    computing = {name for name in registered_types() if lookup(name).compute is not None}  # type: ignore[union-attr]
    assert sorted(computing - set(ROWS) - set(HANDLES)) == [], "add a row for each to ROWS"
    assert set(ROWS) | set(HANDLES) <= computing
    assert not set(ROWS) & set(HANDLES)


@pytest.mark.parametrize("name", ROWS)
def test_inference_agrees_with_computation(name: str) -> None:
    row = ROWS[name]
    results = run_ge(name, row.inputs, row.attrs, row.n_outputs)
    assert len(results) == row.n_outputs


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_inference_agrees_for_other_float_types(name: str, dtype: Any) -> None:
    row = ROWS[name]
    inputs = [x.astype(dtype) if x is not None and x.dtype == np.float32 else x for x in row.inputs]
    run_ge(name, inputs, row.attrs, row.n_outputs)


@pytest.mark.parametrize("name", ROWS)
def test_inference_copes_with_unknown_ranks(name: str) -> None:
    row = ROWS[name]
    known = build_node(name, row.inputs, row.attrs, row.n_outputs)
    infer_node(known)
    results = definition(known).evaluate(row.attrs, row.inputs, [desc.data_type for desc in known.output_descs])
    node = build_node(name, row.inputs, row.attrs, row.n_outputs, constant=False)
    for source in node.inputs:
        if source is not None:
            source.desc.shape = source.desc.origin_shape = type(source.desc.shape)([-2])
    infer_node(node)
    for result, desc in zip(results, node.output_descs, strict=True):
        assert fits(result.shape, desc), f"inferred {desc}, computed {result.shape}"
        assert data_type_of(result.dtype) is desc.data_type


@pytest.mark.parametrize("name", ROWS)
def test_inputs_stay_untouched(name: str) -> None:
    """Constants may be read-only memory maps."""
    row = ROWS[name]
    inputs = [None if x is None else np.array(x) for x in row.inputs]
    for x in inputs:
        if x is not None:
            x.flags.writeable = False
    node = build_node(name, inputs, row.attrs, row.n_outputs)
    infer_node(node)
    definition(node).evaluate(row.attrs, inputs, [desc.data_type for desc in node.output_descs])


@pytest.mark.parametrize("name", ROWS)
def test_the_signature_says_what_the_row_gives(name: str) -> None:
    row, signature = ROWS[name], lookup(name).signature  # type: ignore[union-attr]
    assert set(row.attrs) - {n for n in row.attrs if n.startswith("_x_")} <= set(signature.attrs)
    assert {n for n, spec in signature.attrs.items() if spec.is_required} <= set(row.attrs)
    assert signature.min_inputs <= len(row.inputs)
    assert signature.max_inputs is None or len(row.inputs) <= signature.max_inputs
    assert row.n_outputs == len(signature.outputs) or signature.has_dynamic_output
