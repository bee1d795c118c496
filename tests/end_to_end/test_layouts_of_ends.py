"""Models that take and give float16 in NC1HWC0: compiled, saved, and run as users of the device run them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

import atc
from atc.command import main as compile_main
from atc.run_command import main as run_main
from ge.errors import ReportedError
from simulator import InferSession
from tests.parsers.onnx_models import model, node, value

C0 = 16


def to_blocks(x: NDArray[Any], garbage: float = 0) -> NDArray[Any]:
    """[N,C,H,W] as [N,C1,H,W,C0], element by element; what is padding holds ``garbage``."""
    n, c, h, w = x.shape
    stored = np.full((n, -(-c // C0), h, w, C0), garbage, x.dtype)
    for i in range(c):
        stored[:, i // C0, :, :, i % C0] = x[:, i]
    return stored


def from_blocks(stored: NDArray[Any], channels: int) -> NDArray[Any]:
    return np.stack([stored[:, i // C0, :, :, i % C0] for i in range(channels)], axis=1)


def network(channels: int, filters: int) -> ModelProto:
    weight = np.random.default_rng(channels).normal(size=(filters, channels, 3, 3)).astype(np.float32)
    nodes = [
        node("Conv", "image w", "c", name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Exp", "c", "y", name="exp"),
    ]
    ends = [value("image", (2, channels, 5, 4))], [value("y", (2, filters, 5, 4))]
    return model(nodes, *ends, {"w": weight / channels / 10})


def expected(source: ModelProto, x: NDArray[Any]) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(source.SerializeToString())
    return session.run(None, {"image": x.astype(np.float32)})[0]


def image(channels: int) -> NDArray[np.float16]:
    return np.random.default_rng(1).normal(size=(2, channels, 5, 4)).astype(np.float16)


LAYOUTS = {
    "input_fp16_nodes": "image", "is_input_adjust_hw_layout": "true",
    "out_nodes": "exp:0", "is_output_adjust_hw_layout": "true",
}  # fmt: skip


@pytest.mark.parametrize("refinement", [0, 1])
@pytest.mark.parametrize("precision", ["origin", "fp16"])
@pytest.mark.parametrize(("channels", "filters"), [(1, 15), (3, 17), (16, 16), (17, 33)])
def test_garbage_in_padding_does_not_matter(channels: int, filters: int, precision: str, refinement: int) -> None:
    """exp(0) is 1, so padding of the result shows whether it was cleared; NaN in the input would show everywhere."""
    source, x = network(channels, filters), image(channels)
    options = {"soc_version": "Ascend310P3", "precision_mode_v2": precision, "format_refinement": refinement}
    compiled = atc.compile_model(source, **options, **LAYOUTS)
    session = InferSession(0, compiled)
    types = [kind for _, kind, _ in session.kernels()]
    assert types.count("TransData") == (0 if refinement else 2)
    assert types.count("Cast") == (0 if precision == "fp16" else 2)
    [port], [result] = session.get_inputs(), session.get_outputs()
    stored = to_blocks(x, np.nan)
    assert (port.shape, port.format, port.datatype, port.size) == (list(stored.shape), "NC1HWC0", "f2", stored.nbytes)
    assert (port.origin_shape, port.origin_format) == (list(x.shape), "NCHW")
    assert (result.format, result.origin_shape) == ("NC1HWC0", [2, filters, 5, 4])
    before = stored.copy()
    for _ in range(2):
        [y] = session.infer([stored])
        np.testing.assert_array_equal(stored, before)
        np.testing.assert_allclose(from_blocks(y, filters), expected(source, x), rtol=2e-2)
        assert not np.any(to_blocks(from_blocks(y, filters), 0) != y)


def test_arrays_of_the_origin_shape_are_refused_with_what_is_needed() -> None:
    compiled = atc.compile_model(network(3, 3), soc_version="Ascend310P3", precision_mode_v2="origin", **LAYOUTS)
    with pytest.raises(ReportedError, match=r"float16\[2, 1, 5, 4, 16\]") as caught:
        InferSession(0, compiled).infer([image(3)])
    assert "NC1HWC0 of [2,3,5,4] in NCHW" in caught.value.solution


def test_an_input_in_half_precision_only() -> None:
    source, x = network(3, 5), image(3)
    compiled = atc.compile_model(
        source, soc_version="Ascend310P3", precision_mode_v2="origin", input_fp16_nodes="image"
    )
    session = InferSession(0, compiled)
    assert (session.get_inputs()[0].shape, session.get_inputs()[0].datatype) == ([2, 3, 5, 4], np.float16)
    np.testing.assert_allclose(session.infer([x])[0], expected(source, x), rtol=1e-4)


def test_the_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Files hold what the device would get: raw bytes of the storage shape, or .npy of that shape."""
    monkeypatch.chdir(tmp_path)
    source, x = network(3, 5), image(3)
    Path("m.onnx").write_bytes(source.SerializeToString())
    options = [f"--{name}={text}" for name, text in LAYOUTS.items()]
    basics = [
        "--model=m.onnx",
        "--framework=5",
        "--output=m",
        "--soc_version=Ascend310P3",
        "--precision_mode_v2=origin",
    ]
    assert compile_main([*basics, *options]) == 0
    stored = to_blocks(x, 7)
    stored.tofile("x.bin")
    np.save("x.npy", stored)
    np.save("origin.npy", x)
    for name in ("x.bin", "x.npy"):
        assert run_main(["--model", "m.om", "--input", name, "--output", ".", "--output_dirname", name[2:]]) == 0
        [file] = Path(name[2:]).glob("*.bin")
        found = np.fromfile(file, np.float16).reshape(2, 1, 5, 4, C0)
        np.testing.assert_allclose(from_blocks(found, 5), expected(source, x), rtol=2e-2)
    capsys.readouterr()
    assert run_main(["--model", "m.om", "--input", "origin.npy"]) != 0
    assert "R1024" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"input_fp16_nodes": "images"}, "E10016", "image ("),
        ({"input_fp16_nodes": "c"}, "E10017", "[c]"),
        ({"input_fp16_nodes": "image", "is_input_adjust_hw_layout": "yes"}, "E10005", "[yes]"),
    ],
)
def test_bad_requests(options: dict[str, str], code: str, word: str) -> None:
    with pytest.raises(ReportedError) as caught:
        atc.compile_model(network(3, 3), soc_version="Ascend310P3", precision_mode_v2="origin", **options)
    assert caught.value.code == code
    assert word in f"{caught.value.message} {caught.value.solution}"


