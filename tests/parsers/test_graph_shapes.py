"""What the GE graph of an operator looks like: types, names, attributes, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.graph import DataType, Graph
from tests.parsers.evaluation import parse_model
from tests.parsers.onnx_models import model, node, one, value

I64 = np.int64


def drawn(graph: Graph) -> list[str]:
    """Return the graph as lines ``name = Type(inputs)``, constants as their values."""

    def shown(source: Any) -> str:
        if source is None:
            return "_"
        if source.node.type == "Const" and source.node.attrs["value"].array.size <= 8:
            array = source.node.attrs["value"].array
            return f"{array.dtype}{array.tolist()}"
        return source.node.name if source.index == 0 else f"{source.node.name}:{source.index}"

    return [f"{n.name} = {n.type}({', '.join(map(shown, n.inputs))})" for n in graph if n.type not in ("Data", "Const")]


def attributes(graph: Graph, name: str, *names: str) -> list[Any]:
    found = graph.find(name)
    assert found is not None
    return [found.attrs[key] for key in names]


def test_relu_between_data_and_output() -> None:
    graph = parse_model(model([node("Relu", "x")], opset=11))
    (data,) = graph.data_nodes()
    assert (data.name, data.attrs["index"], data.attrs["data_type"]) == ("x", 0, 0)
    assert data.output().desc.shape == (1, 3, 4, 4)
    assert drawn(graph) == ["n = Relu(x)"]
    assert [(out.node.name, out.index) for out in graph.outputs] == [("n", 0)]
    assert graph.output_names == ["y"]
    assert graph.outputs[0].desc.attrs["_origin_output_tensor_name"] == "y"


def test_every_node_knows_its_onnx_node() -> None:
    graph = parse_model(model([node("Transpose", "x", perm=[0, 2, 3, 1])]))
    assert [(n.name, n.attrs["_datadump_original_op_names"]) for n in graph if n.type != "Data"] == [
        ("n_Const", ["n"]),
        ("n", ["n"]),
    ]


# ONNX operator with inputs (dims of a model input, or a constant) and attributes -> GE nodes
SHAPES: dict[str, tuple[Any, list[str]]] = {
    "Conv1D with bias": (
        one("Conv", (1, 3, 9), np.ones((2, 3, 3), np.float32), np.ones(2, np.float32)),
        [
            "n_Unsqueeze_X = Unsqueeze(x0)",
            "n_Unsqueeze_W = Unsqueeze(x1_Initializer_0)",
            "n_Conv2D = Conv2D(n_Unsqueeze_X, n_Unsqueeze_W, float32[1.0, 1.0])",
            "n = Squeeze(n_Conv2D)",
        ],
    ),
    "Conv3D": (
        one("Conv", (1, 1, 4, 4, 4), np.ones((2, 1, 3, 3, 3), np.float32)),
        ["n = Conv3D(x0, x1_Initializer_0)"],
    ),
    "ConvTranspose": (
        one("ConvTranspose", (1, 3, 4, 4), np.ones((3, 2, 3, 3), np.float32)),
        ["n = Conv2DTranspose(int64[0, 0, 0, 0], x0, x1_Initializer_0)"],
    ),
    "Gemm with alpha and C": (
        one("Gemm", (2, 3), (3, 4), (4,), alpha=0.5),
        [
            "n_MatMulV2 = MatMulV2(x0, x1)",
            "n_Muls_Alpha = Muls(n_MatMulV2)",
            "n_Muls_Beta = Muls(x2)",
            "n = Add(n_Muls_Alpha, n_Muls_Beta)",
        ],
    ),
    "Gemm with C": (
        one("Gemm", (2, 3), (4, 3), (4,), transB=1),
        ["n_MatMulV2 = MatMulV2(x0, x1)", "n = Add(n_MatMulV2, x2)"],
    ),
    "Gemm": (one("Gemm", (2, 3), (3, 4)), ["n = MatMulV2(x0, x1)"]),
    "MatMul": (one("MatMul", (2, 3), (3, 4)), ["n = BatchMatMulV2(x0, x1)"]),
    "MatMul with a vector": (
        one("MatMul", (2, 3), (3,)),
        [
            "n_Unsqueeze_B = Unsqueeze(x1)",
            "n_BatchMatMulV2 = BatchMatMulV2(x0, n_Unsqueeze_B)",
            "n = Squeeze(n_BatchMatMulV2)",
        ],
    ),
    "ReduceMean 11": (one("ReduceMean", (2, 3), opset=11, axes=[-1]), ["n = ReduceMean(x0, int32[-1])"]),
    "ReduceSum 13": (one("ReduceSum", (2, 3), np.array([1], I64)), ["n = ReduceSum(x0, int64[1])"]),
    "ReduceSum over all": (one("ReduceSum", (2, 3)), ["n = ReduceSum(x0, int32[])"]),
    "ReduceL1": (one("ReduceL1", (2, 3), axes=[1]), ["n = LpNormV2(x0)"]),
    "ReduceLogSum": (
        one("ReduceLogSum", (2, 3), axes=[1]),
        ["n_ReduceSum = ReduceSum(x0, int32[1])", "n = Log(n_ReduceSum)"],
    ),
    "ReduceSumSquare": (one("ReduceSumSquare", (2, 3), axes=[1]), ["n = SquareSumV1(x0)"]),
    "Transpose": (one("Transpose", (2, 3, 4), perm=[1, 0, 2]), ["n = Transpose(x0, int32[1, 0, 2])"]),
    "Transpose without perm": (one("Transpose", (2, 3, 4)), ["n = Transpose(x0, int32[2, 1, 0])"]),
    "Clip with min and max": (
        one("Clip", (2,), np.float32(0), np.float32(6)),
        ["n = ClipByValue(x0, float320.0, float326.0)"],
    ),
    "Clip with only max": (one("Clip", (2,), None, np.float32(6), opset=11), ["n = Minimum(x0, float326.0)"]),
    "Clip with only min": (one("Clip", (2,), np.float32(0), opset=11), ["n = Maximum(x0, float320.0)"]),
    "Clip with neither": (one("Clip", (2,), opset=11), ["n = Identity(x0)"]),
    "Clip 6": (one("Clip", (2,), opset=10, min=0.0, max=6.0), ["n = ClipByValue(x0, float320.0, float326.0)"]),
    "MaxPool": (one("MaxPool", (1, 3, 4, 4), kernel_shape=[2, 2]), ["n = MaxPoolV3(x0)"]),
    "MaxPool 1D": (
        one("MaxPool", (1, 3, 4), kernel_shape=[2]),
        ["n_Unsqueeze = Unsqueeze(x0)", "n_MaxPoolV3 = MaxPoolV3(n_Unsqueeze)", "n = Squeeze(n_MaxPoolV3)"],
    ),
    "MaxPool 3D": (one("MaxPool", (1, 3, 4, 4, 4), kernel_shape=[2, 2, 2]), ["n = MaxPool3D(x0)"]),
    "MaxPool with Indices": (
        one("MaxPool", (1, 3, 4, 4), outputs=2, kernel_shape=[2, 2]),
        ["n = XMaxPoolWithIndices(x0)"],
    ),
    "AveragePool": (one("AveragePool", (1, 3, 4, 4), kernel_shape=[2, 2]), ["n = AvgPoolV2(x0)"]),
    "AveragePool 3D": (one("AveragePool", (1, 3, 4, 4, 4), kernel_shape=[2, 2, 2]), ["n = AvgPool3D(x0)"]),
    "GlobalAveragePool": (one("GlobalAveragePool", (1, 3, 4, 4)), ["n = GlobalAveragePool(x0)"]),
    "GlobalMaxPool": (one("GlobalMaxPool", (1, 3, 4, 4, 4)), ["n = ReduceMax(x0, int32[2, 3, 4])"]),
    "LpPool": (
        one("LpPool", (1, 3, 4, 4), kernel_shape=[2, 2]),
        ["n_Abs = Abs(x0)", "n_Power = Power(n_Abs)", "n_Sum = AvgPoolV2(n_Power)", "n = Power(n_Sum)"],
    ),
    "Concat of one": (one("Concat", (2, 3), axis=0), ["n = Identity(x0)"]),
    "Concat of two": (one("Concat", (2, 3), (2, 3), axis=0), ["n = ConcatD(x0, x1)"]),
    "Split with sizes": (
        one("Split", (2, 6), np.array([2, 4], I64), outputs=2, axis=1),
        ["n = SplitV(x0, int64[2, 4], int321)"],
    ),
    "Split into equal parts": (one("Split", (2, 6), outputs=3, axis=1), ["n = Split(int321, x0)"]),
    "Split 2 with sizes": (
        one("Split", (2, 6), outputs=2, opset=11, axis=1, split=[2, 4]),
        ["n = SplitV(x0, int64[2, 4], int321)"],
    ),
    "Max of three": (one("Max", (2,), (2,), (2,)), ["n_Maximum_1 = Maximum(x0, x1)", "n = Maximum(n_Maximum_1, x2)"]),
    "Min of one": (one("Min", (2,)), ["n = Identity(x0)"]),
    "Sum": (one("Sum", (2,), (2,), (2,)), ["n = AccumulateNV2(x0, x1, x2)"]),
    "Mean": (one("Mean", (2,), (2,)), ["n_AccumulateNV2 = AccumulateNV2(x0, x1)", "n = Muls(n_AccumulateNV2)"]),
    "Gather": (one("Gather", (2, 3), np.array([1], I64), axis=1), ["n = GatherV2(x0, int64[1], int321)"]),
    "ConstantOfShape": (one("ConstantOfShape", np.array([2, 3], I64)), ["n = Fill(int64[2, 3], float320.0)"]),
    "Slice 1": (
        one("Slice", (2, 3), opset=9, starts=[0], ends=[1], axes=[1]),
        ["n = StridedSliceV2(x0, int64[0], int64[1], int64[1])"],
    ),
    "Slice 13 with steps": (
        one("Slice", (2, 3), *(np.array([v], I64) for v in (0, 3, 1, 2))),
        ["n = StridedSliceV2(x0, int64[0], int64[3], int64[1], int64[2])"],
    ),
    "Squeeze 11": (one("Squeeze", (2, 1), opset=11, axes=[1]), ["n = Squeeze(x0)"]),
    "Squeeze 13": (one("Squeeze", (2, 1), np.array([1], I64)), ["n = SqueezeV3(x0, int64[1])"]),
    "Unsqueeze 11": (one("Unsqueeze", (2,), opset=11, axes=[1]), ["n = Unsqueeze(x0)"]),
    "Unsqueeze 13": (one("Unsqueeze", (2,), np.array([1], I64)), ["n = UnsqueezeV3(x0, int64[1])"]),
    "Pad 13": (one("Pad", (2, 2), np.array([0, 1, 0, 1], I64)), ["n = PadV3(x0, int64[0, 1, 0, 1])"]),
    "Pad 2 reflecting": (
        one("Pad", (2, 2), opset=10, pads=[0, 1, 0, 1], mode="reflect"),
        ["n = MirrorPad(x0, int64[[0, 0], [1, 1]])"],
    ),
    "TopK": (one("TopK", (2, 3), np.array([1], I64), outputs=2), ["n = TopK(x0, int64[1])", "n_Cast = Cast(n:1)"]),
    "TopK 1": (one("TopK", (2, 3), outputs=2, opset=9, k=2), ["n = TopK(x0, int322)", "n_Cast = Cast(n:1)"]),
    "ArgMax": (one("ArgMax", (2, 3), axis=1, keepdims=0), ["n = ArgMaxV2(x0, int321)"]),
    "ArgMin keeping dims": (
        one("ArgMin", (2, 3), axis=1),
        ["n_ArgMin = ArgMin(x0, int321)", "n = ExpandDims(n_ArgMin, int321)"],
    ),
    "Where": (one("Where", np.array([True]), (2,), (2,), opset=16), ["n = SelectV2(bool[True], x1, x2)"]),
    "Softmax": (one("Softmax", (2, 3)), ["n = SoftmaxV2(x0)"]),
    "Dropout": (one("Dropout", (2, 3), opset=10), ["n = Dropout(x0)"]),
    "ScatterND": (
        one("ScatterND", (3, 2), np.array([[0]], I64), (1, 2), opset=16),
        ["n = TensorScatterUpdate(x0, int64[[0]], x2)"],
    ),
    "ScatterND adding": (
        one("ScatterND", (3, 2), np.array([[0]], I64), (1, 2), opset=16, reduction="add"),
        ["n_TensorMove = TensorMove(x0)", "n = ScatterNdAdd(n_TensorMove, int64[[0]], x2)"],
    ),
    "Resize by whole factors": (
        one("Resize", (1, 1, 4, 4), None, np.array([1, 1, 2, 2], np.float32), nearest_mode="floor",
            coordinate_transformation_mode="asymmetric"),
        ["n = ResizeNearestNeighborV2(x0, int32[8, 8])"],
    ),
    "Resize otherwise": (
        one("Resize", (1, 1, 4, 4), None, np.array([1, 1, 2, 2], np.float32)),
        ["n = Resize(x0, _, float32[1.0, 1.0, 2.0, 2.0])"],
    ),
    "Upsample 7": (
        one("Upsample", (1, 1, 2, 2), opset=7, scales=[1.0, 1.0, 2.0, 3.0]),
        ["n = ResizeNearestNeighborV2(x0, int32[4, 6])"],
    ),
    "LayerNormalization without bias": (
        one("LayerNormalization", (2, 3), np.ones(3, np.float32), opset=17),
        ["n = LayerNorm(x0, float32[1.0, 1.0, 1.0], float32[0.0, 0.0, 0.0])"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_nodes_of_an_operator(case: str) -> None:
    source, expected = SHAPES[case]
    assert drawn(parse_model(source)) == expected


# operator -> attributes of the node that has the ONNX node's name
ATTRIBUTES: dict[str, tuple[Any, dict[str, Any]]] = {
    "Conv": (
        one("Conv", (1, 3, 9, 9), np.ones((2, 3, 3, 3), np.float32), kernel_shape=[3, 3], strides=[2, 2],
            pads=[1, 2, 3, 4]),
        {"strides": [1, 1, 2, 2], "pads": [1, 3, 2, 4], "dilations": [1, 1, 1, 1], "groups": 1, "data_format": "NCHW"},
    ),
    "Conv without any attribute": (
        one("Conv", (1, 3, 9, 9), np.ones((2, 3, 3, 3), np.float32)),
        {"strides": [1, 1, 1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1, 1, 1]},
    ),
    "Conv3D SAME_UPPER": (
        one("Conv", (1, 1, 4, 4, 4), np.ones((2, 1, 3, 3, 3), np.float32), auto_pad="SAME_UPPER"),
        {"auto_pad": "SAME_UPPER", "pads": [0] * 6, "data_format": "NCDHW", "strides": [1] * 5},
    ),
    "Conv with groups": (
        one("Conv", (1, 4, 5, 5), np.ones((4, 1, 3, 3), np.float32), group=4, dilations=[2, 2]),
        {"groups": 4, "dilations": [1, 1, 2, 2]},
    ),
    "ConvTranspose": (
        one("ConvTranspose", (1, 3, 4, 4), np.ones((3, 2, 3, 3), np.float32), strides=[2, 2], output_padding=[1, 1]),
        {"output_padding": [0, 0, 1, 1], "strides": [1, 1, 2, 2]},
    ),
    "Gemm": (one("Gemm", (3, 2), (4, 3), transA=1, transB=1), {"transpose_x1": True, "transpose_x2": True}),
    "Gemm with alpha": (one("Gemm", (2, 3), (3, 4), alpha=0.5), {"value": 0.5}),
    "Softmax 11": (one("Softmax", (2, 3), opset=11), {"axes": [1], "need_fusion": 1}),
    "Softmax 11 over the last two axes": (one("Softmax", (2, 3, 4), opset=11), {"axes": [1], "_x_flatten": True}),
    "Softmax 13": (one("Softmax", (2, 3)), {"axes": [-1]}),
    "Softmax 13 of halves": (
        one("Softmax", np.ones((2, 3), np.float16)),
        {"_x_half_steps": True, "need_fusion": None},
    ),
    "LogSoftmax 11": (one("LogSoftmax", (2, 3), opset=11), {"axes": [1]}),
    "ReduceMean": (
        one("ReduceMean", (2, 3), opset=11, axes=[-1]),
        {"keep_dims": True, "noop_with_empty_axes": False},
    ),
    "ReduceSum": (
        one("ReduceSum", (2, 3), keepdims=0, noop_with_empty_axes=1),
        {"keep_dims": False, "noop_with_empty_axes": True},
    ),
    "MaxPool": (
        one("MaxPool", (1, 3, 9, 9), kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 2], ceil_mode=1),
        {"ksize": [1, 1, 3, 3], "strides": [1, 1, 2, 2], "pads": [0, 1, 1, 2], "padding_mode": "CALCULATED",
         "ceil_mode": True},
    ),
    "MaxPool SAME_LOWER": (
        one("MaxPool", (1, 3, 9, 9), kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
        {"padding_mode": "SAME", "_x_auto_pad": "SAME_LOWER"},
    ),
    "AveragePool counting the padding": (
        one("AveragePool", (1, 3, 9, 9), kernel_shape=[3, 3], count_include_pad=1),
        {"exclusive": False},
    ),
    "BatchNormalization": (
        one("BatchNormalization", (1, 3, 4, 4), *[np.ones(3, np.float32)] * 4),
        {"epsilon": pytest.approx(1e-5), "is_training": False, "data_format": "NCHW", "onnx": "onnx"},
    ),
    "LRN": (
        one("LRN", (1, 8, 4, 4), size=5, alpha=0.5),
        {"depth_radius": 2, "alpha": pytest.approx(0.1), "norm_region": "ACROSS_CHANNELS"},
    ),
    "LeakyRelu": (one("LeakyRelu", (2,)), {"negative_slope": pytest.approx(0.01)}),
    "HardSigmoid": (one("HardSigmoid", (2,)), {"alpha": pytest.approx(0.2), "beta": 0.5}),
    "Cast": (one("Cast", (2,), to=10), {"dst_type": int(DataType.DT_FLOAT16)}),
    "Concat": (one("Concat", (2, 3), (2, 3), axis=-1), {"concat_dim": -1, "N": 2}),
    "Split": (one("Split", (2, 6), np.array([2, 4], I64), outputs=2, axis=1), {"num_split": 2}),
    "Shape": (one("Shape", (2, 3)), {"dtype": int(DataType.DT_INT64)}),
    "DepthToSpace": (
        one("DepthToSpace", (1, 4, 2, 2), blocksize=2, mode="CRD"),
        {"block_size": 2, "mode": "CRD", "data_format": "NCHW"},
    ),
    "Pad": (
        one("Pad", (2, 2), np.array([0, 1, 0, 1], I64), mode="edge"),
        {"mode": "edge", "paddings_contiguous": False},
    ),
    "Reshape": (one("Reshape", (2, 3), np.array([3, 2], I64), opset=14, allowzero=1), {"_x_allowzero": 1}),
    "Mod": (one("Mod", (2,), (2,), fmod=1), {"_x_fmod": 1}),
    "GatherElements": (one("GatherElements", (2, 2), np.array([[0]], I64), axis=1), {"dim": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", ATTRIBUTES, ids=str)
def test_attributes_of_an_operator(case: str) -> None:
    source, expected = ATTRIBUTES[case]
    found = parse_model(source).find("n")
    assert found is not None
    assert {key: found.attrs.get(key) for key in expected} == expected


def test_softmax_13_has_no_mark_of_the_old_form() -> None:
    attrs = parse_model(one("Softmax", (2, 3))).find("n").attrs
    assert "need_fusion" not in attrs
    assert "_x_flatten" not in attrs
    assert "_x_half_steps" not in attrs


@pytest.mark.parametrize(
    ("soc_version", "expected"),
    [
        ("Ascend310P3", ["TransposeD", "MaxPool", "TransposeD"]),
        ("Ascend910A", ["TransposeD", "MaxPool", "TransposeD"]),
        ("Ascend910B2", ["MaxPoolV3"]),
        ("Ascend950", ["MaxPoolV3"]),
    ],
)
def test_big_pooling_kernel_depends_on_the_chip(soc_version: str, expected: list[str]) -> None:
    graph = parse_model(one("MaxPool", (1, 3, 40, 40), kernel_shape=[20, 20]), soc_version=soc_version)
    assert [n.type for n in graph if n.type != "Data"] == expected
    assert graph.outputs[0].desc.shape == (1, 3, 21, 21)


def test_big_pooling_kernel_with_padding_pads_first() -> None:
    source = one("MaxPool", (1, 3, 40, 40), kernel_shape=[20, 20], pads=[1, 2, 3, 4])
    graph = parse_model(source, soc_version="Ascend310P3")
    assert [n.type for n in graph if n.type not in ("Data", "Const")] == [
        "TransposeD",
        "PadV2",
        "MaxPool",
        "TransposeD",
    ]


def test_constants_sorted_by_name_and_no_data_for_a_given_input() -> None:
    source = model(
        [node("Add", "x w", "t", "a"), node("Add", "t b", "y", "c")],
        [value("x", [2]), value("w", [2])],
        ["y"],
        {"w": np.ones(2, np.float32), "b": np.zeros(2, np.float32)},
    )
    graph = parse_model(source)
    assert [n.name for n in graph.nodes_of_type("Const")] == ["b_Initializer_0", "w_Initializer_1"]
    assert [(n.name, n.attrs["index"]) for n in graph.data_nodes()] == [("x", 0)]
    assert drawn(graph) == ["a = Add(x, float32[1.0, 1.0])", "c = Add(a, float32[0.0, 0.0])"]


def test_unnamed_nodes_are_named_by_type_and_running_number() -> None:
    nodes = [node("Relu", "x", "t", ""), node("Abs", "t", "u", "mine"), node("Relu", "u", "y", "")]
    assert [n.name for n in parse_model(model(nodes)) if n.type != "Data"] == ["Relu_0", "mine", "Relu_1"]


def test_a_made_name_never_takes_that_of_a_later_node() -> None:
    nodes = [node("Transpose", "x", "t", "n"), node("Relu", "t", "y", "n_Const")]
    graph = parse_model(model(nodes))
    assert [(n.name, n.type) for n in graph if n.type != "Data"] == [
        ("n_Const_1", "Const"),
        ("n", "Transpose"),
        ("n_Const", "Relu"),
    ]


def test_nodes_in_any_order() -> None:
    nodes = [node("Relu", "t", "y", "second"), node("Abs", "x", "t", "first")]
    assert drawn(parse_model(model(nodes))) == ["first = Abs(x)", "second = Relu(first)"]


def test_absent_output_is_no_producer_of_absent_inputs() -> None:
    nodes = [node("Dropout", "x", "t _", "drop"), node("Clip", "t _ _", "y", "clip")]
    assert drawn(parse_model(model(nodes))) == ["drop = Dropout(x)", "clip = Identity(drop)"]


def test_graph_without_inputs() -> None:
    graph = parse_model(model([node("Relu", "c", "y")], [], ["y"], {"c": np.float32([-1, 2])}))
    assert drawn(graph) == ["n = Relu(float32[-1.0, 2.0])"]


@pytest.mark.parametrize("opset", [13, 17, 21, 24])
def test_operators_of_newer_opsets(opset: int) -> None:
    assert drawn(parse_model(model([node("Relu", "x")], opset=opset))) == ["n = Relu(x)"]
