"""How often built-in fusions take effect in whole models, and what is left: counted in the ONNX graph, without them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, numpy_helper, parser

import atc
from ge.graph import Graph
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST
from models.materialise_light import light_model
from parsers.onnx import parse
from passes.custom.settle_rewrites import SettleRewrites
from passes.driver import Driver
from passes.fusion.fuse_graph import BUILTIN_FUSIONS, FuseGraph
from passes.pipeline import infer, prepare
from simulator import InferSession
from tests.end_to_end.agreement import assert_agrees, assert_can_tell, run_onnxruntime


def fuse(model: ModelProto) -> tuple[dict[str, int], Counter[str]]:
    """Run the compiler up to and with the built-in fusions; return their effects, and which operators are left."""
    session = CompileSession(CompileOptions(), Environment())
    graph = parse(model.SerializeToString(), session)
    Driver(session).run(graph, [*prepare(), *infer(), FuseGraph(), SettleRewrites()])
    effects = {name: times.effect for name, times in session.fusion.graph_fusion.items() if times.effect}
    return effects, operators(graph)


def operators(graph: Graph) -> Counter[str]:
    """The operators of a graph by type, without inputs, results and what is computed at load."""
    idle = ("Data", "Const", "NetOutput")
    nodes = (node for part in graph.all_graphs() for node in part)
    return Counter(node.type for node in nodes if node.type not in idle and not node.attrs.get(LOAD_TIME_CONST))


# -- known networks ----------------------------------------------------------------------------------------------------
class OnnxWalk:
    """Looks for runs of nodes in an ONNX graph."""

    def __init__(self, model: ModelProto) -> None:
        self.graph = model.graph
        self.readers: dict[str, list[NodeProto]] = {}
        self.varying = {value.name for value in model.graph.input} - {item.name for item in model.graph.initializer}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            if self.varying.intersection(node.input):
                self.varying.update(node.output)

    def nodes(self) -> list[NodeProto]:
        """The nodes whose results depend on the model's inputs."""
        return [node for node in self.graph.node if self.varying.intersection(node.input)]

    def runs(self, *types: str) -> list[list[NodeProto]]:
        """Nodes of these types, each the only reader of the one before, and with constants besides."""
        found = [[node] for node in self.nodes() if node.op_type == types[0] and self.is_unary(node)]
        for op_type in types[1:]:
            found = [[*run, reader] for run in found for reader in self.only_reader(run[-1], op_type)]
        return found

    def is_unary(self, node: NodeProto) -> bool:
        return sum(name in self.varying for name in node.input) == 1

    def only_reader(self, node: NodeProto, op_type: str) -> list[NodeProto]:
        readers = self.readers.get(node.output[0], [])
        is_result = any(value.name == node.output[0] for value in self.graph.output)
        is_fit = len(readers) == 1 and not is_result and readers[0].op_type == op_type and self.is_unary(readers[0])
        return readers if is_fit else []


# what each ONNX operator of these networks is without any fusion; a Gemm is a product and an addition
TYPES = {
    "AveragePool": ("AvgPoolV2",),
    "BatchNormalization": ("BatchNorm",),
    "Concat": ("ConcatD",),
    "Conv": ("Conv2D",),
    "Dropout": (),
    "Flatten": ("Flatten",),
    "Gemm": ("MatMulV2", "Add"),
    "MaxPool": ("MaxPoolV3",),
    "Softmax": ("SoftmaxV2",),
    "Sum": ("AccumulateNV2",),
}


@dataclass(frozen=True)
class Known:
    """What a network has: convolutions that norms follow, norms with a factor and an addend behind, dense layers."""

    folded_norms: int = 0
    norm_mul_adds: int = 0
    gemms: int = 0
    remaining_norms: int = 0

    @property
    def effects(self) -> dict[str, int]:
        expected = {
            "ConvBatchnormFusionPass": self.folded_norms,
            "ScaleShiftFusionPass": self.norm_mul_adds,
            "MatMulBiasAddFusionPass": self.gemms,
        }
        return {name: count for name, count in expected.items() if count}


