"""Random graphs with and without layouts of the chip: the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

import atc
from atc.compiler import compile_graph
from ge.formats import Transfer, is_private
from ge.graph import Graph, Tensor
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph, print_graph
from simulator import InferSession
from tests.passes.format.test_fewest_transfers import random_graph

Array = np.ndarray


def results(
    text: str, side: dict[str, Array], inputs: list[Array], *, is_refined: bool, **options: bool
) -> list[Array]:
    """Compile graph text in its own precision and run it."""
    chosen = CompileOptions(
        soc_version="Ascend310P3", precision_mode_v2="origin", format_refinement=is_refined, **options
    )
    session = CompileSession(chosen, Environment(), is_verifying=True)
    model = compile_graph(parse_graph(text, side), session)
    assert session.warnings == []
    is_private_somewhere = any(is_private(desc.format) for node in model.graph for desc in node.output_descs)
    assert is_private_somewhere == (is_refined and ("Conv2D(" in text or "MaxPool" in text or "allow_nz" in text))
    return list(InferSession(0, model, debug=is_refined).infer(inputs))  # debug: padding is checked after each step


def assert_same(text: str, side: dict[str, Array], inputs: list[Array], rtol: float, **options: bool) -> None:
    plain = results(text, side, inputs, is_refined=False)
    refined = results(text, side, inputs, is_refined=True, **options)
    for expected, actual in zip(plain, refined, strict=True):
        assert actual.shape == expected.shape
        scale = float(np.abs(expected).max())
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * scale)


def text_of(graph: Graph, dtype: str, weights: np.random.Generator) -> tuple[str, dict[str, Array]]:
    """The text of a graph in another element type, its large constant with other values."""
    wide = np.float32 if dtype == "f32" else np.float16
    for constant in graph.nodes_of_type("Const"):
        value = constant.attrs["value"]
        if value.array.dtype == np.float16:
            fresh = (weights.standard_normal(value.array.shape) / 4).astype(wide)
            tensor = Tensor.of(fresh, value.desc.format)
            constant.attrs["value"] = tensor
    side: dict[str, Array] = {}
    return print_graph(graph, side).replace("f16[", f"{dtype}["), side


@pytest.mark.parametrize(("dtype", "rtol"), [("f32", 1e-5), ("f16", 4e-3)])
@pytest.mark.parametrize("seed", range(15))
def test_random_graphs(seed: int, dtype: str, rtol: float) -> None:
    numbers = np.random.default_rng(seed)
    text, side = text_of(random_graph(Random(2000 + seed), range(4, 16)), dtype, numbers)
    image = numbers.standard_normal((1, 16, 8, 8)).astype(np.float32 if dtype == "f32" else np.float16)
    assert_same(text, side, [image], rtol)


ATTENTION = """graph attention(%x: f32[2,37,48]@ND, %w: f32[48,48]@ND, %v: f32[48,48]@ND, %g: f32[48]@ND) {
  %q = BatchMatMulV2(%x, %w) {allow_nz=true}
  %k = BatchMatMulV2(%x, %v) {allow_nz=true}
  %s = BatchMatMulV2(%q, %k) {allow_nz=true, adj_x2=true}
  %t = Mul(%s, %scale)
  %p = SoftmaxV2(%t) {axes=[-1]}
  %o = BatchMatMulV2(%p, %k) {allow_nz=true}
  %a = Add(%o, %q)
  %n:3 = LayerNorm(%a, %g, %g) {begin_norm_axis=2, begin_params_axis=2}
  %r = Relu(%n)
  %y = BatchMatMulV2(%r, %w) {allow_nz=true}
  %scale = Const {value=f32[]{0.125}} -> f32[]@ND
  return %y, %p
}"""


@pytest.mark.parametrize("rows", [32, 37])
def test_products_in_layouts_of_matrices(rows: int) -> None:
    numbers = np.random.default_rng(rows)
    shapes = [(2, rows, 48), (48, 48), (48, 48), (48,)]
    inputs = [(numbers.standard_normal(shape) / 3).astype(np.float32) for shape in shapes]
    assert_same(ATTENTION.replace("37", str(rows)), {}, inputs, 1e-4)


CONVOLUTIONS = """graph convolutions(%x: f32[2,3,9,7]@ND, %first: f32[20,3,3,3]@ND, %grouped: f32[32,5,3,3]@ND, \
%slope: f32[32]@ND, %back: f32[32,4,2,2]@ND, %bias: f32[32]@ND) {
  %size = Const {value=i32[4]{0, 0, 0, 0}} -> i32[4]@ND
  %a = Conv2D(%x, %first) {strides=[1,1,2,2], pads=[1,1,1,1], data_format="NCHW"}
  %b = Conv2D(%a, %grouped, %bias) {strides=[1,1,1,1], pads=[1,1,1,1], groups=4, data_format="NCHW"}
  %c = PRelu(%b, %slope)
  %d = Conv2DTranspose(%size, %c, %back) {strides=[1,1,2,2], pads=[0,0,0,0], groups=2, data_format="NCHW"}
  %e = Exp(%d)
  %m = GlobalAveragePool(%e)
  %f = Mul(%e, %m)
  %h = ReduceMax(%f, %axes) {keep_dims=true}
  %s:2 = SplitD(%c) {split_dim=1, num_split=2}
  %j = ConcatD(%s:1, %s) {concat_dim=1}
  %axes = Const {value=i32[1]{2}} -> i32[1]@ND
  return %h, %j, %f
}"""


@pytest.mark.parametrize("few", [False, True])
def test_convolutions_of_all_kinds(few: bool) -> None:
    numbers = np.random.default_rng(7)
    shapes = [(2, 3, 9, 7), (20, 3, 3, 3), (32, 5, 3, 3), (32,), (32, 4, 2, 2), (32,)]
    inputs = [(numbers.standard_normal(shape) / 3).astype(np.float32) for shape in shapes]
    assert_same(CONVOLUTIONS, {}, inputs, 1e-4, enable_small_channel=few)


BLOCK = """graph block(%x: f32[1,16,8,8]@ND, %w: f32[32,16,3,3]@ND, %v: f32[32,32,3,3]@ND, %u: f32[32,16,1,1]@ND) {
  %a = Conv2D(%x, %w) {strides=[1,1,1,1], pads=[1,1,1,1], data_format="NCHW"}
  %b = Relu(%a)
  %c = Conv2D(%b, %v) {strides=[1,1,1,1], pads=[1,1,1,1], data_format="NCHW"}
  %d = Conv2D(%x, %u) {strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"}
  %e = Add(%c, %d)
  %y = Relu(%e)
  return %y
}"""


def copy_bytes_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Let each TransData leave all bytes in their order, zeros behind them where there is more room.

    Return the shapes that it will have met. Weights that are constants are no longer concerned.
    """
    copied = []

    def copy(self: Transfer, source: Array, target: Array) -> None:
        copied.append(source.shape)
        flat = target.reshape(-1)
        fits = min(source.size, target.size)
        flat[:fits], flat[fits:] = source.reshape(-1)[:fits], 0

    monkeypatch.setattr(Transfer, "run", copy)
    return copied


def test_a_trans_data_that_only_copies_bytes_is_seen_in_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATC_CODEGEN", "off")
    numbers = np.random.default_rng(11)
    shapes = [(1, 16, 8, 8), (32, 16, 3, 3), (32, 32, 3, 3), (32, 16, 1, 1)]
    inputs = [(numbers.standard_normal(shape) / 4).astype(np.float32) for shape in shapes]
    (expected,) = results(BLOCK, {}, inputs, is_refined=False)
    (right,) = results(BLOCK, {}, inputs, is_refined=True)
    tolerance = 1e-4 * float(np.abs(expected).max())
    assert np.abs(right - expected).max() < tolerance
    copied = copy_bytes_from_now_on(monkeypatch)
    (wrong,) = results(BLOCK, {}, inputs, is_refined=True)
    assert (1, 16, 8, 8) in copied
    assert np.abs(wrong - expected).max() > 10 * tolerance


def test_so_it_is_in_every_result_of_a_network(monkeypatch: pytest.MonkeyPatch, sample_model: Callable) -> None:
    monkeypatch.setenv("ATC_CODEGEN", "off")
    sample = sample_model("onnx/conv_zoo.onnx")
    model = atc.compile_model(sample.path, soc_version="Ascend310P3", precision_mode_v2="origin")

    def errors() -> list[float]:
        """The largest error of each result, measured by its largest element."""
        found = zip(InferSession(0, model).infer(list(sample.inputs.values())), sample.outputs.values(), strict=True)
        return [float(np.abs(actual - expected).max() / np.abs(expected).max()) for actual, expected in found]

    tolerance = 1e-4
    assert max(errors()) < tolerance
    copied = copy_bytes_from_now_on(monkeypatch)
    assert min(errors()) > 10 * tolerance
    assert len(copied) == sum(node.type == "TransData" for node in model.graph)


COMPUTED_OPERANDS = {
    "a bias for blocks of channels": (
        """graph g(%x: f32[2,3,6,5]@ND, %v: f32[7]@ND, %w: f32[7,3,3,3]@ND) {
          %a = Conv2D(%x, %w) {strides=[1,1,1,1], pads=[1,1,1,1], data_format="NCHW"}
          %b = Exp(%v)
          %c = BiasAdd(%a, %b) {data_format="NCHW"}
          %y = Sigmoid(%c)
          return %y
        }""",
        [(2, 3, 6, 5), (7,), (7, 3, 3, 3)],
    ),
    "matrices whose padding would become 1": (
        """graph g(%x: f32[18,33]@ND, %w: f32[33,21]@ND, %v: f32[21,5]@ND) {
          %a = MatMulV2(%x, %w) {allow_nz=true}
          %b = Exp(%a)
          %y = MatMulV2(%b, %v) {allow_nz=true}
          return %y
        }""",
        [(18, 33), (33, 21), (21, 5)],
    ),
}


@pytest.mark.parametrize("mode", ["on", "off"])
@pytest.mark.parametrize("name", COMPUTED_OPERANDS)
def test_kernels_around_others(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel does around another one is done for the memory that stays, too."""
    monkeypatch.setenv("ATC_CODEGEN", mode)
    text, shapes = COMPUTED_OPERANDS[name]
    numbers = np.random.default_rng(5)
    inputs = [(numbers.standard_normal(shape) / 2).astype(np.float32) for shape in shapes]
    assert_same(text, {}, inputs, 1e-5)
