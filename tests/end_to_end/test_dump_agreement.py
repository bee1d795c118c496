"""Two compiles of a model compute the same tensors: their dumps in origin format, operator by operator."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from ge import formats
from ge.graph.types import FORMAT_BY_TEXT
from simulator import DumpMode, DumpSettings, InferSession
from tests.end_to_end.agreement import Arrays, assert_agrees, compile_to, run_onnxruntime

Array = NDArray[Any]
Original = tuple[str, int]
"""A tensor of the user's model: name of its node, number of the output."""


@dataclass(frozen=True)
class Dumped:
    """An output of an operator as a dump has it. ``original`` is ``None`` where there is none."""

    op: str
    index: int
    original: Original | None
    value: Array
    is_private: bool
    """Whether it lies in a layout of the hardware."""


def dump_of(folder: Path, model: Path, inputs: Arrays, **options: object) -> list[Dumped]:
    """Compile and run a model, and return the outputs of all its operators in origin format."""
    folder.mkdir()
    session = InferSession(0, str(compile_to(folder, model, inputs, **options)))
    session.start_dump(DumpSettings(folder / "dump", DumpMode.OUTPUT))
    session.infer([inputs[port.name] for port in session.get_inputs()])
    assert session.dump_folder is not None
    found = list(_outputs(Path(session.dump_folder, "0")))
    shutil.rmtree(folder)
    return found


def _outputs(run: Path) -> Iterator[Dumped]:
    for file in json.loads((run / "manifest.json").read_text())["files"]:
        for tensor in file["tensors"]:
            assert tensor["npy"] is not None, f"{file['op']}: {tensor['reason']}"
            original = tensor["original"]
            key = (original["name"], original["index"]) if file["original_names"] and original["name"] else None
            is_private = formats.is_private(FORMAT_BY_TEXT[tensor["storage"]["format"]])
            yield Dumped(file["op"], tensor["index"], key, np.load(run / tensor["npy"]), is_private)


def pairs(one: list[Dumped], other: list[Dumped]) -> Iterator[tuple[Dumped, Dumped]]:
    """Yield the tensors that both have: of one name, or of one tensor of the original that each has once.

    The front end makes several operators of some nodes; of these only names tell which is which.
    """
    names = {(dumped.op, dumped.index): dumped for dumped in other}
    originals, own = _single(other), _single(one)
    for dumped in one:
        same = names.get((dumped.op, dumped.index))
        if same is None and dumped.original is not None and own.get(dumped.original) is dumped:
            same = originals.get(dumped.original)
        if same is not None:
            yield dumped, same


def _single(dump: list[Dumped]) -> Mapping[Original, Dumped]:
    counts = Counter(dumped.original for dumped in dump)
    return {dumped.original: dumped for dumped in dump if dumped.original and counts[dumped.original] == 1}


@pytest.fixture
def network(
    request: pytest.FixtureRequest,
    digits_model: Path,
    digits_samples: Arrays,
    light_path: Callable[..., Path],
    sample_model: Callable[[str], Any],
    rng: np.random.Generator,
) -> tuple[Path, Arrays]:
    """A model and inputs for it."""
    name: str = request.param
    if name == "digits":
        return digits_model, {"image": next(iter(digits_samples.values()))}
    if name.startswith("light_"):
        path = light_path(name)
        graph_input = onnx.load(path, load_external_data=False).graph.input[0].name
        return path, {graph_input: rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    sample = sample_model(f"onnx/{name}.onnx")
    return sample.path, sample.inputs


WAYS = {
    "fusions": ({"fusion_switch_file": "off.json"}, {}),
    "refinement": ({"format_refinement": "0"}, {"format_refinement": "1"}),
}
"""What two compiles are made with: the plain one, and the one that rewrites more."""


ORIGINALS = {
    "digits": 0.9,
    "light_squeezenet": 0.9,
    "conv_zoo": 0.7,
    "vit_tiny": 0.7,
    "gpt2_tiny": 0.7,
    "rnn_zoo": 0.5,
    "bert_tiny_legacy_dyn": 0.7,
    "ch_ppocr_mobile_v2.0_cls_infer": 0.9,
}
"""Models, and which part of their operators' outputs is at least a tensor of the model."""


@pytest.mark.parametrize("refines", ["0", "1"])
@pytest.mark.parametrize(("network", "least"), ORIGINALS.items(), indirect=["network"])
def test_tensors_are_those_of_the_original(
    network: tuple[Path, Arrays], least: float, refines: str, tmp_path: Path
) -> None:
    """What a dump says to be an output of a node of the model is what onnxruntime computes there."""
    path, inputs = network
    expected = all_outputs(path, inputs)
    dump = dump_of(tmp_path / "om", path, inputs, format_refinement=refines)
    found = {name: dumped for name, dumped in _single(dump).items() if name in expected}
    wrong = [f"{dumped.op}: {name}" for name, dumped in found.items() if not agrees(dumped.value, expected[name])]
    assert wrong == []
    assert len(found) > least * sum(dumped.original is not None for dumped in dump)


@pytest.mark.parametrize("network", ["digits", "conv_zoo"], indirect=True)
def test_half_precision_is_shown_in_the_types_of_the_model(network: tuple[Path, Arrays], tmp_path: Path) -> None:
    path, inputs = network
    expected = all_outputs(path, inputs)
    dump = dump_of(tmp_path / "om", path, inputs, precision_mode_v2="fp16")
    found = {name: dumped.value for name, dumped in _single(dump).items() if name in expected}
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}
    # the numbers are those of float16
    assert any(np.array_equal(value, value.astype(np.float16)) and np.ptp(value) > 0 for value in found.values())
    for name, value in found.items():
        scale = np.abs(expected[name]).max()
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=2e-2 * scale, err_msg=str(name))