NETWORKS = {
    "digits": Known(folded_norms=2, gemms=1),
    "light_bvlc_alexnet": Known(gemms=3),
    # a norm behind the first convolution and inside each of 58 bottlenecks; one in front of each, of 3 transitions, and
    # at the end
    "light_densenet121": Known(folded_norms=1 + 58, norm_mul_adds=121, remaining_norms=58 + 3 + 1),
    "light_inception_v2": Known(folded_norms=69, norm_mul_adds=69, gemms=1),
    # one convolution, 16 blocks of three, 4 shortcuts
    "light_resnet50": Known(folded_norms=1 + 16 * 3 + 4, gemms=1),
    # one convolution, 16 units of three
    "light_shufflenet": Known(folded_norms=1 + 16 * 3, gemms=1),
    "light_squeezenet": Known(),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, digits_model: Path) -> tuple[ModelProto, Known]:
    name = request.param
    return onnx.load(digits_model) if name == "digits" else light_model(name), NETWORKS[name]


def test_the_numbers_are_those_of_the_source(network) -> None:
    model, known = network
    walk = OnnxWalk(model)
    folded = walk.runs("Conv", "BatchNormalization")
    norms = [node for node in walk.nodes() if node.op_type == "BatchNormalization"]
    assert len(folded) == known.folded_norms
    assert len(norms) - len(folded) == known.remaining_norms
    assert len(walk.runs("BatchNormalization", "Mul", "Add")) == known.norm_mul_adds
    assert len(walk.runs("Gemm")) == known.gemms


def test_known_networks(network) -> None:
    model, known = network
    left = Counter(made for node in OnnxWalk(model).nodes() for made in TYPES.get(node.op_type, (node.op_type,)))
    left -= {"BatchNorm": known.folded_norms, "Mul": known.norm_mul_adds, "Add": known.norm_mul_adds + known.gemms}
    assert fuse(model) == (known.effects, left)


# -- small networks in which everything occurs -------------------------------------------------------------------------
@dataclass(frozen=True)
class Sample:
    """ONNX text with the shapes of its constants, and what a reader of the text expects."""

    text: str
    constants: dict[str, tuple[int, ...]]
    effects: dict[str, int]
    left: dict[str, int]

    def model(self, rng: np.random.Generator) -> ModelProto:
        """The model with weights of both signs, and parameters from 0.5 to 1.5, so that variances are positive."""
        made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{self.text}')
        for name, shape in self.constants.items():
            value = rng.standard_normal(shape) / 2 if name.startswith("w") else rng.uniform(0.5, 1.5, shape)
            made.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
        onnx.checker.check_model(made)
        return made


TRANSFORMER = Sample(
    """block (float[2,5,8] x) => (float[2,5,8] y)
<float two = {2.0}, float small = {1e-5}, float root_2 = {1.4142135}, float one = {1.0}, float half = {0.5},
 float scale = {0.5}, int64[4] heads = {2,5,2,4}, int64[3] joined = {2,5,8}, int64[1] last = {-1}>
{
    m = ReduceMean<axes=[-1]>(x)
    c = Sub(x, m)
    p = Pow(c, two)
    v = ReduceMean<axes=[-1]>(p)
    e = Add(v, small)
    s = Sqrt(e)
    d = Div(c, s)
    g = Mul(d, gamma)
    n = Add(g, beta)

    q0 = MatMul(n, wq)
    q1 = Add(q0, bq)
    q2 = Reshape(q1, heads)
    q = Transpose<perm=[0,2,1,3]>(q2)
    k0 = MatMul(n, wk)
    k1 = Add(k0, bk)
    k2 = Reshape(k1, heads)
    k3 = Transpose<perm=[0,2,1,3]>(k2)
    k = Transpose<perm=[0,1,3,2]>(k3)
    v0 = MatMul(n, wv)
    v1 = Add(bv, v0)
    v2 = Reshape(v1, heads)
    v3 = Transpose<perm=[0,2,1,3]>(v2)

    a0 = MatMul(q, k)
    a1 = Mul(a0, scale)
    largest = ReduceMax<axes=[-1]>(a1)
    below = Sub(a1, largest)
    power = Exp(below)
    total = ReduceSum(power, last)
    a = Div(power, total)

    o0 = MatMul(a, v3)
    o1 = Transpose<perm=[0,2,1,3]>(o0)
    o2 = Reshape(o1, joined)
    o3 = MatMul(o2, wo)
    o4 = Add(o3, bo)
    r = Add(x, o4)

    square = Mul(r, r)
    mean = ReduceMean<axes=[-1]>(square)
    shifted = Add(mean, small)
    root = Sqrt(shifted)
    unit = Div(r, root)
    t = Mul(gamma, unit)

    u0 = MatMul(t, wu)
    u = Add(u0, bu)
    z = Div(u, root_2)
    f = Erf(z)
    f1 = Add(f, one)
    h0 = Mul(u, f1)
    h = Mul(h0, half)
    y0 = MatMul(h, wd)
    y1 = Add(y0, bd)
    y = Add(y1, r)
}""",
    dict.fromkeys(("gamma", "beta", "bq", "bk", "bv", "bo", "bd"), (8,))
    | dict.fromkeys(("wq", "wk", "wv", "wo"), (8, 8))
    | {"wu": (8, 16), "bu": (16,), "wd": (16, 8)},
    {
        "LayerNormFusionPass": 1,
        "RmsNormFusionPass": 1,
        "SoftmaxFusionPass": 1,
        "GeluFusionPass": 1,
        "TransposeFusionPass": 1,  # k
        "MatMulBiasAddFusionPass": 6,  # q, k, v, o, u, y1
    },
    # the scale of a0 stays: no operand of that product is constant. Two sums of branches stay
    {"LayerNormV4": 1, "RmsNorm": 1, "SoftmaxV2": 1, "GeluV2": 1}
    | {"BatchMatMulV2": 8, "Mul": 1, "Reshape": 4, "Transpose": 4, "Add": 2},
)

