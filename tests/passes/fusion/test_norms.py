"""LayerNorm, RMSNorm and softmax written with reductions."""

from __future__ import annotations

import numpy as np
import pytest

from passes.fusion.fuse_layer_norm import FuseLayerNorm
from passes.fusion.fuse_rms_norm import FuseRmsNorm
from passes.fusion.fuse_softmax import FuseSoftmax
from tests.passes.fusion.fused import fused, graph_of, left_alone, results

GAMMA, BETA = (np.array(values, np.float32) for values in ([1.5, -2.0, 0.5, 3.0], [0.25, 1.0, -1.0, 0.0]))
HEAD = """graph g(%x: f32[2,3,4]@ND, %gamma: f32[4]@ND, %beta: f32[4]@ND) {
  %last = Const {value=i64[1]{-1}} -> i64[1]@ND
  %two = Const {value=f32[]{2.0}} -> f32[]@ND
  %half = Const {value=f32[]{0.5}} -> f32[]@ND
  %minus_half = Const {value=f32[]{-0.5}} -> f32[]@ND
  %one = Const {value=f32[]{1.0}} -> f32[]@ND
  %eps = Const {value=f32[]{0.001}} -> f32[]@ND"""


def graph(body: str, result: str = "%y", gamma=GAMMA, beta=BETA, shape: str = "[2,3,4]", at_load=()):
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    text = f"{HEAD}\n{lines}\n  return {result}\n}}".replace("%x: f32[2,3,4]", f"%x: f32{shape}")
    for name, value in (("gamma", gamma), ("beta", beta)):
        text = text.replace(f"%{name}: f32[4]", f"%{name}: f32[{','.join(map(str, value.shape))}]")
    return graph_of(text, {"gamma": gamma, "beta": beta}, at_load)


SQUARES = ["Pow(%d, %two)", "Mul(%d, %d)", "Square(%d)", "SquaredDifference(%x, %m)", "SquaredDifference(%m, %x)"]
ROOTS = [
    "%s = Sqrt(%e)\n%n = RealDiv(%d, %s)",
    "%s = Pow(%e, %half)\n%n = RealDiv(%d, %s)",
    "%s = Rsqrt(%e)\n%n = Mul(%d, %s)",
    "%s = Rsqrt(%e)\n%n = Mul(%s, %d)",
    "%q = Sqrt(%e)\n%s = Reciprocal(%q)\n%n = Mul(%d, %s)",
    "%q = Sqrt(%e)\n%s = RealDiv(%one, %q)\n%n = Mul(%s, %d)",
    "%s = Pow(%e, %minus_half)\n%n = Mul(%d, %s)",
]
EPSILONS = ["%e = Add(%v, %eps)", "%e = Add(%eps, %v)", "%e = Adds(%v) {value=0.001}"]
ENDS = [
    "%t = Mul(%n, %gamma)\n%y = Add(%t, %beta)",
    "%t = Mul(%gamma, %n)\n%y = Add(%beta, %t)",
]
MEAN = "ReduceMean({}, %last) {{keep_dims=true}}"
MEAN_D = "ReduceMeanD({}) {{axes=[2], keep_dims=true}}"


def layer_norm(square=SQUARES[0], root=ROOTS[0], epsilon=EPSILONS[0], end=ENDS[0], mean=MEAN) -> str:
    below = [f"%m = {mean.format('%x')}", "%d = Sub(%x, %m)", f"%p = {square}", f"%v = {mean.format('%p')}"]
    return "\n".join([*below, epsilon, root, end])


# as TensorFlow writes it: factor and addend first
FACTOR_FIRST = "%s = Rsqrt(%e)\n%f = Mul(%s, %gamma)"
ADDEND_LAST = "%a = Mul(%x, %f)\n%b = Mul(%m, %f)\n%c = Sub(%beta, %b)\n%y = Add(%a, %c)"
FORMS = [
    *(layer_norm(square=square, root=root) for square in SQUARES for root in ROOTS),
    *(layer_norm(epsilon=epsilon, end=end) for epsilon in EPSILONS for end in ENDS),
    layer_norm(mean=MEAN_D),
    layer_norm(SQUARES[3], FACTOR_FIRST, end=ADDEND_LAST).replace("%d = Sub(%x, %m)\n", ""),
]