def test_a_model_with_open_dims_takes_half_precision_but_no_layout() -> None:
    """The input with open dims is another one."""
    nodes = [node("Relu", "image", "r", name="relu"), node("Neg", "rows", "n", name="neg")]
    source = model(
        nodes,
        [value("image", (1, 3, 4, 4)), value("rows", ("n", 4))],
        [value("r", (1, 3, 4, 4)), value("n", ("n", 4))],
    )
    options = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin", "input_shape": {"rows": (-1, 4)}}
    with pytest.raises(ReportedError, match="static model") as caught:
        atc.compile_model(source, input_fp16_nodes="image", is_input_adjust_hw_layout="true", **options)
    assert caught.value.code == "E10055"
    compiled = atc.compile_model(source, input_fp16_nodes="image", **options)
    x = np.random.default_rng(2).normal(size=(1, 3, 4, 4)).astype(np.float16)
    r, n = InferSession(0, compiled).infer([x, np.ones((2, 4), np.float32)])
    np.testing.assert_array_equal(r, np.maximum(x, 0).astype(np.float32))
    assert n.shape == (2, 4)


PASS = """
from ge.passes import FusionBasePass, PassStage, register_fusion_pass


@register_fusion_pass(name="AskForLayouts", stage=PassStage.AFTER_INFER_SHAPE)
class AskForLayouts(FusionBasePass):
    def run(self, graph, context):
        image = graph.find_node_by_name("image")
        image.set_output_attr("storage_format", 0, 3)
        image.set_output_attr("storage_shape", 0, [2, 2, 5, 4, 16])
        for node in graph.get_direct_nodes():
            if node.type == "NetOutput":
                node.set_input_attr("storage_format", 0, @layout@)
                node.set_input_attr("storage_shape", 0, @shape@)
        return 0
"""


