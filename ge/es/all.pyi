"""All operator functions. Written by ge.es.stubs from the registry; not to be edited."""

from ge.es.graph_builder import GraphBuilder
from ge.es.tensor_holder import TensorHolder
from ge.es.tensor_like import TensorLike
from ge.graph.graph import Graph
from ge.graph.tensor import Tensor
from ge.graph.types import DataType

def Abs(x: TensorHolder) -> TensorHolder: ...
def AccumulateNV2(x: list[TensorHolder], *, N: int) -> TensorHolder: ...
def Acos(x: TensorHolder) -> TensorHolder: ...
def Acosh(x: TensorHolder) -> TensorHolder: ...
def AdaptiveAvgPool2d(x: TensorHolder, *, output_size: list[int]) -> TensorHolder: ...
def Add(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...

class AddLayerNormOutput:
    y: TensorHolder
    mean: TensorHolder
    rstd: TensorHolder
    x: TensorHolder

def AddLayerNorm(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    *,
    epsilon: float = 1e-05,
    additional_output: bool = False,
) -> AddLayerNormOutput: ...
def AddN(x: list[TensorHolder], *, N: int) -> TensorHolder: ...
def AddV2(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Adds(x: TensorHolder, *, value: float) -> TensorHolder: ...
def AffineGrid(
    theta: TensorHolder | TensorLike,
    output_size: TensorHolder | TensorLike,
    *,
    align_corners: bool = False,
) -> TensorHolder: ...
def ArgMaxD(x: TensorHolder, *, dimension: int, dtype: DataType = DataType.DT_INT64) -> TensorHolder: ...
def ArgMaxV2(
    x: TensorHolder | TensorLike,
    dimension: TensorHolder | TensorLike,
    *,
    dtype: DataType = DataType.DT_INT64,
) -> TensorHolder: ...
def ArgMin(
    x: TensorHolder | TensorLike,
    dimension: TensorHolder | TensorLike,
    *,
    dtype: DataType = DataType.DT_INT64,
) -> TensorHolder: ...
def AscendAntiQuant(
    x: TensorHolder,
    *,
    scale: float,
    offset: float,
    dtype: int = 0,
    sqrt_mode: bool = False,
) -> TensorHolder: ...
def AscendDequant(
    x: TensorHolder | TensorLike,
    deq_scale: TensorHolder | TensorLike,
    *,
    sqrt_mode: bool = False,
    relu_flag: bool = False,
    dtype: int = 0,
) -> TensorHolder: ...
def AscendQuant(
    x: TensorHolder,
    *,
    scale: float,
    offset: float,
    sqrt_mode: bool = False,
    round_mode: str = "Round",
    dst_type: int = 2,
) -> TensorHolder: ...
def Asin(x: TensorHolder) -> TensorHolder: ...
def Asinh(x: TensorHolder) -> TensorHolder: ...
def Atan(x: TensorHolder) -> TensorHolder: ...
def Atan2(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Atanh(x: TensorHolder) -> TensorHolder: ...
def AvgPool(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    data_format: str = "NHWC",
) -> TensorHolder: ...
def AvgPool3D(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
    data_format: str = "NDHWC",
) -> TensorHolder: ...
def AvgPoolV2(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str = "CALCULATED",
    pads: list[int] = ...,
    data_format: str = "NCHW",
    global_pooling: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int = 0,
) -> TensorHolder: ...
def BNInfer(
    x: TensorHolder | TensorLike,
    scale: TensorHolder | TensorLike,
    offset: TensorHolder | TensorLike,
    mean: TensorHolder | TensorLike,
    variance: TensorHolder | TensorLike,
    *,
    epsilon: float,
) -> TensorHolder: ...
def BatchMatMul(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    *,
    adj_x1: bool = False,
    adj_x2: bool = False,
) -> TensorHolder: ...
def BatchMatMulV2(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    adj_x1: bool = False,
    adj_x2: bool = False,
    offset_x: int = 0,
) -> TensorHolder: ...
def BatchMatMulV3(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    adj_x1: bool = False,
    adj_x2: bool = False,
    offset_x: int = 0,
    enable_hf32: bool = False,
) -> TensorHolder: ...

class BatchNormOutput:
    y: TensorHolder
    batch_mean: TensorHolder
    batch_variance: TensorHolder
    reserve_space_1: TensorHolder
    reserve_space_2: TensorHolder
    reserve_space_3: TensorHolder

def BatchNorm(
    x: TensorHolder | TensorLike,
    scale: TensorHolder | TensorLike,
    offset: TensorHolder | TensorLike,
    mean: TensorHolder | TensorLike | None = None,
    variance: TensorHolder | TensorLike | None = None,
    *,
    epsilon: float = 0.0001,
    data_format: str = "NHWC",
    is_training: bool = True,
    exponential_avg_factor: float = 1.0,
) -> BatchNormOutput: ...
def BatchToSpaceND(
    x: TensorHolder | TensorLike,
    block_shape: TensorHolder | TensorLike,
    crops: TensorHolder | TensorLike,
) -> TensorHolder: ...
def BiasAdd(
    x: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike,
    *,
    data_format: str = "NHWC",
) -> TensorHolder: ...
def Bitcast(x: TensorHolder, *, type: DataType) -> TensorHolder: ...
def BitwiseAnd(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def BitwiseOr(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def BitwiseXor(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def BroadcastArgs(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def BroadcastTo(x: TensorHolder | TensorLike, shape: TensorHolder | TensorLike) -> TensorHolder: ...

class CTCGreedyDecoderOutput:
    decoded_indices: TensorHolder
    decoded_values: TensorHolder
    decoded_shape: TensorHolder
    log_probability: TensorHolder

def CTCGreedyDecoder(
    inputs: TensorHolder | TensorLike,
    sequence_length: TensorHolder | TensorLike,
    *,
    merge_repeated: bool = False,
    blank_index: int = -1,
) -> CTCGreedyDecoderOutput: ...
def Case(
    branch_index: TensorHolder | TensorLike,
    input: list[TensorHolder | TensorLike],
    output_num: int,
    branches: list[Graph],
) -> list[TensorHolder]: ...
def Cast(x: TensorHolder, *, dst_type: int) -> TensorHolder: ...
def CastLike(x: TensorHolder | TensorLike, target: TensorHolder | TensorLike) -> TensorHolder: ...
def Ceil(x: TensorHolder) -> TensorHolder: ...
def Celu(x: TensorHolder, *, alpha1: float = 1.0, alpha2: float = 1.0, alpha3: float = 1.0) -> TensorHolder: ...
def Cholesky(x: TensorHolder) -> TensorHolder: ...
def ClipByValue(
    x: TensorHolder | TensorLike,
    clip_value_min: TensorHolder | TensorLike,
    clip_value_max: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Col2ImV2(
    x: TensorHolder | TensorLike,
    output_size: TensorHolder | TensorLike,
    kernel_size: TensorHolder | TensorLike,
    *,
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> TensorHolder: ...

class CombinedNonMaxSuppressionOutput:
    nmsed_boxes: TensorHolder
    nmsed_scores: TensorHolder
    nmsed_classes: TensorHolder
    valid_detections: TensorHolder

def CombinedNonMaxSuppression(
    boxes: TensorHolder | TensorLike,
    scores: TensorHolder | TensorLike,
    max_output_size_per_class: TensorHolder | TensorLike,
    max_total_size: TensorHolder | TensorLike,
    iou_threshold: TensorHolder | TensorLike,
    score_threshold: TensorHolder | TensorLike,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> CombinedNonMaxSuppressionOutput: ...

class CommonGRUOutput:
    y: TensorHolder
    y_h: TensorHolder

def CommonGRU(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    r: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike | None = None,
    sequence_lens: TensorHolder | TensorLike | None = None,
    initial_h: TensorHolder | TensorLike | None = None,
    *,
    activation_alpha: list[float] = ...,
    activation_beta: list[float] = ...,
    activations: list[str] = ...,
    clip: float = -1.0,
    direction: str = "forward",
    hidden_size: int,
    linear_before_reset: int = 0,
) -> CommonGRUOutput: ...

class CommonLSTMOutput:
    y: TensorHolder
    y_h: TensorHolder
    y_c: TensorHolder

def CommonLSTM(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    r: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike | None = None,
    sequence_lens: TensorHolder | TensorLike | None = None,
    initial_h: TensorHolder | TensorLike | None = None,
    initial_c: TensorHolder | TensorLike | None = None,
    p: TensorHolder | TensorLike | None = None,
    *,
    activation_alpha: list[float] = ...,
    activation_beta: list[float] = ...,
    activations: list[str] = ...,
    clip: float = -1.0,
    direction: str = "forward",
    hidden_size: int,
    input_forget: int = 0,
) -> CommonLSTMOutput: ...
def Concat(
    concat_dim: TensorHolder | TensorLike,
    x: list[TensorHolder | TensorLike],
    *,
    N: int = 1,
) -> TensorHolder: ...
def ConcatD(x: list[TensorHolder], *, concat_dim: int, N: int = 1) -> TensorHolder: ...
def ConcatFromSequence(handle: TensorHolder, *, axis: int, new_axis: int = 0) -> TensorHolder: ...
def ConcatV2(
    x: list[TensorHolder | TensorLike],
    concat_dim: TensorHolder | TensorLike,
    *,
    N: int = 1,
) -> TensorHolder: ...
def Const(owner_graph_builder: GraphBuilder, *, value: Tensor | None = None) -> TensorHolder: ...
def Conv2D(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NHWC",
    offset_x: int = 0,
) -> TensorHolder: ...
def Conv2DBackpropInput(
    input_size: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    out_backprop: TensorHolder | TensorLike,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NHWC",
) -> TensorHolder: ...
def Conv2DTranspose(
    input_size: TensorHolder | TensorLike,
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NHWC",
    output_padding: list[int] = ...,
    offset_x: int = 0,
) -> TensorHolder: ...
def Conv2DV2(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int] = ...,
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NCHW",
    offset_x: int = 0,
    pad_mode: str = "SPECIFIC",
    enable_hf32: bool = False,
) -> TensorHolder: ...
def Conv3D(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NDHWC",
    offset_x: int = 0,
) -> TensorHolder: ...
def Conv3DTranspose(
    input_size: TensorHolder | TensorLike,
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NDHWC",
    output_padding: list[int] = ...,
    offset_x: int = 0,
) -> TensorHolder: ...
def Cos(x: TensorHolder) -> TensorHolder: ...
def Cosh(x: TensorHolder) -> TensorHolder: ...
def CropAndResize(
    x: TensorHolder | TensorLike,
    boxes: TensorHolder | TensorLike,
    box_index: TensorHolder | TensorLike,
    crop_size: TensorHolder | TensorLike,
    *,
    extrapolation_value: float = 0.0,
    method: str = "bilinear",
) -> TensorHolder: ...
def Cumprod(
    x: TensorHolder | TensorLike,
    axis: TensorHolder | TensorLike,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> TensorHolder: ...
def Cumsum(
    x: TensorHolder | TensorLike,
    axis: TensorHolder | TensorLike,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> TensorHolder: ...
def DeformableConv2D(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    offsets: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NHWC",
    deformable_groups: int = 1,
    modulated: bool = True,
) -> TensorHolder: ...
def DepthToSpace(x: TensorHolder, *, block_size: int, mode: str = "DCR", data_format: str = "NHWC") -> TensorHolder: ...
def DepthwiseConv2D(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    dilations: list[int] = ...,
    pads: list[int],
    data_format: str = "NHWC",
    offset_x: int = 0,
) -> TensorHolder: ...
def Diag(x: TensorHolder) -> TensorHolder: ...
def DiagPart(x: TensorHolder) -> TensorHolder: ...
def Div(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def DivNoNan(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Dropout(
    x: TensorHolder,
    *,
    dropout_ratio: float = 0.5,
    scale_train: bool = True,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> TensorHolder: ...

class DynamicGRUV2Output:
    y: TensorHolder
    output_h: TensorHolder
    update: TensorHolder
    reset: TensorHolder
    new: TensorHolder
    hidden_new: TensorHolder

def DynamicGRUV2(
    x: TensorHolder | TensorLike,
    weight_input: TensorHolder | TensorLike,
    weight_hidden: TensorHolder | TensorLike,
    bias_input: TensorHolder | TensorLike | None = None,
    bias_hidden: TensorHolder | TensorLike | None = None,
    seq_length: TensorHolder | TensorLike | None = None,
    init_h: TensorHolder | TensorLike | None = None,
    *,
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    gate_order: str = "zrh",
    reset_after: bool = True,
    is_training: bool = True,
) -> DynamicGRUV2Output: ...

class DynamicRNNOutput:
    y: TensorHolder
    output_h: TensorHolder
    output_c: TensorHolder
    i: TensorHolder
    j: TensorHolder
    f: TensorHolder
    o: TensorHolder
    tanhc: TensorHolder

def DynamicRNN(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike,
    seq_length: TensorHolder | TensorLike | None = None,
    init_h: TensorHolder | TensorLike | None = None,
    init_c: TensorHolder | TensorLike | None = None,
    wci: TensorHolder | TensorLike | None = None,
    wcf: TensorHolder | TensorLike | None = None,
    wco: TensorHolder | TensorLike | None = None,
    mask: TensorHolder | TensorLike | None = None,
    *,
    cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    use_peephole: bool = False,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    forget_bias: float = 0.0,
    gate_order: str = "ijfo",
    is_training: bool = True,
) -> DynamicRNNOutput: ...
def Einsum(x: list[TensorHolder], *, equation: str, N: int) -> TensorHolder: ...
def Elu(x: TensorHolder, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> TensorHolder: ...
def Empty(shape: TensorHolder, *, dtype: int = 3, init: bool = False) -> TensorHolder: ...
def EmptyTensorList(
    element_shape: TensorHolder | TensorLike,
    max_num_elements: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
) -> TensorHolder: ...
def Enter(x: TensorHolder, *, frame_name: str, is_constant: bool) -> TensorHolder: ...
def Equal(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Erf(x: TensorHolder) -> TensorHolder: ...
def Erfc(x: TensorHolder) -> TensorHolder: ...
def Exit(x: TensorHolder) -> TensorHolder: ...
def Exp(x: TensorHolder, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> TensorHolder: ...
def Expand(x: TensorHolder | TensorLike, shape: TensorHolder | TensorLike) -> TensorHolder: ...
def ExpandDims(x: TensorHolder | TensorLike, axis: TensorHolder | TensorLike) -> TensorHolder: ...
def Expm1(x: TensorHolder) -> TensorHolder: ...
def ExtractImagePatches(
    x: TensorHolder,
    *,
    ksizes: list[int],
    strides: list[int],
    rates: list[int],
    padding: str,
) -> TensorHolder: ...
def FakeQuantWithMinMaxVars(
    x: TensorHolder | TensorLike,
    min: TensorHolder | TensorLike,
    max: TensorHolder | TensorLike,
    *,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> TensorHolder: ...
def FakeQuantWithMinMaxVarsPerChannel(
    x: TensorHolder | TensorLike,
    min: TensorHolder | TensorLike,
    max: TensorHolder | TensorLike,
    *,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> TensorHolder: ...
def FastGelu(x: TensorHolder) -> TensorHolder: ...
def Fill(dims: TensorHolder | TensorLike, value: TensorHolder | TensorLike) -> TensorHolder: ...
def Flatten(x: TensorHolder, *, axis: int = 1) -> TensorHolder: ...
def Floor(x: TensorHolder) -> TensorHolder: ...
def FloorDiv(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def FloorMod(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def FullyConnection(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    num_output: int,
    transpose: bool = False,
    axis: int = 1,
    offset_x: int = 0,
) -> TensorHolder: ...
def GEMM(
    a: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike,
    c: TensorHolder | TensorLike,
    alpha: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> TensorHolder: ...
def Gather(
    x: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    *,
    validate_indices: bool = True,
    batch_dims: int = 0,
    is_preprocessed: bool = False,
    negative_index_support: bool = False,
) -> TensorHolder: ...
def GatherElements(x: TensorHolder | TensorLike, index: TensorHolder | TensorLike, *, dim: int = 0) -> TensorHolder: ...
def GatherNd(
    x: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    *,
    negative_index_support: bool = False,
) -> TensorHolder: ...
def GatherV2(
    x: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    axis: TensorHolder | TensorLike,
    *,
    batch_dims: int = 0,
    is_preprocessed: bool = False,
    negative_index_support: bool = False,
) -> TensorHolder: ...
def Gelu(x: TensorHolder) -> TensorHolder: ...
def GeluV2(x: TensorHolder, *, approximate: str = "none") -> TensorHolder: ...
def GlobalAveragePool(x: TensorHolder) -> TensorHolder: ...
def GlobalLpPool(x: TensorHolder, *, p: float = 2.0) -> TensorHolder: ...
def Greater(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def GreaterEqual(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def GridSampler2D(
    x: TensorHolder | TensorLike,
    grid: TensorHolder | TensorLike,
    *,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> TensorHolder: ...
def GridSampler3D(
    x: TensorHolder | TensorLike,
    grid: TensorHolder | TensorLike,
    *,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> TensorHolder: ...

class GroupNormOutput:
    y: TensorHolder
    mean: TensorHolder
    variance: TensorHolder

def GroupNorm(
    x: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    *,
    num_groups: int,
    data_format: str = "NCHW",
    eps: float = 0.0001,
    is_training: bool = True,
) -> GroupNormOutput: ...
def HardMax(x: TensorHolder, *, axis: int = -1) -> TensorHolder: ...
def HardSigmoid(input_x: TensorHolder, *, alpha: float = 0.16666666, beta: float = 0.5) -> TensorHolder: ...
def HardSwish(x: TensorHolder) -> TensorHolder: ...
def Identity(x: TensorHolder) -> TensorHolder: ...
def IdentityN(x: list[TensorHolder], y_num: int) -> list[TensorHolder]: ...
def If(
    cond: TensorHolder | TensorLike,
    input: list[TensorHolder | TensorLike],
    output_num: int,
    then_branch: Graph,
    else_branch: Graph,
) -> list[TensorHolder]: ...
def InTopK(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike, *, k: int) -> TensorHolder: ...

class InstanceNormOutput:
    y: TensorHolder
    mean: TensorHolder
    variance: TensorHolder

def InstanceNorm(
    x: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    *,
    data_format: str = "NDHWC",
    epsilon: float = 1e-06,
) -> InstanceNormOutput: ...
def Invert(x: TensorHolder) -> TensorHolder: ...
def InvertPermutation(x: TensorHolder) -> TensorHolder: ...
def IsFinite(x: TensorHolder) -> TensorHolder: ...
def IsInf(x: TensorHolder) -> TensorHolder: ...
def IsNan(x: TensorHolder) -> TensorHolder: ...
def L2Loss(x: TensorHolder) -> TensorHolder: ...
def LRN(
    x: TensorHolder,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> TensorHolder: ...

class LayerNormOutput:
    y: TensorHolder
    mean: TensorHolder
    variance: TensorHolder

def LayerNorm(
    x: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    *,
    begin_norm_axis: int = 0,
    begin_params_axis: int = 0,
    epsilon: float = 1e-07,
) -> LayerNormOutput: ...

class LayerNormV3Output:
    y: TensorHolder
    mean: TensorHolder
    rstd: TensorHolder

def LayerNormV3(
    x: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    beta: TensorHolder | TensorLike,
    *,
    begin_norm_axis: int = 0,
    begin_params_axis: int = 0,
    epsilon: float = 1e-05,
) -> LayerNormV3Output: ...

class LayerNormV4Output:
    y: TensorHolder
    mean: TensorHolder
    rstd: TensorHolder

def LayerNormV4(
    x: TensorHolder | TensorLike,
    normalized_shape: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike | None = None,
    beta: TensorHolder | TensorLike | None = None,
    *,
    epsilon: float = 1e-05,
) -> LayerNormV4Output: ...
def LeakyRelu(x: TensorHolder, *, negative_slope: float = 0.0) -> TensorHolder: ...
def LeftShift(x: TensorHolder | TensorLike, y: TensorHolder | TensorLike) -> TensorHolder: ...
def Less(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def LessEqual(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def LinSpace(
    start: TensorHolder | TensorLike,
    stop: TensorHolder | TensorLike,
    num: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Log(x: TensorHolder, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> TensorHolder: ...
def Log1p(x: TensorHolder) -> TensorHolder: ...
def LogSoftmaxV2(logits: TensorHolder, *, axes: list[int] = ...) -> TensorHolder: ...
def LogicalAnd(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def LogicalNot(x: TensorHolder) -> TensorHolder: ...
def LogicalOr(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def LoopCond(x: TensorHolder) -> TensorHolder: ...
def LpNormV2(
    x: TensorHolder,
    *,
    p: float = 2.0,
    axes: list[int] = ...,
    keepdim: bool = False,
    epsilon: float = 1e-12,
) -> TensorHolder: ...
def MVNV2(x: TensorHolder, *, eps: float = 1e-09, axes: list[int] = ...) -> TensorHolder: ...
def MatMul(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
) -> TensorHolder: ...
def MatMulV2(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    offset_x: int = 0,
) -> TensorHolder: ...
def MatMulV3(
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    offset_w: TensorHolder | TensorLike | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    offset_x: int = 0,
    enable_hf32: bool = False,
) -> TensorHolder: ...
def MatrixBandPart(
    x: TensorHolder | TensorLike,
    num_lower: TensorHolder | TensorLike,
    num_upper: TensorHolder | TensorLike,
) -> TensorHolder: ...
def MatrixDeterminant(x: TensorHolder) -> TensorHolder: ...
def MatrixDiag(x: TensorHolder) -> TensorHolder: ...
def MatrixDiagV2(
    diagonal: TensorHolder | TensorLike,
    k: TensorHolder | TensorLike,
    num_rows: TensorHolder | TensorLike,
    num_cols: TensorHolder | TensorLike,
    padding_value: TensorHolder | TensorLike,
) -> TensorHolder: ...
def MaxPool(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    data_format: str = "NHWC",
) -> TensorHolder: ...
def MaxPool3D(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    pads: list[int] = ...,
    dilation: list[int] = ...,
    ceil_mode: int = 0,
    data_format: str = "NDHWC",
) -> TensorHolder: ...
def MaxPoolV3(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str = "CALCULATED",
    pads: list[int] = ...,
    data_format: str = "NCHW",
    global_pooling: bool = False,
    ceil_mode: bool = False,
) -> TensorHolder: ...

class MaxPoolWithArgmaxOutput:
    y: TensorHolder
    argmax: TensorHolder

def MaxPoolWithArgmax(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    Targmax: int = 9,
    include_batch_in_index: bool = False,
    data_format: str = "NHWC",
    nan_prop: bool = False,
) -> MaxPoolWithArgmaxOutput: ...
def Maximum(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...

class MergeOutput:
    y: TensorHolder
    value_index: TensorHolder

def Merge(x: list[TensorHolder]) -> MergeOutput: ...
def Minimum(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def MirrorPad(x: TensorHolder | TensorLike, paddings: TensorHolder | TensorLike, *, mode: str) -> TensorHolder: ...
def Mish(x: TensorHolder) -> TensorHolder: ...
def Mod(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Mul(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Muls(x: TensorHolder, *, value: float) -> TensorHolder: ...
def Multinomial(
    logits: TensorHolder | TensorLike,
    num_samples: TensorHolder | TensorLike,
    *,
    dtype: DataType = DataType.DT_INT64,
    seed: int = 0,
    seed2: int = 0,
) -> TensorHolder: ...
def Neg(x: TensorHolder) -> TensorHolder: ...
def NextIteration(x: TensorHolder) -> TensorHolder: ...
def NoOp(owner_graph_builder: GraphBuilder) -> TensorHolder: ...
def NonMaxSuppressionV3(
    boxes: TensorHolder | TensorLike,
    scores: TensorHolder | TensorLike,
    max_output_size: TensorHolder | TensorLike,
    iou_threshold: TensorHolder | TensorLike,
    score_threshold: TensorHolder | TensorLike,
    *,
    offset: int = 0,
) -> TensorHolder: ...

class NonMaxSuppressionV4Output:
    selected_indices: TensorHolder
    valid_outputs: TensorHolder

def NonMaxSuppressionV4(
    boxes: TensorHolder | TensorLike,
    scores: TensorHolder | TensorLike,
    max_output_size: TensorHolder | TensorLike,
    iou_threshold: TensorHolder | TensorLike,
    score_threshold: TensorHolder | TensorLike,
    *,
    pad_to_max_output_size: bool = False,
) -> NonMaxSuppressionV4Output: ...

class NonMaxSuppressionV5Output:
    selected_indices: TensorHolder
    selected_scores: TensorHolder
    valid_outputs: TensorHolder

def NonMaxSuppressionV5(
    boxes: TensorHolder | TensorLike,
    scores: TensorHolder | TensorLike,
    max_output_size: TensorHolder | TensorLike,
    iou_threshold: TensorHolder | TensorLike,
    score_threshold: TensorHolder | TensorLike,
    soft_nms_sigma: TensorHolder | TensorLike,
    *,
    pad_to_max_output_size: bool = False,
) -> NonMaxSuppressionV5Output: ...
def NonMaxSuppressionV6(
    boxes: TensorHolder | TensorLike,
    scores: TensorHolder | TensorLike,
    max_output_size: TensorHolder | TensorLike | None = None,
    iou_threshold: TensorHolder | TensorLike | None = None,
    score_threshold: TensorHolder | TensorLike | None = None,
    *,
    center_point_box: int = 0,
    max_boxes_size: int = 0,
) -> TensorHolder: ...
def NonZero(x: TensorHolder, *, transpose: bool = False, dtype: DataType = DataType.DT_INT64) -> TensorHolder: ...
def NotEqual(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def OneHot(
    x: TensorHolder | TensorLike,
    depth: TensorHolder | TensorLike,
    on_value: TensorHolder | TensorLike,
    off_value: TensorHolder | TensorLike,
    *,
    axis: int = -1,
) -> TensorHolder: ...
def OnesLike(x: TensorHolder) -> TensorHolder: ...
def PRelu(x: TensorHolder | TensorLike, weight: TensorHolder | TensorLike) -> TensorHolder: ...
def Pack(x: list[TensorHolder], *, axis: int = 0, N: int = 1) -> TensorHolder: ...
def Pad(x: TensorHolder | TensorLike, paddings: TensorHolder | TensorLike) -> TensorHolder: ...
def PadD(x: TensorHolder, *, paddings: list[list[int]]) -> TensorHolder: ...
def PadV2(
    x: TensorHolder | TensorLike,
    paddings: TensorHolder | TensorLike,
    constant_values: TensorHolder | TensorLike,
) -> TensorHolder: ...
def PadV3(
    x: TensorHolder | TensorLike,
    paddings: TensorHolder | TensorLike,
    constant_values: TensorHolder | TensorLike | None = None,
    *,
    mode: str = "constant",
    paddings_contiguous: bool = True,
) -> TensorHolder: ...
def PartitionedCall(
    args: list[TensorHolder],
    output_num: int,
    f: Graph,
    *,
    config: str = "",
    config_proto: str = "",
    executor_type: str = "",
) -> list[TensorHolder]: ...
def Pow(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Power(x: TensorHolder, *, power: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> TensorHolder: ...
def Quantize(
    x: TensorHolder | TensorLike,
    scales: TensorHolder | TensorLike,
    zero_points: TensorHolder | TensorLike | None = None,
    *,
    dtype: str,
    axis: int = 1,
) -> TensorHolder: ...
def ROIAlign(
    features: TensorHolder | TensorLike,
    rois: TensorHolder | TensorLike,
    rois_n: TensorHolder | TensorLike | None = None,
    *,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sample_num: int = 2,
    roi_end_mode: int = 1,
    pool_mode: str = "avg",
) -> TensorHolder: ...
def ROIPooling(
    x: TensorHolder | TensorLike,
    rois: TensorHolder | TensorLike,
    roi_actual_num: TensorHolder | TensorLike | None = None,
    *,
    pooled_h: int,
    pooled_w: int,
    spatial_scale_h: float,
    spatial_scale_w: float,
) -> TensorHolder: ...
def RandomStandardNormal(shape: TensorHolder, *, dtype: DataType, seed: int = 0, seed2: int = 0) -> TensorHolder: ...
def RandomUniform(shape: TensorHolder, *, dtype: DataType, seed: int = 0, seed2: int = 0) -> TensorHolder: ...
def RandomUniformInt(
    shape: TensorHolder | TensorLike,
    min: TensorHolder | TensorLike,
    max: TensorHolder | TensorLike,
    *,
    seed: int = 0,
    seed2: int = 0,
) -> TensorHolder: ...
def Range(
    start: TensorHolder | TensorLike,
    limit: TensorHolder | TensorLike,
    delta: TensorHolder | TensorLike,
    *,
    is_closed: bool = False,
) -> TensorHolder: ...
def Rank(x: TensorHolder) -> TensorHolder: ...
def ReFormat(x: TensorHolder) -> TensorHolder: ...
def RealDiv(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Reciprocal(x: TensorHolder) -> TensorHolder: ...
def ReduceAll(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
) -> TensorHolder: ...
def ReduceAny(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
) -> TensorHolder: ...
def ReduceLogSumExp(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = False,
) -> TensorHolder: ...
def ReduceMax(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = True,
) -> TensorHolder: ...
def ReduceMean(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = True,
) -> TensorHolder: ...
def ReduceMeanD(
    x: TensorHolder,
    *,
    axes: list[int],
    keep_dims: bool = False,
    noop_with_empty_axes: bool = False,
) -> TensorHolder: ...
def ReduceMin(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = True,
) -> TensorHolder: ...
def ReduceProd(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = True,
) -> TensorHolder: ...
def ReduceSum(
    x: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike,
    *,
    keep_dims: bool = False,
    noop_with_empty_axes: bool = True,
) -> TensorHolder: ...
def ReduceSumD(x: TensorHolder, *, axes: list[int], keep_dims: bool = False) -> TensorHolder: ...
def RegexFullMatch(x: TensorHolder | TensorLike, pattern: TensorHolder | TensorLike) -> TensorHolder: ...
def Relu(x: TensorHolder) -> TensorHolder: ...
def Relu6(x: TensorHolder) -> TensorHolder: ...
def Reshape(
    x: TensorHolder | TensorLike,
    shape: TensorHolder | TensorLike,
    *,
    axis: int = 0,
    num_axes: int = -1,
) -> TensorHolder: ...
def Resize(
    x: TensorHolder | TensorLike,
    roi: TensorHolder | TensorLike | None = None,
    scales: TensorHolder | TensorLike | None = None,
    sizes: TensorHolder | TensorLike | None = None,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> TensorHolder: ...
def ResizeBicubic(
    images: TensorHolder | TensorLike,
    size: TensorHolder | TensorLike,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> TensorHolder: ...
def ResizeBilinearV2(
    x: TensorHolder | TensorLike,
    size: TensorHolder | TensorLike,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    dtype: DataType = DataType.DT_FLOAT,
    scales: list[float] = ...,
) -> TensorHolder: ...
def ResizeNearestNeighborV2(
    x: TensorHolder | TensorLike,
    size: TensorHolder | TensorLike,
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
    scales: list[float] = ...,
) -> TensorHolder: ...
def ReverseSequence(
    x: TensorHolder | TensorLike,
    seq_lengths: TensorHolder | TensorLike,
    *,
    seq_dim: int,
    batch_dim: int = 0,
) -> TensorHolder: ...
def ReverseV2(x: TensorHolder | TensorLike, axis: TensorHolder | TensorLike) -> TensorHolder: ...
def RightShift(x: TensorHolder | TensorLike, y: TensorHolder | TensorLike) -> TensorHolder: ...
def Rint(x: TensorHolder) -> TensorHolder: ...

class RmsNormOutput:
    y: TensorHolder
    rstd: TensorHolder

def RmsNorm(
    x: TensorHolder | TensorLike,
    gamma: TensorHolder | TensorLike,
    *,
    epsilon: float = 1e-06,
) -> RmsNormOutput: ...
def RollV2(
    input: TensorHolder | TensorLike,
    shift: TensorHolder | TensorLike,
    axis: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Round(x: TensorHolder, *, decimals: int = 0) -> TensorHolder: ...
def Rsqrt(x: TensorHolder) -> TensorHolder: ...
def ScatterElements(
    data: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> TensorHolder: ...
def ScatterNd(
    indices: TensorHolder | TensorLike,
    x: TensorHolder | TensorLike,
    shape: TensorHolder | TensorLike,
) -> TensorHolder: ...
def ScatterNdAdd(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...
def ScatterNdMax(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...
def ScatterNdMin(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...
def ScatterNdSub(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...
def ScatterNdUpdate(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...
def SegmentSum(x: TensorHolder | TensorLike, segment_ids: TensorHolder | TensorLike) -> TensorHolder: ...
def Select(
    condition: TensorHolder | TensorLike,
    x1: TensorHolder | TensorLike,
    x2: TensorHolder | TensorLike,
) -> TensorHolder: ...
def SelectV2(
    condition: TensorHolder | TensorLike,
    then: TensorHolder | TensorLike,
    in_else: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Selu(x: TensorHolder) -> TensorHolder: ...
def SequenceAt(handle: TensorHolder | TensorLike, index: TensorHolder | TensorLike) -> TensorHolder: ...
def SequenceConstruct(inputs: list[TensorHolder]) -> TensorHolder: ...
def SequenceEmpty(owner_graph_builder: GraphBuilder, *, dtype: DataType = DataType.DT_FLOAT) -> TensorHolder: ...
def SequenceErase(
    handle: TensorHolder | TensorLike,
    index: TensorHolder | TensorLike | None = None,
) -> TensorHolder: ...
def SequenceInsert(
    handle: TensorHolder | TensorLike,
    value: TensorHolder | TensorLike,
    index: TensorHolder | TensorLike | None = None,
) -> TensorHolder: ...
def SequenceLength(handle: TensorHolder) -> TensorHolder: ...
def Shape(x: TensorHolder, *, dtype: int = 3) -> TensorHolder: ...
def ShapeN(x: list[TensorHolder], y_num: int, *, dtype: int = 3) -> list[TensorHolder]: ...
def Shrink(input_x: TensorHolder, *, lambd: float = 0.5, bias: float = 0.0) -> TensorHolder: ...
def Sigmoid(x: TensorHolder) -> TensorHolder: ...
def Sign(x: TensorHolder) -> TensorHolder: ...
def Sin(x: TensorHolder) -> TensorHolder: ...
def Sinh(x: TensorHolder) -> TensorHolder: ...
def Size(x: TensorHolder, *, dtype: int = 3) -> TensorHolder: ...
def Slice(
    x: TensorHolder | TensorLike,
    offsets: TensorHolder | TensorLike,
    size: TensorHolder | TensorLike,
) -> TensorHolder: ...

class SoftmaxCrossEntropyLossOutput:
    loss: TensorHolder
    log_prop: TensorHolder

def SoftmaxCrossEntropyLoss(
    scores: TensorHolder | TensorLike,
    labels: TensorHolder | TensorLike,
    weights: TensorHolder | TensorLike | None = None,
    *,
    ignore_index: int = 0,
    reduction: str = "mean",
) -> SoftmaxCrossEntropyLossOutput: ...

class SoftmaxCrossEntropyWithLogitsOutput:
    loss: TensorHolder
    backprop: TensorHolder

def SoftmaxCrossEntropyWithLogits(
    features: TensorHolder | TensorLike,
    labels: TensorHolder | TensorLike,
) -> SoftmaxCrossEntropyWithLogitsOutput: ...
def SoftmaxV2(x: TensorHolder, *, axes: list[int] = ..., half_to_float: bool = False) -> TensorHolder: ...
def Softplus(x: TensorHolder) -> TensorHolder: ...
def Softsign(x: TensorHolder) -> TensorHolder: ...
def SpaceToBatchND(
    x: TensorHolder | TensorLike,
    block_shape: TensorHolder | TensorLike,
    paddings: TensorHolder | TensorLike,
) -> TensorHolder: ...
def SpaceToDepth(x: TensorHolder, *, block_size: int, data_format: str = "NHWC") -> TensorHolder: ...

class SparseSoftmaxCrossEntropyWithLogitsOutput:
    loss: TensorHolder
    backprop: TensorHolder

def SparseSoftmaxCrossEntropyWithLogits(
    features: TensorHolder | TensorLike,
    labels: TensorHolder | TensorLike,
) -> SparseSoftmaxCrossEntropyWithLogitsOutput: ...
def Split(
    split_dim: TensorHolder | TensorLike,
    x: TensorHolder | TensorLike,
    y_num: int,
    *,
    num_split: int,
) -> list[TensorHolder]: ...
def SplitD(x: TensorHolder, y_num: int, *, split_dim: int, num_split: int) -> list[TensorHolder]: ...
def SplitToSequence(
    x: TensorHolder | TensorLike,
    split: TensorHolder | TensorLike | None = None,
    *,
    axis: int = 0,
    keepdims: bool = True,
) -> TensorHolder: ...
def SplitV(
    x: TensorHolder | TensorLike,
    size_splits: TensorHolder | TensorLike,
    split_dim: TensorHolder | TensorLike,
    y_num: int,
    *,
    num_split: int,
) -> list[TensorHolder]: ...
def SplitVD(
    x: TensorHolder,
    y_num: int,
    *,
    size_splits: list[int],
    split_dim: int,
    num_split: int,
) -> list[TensorHolder]: ...
def Sqrt(x: TensorHolder) -> TensorHolder: ...
def Square(x: TensorHolder) -> TensorHolder: ...
def SquareSumV1(
    x: TensorHolder,
    *,
    axis: list[int],
    keep_dims: bool = False,
    noop_with_empty_axes: bool = False,
) -> TensorHolder: ...
def SquaredDifference(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Squeeze(x: TensorHolder, *, axis: list[int] = ...) -> TensorHolder: ...
def SqueezeV3(x: TensorHolder | TensorLike, axes: TensorHolder | TensorLike | None = None) -> TensorHolder: ...
def StatefulPartitionedCall(
    args: list[TensorHolder],
    output_num: int,
    f: Graph,
    *,
    config: str = "",
    config_proto: str = "",
    executor_type: str = "",
) -> list[TensorHolder]: ...
def StatelessBernoulliV2(
    x: TensorHolder | TensorLike,
    seed: TensorHolder | TensorLike,
    offset: TensorHolder | TensorLike,
    *,
    dtype: DataType = DataType.DT_UNDEFINED,
) -> TensorHolder: ...
def StatelessIf(
    cond: TensorHolder | TensorLike,
    input: list[TensorHolder | TensorLike],
    output_num: int,
    then_branch: Graph,
    else_branch: Graph,
) -> list[TensorHolder]: ...
def StatelessWhile(
    input: list[TensorHolder],
    output_num: int,
    cond: Graph,
    body: Graph,
    *,
    parallel_iterations: int = 10,
) -> list[TensorHolder]: ...
def StridedSlice(
    x: TensorHolder | TensorLike,
    begin: TensorHolder | TensorLike,
    end: TensorHolder | TensorLike,
    strides: TensorHolder | TensorLike,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> TensorHolder: ...
def StridedSliceV2(
    x: TensorHolder | TensorLike,
    begin: TensorHolder | TensorLike,
    end: TensorHolder | TensorLike,
    axes: TensorHolder | TensorLike | None = None,
    strides: TensorHolder | TensorLike | None = None,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> TensorHolder: ...
def StringJoin(x: list[TensorHolder], *, N: int, separator: str = "") -> TensorHolder: ...
def StringNormalizer(
    input: TensorHolder,
    *,
    stopwords: list[str] = ...,
    is_case_sensitive: bool = False,
    case_change_action: str = "NONE",
    locale: str = "en_US",
) -> TensorHolder: ...
def Sub(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def Swish(x: TensorHolder, *, scale: float = 1.0) -> TensorHolder: ...

class SwitchOutput:
    output_false: TensorHolder
    output_true: TensorHolder

def Switch(data: TensorHolder | TensorLike, pred: TensorHolder | TensorLike) -> SwitchOutput: ...
def Tan(x: TensorHolder) -> TensorHolder: ...
def Tanh(x: TensorHolder) -> TensorHolder: ...
def TensorListConcatLists(
    input_a: TensorHolder | TensorLike,
    input_b: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorHolder: ...

class TensorListConcatV2Output:
    tensor: TensorHolder
    lengths: TensorHolder

def TensorListConcatV2(
    input_handle: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    leading_dims: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
) -> TensorListConcatV2Output: ...
def TensorListElementShape(input_handle: TensorHolder, *, shape_type: DataType) -> TensorHolder: ...
def TensorListFromTensor(
    tensor: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
) -> TensorHolder: ...
def TensorListGather(
    input_handle: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorHolder: ...
def TensorListGetItem(
    input_handle: TensorHolder | TensorLike,
    index: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorHolder: ...
def TensorListLength(input_handle: TensorHolder) -> TensorHolder: ...

class TensorListPopBackOutput:
    output_handle: TensorHolder
    tensor: TensorHolder

def TensorListPopBack(
    input_handle: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorListPopBackOutput: ...
def TensorListPushBack(
    input_handle: TensorHolder | TensorLike,
    tensor: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorHolder: ...
def TensorListReserve(
    element_shape: TensorHolder | TensorLike,
    num_elements: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
    dynamic_size: bool = False,
) -> TensorHolder: ...
def TensorListResize(input_handle: TensorHolder | TensorLike, size: TensorHolder | TensorLike) -> TensorHolder: ...
def TensorListScatterIntoExistingList(
    input_handle: TensorHolder | TensorLike,
    tensor: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
) -> TensorHolder: ...
def TensorListScatterV2(
    tensor: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    num_elements: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
) -> TensorHolder: ...
def TensorListSetItem(
    input_handle: TensorHolder | TensorLike,
    index: TensorHolder | TensorLike,
    item: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    resize_if_index_out_of_bounds: bool = False,
) -> TensorHolder: ...
def TensorListSplit(
    tensor: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    lengths: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    shape_type: DataType = DataType.DT_INT32,
) -> TensorHolder: ...
def TensorListStack(
    input_handle: TensorHolder | TensorLike,
    element_shape: TensorHolder | TensorLike,
    *,
    element_dtype: DataType,
    num_elements: int = -1,
) -> TensorHolder: ...
def TensorMove(x: TensorHolder) -> TensorHolder: ...
def TensorScatterUpdate(
    x: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Threshold(x: TensorHolder, *, threshold: float = 0.0) -> TensorHolder: ...
def Tile(x: TensorHolder | TensorLike, multiples: TensorHolder | TensorLike) -> TensorHolder: ...
def TileD(x: TensorHolder, *, multiples: list[int]) -> TensorHolder: ...

class TopKOutput:
    values: TensorHolder
    indices: TensorHolder

def TopK(
    x: TensorHolder | TensorLike,
    k: TensorHolder | TensorLike,
    *,
    sorted: bool = True,
    largest: bool = True,
    dim: int = -1,
) -> TopKOutput: ...
def TransData(
    src: TensorHolder,
    *,
    src_format: str,
    dst_format: str,
    src_subformat: int = 0,
    dst_subformat: int = 0,
    groups: int = 1,
) -> TensorHolder: ...
def Transpose(x: TensorHolder | TensorLike, perm: TensorHolder | TensorLike) -> TensorHolder: ...
def TransposeD(x: TensorHolder, *, perm: list[int]) -> TensorHolder: ...
def Trilu(
    x: TensorHolder | TensorLike,
    k: TensorHolder | TensorLike | None = None,
    *,
    upper: int = 0,
) -> TensorHolder: ...
def TruncateDiv(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def TruncateMod(x1: TensorHolder | TensorLike, x2: TensorHolder | TensorLike) -> TensorHolder: ...
def TruncatedNormal(shape: TensorHolder, *, dtype: DataType, seed: int = 0, seed2: int = 0) -> TensorHolder: ...

class UniqueOutput:
    y: TensorHolder
    idx: TensorHolder

def Unique(x: TensorHolder, *, out_idx: DataType = DataType.DT_INT32) -> UniqueOutput: ...

class UniqueWithCountsAndSortingOutput:
    y: TensorHolder
    indices: TensorHolder
    counts: TensorHolder

def UniqueWithCountsAndSorting(
    x: TensorHolder,
    *,
    return_inverse: bool = False,
    return_counts: bool = False,
    sorted: bool = True,
    out_idx: DataType = DataType.DT_INT64,
) -> UniqueWithCountsAndSortingOutput: ...
def Unpack(x: TensorHolder, y_num: int, *, num: int, axis: int = 0) -> list[TensorHolder]: ...
def UnsortedSegmentSum(
    x: TensorHolder | TensorLike,
    segment_ids: TensorHolder | TensorLike,
    num_segments: TensorHolder | TensorLike,
) -> TensorHolder: ...
def Unsqueeze(x: TensorHolder, *, axes: list[int] = ...) -> TensorHolder: ...
def UnsqueezeV3(x: TensorHolder | TensorLike, axes: TensorHolder | TensorLike) -> TensorHolder: ...
def Where(x: TensorHolder) -> TensorHolder: ...
def While(
    input: list[TensorHolder],
    output_num: int,
    cond: Graph,
    body: Graph,
    *,
    parallel_iterations: int = 10,
) -> list[TensorHolder]: ...

class XCommonRNNOutput:
    y: TensorHolder
    y_h: TensorHolder

def XCommonRNN(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    r: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike | None = None,
    sequence_lens: TensorHolder | TensorLike | None = None,
    initial_h: TensorHolder | TensorLike | None = None,
    *,
    activation_alpha: list[float] = ...,
    activation_beta: list[float] = ...,
    activations: list[str] = ...,
    clip: float = -1.0,
    direction: str = "forward",
    hidden_size: int,
) -> XCommonRNNOutput: ...
def XConvInteger(
    x: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    x_zero_point: TensorHolder | TensorLike | None = None,
    w_zero_point: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NCHW",
) -> TensorHolder: ...
def XDFT(
    input: TensorHolder | TensorLike,
    dft_length: TensorHolder | TensorLike | None = None,
    axis: TensorHolder | TensorLike | None = None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> TensorHolder: ...
def XDeformConv(
    x: TensorHolder | TensorLike,
    filter: TensorHolder | TensorLike,
    offset: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    mask: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NCHW",
    deformable_groups: int = 1,
) -> TensorHolder: ...
def XDequantizeLinear(
    x: TensorHolder | TensorLike,
    x_scale: TensorHolder | TensorLike,
    x_zero_point: TensorHolder | TensorLike | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DataType = DataType.DT_UNDEFINED,
) -> TensorHolder: ...

class XDropoutOutput:
    y: TensorHolder
    mask: TensorHolder

def XDropout(
    x: TensorHolder | TensorLike,
    training_mode: TensorHolder | TensorLike,
    ratio: TensorHolder | TensorLike | None = None,
    *,
    seed: int = 0,
    is_seeded: bool = False,
) -> XDropoutOutput: ...

class XDynamicQuantizeLinearOutput:
    y: TensorHolder
    y_scale: TensorHolder
    y_zero_point: TensorHolder

def XDynamicQuantizeLinear(x: TensorHolder) -> XDynamicQuantizeLinearOutput: ...
def XFail(
    owner_graph_builder: GraphBuilder,
    y_num: int,
    *,
    reason: str,
    dtypes: list[int],
    shapes: list[list[int]],
) -> list[TensorHolder]: ...
def XLabelEncoder(
    x: TensorHolder | TensorLike,
    keys: TensorHolder | TensorLike,
    values: TensorHolder | TensorLike,
    default: TensorHolder | TensorLike,
) -> TensorHolder: ...
def XMatMulInteger(
    a: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike,
    a_zero_point: TensorHolder | TensorLike | None = None,
    b_zero_point: TensorHolder | TensorLike | None = None,
) -> TensorHolder: ...

class XMaxPoolWithIndicesOutput:
    y: TensorHolder
    indices: TensorHolder

def XMaxPoolWithIndices(
    x: TensorHolder,
    *,
    ksize: list[int],
    strides: list[int] = ...,
    dilations: list[int] = ...,
    pads: list[int] = ...,
    padding_mode: str = "CALCULATED",
    ceil_mode: bool = False,
    storage_order: int = 0,
) -> XMaxPoolWithIndicesOutput: ...
def XMaxUnpool(
    x: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    output_shape: TensorHolder | TensorLike | None = None,
    *,
    ksize: list[int],
    strides: list[int] = ...,
    pads: list[int] = ...,
) -> TensorHolder: ...
def XMelWeightMatrix(
    num_mel_bins: TensorHolder | TensorLike,
    dft_length: TensorHolder | TensorLike,
    sample_rate: TensorHolder | TensorLike,
    lower_edge_hertz: TensorHolder | TensorLike,
    upper_edge_hertz: TensorHolder | TensorLike,
    *,
    dtype: DataType = DataType.DT_FLOAT,
) -> TensorHolder: ...
def XPad(
    x: TensorHolder | TensorLike,
    paddings: TensorHolder | TensorLike,
    constant_values: TensorHolder | TensorLike | None = None,
    axes: TensorHolder | TensorLike | None = None,
    *,
    mode: str = "constant",
) -> TensorHolder: ...
def XQLinearConv(
    x: TensorHolder | TensorLike,
    x_scale: TensorHolder | TensorLike,
    x_zero_point: TensorHolder | TensorLike,
    w: TensorHolder | TensorLike,
    w_scale: TensorHolder | TensorLike,
    w_zero_point: TensorHolder | TensorLike,
    y_scale: TensorHolder | TensorLike,
    y_zero_point: TensorHolder | TensorLike,
    bias: TensorHolder | TensorLike | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = ...,
    groups: int = 1,
    data_format: str = "NCHW",
) -> TensorHolder: ...
def XQLinearMatMul(
    a: TensorHolder | TensorLike,
    a_scale: TensorHolder | TensorLike,
    a_zero_point: TensorHolder | TensorLike,
    b: TensorHolder | TensorLike,
    b_scale: TensorHolder | TensorLike,
    b_zero_point: TensorHolder | TensorLike,
    y_scale: TensorHolder | TensorLike,
    y_zero_point: TensorHolder | TensorLike,
) -> TensorHolder: ...
def XQuantizeLinear(
    x: TensorHolder | TensorLike,
    y_scale: TensorHolder | TensorLike,
    y_zero_point: TensorHolder | TensorLike | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    dtype: DataType = DataType.DT_UNDEFINED,
    saturate: bool = True,
) -> TensorHolder: ...
def XSTFT(
    signal: TensorHolder | TensorLike,
    frame_step: TensorHolder | TensorLike,
    window: TensorHolder | TensorLike | None = None,
    frame_length: TensorHolder | TensorLike | None = None,
    *,
    onesided: bool = True,
) -> TensorHolder: ...
def XScanAppend(handle: TensorHolder | TensorLike, value: TensorHolder | TensorLike) -> TensorHolder: ...
def XScanBuffer(owner_graph_builder: GraphBuilder) -> TensorHolder: ...
def XScanStack(
    handle: TensorHolder,
    *,
    dtype: DataType,
    shape: list[int],
    count: int = -1,
    axis: int = 0,
    reverse: bool = False,
) -> TensorHolder: ...
def XScatterNdMul(
    var: TensorHolder | TensorLike,
    indices: TensorHolder | TensorLike,
    updates: TensorHolder | TensorLike,
    *,
    use_locking: bool = False,
) -> TensorHolder: ...

class XStringSplitOutput:
    y: TensorHolder
    num_splits: TensorHolder

def XStringSplit(x: TensorHolder, *, delimiter: str = "", maxsplit: int = -1) -> XStringSplitOutput: ...
def XTfIdfVectorizer(
    x: TensorHolder,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int] = ...,
    pool_strings: list[str] = ...,
    weights: list[float] = ...,
) -> TensorHolder: ...
def XTreeEnsemble(
    x: TensorHolder | TensorLike,
    splits: TensorHolder | TensorLike,
    weights: TensorHolder | TensorLike,
    members: TensorHolder | TensorLike | None = None,
    *,
    modes: list[int],
    feature_ids: list[int],
    true_ids: list[int],
    false_ids: list[int],
    true_leafs: list[int],
    false_leafs: list[int],
    missing_true: list[int] = ...,
    roots: list[int],
    target_ids: list[int],
    n_targets: int,
    aggregate_function: int = 1,
    post_transform: int = 0,
) -> TensorHolder: ...

class XUniqueOutput:
    y: TensorHolder
    indices: TensorHolder
    inverse_indices: TensorHolder
    counts: TensorHolder

def XUnique(x: TensorHolder, *, sorted: int = 1) -> XUniqueOutput: ...
def ZerosLike(x: TensorHolder) -> TensorHolder: ...