def test_all_ways_of_writing_layer_norm_become_one_node() -> None:
    for body in FORMS:
        result = fused(FuseLayerNorm, graph(body))
        assert result.times == (1, 1), body
        assert result.types() == ["LayerNormV4"], body
        node = result.only("LayerNormV4")
        x, _, gamma, beta = node.inputs
        assert [source.node.name for source in (x, gamma, beta)] == ["x", "gamma", "beta"]
        assert node.attrs["epsilon"] == pytest.approx(0.001)
        np.testing.assert_array_equal(result.constant(node, 1), [4])


@pytest.mark.parametrize(
    ("end", "inputs"),
    [
        ("%y = Abs(%n)", ["x", None]),
        ("%y = Mul(%n, %gamma)", ["x", None, "gamma"]),
        ("%y = Add(%n, %beta)", ["x", None, None, "beta"]),
        ("%y = Mul(%n, %half)", ["x", None]),
        ("%t = Mul(%n, %gamma)\n%u = Add(%t, %x)\n%y = Add(%u, %beta)", ["x", None, "gamma"]),
        ("%t = Mul(%n, %gamma)\n%u = Add(%t, %beta)\n%y = Add(%u, %beta)", ["x", None, "gamma", "beta"]),
    ],
    ids=["none", "scale", "shift", "number", "something in between", "shifted twice"],
)
def test_scale_and_shift_may_be_absent(end, inputs) -> None:
    node = fused(FuseLayerNorm, graph(layer_norm(end=end))).only("LayerNormV4")
    names = [None if source is None else source.node.name for source in node.inputs]
    assert [name if name in ("x", "gamma", "beta") else None for name in names] == inputs


def test_a_result_that_is_scaled_twice_is_normalised_once() -> None:
    result = fused(FuseLayerNorm, graph(layer_norm(end="%y = Mul(%n, %gamma)\n%z = Mul(%n, %beta)"), "%y, %z"))
    assert result.types() == ["LayerNormV4", "Mul", "Mul"]


def test_leading_axes_of_scale_and_shift_are_dropped() -> None:
    result = fused(FuseLayerNorm, graph(layer_norm(), gamma=GAMMA.reshape(1, 1, 4)))
    node = result.only("LayerNormV4")
    assert [desc.shape for desc in node.input_descs[2:]] == [[4], [4]]
    np.testing.assert_array_equal(result.constant(node, 2), GAMMA)


def test_several_axes_may_be_normalised() -> None:
    gamma = np.arange(12, dtype=np.float32).reshape(3, 4)
    body = layer_norm(mean="ReduceMeanD({}) {{axes=[-1, 1], keep_dims=true}}")
    result = fused(FuseLayerNorm, graph(body, gamma=gamma, beta=gamma))
    np.testing.assert_array_equal(result.constant(result.only("LayerNormV4"), 1), [3, 4])


def test_the_first_axes_may_be_unknown() -> None:
    result = fused(FuseLayerNorm, graph(layer_norm(), shape="[-1,-1,4]"))
    assert result.only("LayerNormV4").output_descs[0].shape == [-1, -1, 4]


OTHER_AXIS = "ReduceMeanD({}) {{axes=[1], keep_dims=true}}"


