"""What precision costs: whole models in half precision against fp32, masks, files of exceptions, the .om's record."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import atc
from atc import run_command
from simulator import InferSession
from tests.end_to_end.agreement import assert_can_tell, run, run_onnxruntime

MIN_COSINE, MAX_RELATIVE_ERROR = 0.999, 2e-2

SAMPLES = [
    *("ch_ppocr_mobile_v2.0_cls_infer", "conv_zoo", "vit_tiny", "gpt2_tiny", "bert_tiny_legacy_dyn", "rnn_zoo"),
    *(pytest.param(n, marks=pytest.mark.slow) for n in ("silero_vad", "silero_vad_16k_op15", "ch_PP-OCRv4_det_infer")),
]
LARGE = ("densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "bvlc_alexnet", "vgg19", "zfnet512")
LIGHT = ["squeezenet", *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]


def compile_half(model: Any, **options: Any) -> InferSession:
    """Compile in half precision unless ``options`` say otherwise, and load the result."""
    settings = {"soc_version": "Ascend310P3", "precision_mode_v2": "fp16", **options}
    return InferSession(0, atc.compile_model(model, **settings))


def infer(session: InferSession, inputs: dict[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    return session.infer([inputs[port.name] for port in session.get_inputs()])


def assert_close_to_single(found: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
    """Cosine of what differs from the mean, and the relative error in the 2-norm."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    one, other = found.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    assert np.linalg.norm(one - other) <= MAX_RELATIVE_ERROR * np.linalg.norm(other)
    if other.size > 1:
        one, other = one - one.mean(), other - other.mean()
        assert one @ other >= MIN_COSINE * np.linalg.norm(one) * np.linalg.norm(other)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_models_in_half_precision(name: str, sample_model: Callable) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    session = compile_half(sample.path, input_shape=sample.input_shape)
    results = infer(session, sample.inputs)
    for found, expected in zip(results, sample.outputs.values(), strict=True):
        assert_close_to_single(found, expected)
    assert session.overflows() == []


@pytest.mark.parametrize("name", LIGHT)
def test_light_models_with_random_weights_in_half_precision(
    name: str, light_path: Callable, rng: np.random.Generator
) -> None:
    path = light_path(f"light_{name}")
    graph_input = onnx.load(path, load_external_data=False).graph.input[0].name
    first, second = ({graph_input: rng.standard_normal((1, 3, 224, 224), dtype=np.float32)} for _ in range(2))
    session = compile_half(path)
    [expected], [other] = (run_onnxruntime(path, inputs).values() for inputs in (first, second))
    assert_can_tell(expected, other)
    [found] = infer(session, first)
    assert_close_to_single(found, expected)
    assert session.overflows() == []


def test_digits_are_read_as_well_as_in_single_precision(
    digits_model: Path, digits_samples: dict[str, NDArray[np.float32]], rng: np.random.Generator
) -> None:
    """1400 noisy digits, half of them hard to read."""
    half, single = (compile_half(digits_model, precision_mode_v2=mode) for mode in ("fp16", "origin"))
    right, agree, count = np.zeros(2, int), 0, 0
    for name, image in digits_samples.items():
        for noise in np.linspace(0, 0.6, 100):
            noisy = np.clip(image + noise * rng.standard_normal(image.shape), 0, 1).astype(np.float32)
            answers = [int(np.argmax(infer(session, {"image": noisy})[0])) for session in (half, single)]
            right += [answer == int(name.split("_")[1]) for answer in answers]
            agree += answers[0] == answers[1]
            count += 1
    assert 0.5 * count < right[1] < count, "noise must make some of them hard"
    assert abs(right[0] - right[1]) <= 0.005 * count
    assert agree >= 0.99 * count


# -- masks of lowest numbers -------------------------------------------------------------------------------------------
LOWEST = float(np.finfo(np.float32).min)
QUERIES, KEYS, WIDTH = 5, 6, 8