CONVOLUTIONS = Sample(
    """net (float[1,4,9,9] x) => (float[1,4,7,7] y, float[1,6] z)
<int64[8] around = {0,0,1,1,0,0,1,1}, float zero = {0.0}, float three = {3.0}, float six = {6.0}>
{
    p = Pad(x, around, zero)
    c1 = Conv<kernel_shape=[3,3], pads=[0,0,0,0]>(p, w1)
    n1 = BatchNormalization(c1, scale, shift, mean, variance)
    a1 = Add(n1, three)
    b1 = Clip(a1, zero, six)
    d1 = Mul(n1, b1)
    h1 = Div(d1, six)

    c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=4>(h1, w2, bias)
    n2 = BatchNormalization(c2, scale, shift, mean, variance)
    s2 = Sigmoid(n2)
    h2 = Mul(n2, s2)

    c3 = Conv<kernel_shape=[1,1]>(h2, w3)
    d3 = Mul(c3, per_channel)
    h3 = Add(d3, per_channel2)

    c4 = Conv<kernel_shape=[1,1]>(h3, w4)
    e4 = Mul(c4, per_channel)
    f4 = Add(e4, per_channel2)
    g4 = Div(f4, per_channel)
    h4 = Sub(g4, per_channel2)
    j4 = Neg(h4)

    r = Relu(j4)
    q = Pad(r, around, zero)
    m = MaxPool<kernel_shape=[3,3], strides=[1,1], pads=[0,0,0,0]>(q)
    c5 = Conv<kernel_shape=[3,3]>(m, w1)
    y = BatchNormalization(c5, scale, shift, mean, variance)

    t = GlobalAveragePool(m)
    u = Flatten(t)
    k = MatMul(u, weight)
    z = Mul(k, columns)
}""",
    dict.fromkeys(("scale", "shift", "mean", "variance", "bias"), (4,))
    | dict.fromkeys(("per_channel", "per_channel2"), (4, 1, 1))
    | {"w1": (4, 4, 3, 3), "w2": (4, 1, 3, 3), "w3": (4, 4, 1, 1), "w4": (4, 4, 1, 1)}
    | {"weight": (4, 6), "columns": (6,)},
    {
        "PadConv2dFusionPass": 1,  # p
        "PadPoolFusionPass": 1,  # q
        "ConvBatchnormFusionPass": 1,  # n2; the filter of n1 and y is one, and so it is not scaled
        "HardSwishFusionPass": 1,
        "SwishFusionPass": 1,
        "ScaleShiftFusionPass": 1,  # e4 to j4
        "ConvScaleFusionPass": 2,  # d3, e4 and so on
        "ConvBiasaddFusionPass": 2,
        "MatMulScaleFusionPass": 1,  # z
    },
    {"Conv2D": 5, "BatchNorm": 2, "HardSwish": 1, "Swish": 1, "Relu": 1, "MaxPoolV3": 1}
    | {"GlobalAveragePool": 1, "Flatten": 1, "BatchMatMulV2": 1},
)