@pytest.mark.parametrize(
    ("body", "shape", "reasons"),
    [
        (layer_norm(mean=OTHER_AXIS), "[2,3,4]", ["it is over the axes [1] of 3, not over the last ones"]),
        (layer_norm(), "[2,3,-1]", ["the size [-1] of what is normalised is not known"]),
        (layer_norm().replace("ReduceMean(%p, %last)", "ReduceMeanD(%p) {axes=[1], keep_dims=true} #"), "[2,3,4]", []),
        (layer_norm().replace("Pow(%d, %two)", "Pow(%d, %half)"), "[2,3,4]", []),
        (layer_norm(root="%s = Sqrt(%e)\n%n = RealDiv(%x, %s)"), "[2,3,4]", []),
        (layer_norm(root="%s = Rsqrt(%e)\n%n = RealDiv(%d, %s)"), "[2,3,4]", []),
        (layer_norm(epsilon="%e = Sub(%v, %eps)"), "[2,3,4]", []),
    ],
    ids=["axis", "unknown size", "two axes", "no square", "not centred", "times the root", "negative epsilon"],
)
def test_must_not_fire(body, shape, reasons) -> None:
    body = "\n".join(line.split("#")[0] for line in body.splitlines())
    parameters = {} if shape.endswith("4]") else {"gamma": GAMMA[:1], "beta": BETA[:1]}
    assert left_alone(FuseLayerNorm, graph(body, shape=shape, **parameters)) == reasons


@pytest.mark.parametrize("shared", ["%m", "%d", "%p", "%v", "%e", "%s"])
def test_values_that_others_read_are_left_alone(shared: str) -> None:
    body = f"{layer_norm()}\n%z = Abs({shared})"
    assert left_alone(FuseLayerNorm, graph(body, "%y, %z")) == [f"z reads {shared[1:]} too"]


def normalised(x, epsilon=0.001, axes=-1):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("at_load", [(), ("gamma", "beta")], ids=["known", "computed at load"])
@pytest.mark.parametrize("body", [FORMS[0], FORMS[-1]])
def test_numbers_of_layer_norm(body, at_load, rng) -> None:
    x = (rng.standard_normal((2, 3, 4)) * 5 + 2).astype(np.float32)
    for which in (FuseLayerNorm, None):
        [found] = results(which, graph(body, at_load=at_load), [x])
        np.testing.assert_allclose(found, normalised(x) * GAMMA + BETA, rtol=1e-4, atol=1e-5)


# -- RMSNorm -----------------------------------------------------------------------------------------------------------
RMS_SQUARES = ["Pow(%x, %two)", "Mul(%x, %x)", "Square(%x)"]


def rms_norm(square=RMS_SQUARES[0], root=ROOTS[0], epsilon=EPSILONS[0], end="%y = Mul(%n, %gamma)", mean=MEAN) -> str:
    return "\n".join([f"%p = {square}", f"%v = {mean.format('%p')}", epsilon, root.replace("%d", "%x"), end])


RMS_FORMS = [
    *(rms_norm(square=square, root=root) for square in RMS_SQUARES for root in ROOTS),
    *(rms_norm(epsilon=epsilon, end="%y = Mul(%gamma, %n)") for epsilon in EPSILONS),
    rms_norm(mean=MEAN_D),
    rms_norm(root="%s = Rsqrt(%e)\n%n = Mul(%s, %gamma)", end="%y = Mul(%x, %n)"),
]


def test_all_ways_of_writing_rms_norm_become_one_node() -> None:
    for body in RMS_FORMS:
        result = fused(FuseRmsNorm, graph(body))
        assert result.times == (1, 1), body
        node = result.only("RmsNorm")
        assert [source.node.name for source in node.inputs] == ["x", "gamma"]
        assert node.attrs["epsilon"] == pytest.approx(0.001)
        assert result.types() == ["RmsNorm"]


@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        (rms_norm(end="%y = Abs(%n)"), ["it has no gamma, which RmsNorm needs"]),
        (rms_norm(end="%t = Abs(%x)\n%y = Mul(%n, %t)"), ["it has no gamma, which RmsNorm needs"]),
        (rms_norm(mean=OTHER_AXIS, end="%y = Abs(%n)"), ["it is over the axes [1] of 3, not over the last ones"]),
        (rms_norm(square="Mul(%x, %half)"), []),
        (rms_norm(end="%y = Mul(%n, %gamma)\n%z = Abs(%p)"), ["z reads p too"]),
    ],
    ids=["no gamma", "gamma computed", "axis", "no square", "shared"],
)
def test_rms_norm_must_not_fire(body, reasons) -> None:
    assert left_alone(FuseRmsNorm, graph(body, "%y, %z" if "%z" in body else "%y")) == reasons


