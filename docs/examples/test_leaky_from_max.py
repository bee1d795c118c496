"""Tests of the pass LeakyFromMax: what it makes, what it leaves alone, and that the numbers stay."""

import numpy as np
import pytest

import atc
from ge.passes import PassContext
from ge.passes.bootstrap import load_pass_plugins
from ge.passes.engine import run_pass
from ge.text import parse_graph
from simulator import InferSession

PASS_FILE = "opp/vendors/acme/custom_fusion_passes/leaky_from_max.py"
OPTIONS = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin"}


@pytest.fixture(scope="module")
def leaky_from_max():
    return next(p.cls for p in load_pass_plugins(PASS_FILE) if p.pass_name == "LeakyFromMax")


def rewritten(cls, expression, slope="f32[]{0.25}"):
    """The nodes of a small graph behind the pass, without inputs and constants."""
    graph = parse_graph(f"""
        graph g(%x: f32[4]@ND) {{
          %c = Const {{value={slope}}} -> {slope.partition("{")[0]}@ND
          %m = Mul(%x, %c) -> f32[4]@ND
          %y = Maximum({expression}) -> f32[4]@ND
          return %y
        }}""")
    run_pass(cls, graph, PassContext("LeakyFromMax"))
    return [node for node in graph if node.type not in ("Data", "Const", "NetOutput")]


@pytest.mark.parametrize("expression", ["%x, %m", "%m, %x"])
@pytest.mark.parametrize("slope", ["f32[]{0.25}", "f32[1]{0.25}", "f32[]{1.0}", "f32[]{-2.0}"])
def test_it_makes_a_leaky_relu(leaky_from_max, expression, slope):
    [node] = rewritten(leaky_from_max, expression, slope)
    assert node.type == "LeakyRelu"
    assert node.get_attr("negative_slope") == float(slope.partition("{")[2].rstrip("}"))


@pytest.mark.parametrize(
    ("expression", "slope"),
    [
        ("%x, %m", "f32[]{1.5}"),  # above 1 it is another function
        ("%x, %m", "f32[4]{0.1, 0.1, 0.1, 0.1}"),  # one slope only
        ("%m, %m", "f32[]{0.25}"),
        ("%x, %c", "f32[]{0.25}"),
    ],
)
def test_it_leaves_other_graphs_alone(leaky_from_max, expression, slope):
    assert "LeakyRelu" not in [node.type for node in rewritten(leaky_from_max, expression, slope)]


def test_the_numbers_stay(leaky_from_max):
    x = np.load("x.npy")
    before = atc.compile_model("leaky.onnx", **OPTIONS)
    after = atc.compile_model("leaky.onnx", **OPTIONS, passes=[leaky_from_max])
    assert [node.type for node in after.graph if node.type in ("Maximum", "LeakyRelu")] == ["LeakyRelu"]
    for expected, found in zip(InferSession(0, before).infer([x]), InferSession(0, after).infer([x]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