def agrees(actual: Array, expected: Array) -> bool:
    """Within the tolerance of the project; types that GE has in place of ONNX's do not count."""
    if actual.shape != expected.shape:
        return False
    scale = float(np.abs(expected).max()) if expected.size and expected.dtype.kind == "f" else 0.0
    return np.allclose(actual, expected, rtol=1e-3, atol=1e-4 * scale)


def all_outputs(path: Path, inputs: Arrays) -> dict[Original, Array]:
    """Run a model with onnxruntime and return what all nodes of its main graph give."""
    model = onnx.load(path)
    tensors = {(node.name, i): name for node in model.graph.node for i, name in enumerate(node.output) if name}
    given = {output.name for output in model.graph.output}
    missing = dict.fromkeys(name for name in tensors.values() if name not in given)
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in missing)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    values = dict(zip(names, session.run(names, inputs), strict=True))
    return {key: values[name] for key, name in tensors.items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("network", ["digits", "light_resnet50", "conv_zoo", "vit_tiny"], indirect=True)
def test_both_compute_the_same_tensors(
    network: tuple[Path, Arrays], way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("off.json").write_text('{"Switch": {"GraphFusion": {"ALL": "off"}}}')
    plain, rewritten = (dump_of(tmp_path / str(i), *network, **how) for i, how in enumerate(WAYS[way]))
    compared = list(pairs(rewritten, plain))
    for mine, theirs in compared:
        assert mine.value.shape == theirs.value.shape, f"{mine.op}:{mine.index} and {theirs.op}:{theirs.index}"
        assert_agrees(mine.value, theirs.value)
    own = [dumped for dumped in rewritten if dumped.original is not None]
    assert len(compared) > 0.5 * len(own), "most tensors are compared"
    assert any(np.ptp(mine.value) > 0 for mine, _ in compared if mine.value.dtype.kind == "f")
    if way == "fusions":
        assert any(mine.op != theirs.op for mine, theirs in compared), "what fusions made is compared too"
    else:
        assert any(mine.is_private for mine, _ in compared)
        assert not any(theirs.is_private for _, theirs in compared)


def test_what_a_fused_operator_stands_for_is_kept_in_the_file(
    digits_model: Path, digits_samples: Arrays, tmp_path: Path
) -> None:
    """A convolution with the normalisation behind it gives what the normalisation gave in the model."""
    inputs = {"image": next(iter(digits_samples.values()))}
    session = InferSession(0, str(compile_to(tmp_path, digits_model, inputs)))
    session.start_dump(DumpSettings(tmp_path / "dump", layers=["norm1"]))
    session.infer(list(inputs.values()))
    assert session.dump_folder is not None
    [file] = json.loads(Path(session.dump_folder, "0", "manifest.json").read_text())["files"]
    assert (file["type"], file["original_names"], file["original_types"]) == (
        "Conv2D",
        ["conv1", "norm1"],
        ["Conv2D", "BatchNorm"],
    )
    [output] = [tensor for tensor in file["tensors"] if tensor["kind"] == "output"]
    assert output["original"] == {"name": "norm1", "index": 0}
    assert output["origin"] == {"format": "NCHW", "shape": [1, 16, 8, 8], "dtype": "DT_FLOAT"}
    [expected] = run_onnxruntime(_with_output(digits_model, "norm1", tmp_path), inputs).values()
    assert_agrees(np.load(Path(session.dump_folder, "0", output["npy"])), expected)


def _with_output(model: Path, node: str, folder: Path) -> Path:
    """Save the model with the output 0 of a node as its only result."""
    content = onnx.load(model)
    [tensor] = [found.output[0] for found in content.graph.node if found.name == node]
    del content.graph.output[:]
    content.graph.output.append(onnx.helper.make_empty_tensor_value_info(tensor))
    path = folder / "cut.onnx"
    onnx.save(content, path)
    return path
