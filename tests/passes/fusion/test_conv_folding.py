"""BatchNorm, factors and addends folded into convolutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ge.fusion_switches import FusionSwitches
from ge.graph.types import data_type_by_short_name, numpy_dtype
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from passes.fusion.fold_batch_norm import FoldBatchNorm
from passes.fusion.fold_conv_bias import FoldConvBias
from passes.fusion.fold_conv_scale import FoldConvScale
from passes.fusion.fuse_graph import FuseGraph
from tests.passes.fusion.fused import ALL_OFF, fused, graph_of, left_alone, results, run_model, settled


@dataclass(frozen=True)
class Conv:
    """A convolution of an input of shape ``x`` to ``outputs`` channels on axis ``axis``."""

    call: str
    attrs: str
    x: tuple[int, ...]
    filter: tuple[int, ...]
    outputs: int
    axis: int = 1
    slot: int = 1

    @property
    def rank(self) -> int:
        return len(self.x)

    def along(self, vector):
        return vector.reshape([-1 if i == self.axis else 1 for i in range(self.rank)])


FIRST, LAST = 'data_format="NCHW"', 'data_format="NHWC"'
PLAIN = "strides=[1,1,1,1], pads=[1,1,1,1]"
CONVS = {
    "conv": Conv("Conv2D(%x, %w", f"{PLAIN}, {FIRST}", (2, 4, 5, 6), (6, 4, 3, 3), 6),
    "grouped": Conv("Conv2D(%x, %w", f"{PLAIN}, groups=2, {FIRST}", (1, 4, 5, 6), (6, 2, 3, 3), 6),
    "depthwise by groups": Conv("Conv2D(%x, %w", f"{PLAIN}, groups=4, {FIRST}", (1, 4, 5, 6), (4, 1, 3, 3), 4),
    "channels last": Conv("Conv2D(%x, %w", f"{PLAIN}, {LAST}", (1, 5, 6, 4), (3, 3, 4, 6), 6, axis=3),
    "conv v2": Conv("Conv2DV2(%x, %w", f"{PLAIN}, {FIRST}", (1, 4, 5, 6), (6, 4, 3, 3), 6),
    "depthwise": Conv("DepthwiseConv2D(%x, %w", f"{PLAIN}, {FIRST}", (1, 3, 5, 6), (2, 3, 3, 3), 6),
    "depthwise channels last": Conv(
        "DepthwiseConv2D(%x, %w", f"{PLAIN}, {LAST}", (1, 5, 6, 3), (3, 3, 3, 2), 6, axis=3
    ),
    "conv 3d": Conv(
        "Conv3D(%x, %w",
        'strides=[1,1,1,1,1], pads=[0,0,0,0,0,0], data_format="NCDHW"',
        (1, 2, 3, 4, 5),
        (4, 2, 2, 2, 2),
        4,
    ),
    "transposed": Conv("Conv2DTranspose(%size, %x, %w", f"{PLAIN}, {FIRST}", (1, 4, 5, 6), (4, 6, 3, 3), 6, slot=2),
    "transposed, grouped": Conv(
        "Conv2DTranspose(%size, %x, %w", f"{PLAIN}, groups=2, {FIRST}", (1, 4, 5, 6), (4, 3, 3, 3), 6, slot=2
    ),
    "transposed, channels last": Conv(
        "Conv2DTranspose(%size, %x, %w", f"{PLAIN}, groups=2, {LAST}", (1, 5, 6, 4), (3, 3, 3, 4), 6, axis=3, slot=2
    ),
    "transposed 3d": Conv(
        "Conv3DTranspose(%size, %x, %w",
        'strides=[1,1,1,1,1], pads=[0,0,0,0,0,0], data_format="NCDHW"',
        (1, 2, 3, 4, 5),
        (2, 4, 2, 2, 2),
        4,
        slot=2,
    ),
}


def dims(shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def text(conv: Conv, reader: str, has_bias: bool, inputs: str = "", result: str = "%y") -> str:
    data_format = "NHWC" if conv.axis > 1 else "NCHW" if conv.rank == 4 else "ND"
    size = f"%size = Const {{value=i64[{conv.rank}]{{{','.join('0' * conv.rank)}}}}} -> i64[{conv.rank}]@ND"
    x, w, b = f"%x: f32{dims(conv.x)}@{data_format}", f"%w: f32{dims(conv.filter)}@ND", f"%b: f32[{conv.outputs}]@ND"
    return f"""graph g({x}, {w}, {b}{inputs}) {{
  {size}
  %c = {conv.call}{", %b" if has_bias else ""}) {{{conv.attrs}}}
  {reader}
  return {result}
}}"""


def weights(conv: Conv, rng) -> dict:
    return {
        "w": rng.standard_normal(conv.filter).astype(np.float32),
        "b": rng.standard_normal(conv.outputs).astype(np.float32),
    }


def convolved(conv: Conv, has_bias: bool, constants, x):
    """The convolution alone, in float64."""
    wide = text(conv, "%y = Identity(%c)", has_bias).replace("f32", "f64")
    fixed = {name: value.astype(np.float64) for name, value in constants.items() if name in ("w", "b")}
    switches = FusionSwitches(graph=ALL_OFF)
    session = CompileSession(CompileOptions(fusion_switches=switches), Environment())
    [found] = run_model(graph_of(wide, fixed), session, [x.astype(np.float64)])
    return found


def statistics(outputs: int, rng) -> dict:
    scale, offset, mean = (rng.standard_normal(outputs).astype(np.float32) for _ in range(3))
    return {"s": scale, "o": offset, "m": mean, "v": rng.uniform(0.5, 2, outputs).astype(np.float32)}


def statistics_inputs(outputs: int) -> str:
    return "".join(f", %{name}: f32[{outputs}]@ND" for name in "somv")


def batch_norm(conv: Conv) -> str:
    if conv.axis > 1 or conv.rank == 5:
        data_format = "NHWC" if conv.axis > 1 else "NCDHW"
        return f'%y:6 = BatchNorm(%c, %s, %o, %m, %v) {{epsilon=0.01, data_format="{data_format}", is_training=false}}'
    return "%y = BNInfer(%c, %s, %o, %m, %v) {epsilon=0.01}"


def normalised(conv: Conv, y, constants):
    scale, offset, mean, variance = (conv.along(constants[name].astype(np.float64)) for name in "somv")
    return (y - mean) / np.sqrt(variance + 0.01) * scale + offset


@pytest.mark.parametrize("at_load", [(), "wbsomv"], ids=["known", "computed at load"])
@pytest.mark.parametrize("has_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("name", CONVS)
def test_numbers_with_batch_norm_folded(name, has_bias, at_load, rng) -> None:
    conv = CONVS[name]
    constants = weights(conv, rng) | statistics(conv.outputs, rng)
    given = text(conv, batch_norm(conv), has_bias, statistics_inputs(conv.outputs))
    x = rng.standard_normal(conv.x).astype(np.float32)
    expected = normalised(conv, convolved(conv, has_bias, constants, x), constants)
    for which in (FoldBatchNorm, None):
        [found] = results(which, graph_of(given, constants, at_load), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("has_bias", [False, True])
def test_folded_numbers_are_rounded_once(has_bias, rng) -> None:
    conv = CONVS["conv"]
    constants = weights(conv, rng) | statistics(6, rng)
    given = text(conv, batch_norm(conv), has_bias, statistics_inputs(6))
    result = fused(FoldBatchNorm, graph_of(given, constants))
    wide = {name: value.astype(np.float64) for name, value in constants.items()}
    factor = wide["s"] / np.sqrt(wide["v"] + 0.01)
    bias = wide["o"] - wide["m"] * factor + (wide["b"] * factor if has_bias else 0)
    node = result.only("Conv2D")
    np.testing.assert_array_equal(result.constant(node, 1), (wide["w"] * factor.reshape(6, 1, 1, 1)).astype(np.float32))
    np.testing.assert_array_max_ulp(result.constant(node, 2), bias.astype(np.float32), 1)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_weights_are_rounded_once(dtype, rng) -> None:
    narrow = numpy_dtype(data_type_by_short_name(dtype))
    conv = CONVS["conv"]
    constants = {name: value.astype(narrow) for name, value in (weights(conv, rng) | statistics(6, rng)).items()}
    given = text(conv, batch_norm(conv), False, statistics_inputs(6)).replace("f32", dtype)
    result = fused(FoldBatchNorm, graph_of(given, constants))
    wide = {name: value.astype(np.float64) for name, value in constants.items()}
    exact = wide["w"] * (wide["s"] / np.sqrt(wide["v"] + 0.01)).reshape(6, 1, 1, 1)
    found = result.constant(result.only("Conv2D"), 1)
    assert found.dtype == narrow
    spacing = np.abs(np.nextafter(found, narrow.type(np.inf)).astype(np.float64) - found.astype(np.float64))
    assert (np.abs(found.astype(np.float64) - exact) <= spacing * 0.5001).all()


READERS = {
    "Mul": (FoldConvScale, "%y = Mul(%c, %k)", lambda c, k: c * k),
    "Mul, turned": (FoldConvScale, "%y = Mul(%k, %c)", lambda c, k: c * k),
    "RealDiv": (FoldConvScale, "%y = RealDiv(%c, %k)", lambda c, k: c / k),
    "Div": (FoldConvScale, "%y = Div(%c, %k)", lambda c, k: c / k),
    "Muls": (FoldConvScale, "%y = Muls(%c) {value=-1.75}", lambda c, k: c * -1.75),
    "Add": (FoldConvBias, "%y = Add(%c, %k)", lambda c, k: c + k),
    "Add, turned": (FoldConvBias, "%y = Add(%k, %c)", lambda c, k: c + k),
    "AddV2": (FoldConvBias, "%y = AddV2(%c, %k)", lambda c, k: c + k),
    "Sub": (FoldConvBias, "%y = Sub(%c, %k)", lambda c, k: c - k),
    "Adds": (FoldConvBias, "%y = Adds(%c) {value=-1.75}", lambda c, k: c - 1.75),
    "BiasAdd": (FoldConvBias, '%y = BiasAdd(%c, %k) {data_format="NCHW"}', lambda c, k: c + k),
}


@pytest.mark.parametrize("at_load", [(), "wbk"], ids=["known", "computed at load"])
@pytest.mark.parametrize("has_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("reader", READERS)
def test_factors_and_addends_are_folded(reader, has_bias, at_load, rng) -> None:
    conv = CONVS["conv"]
    fusion, line, meaning = READERS[reader]
    k = rng.uniform(0.5, 2, 6).astype(np.float32)
    shaped = k if reader == "BiasAdd" else k.reshape(6, 1, 1)
    constants = weights(conv, rng) | {"k": shaped}
    given = text(conv, line, has_bias, f", %k: f32{dims(shaped.shape)}@ND")
    x = rng.standard_normal(conv.x).astype(np.float32)
    expected = meaning(convolved(conv, has_bias, constants, x), conv.along(k.astype(np.float64)))
    [found] = results(fusion, graph_of(given, constants, at_load), [x])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    result = fused(fusion, graph_of(given, constants, at_load))
    assert result.types() == ["Conv2D"]
    assert result.times == (1, 1)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (1, 6, 1, 1)], ids=str)
def test_shapes_of_constants(shape, rng) -> None:
    conv = CONVS["conv"]
    constants = weights(conv, rng) | {"k": rng.uniform(0.5, 2, shape).astype(np.float32)}
    result = fused(
        FoldConvBias, graph_of(text(conv, "%y = Add(%c, %k)", False, f", %k: f32{dims(shape)}@ND"), constants)
    )
    bias = result.constant(result.only("Conv2D"), 2)
    np.testing.assert_array_equal(bias, np.broadcast_to(constants["k"].reshape(-1), 6))


def test_the_text_of_a_fold() -> None:
    attrs = 'strides=[1, 1, 1, 1], pads=[0, 0, 0, 0], data_format="NCHW", auto_pad="NOTSET"'
    before = f"""graph g(%x: f32[1,2,1,1]@NCHW) {{
  %w = Const {{value=f32[2,2,1,1]{{1.0, 2.0, 3.0, 4.0}}}} -> f32[2,2,1,1]@NCHW
  %k = Const {{value=f32[2,1,1]{{2.0, 10.0}}}} -> f32[2,1,1]@ND
  %c = Conv2D(%x, %w) {{{attrs}}} -> f32[1,2,1,1]@NCHW
  %y = Mul(%c, %k) -> f32[1,2,1,1]@NCHW{{_origin_output_tensor_name="y"}}
  return %y
}}"""
    after = f"""graph g(%x: f32[1,2,1,1]@NCHW) {{
  %Const_c_y_0 = Const {{value=f32[2,2,1,1]{{2.0, 4.0, 30.0, 40.0}}}} -> f32[2,2,1,1]@NCHW
  %Conv2D_c_y_1 = Conv2D(%x, %Const_c_y_0) {{{attrs}}} -> f32[1,2,1,1]@NCHW{{_origin_output_tensor_name="y"}}
  return %Conv2D_c_y_1
}}"""
    assert fused(FoldConvScale, graph_of(before)).text() == after


# -- what must not be folded -------------------------------------------------------------------------------------------
NORM = '%y:6 = BatchNorm(%c, %s, %o, %m, %v) {epsilon=0.01, data_format="NCHW", is_training=false}'


def refused(
    fusion, line, rng, *, has_bias=False, result="%y", inputs="", constants=None, leave=(), replace=()
) -> list[str]:
    """Leave the inputs named in ``leave`` as they are; the others become constants."""
    conv = CONVS["conv"]
    values = weights(conv, rng) | (statistics(6, rng) if fusion is FoldBatchNorm else {}) | (constants or {})
    given = text(conv, line, has_bias, inputs or (statistics_inputs(6) if fusion is FoldBatchNorm else ""), result)
    for old, new in replace:
        assert old in given
        given = given.replace(old, new)
    return left_alone(fusion, graph_of(given, {k: v for k, v in values.items() if k not in leave}))


@pytest.mark.parametrize(
    ("line", "options", "reasons"),
    [
        (f"{NORM}\n  %z = Relu(%c)", {"result": "%y, %z"}, ["z reads c too"]),
        (NORM, {"result": "%y, %c"}, ["the graph's result reads c too"]),
        (f"{NORM}\n  %z = Relu(%w)", {"result": "%y, %z"}, ["z reads w too: it would have to be stored twice"]),
        (NORM, {"leave": "w"}, ["w is no constant"]),
        (NORM, {"leave": "b", "has_bias": True}, ["b is no constant"]),
        (NORM, {"leave": "v"}, ["v is no constant"]),
        (NORM, {"replace": [("is_training=false", "is_training=true")]}, ["y is in training"]),
        (f"{NORM}\n  %z = Relu(%y:1)", {"result": "%y, %z"}, ["the statistics that y gives out are read"]),
        (NORM, {"constants": {"v": np.full(6, -0.02, np.float32)}}, ["the numbers do not fit into DT_FLOAT"]),
        (NORM, {"constants": {"s": np.full(6, np.inf, np.float32)}}, ["the numbers do not fit into DT_FLOAT"]),
        (
            NORM,
            {"constants": {"s": np.full(6, 1e-45, np.float32), "v": np.full(6, 100, np.float32)}},
            ["the numbers do not fit into DT_FLOAT"],
        ),
    ],
    ids=[
        "shared",
        "result",
        "filter shared",
        "filter",
        "bias",
        "variance",
        "training",
        "statistics",
        "root of 0",
        "inf",
        "lost",
    ],
)
def test_batch_norm_must_not_be_folded(line, options, reasons, rng) -> None:
    assert refused(FoldBatchNorm, line, rng, **options) == reasons


@pytest.mark.parametrize(
    ("line", "shape", "reason"),
    [
        ("%y = Add(%c, %k)", (5, 6), "y has not one number for each of 6 channels"),
        ("%y = Add(%c, %k)", (2, 6, 1, 1), "y has not one number for each of 6 channels"),
        ("%y = Add(%c, %k)", (1, 2, 6, 1, 1), "y has not one number for each of 6 channels"),
        ("%y = Sub(%k, %c)", (6, 1, 1), None),
    ],
    ids=["positions", "samples", "growth", "turned difference"],
)
def test_addends_that_are_not_per_channel(line, shape, reason, rng) -> None:
    k = rng.standard_normal(shape).astype(np.float32)
    found = refused(FoldConvBias, line, rng, inputs=f", %k: f32{dims(shape)}@ND", constants={"k": k})
    assert found == ([] if reason is None else [reason])


def test_an_addend_that_is_computed_is_left_alone(rng) -> None:
    inputs = ", %k: f32[6,1,1]@ND"
    assert refused(FoldConvBias, "%y = Add(%c, %k)", rng, inputs=inputs) == ["k is no constant"]
    assert refused(FoldConvBias, "%k = Relu(%c)\n  %y = Add(%c, %k)", rng) == ["k reads c too"]


def test_a_result_that_is_added_to_itself_is_left_alone(rng) -> None:
    assert refused(FoldConvBias, "%y = Add(%c, %c)", rng) == ["y reads c more than once"] * 2


def test_channels_along_another_axis_are_left_alone(rng) -> None:
    conv = Conv("Conv2D(%x, %w", f"{PLAIN}, {FIRST}", (1, 4, 6, 6), (6, 4, 3, 3), 6)
    constants = weights(conv, rng) | statistics(6, rng)
    given = text(conv, NORM.replace("NCHW", "NHWC"), False, statistics_inputs(6))
    assert left_alone(FoldBatchNorm, graph_of(given, constants)) == ["y has not one number for each of 6 channels"]


def test_integers_are_left_alone(rng) -> None:
    conv = CONVS["conv"]
    given = (
        text(conv, "%y = Add(%c, %k)", False, ", %k: i32[6,1,1]@ND")
        .replace("%x: f32", "%x: i8")
        .replace("%w: f32", "%w: i8")
    )
    constants = {"w": np.ones(conv.filter, np.int8), "k": np.ones((6, 1, 1), np.int32)}
    assert left_alone(FoldConvBias, graph_of(given, constants)) == ["y does not compute floating point numbers"]


def test_products_that_may_overflow_are_left_alone(rng) -> None:
    conv = CONVS["conv"]
    given = text(conv, "%y = Muls(%c) {value=1000.0}", False).replace("f32", "f16")
    constants = {"w": np.full(conv.filter, 100, np.float16)}
    assert left_alone(FoldConvScale, graph_of(given, constants)) == ["the products may not fit into DT_FLOAT16"]


def test_products_that_would_lose_digits_are_left_alone(rng) -> None:
    conv = CONVS["conv"]
    given = text(conv, "%y = Muls(%c) {value=0.0001}", False).replace("f32", "f16")
    constants = {"w": np.full(conv.filter, 0.01, np.float16)}
    reasons = ["the products would lose digits in DT_FLOAT16"]
    assert left_alone(FoldConvScale, graph_of(given, constants)) == reasons


def test_what_is_folded_at_load_leaves_no_float64_weights(rng) -> None:
    """They would be in memory all at once while a model is loaded."""
    conv = CONVS["conv"]
    constants = weights(conv, rng) | statistics(6, rng)
    given = text(conv, batch_norm(conv), True, statistics_inputs(6))
    result = settled(fused(FoldBatchNorm, graph_of(given, constants, "wbsomv")))
    wide = [d for n in result.graph for d in n.output_descs if d.data_type.name == "DT_DOUBLE"]
    assert all(desc.shape.elements <= 6 for desc in wide)
    assert result.types() == ["Conv2D"]


def test_all_of_a_chain_is_folded_in_the_order_of_the_pipeline(rng) -> None:
    conv = CONVS["transposed"]
    constants = weights(conv, rng) | statistics(6, rng) | {"k": rng.standard_normal((6, 1, 1)).astype(np.float32)}
    lines = (
        "%e = Add(%c, %k)\n  %f = BNInfer(%e, %s, %o, %m, %v) {epsilon=0.01}\n  %g = Mul(%k, %f)\n  %y = Sub(%g, %k)"
    )
    given = text(conv, lines, False, statistics_inputs(6) + ", %k: f32[6,1,1]@ND")
    session = CompileSession(CompileOptions(), Environment())
    graph = graph_of(given, constants)
    FuseGraph().run(graph, session)
    assert [n.type for n in graph if n.type not in ("Data", "Const")] == ["Conv2DTranspose"]
    x = rng.standard_normal(conv.x).astype(np.float32)
    [found] = run_model(graph_of(given, constants), CompileSession(CompileOptions(), Environment()), [x])
    k = constants["k"].astype(np.float64)
    expected = normalised(conv, convolved(conv, False, constants, x) + k, constants) * k - k
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