def compiled_with_pass(folder: Path, layout: int, shape: list[int], **options: Any) -> Any:
    """Let a custom pass write the attributes and compile."""
    home = folder / "vendors" / "mine" / "custom_fusion_passes"
    home.mkdir(parents=True)
    (home / "layouts.py").write_text(PASS.replace("@layout@", str(layout)).replace("@shape@", str(shape)))
    return atc.compile_model(
        network(17, 33), soc_version="Ascend310P3", precision_mode_v2="origin", opp=folder, **options
    )


def test_a_custom_pass_asks_for_layouts(tmp_path: Path) -> None:
    """float32 all the way; the result in FRACTAL_NZ, of which the last two dims are laid out in blocks of 16 by 16."""
    x = image(17).astype(np.float32)
    session = InferSession(0, compiled_with_pass(tmp_path, 29, [2, 33, 1, 1, 16, 16]))
    [port], [result] = session.get_inputs(), session.get_outputs()
    assert (port.shape, port.format, port.datatype) == ([2, 2, 5, 4, 16], "NC1HWC0", np.float32)
    assert (result.shape, result.format) == ([2, 33, 1, 1, 16, 16], "FRACTAL_NZ")
    [y] = session.infer([to_blocks(x, np.inf)])
    np.testing.assert_allclose(y[:, :, 0, 0, :5, :4], expected(network(17, 33), x), rtol=1e-4)
    assert not y[..., 5:, :].any()
    assert not y[..., 4:].any()


@pytest.mark.parametrize("refinement", ["0", "1"])
@pytest.mark.parametrize(
    ("layout", "name", "order"), [(1, "NHWC", (0, 2, 3, 1)), (14, "CHWN", (1, 2, 3, 0)), (16, "HWCN", (2, 3, 1, 0))]
)
def test_a_custom_pass_asks_for_another_order_of_axes(
    tmp_path: Path, layout: int, name: str, order: tuple[int, ...], refinement: str
) -> None:
    x = image(17).astype(np.float32)
    wanted = expected(network(17, 33), x).transpose(order)
    model = compiled_with_pass(tmp_path, layout, list(wanted.shape), format_refinement=refinement)
    session = InferSession(0, model)
    [result] = session.get_outputs()
    assert (result.shape, result.format) == (list(wanted.shape), name)
    [y] = session.infer([to_blocks(x, np.inf)])
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


LAST = """

@register_fusion_pass(name="NegateResult", stage=PassStage.AFTER_ORIGIN_GRAPH_OPTIMIZE)
class NegateResult(FusionBasePass):
    def run(self, graph, context):
        for node in list(graph):
            if node.type == "NetOutput":
                graph.set_input(node, 0, graph.add_node("Neg", "negated", [node.input(0)]).output())
        return 0
"""


@pytest.mark.parametrize("refinement", ["0", "1"])
@pytest.mark.parametrize(("layout", "shape"), [(3, [2, 3, 5, 4, 16]), (1, [2, 5, 4, 33])])
def test_a_layout_outlives_a_new_producer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: int, shape: list[int], refinement: str
) -> None:
    """A pass of the last stage puts an operator behind everything: the result lies as asked for all the same."""
    monkeypatch.setattr(sys.modules[__name__], "PASS", PASS + LAST)
    x = image(17).astype(np.float32)
    session = InferSession(0, compiled_with_pass(tmp_path, layout, shape, format_refinement=refinement))
    [y] = session.infer([to_blocks(x, np.inf)])
    assert y.shape == tuple(shape)
    plain = y.transpose(0, 3, 1, 2) if layout == 1 else y.transpose(0, 1, 4, 2, 3).reshape(2, 48, 5, 4)[:, :33]
    np.testing.assert_allclose(plain, -expected(network(17, 33), x), rtol=1e-4, atol=1e-5)


def test_a_custom_pass_that_asks_for_nonsense(tmp_path: Path) -> None:
    with pytest.raises(ReportedError, match=r"result y: .* has the dims \[2,33,1,1,16,16\]") as caught:
        compiled_with_pass(tmp_path, 29, [2, 33, 16, 16])
    assert (caught.value.code, caught.value.fields["attribute"]) == ("E14002", "storage_shape")