ODDS_AND_ENDS = Sample(
    """net (float[2,3,4] x) => (float[2,3,3] y, float[24] z)
<float one = {1.0}, float half = {0.5}, float three = {3.0}, float cubic = {0.044715}, float root = {0.7978845608},
 float[1,1,1] ones = {1.0},
 int64[3] shape = {2,3,4}, int64[2] flat = {6,4}, int64[3] deep = {3,2,4}, int64[1] all = {24}>
{
    cube = Pow(x, three)
    a = Mul(cube, cubic)
    b = Add(x, a)
    c = Mul(b, root)
    d = Tanh(c)
    e = Add(d, one)
    f = Mul(e, half)
    g = Mul(x, f)

    left, right = Split<axis=2>(g)
    joined = Concat<axis=-1>(left, right)
    same = Expand(joined, shape)
    kept = Mul(same, ones)
    swapped = Transpose<perm=[0,2,1]>(g)
    y = MatMul(kept, swapped)

    r = Reshape(kept, flat)
    s = Reshape(r, deep)
    z = Reshape(s, all)
}""",
    {},
    {
        "GeluTanhFusionPass": 1,
        "SplitConcatFusionPass": 1,
        "IdleNodeFusionPass": 1,  # same
        "NeutralOperandFusionPass": 1,  # kept
        "MatMulTransposeFusionPass": 1,
        "ReshapeFusionPass": 1,
    },
    {"GeluV2": 1, "BatchMatMulV2": 1, "Reshape": 1},
)

DROPOUT = Sample(
    """dropout (float[2,3] x) => (float[2,3] y)
<float zero = {0.0}>
{
    noise = RandomUniform<shape=[2,3]>()
    kept = GreaterOrEqual(noise, zero)
    mask = Cast<to=1>(kept)
    doubled = Add(x, x)
    y = Mul(doubled, mask)
}""",
    {},
    {"NeutralOperandFusionPass": 2, "IdleDropoutFusionPass": 1},  # two: their interval, 0 to 1
    {"Add": 1},
)

DENSE = Sample(
    """dense (float[2,3,5] x) => (float[2,3,4] y)
<int64[2] rows = {6,5}, int64[3] back = {2,3,4}>
{
    flat = Reshape(x, rows)
    product = MatMul(flat, w)
    deep = Reshape(product, back)
    y = Add(deep, bias)
}""",
    {"w": (5, 4), "bias": (4,)},
    {"ReshapeBiasFusionPass": 1, "MatMulBiasAddFusionPass": 1},
    {"BatchMatMulV2": 1, "Reshape": 2},
)

SAMPLES = {
    "transformer": TRANSFORMER,
    "convolutions": CONVOLUTIONS,
    "odds and ends": ODDS_AND_ENDS,
    "dense layer over two axes": DENSE,
    "dropout that keeps everything": DROPOUT,
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_small_networks(sample: Sample, rng) -> None:
    assert fuse(sample.model(rng)) == (sample.effects, sample.left)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_small_networks_give_the_numbers_of_onnxruntime(sample: Sample, rng, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(sample.model(rng), path)
    session = InferSession(0, atc.compile_model(path, soc_version="Ascend310P3", precision_mode_v2="origin"))
    [port] = session.get_inputs()
    given: list[NDArray[np.float32]] = [rng.standard_normal(port.shape, dtype=np.float32) for _ in range(2)]
    expected = [list(run_onnxruntime(path, {"x": x}).values()) for x in given]
    for x, values in zip(given, expected, strict=True):
        for found, value in zip(session.infer([x]), values, strict=True):
            assert_agrees(found, value)
    for value, other in zip(*expected, strict=True):
        assert_can_tell(value, other)


def test_every_fusion_takes_effect_somewhere() -> None:
    assert {name for sample in SAMPLES.values() for name in sample.effects} == {f.name for f in BUILTIN_FUSIONS}