def attention(mask_nodes: list[onnx.NodeProto], constants: dict[str, Any]) -> onnx.ModelProto:
    """Return softmax(q @ k + mask) @ v, with the mask that ``mask_nodes`` make of ``m`` (1: read, 0: masked)."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"], name="scores"),
        *mask_nodes,
        helper.make_node("Softmax", ["masked"], ["p"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="values"),
    ]
    shapes = {"q": [QUERIES, WIDTH], "k": [WIDTH, KEYS], "v": [KEYS, WIDTH], "m": [QUERIES, KEYS]}
    read = {name for node in nodes for name in node.input}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items() if n in read]
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "attention", inputs, [helper.make_empty_tensor_value_info("y")], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


MASK = np.ones((QUERIES, KEYS), np.float32)
MASK[0, 2:], MASK[1, :3], MASK[2] = 0, 0, 0  # query 2 may read nothing


def masks(lowest: float) -> dict[str, onnx.ModelProto]:
    """Return the ways in which models hide keys by the number ``lowest``."""
    number = np.float32(lowest)
    multiplied = [
        helper.make_node("Sub", ["one", "m"], ["hidden"], name="hidden"),
        helper.make_node("Mul", ["hidden", "lowest"], ["mask"], name="mask"),
        helper.make_node("Add", ["scores", "mask"], ["masked"], name="masked"),
    ]
    chosen = [
        helper.make_node("Cast", ["m"], ["is_read"], name="is_read", to=TensorProto.BOOL),
        helper.make_node("Where", ["is_read", "scores", "lowest"], ["masked"], name="masked"),
    ]
    added = [helper.make_node("Add", ["scores", "mask"], ["masked"], name="masked")]
    return {
        "product": attention(multiplied, {"one": np.float32(1), "lowest": number}),
        "where": attention(chosen, {"lowest": number}),
        "constant": attention(added, {"mask": (1 - MASK) * number}),
    }


def in_bf16(folder: Path) -> dict[str, str]:
    """Return the options that compute all of it in bf16."""
    file = folder / "lists.json"
    white = ["Sub", "Mul", "Add", "SelectV2", "SoftmaxV2"]
    file.write_text(json.dumps({"white-list": {"to-add": white}, "black-list": {"to-remove": []}}))
    return {"precision_mode_v2": "mixed_bfloat16", "modify_mixlist": str(file)}


# Without clipping a weight below -65504 is -inf, and times 0 it is NaN: that is what --is_weight_clip is for.
MASKED = [
    (how, lowest, precision)
    for how, lowest, precision in product(
        ("product", "where", "constant"), (LOWEST, -65504.0, -1e9, -1e4), ("fp16", "fp16 without clipping", "bf16")
    )
    if not (how == "product" and precision == "fp16 without clipping" and lowest < -65504)
]


@pytest.mark.parametrize(("how", "lowest", "precision"), MASKED)
@pytest.mark.parametrize("shift", [0.0, -60.0])
def test_masks_of_lowest_numbers_never_become_nan(
    how: str, lowest: float, precision: str, shift: float, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Scores of about ``shift`` push masked ones below the lowest number of fp16, to -inf."""
    q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ((QUERIES, WIDTH), (WIDTH, KEYS), (KEYS, WIDTH)))
    q[:, 0], k[0] = 1, k[0] + shift
    options = in_bf16(tmp_path) if precision == "bf16" else {"is_weight_clip": str(int(precision == "fp16"))}
    session = compile_half(masks(lowest)[how], soc_version="Ascend910B1", **options)
    [found] = infer(session, {"q": q, "k": k, "v": v, "m": MASK})
    assert np.isfinite(found).all()
    scores = q.astype(np.float64) @ k + np.where(MASK == 1, 0, -1e6)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = p / p.sum(axis=1, keepdims=True) @ v
    visible = MASK.any(axis=1)
    # near 60 numbers of fp16 are 1/32 apart, those of bf16 1/4
    tolerance = (0.5 if precision == "bf16" else 0.06) if shift else (0.1 if precision == "bf16" else 0.01)
    np.testing.assert_allclose(found[visible], expected[visible], atol=tolerance)
    # a query that may read nothing reads a mixture of all values
    assert (found[~visible] <= v.max(axis=0) + 0.05).all()
    assert (found[~visible] >= v.min(axis=0) - 0.05).all()


# -- files and records -------------------------------------------------------------------------------------------------
def steps(session: InferSession) -> str:
    """Return the operator types that run, in order."""
    return " ".join(optype for _, optype, _ in session.kernels())