def test_behind_its_centring_a_layer_norm_is_a_rms_norm() -> None:
    """FuseLayerNorm runs first; without it nothing goes wrong."""
    assert fused(FuseRmsNorm, graph(layer_norm())).types() == ["ReduceMean", "Sub", "RmsNorm", "Add"]


def test_numbers_of_rms_norm(rng) -> None:
    x = (rng.standard_normal((2, 3, 4)) * 5 + 2).astype(np.float32)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt(np.mean(wide**2, -1, keepdims=True) + 0.001) * GAMMA
    for which in (FuseRmsNorm, None):
        [found] = results(which, graph(RMS_FORMS[0]), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# -- softmax -----------------------------------------------------------------------------------------------------------
def softmax(axes: str = "[2]", last: str = "%y = RealDiv(%e, %t)", peak_axes: str | None = None) -> str:
    return f"""graph g(%x: f32[2,3,4]@ND) {{
  %a = Const {{value=i64[{axes.count(",") + 1}]{{{axes[1:-1]}}}}} -> i64[1]@ND
  %b = Const {{value=i64[1]{{{peak_axes or 0}}}}} -> i64[1]@ND
  %m = ReduceMax(%x, {"%a" if peak_axes is None else "%b"}) {{keep_dims=true}}
  %d = Sub(%x, %m)
  %e = Exp(%d)
  %t = ReduceSum(%e, %a) {{keep_dims=true}}
  {last}
  return %y
}}"""


@pytest.mark.parametrize(
    ("axes", "last"),
    [
        ("[2]", "%y = RealDiv(%e, %t)"),
        ("[-1]", "%y = Div(%e, %t)"),
        ("[1]", "%r = Reciprocal(%t)\n  %y = Mul(%e, %r)"),
        ("[1, 2]", "%r = Reciprocal(%t)\n  %y = Mul(%r, %e)"),
    ],
)
def test_softmax_becomes_one_node(axes, last) -> None:
    result = fused(FuseSoftmax, softmax(axes, last=last))
    assert result.types() == ["SoftmaxV2"]
    assert result.only("SoftmaxV2").attrs["axes"] == [axis % 3 for axis in eval_axes(axes)]
    assert result.times == (1, 1)


def eval_axes(text: str) -> list[int]:
    return [int(part) for part in text[1:-1].split(",")]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (softmax().replace("Sub(%x, %m)", "Add(%x, %m)"), ["the maximum is not subtracted"]),
        (softmax().replace("Exp(%d)", "Exp(%x)"), ["the maximum is not subtracted"]),
        (softmax(peak_axes="1"), ["the maximum is over the axes [1], the sum over [2]"]),
        (softmax("[0, 2]"), ["the axes [0, 2] do not lie side by side"]),
        (softmax().replace("Exp(%d)", "Exp(%d) {base=2.0}"), []),
        (softmax(last="%y = RealDiv(%t, %e)"), []),
        (softmax().replace("return %y", "%z = Abs(%t)\n  return %y, %z"), ["z reads t too"]),
    ],
    ids=["added", "no maximum", "other axes", "apart", "base 2", "upside down", "shared"],
)
def test_softmax_must_not_fire(text, reasons) -> None:
    assert left_alone(FuseSoftmax, text) == reasons


@pytest.mark.parametrize("axes", ["[2]", "[1]", "[0, 1]"])
def test_numbers_of_softmax(axes, rng) -> None:
    x = (rng.standard_normal((2, 3, 4)) * 20).astype(np.float32)
    over = tuple(eval_axes(axes))
    powers = np.exp(x.astype(np.float64))
    expected = powers / powers.sum(over, keepdims=True)
    for which in (FuseSoftmax, None):
        [found] = results(which, graph_of(softmax(axes)), [x])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