def test_files_of_exceptions_reach_the_compile(tmp_path: Path) -> None:
    model = masks(-1e4)["constant"]
    keep, custom = tmp_path / "keep.cfg", tmp_path / "custom.cfg"
    keep.write_text("OpType::SoftmaxV2\n")
    custom.write_text("softmax::InputDtype:float16,OutputDtype:float16\n")
    plain = steps(compile_half(model))
    kept = steps(compile_half(model, keep_dtype=str(keep)))
    assert plain.count("Cast") == 4
    assert kept.count("Cast SoftmaxV2 Cast") == 1
    assert steps(compile_half(model, keep_dtype=str(keep), customize_dtypes=str(custom))) == plain
    single = steps(compile_half(model, precision_mode_v2="origin", customize_dtypes=str(custom)))
    assert "Cast SoftmaxV2 Cast" in single


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ({"precision_mode_v2": "fp16"}, "fp16"),
        ({"precision_mode_v2": "origin"}, "origin"),
        ({"precision_mode": "force_fp16"}, "fp16"),
        ({"precision_mode": "force_fp32"}, "cube_fp16in_fp32out"),
        ({"precision_mode": "allow_mix_precision"}, "mixed_float16"),
        ({"precision_mode": "allow_fp32_to_fp16"}, "allow_fp32_to_fp16"),
    ],
)
def test_the_om_says_which_precision_was_used(
    options: dict[str, str], recorded: str, digits_model: Path, tmp_path: Path
) -> None:
    model = atc.compile_model(digits_model, soc_version="Ascend310P3", **options)
    assert model.attrs["_precision_mode_v2"] == recorded
    assert [port.data_type.name for port in (*model.io.inputs, *model.io.outputs)] == ["DT_FLOAT", "DT_FLOAT"]
    model.save(tmp_path / "m.om")
    image = {"image": np.full((1, 1, 8, 8), 0.5, np.float32)}
    [probability] = run(tmp_path / "m.om", image).values()
    [expected] = run_onnxruntime(digits_model, image).values()
    np.testing.assert_allclose(probability, expected, atol=2e-3)


def test_wanted_output_types_meet_half_precision_without_casts_there_and_back(digits_model: Path) -> None:
    session = compile_half(digits_model, output_type="FP16")
    assert session.get_outputs()[0].datatype == np.float16
    assert steps(session).count("Cast") == 1


def test_om_run_names_the_operator_that_overflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 and 30 to the fourth power are beyond fp16; what is squared after that is infinite already."""
    monkeypatch.chdir(tmp_path)
    nodes = [helper.make_node("Mul", [name, name], [f"{name}2"], name=f"square_{name}") for name in ("x", "x2", "x22")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("x222")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    atc.compile_model(model, soc_version="Ascend310P3", precision_mode_v2="fp16").save("m.om")
    np.save("x.npy", np.array([[1, 20, 30]], np.float32))
    assert run_command.main(["--model=m.om", "--input=x.npy", "--loop=3"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("overflow")]
    assert shown == ["overflow in square_x2 (Mul): 2 finite elements became infinite"]


def test_a_dynamic_model_keeps_what_it_computes_from_shapes(rng: np.random.Generator) -> None:
    """4099 is no number of fp16: the mean over so many columns needs it, and the shape of the result too."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1),
        helper.make_node("Cast", ["s"], ["n"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["n", "one"], ["columns"]),
        helper.make_node("ReduceSum", ["x", "last"], ["sum"], keepdims=1),
        helper.make_node("Div", ["sum", "columns"], ["mean"]),
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Cast", ["columns"], ["length"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["centred", "length"], ["y"]),
    ]
    values = [numpy_helper.from_array(np.array([1], np.float32), "one"), numpy_helper.from_array(np.array([1]), "last")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "n"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = compile_half(model, input_shape="x:1,-1")
    x = rng.standard_normal((1, 4099)).astype(np.float32)
    [found] = infer(session, {"x": x})
    assert found.shape == (4099,)
    np.testing.assert_allclose(found, (x - x.mean()).ravel(), atol=4e-3)
