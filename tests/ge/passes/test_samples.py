"""The sample passes of the reference (samples/), from a model to numbers: with and without the pass they are the same.

Models in ONNX go through ``atc``, operators that ONNX does not make through graph text and ``ge-opt``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from atc import opt
from atc.command import main
from atc.compiler import compile_graph
from ge.graph import Graph
from ge.ops import registry
from ge.ops.inference import same_as
from ge.ops.registry import OpDef
from ge.ops.signature import parse_signature
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from om_format import load
from simulator import InferSession
from tests.parsers.tensorflow import tf_models

SAMPLES = Path(__file__).parent / "samples"
Arrays = dict[str, np.ndarray[Any, Any]]
# pass to name, and what ATC prints when it has loaded it
NAMES = {
    "s1_gemm": "SampleGemm",
    "s2_gemm_with_captures": "SampleGemmWithCaptures",
    "s3_gemm_of_one_constant": "SampleGemmOfOneConstant",
    "s4_add_zero": "SampleAddZero",
    "s4b_add_zero_by_value": "SampleAddZeroByValue",
    "s5_add_custom_zero": "SampleAddCustomZero",
    "s6_grouped_convolution": "SampleGroups",
    "g2_relu_before_concat": "SampleReluBeforeConcat",
    "g3_channels_last": "SampleChannelsLast",
}


@pytest.fixture(autouse=True)
def work_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- ONNX models through atc -------------------------------------------------------------------------------------------
class Model:
    """An ONNX model under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: Arrays = {}
        self.constants: Arrays = {}

    def given(self, name: str, array: np.ndarray[Any, Any]) -> str:
        self.inputs[name] = array
        return name

    def constant(self, name: str, array: Any, dtype: Any = np.float32) -> str:
        self.constants[name] = np.asarray(array, dtype)
        return name

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attrs))
        return name

    def save(self, path: Path, result: str) -> None:
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
        ]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        output = helper.make_tensor_value_info(result, TensorProto.UNDEFINED, None)
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(next(iter(self.inputs.values())).dtype)
        graph = helper.make_graph(self.nodes, "net", inputs, [output], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def compiled(sample: str, model: Path, monkeypatch, capsys) -> tuple[Path, str]:
    """Compile with a sample pass (none: without) and no built-in fusions; return the .om and what was printed."""
    output = Path(f"{model.stem}_{sample or 'plain'}")
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", str(SAMPLES / f"{sample}.py") if sample else "")
    framework = 5 if model.suffix == ".onnx" else 3
    arguments = [f"--model={model}", f"--framework={framework}", f"--output={output}", "--soc_version=Ascend310P3"]
    status = main([*arguments, "--precision_mode_v2=origin", "--oo_level=O1"])
    printed = capsys.readouterr().out
    assert status == 0, printed
    return output.with_suffix(".om"), printed


def types(path: Path) -> Counter[str]:
    return Counter(n.type for n in load(path).graph if n.type not in ("Data", "Const", "NetOutput", "TransData"))


def through_atc(sample: str, model: Model, result: str, monkeypatch, capsys) -> Counter[str]:
    """Compile with and without the sample, hold both to onnxruntime, and return the operator types with it."""
    path = Path("net.onnx")
    model.save(path, result)
    [expected] = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, model.inputs)
    assert np.std(expected.astype(np.float64)) > 0.05 * np.abs(expected.astype(np.float64)).max(), (
        "it must be able to tell"
    )
    plain, _ = compiled("", path, monkeypatch, capsys)
    passed, printed = compiled(sample, path, monkeypatch, capsys)
    assert f"Loaded {SAMPLES / sample}.py: custom passes {NAMES[sample]}" in printed
    results = [InferSession(0, str(om)).infer(list(model.inputs.values()))[0] for om in (plain, passed)]
    for found in results:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=1e-6)
    return types(passed)


def product_plus(rng, addend: Any = None, dtype: Any = np.float32) -> tuple[Model, str]:
    """x [2,3] times w [3,2] plus an addend [2,2]."""
    model = Model()
    x = model.given("x", rng.standard_normal((2, 3)).astype(dtype))
    w = model.constant("w", rng.standard_normal((3, 2)), dtype)
    c = model.constant("c", rng.standard_normal((2, 2)) if addend is None else addend, dtype)
    return model, model.node("Add", model.node("MatMul", x, w), c)


@pytest.mark.parametrize("sample", ["s1_gemm", "s2_gemm_with_captures"])
def test_s1_s2_batch_mat_mul_and_add(sample, rng, monkeypatch, capsys) -> None:
    assert through_atc(sample, *product_plus(rng), monkeypatch, capsys) == {"GEMM": 1}


def test_s2_other_types_are_left_alone(rng, monkeypatch, capsys) -> None:
    found = through_atc("s2_gemm_with_captures", *product_plus(rng, dtype=np.float64), monkeypatch, capsys)
    assert found == {"BatchMatMulV2": 1, "Add": 1}
    assert through_atc("s1_gemm", *product_plus(rng, dtype=np.float64), monkeypatch, capsys)["Add"] == 0


@pytest.mark.parametrize(
    ("addend", "expected"),
    [
        (np.full((2, 2), 0.1), {"GEMM": 1}),
        (np.array([[0.1, 0.1], [0.1, 0.2]]), {"BatchMatMulV2": 1, "Add": 1}),
        (np.full((1, 2), 0.1), {"BatchMatMulV2": 1, "Add": 1}),
    ],
    ids=["the constant", "another value", "another shape"],
)
def test_s3_only_with_the_constant(addend, expected, rng, monkeypatch, capsys) -> None:
    assert through_atc("s3_gemm_of_one_constant", *product_plus(rng, addend), monkeypatch, capsys) == expected


def x_plus(
    rng, addend: Any, dtype: Any = np.float32, *, is_first: bool = False, shared: bool = False
) -> tuple[Model, str]:
    model = Model()
    x = model.given("x", (10 * rng.standard_normal((3, 4))).astype(dtype))
    c = model.constant("c", addend, dtype)
    total = model.node("Add", *((c, x) if is_first else (x, c)))
    return model, model.node("Mul" if shared else "Sub", total, c if shared else x) if shared else model.node(
        "Neg", total
    )


ADD_ZERO = [
    (0.0, np.float32, 0),
    (9e-7, np.float32, 0),
    (-9e-7, np.float32, 0),
    ([[0.0]], np.float32, 0),
    (2e-6, np.float32, 1),
    ([0.0, 0.0, 0.0, 0.0], np.float32, 1),
    (9e-16, np.float64, 0),
    (2e-15, np.float64, 1),
    (0, np.int32, 0),
    (1, np.int32, 1),
    (0, np.int64, 1),
]


@pytest.mark.parametrize(("addend", "dtype", "left"), ADD_ZERO)
def test_s4_adding_zero(addend, dtype, left, rng, monkeypatch, capsys) -> None:
    found = through_atc("s4_add_zero", *x_plus(rng, addend, dtype), monkeypatch, capsys)
    assert (found["Add"], found["Neg"]) == (left, 1)


def test_case_35_zero_in_front_and_shared_zeros(rng, monkeypatch, capsys) -> None:
    found = through_atc("s4_add_zero", *x_plus(rng, 0.0, is_first=True), monkeypatch, capsys)
    assert found["Add"] == 1
    model, _ = x_plus(rng, 0.0)
    shared = Model()
    x = shared.given("x", model.inputs["x"])
    c = shared.constant("c", 0.0)
    total = shared.node("Add", x, c)
    found = through_atc("s4_add_zero", shared, shared.node("Sub", total, shared.node("Mul", c, x)), monkeypatch, capsys)
    assert found["Add"] == 1


@pytest.mark.parametrize(
    ("addend", "dtype", "left"),
    [(0.0, np.float32, 0), (-0.0, np.float32, 1), (1e-9, np.float32, 1), ([0.0], np.float32, 1), (0, np.int32, 1)],
)
def test_s4b_adding_exactly_zero(addend, dtype, left, rng, monkeypatch, capsys) -> None:
    found = through_atc("s4b_add_zero_by_value", *x_plus(rng, addend, dtype), monkeypatch, capsys)
    assert found["Add"] == left


def convolution(rng, groups: int, **attrs: Any) -> tuple[Model, str]:
    model = Model()
    x = model.given("x", rng.standard_normal((2, 6, 7, 9)).astype(np.float32))
    w = model.constant("w", rng.standard_normal((12, 6 // groups, 3, 2)))
    return model, model.node("Conv", x, w, group=groups, **attrs)


@pytest.mark.parametrize(("groups", "expected"), [(1, {"Conv2D": 1}), (2, None), (3, None)])
def test_s6_grouped_convolution(groups, expected, rng, monkeypatch, capsys) -> None:
    model = convolution(rng, groups, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2])
    found = through_atc("s6_grouped_convolution", *model, monkeypatch, capsys)
    # the Split of the weights is computed by the compiler
    assert found == (expected or {"Split": 1, "Conv2D": groups, "Concat": 1})


def test_quirk_s6_fails_for_a_convolution_with_bias(rng, monkeypatch, capsys) -> None:
    """The sample makes two inputs, the node has three."""
    model, _ = convolution(rng, 2)
    model.nodes[0].input.append(model.constant("b", rng.standard_normal(12)))
    model.save(Path("net.onnx"), "conv0")
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", str(SAMPLES / "s6_grouped_convolution.py"))
    arguments = ["--model=net.onnx", "--framework=5", "--output=net", "--soc_version=Ascend310P3"]
    assert main(arguments) == 255
    printed = capsys.readouterr().out
    assert "E13028: The custom pass [SampleGroups] failed" in printed
    assert "Replacement input size: 2 not equal with Boundary input size: 3" in printed
    assert not Path("net.om").exists()


def test_g3_channels_last(rng, monkeypatch, capsys) -> None:
    """With one channel and one row, channels first and last mean the same."""
    model = Model()
    x = model.given("x", rng.standard_normal((3, 1, 5, 1)).astype(np.float32))
    conv = model.node("Conv", x, model.constant("w", rng.standard_normal((1, 1, 1, 1))))
    there = model.node("Relu", model.node("Transpose", conv, perm=[0, 2, 3, 1]))
    back = model.node("Neg", model.node("Transpose", there, perm=[0, 3, 1, 2]))
    found = through_atc("g3_channels_last", model, back, monkeypatch, capsys)
    assert found == {"Conv2D": 1, "Relu": 1, "Neg": 1}
    [conv_node] = load(Path("net_g3_channels_last.om")).graph.nodes_of_type("Conv2D")
    assert conv_node.attrs["data_format"] == "NHWC"


# -- graph text through ge-opt -----------------------------------------------------------------------------------------
def run_graph(graph: Graph, inputs: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    session = CompileSession(CompileOptions(), Environment())
    return InferSession(0, compile_graph(graph, session)).infer(inputs)[0]


def through_ge_opt(sample: str, text: str, inputs: list[np.ndarray[Any, Any]], capsys) -> Graph:
    """Run the sample with ge-opt, hold the numbers to those of the graph as it was, and return the new graph."""
    Path("net.txt").write_text(text)
    status = opt.main(["net.txt", "--load", str(SAMPLES / f"{sample}.py"), "--passes", NAMES[sample], "--verify-each"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert f"Loaded {SAMPLES / sample}.py: custom passes {NAMES[sample]}" in captured.err
    after = captured.out[captured.out.index("graph ") :]
    results = [run_graph(parse_graph(graph), inputs) for graph in (text, after)]
    assert np.std(results[0]) > 0.05 * np.abs(results[0]).max()
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=1e-6)
    return parse_graph(after)


PRODUCT = """graph g(%x: f32[3,4]@ND, %y: f32[4,2]@ND) {
  %c = Const {value=f32[2,2]{0.1, 0.1, 0.1, 0.1}} -> f32[2,2]@ND
  %m = MatMul(%x, %y) {transpose_x1=TX, transpose_x2=TY} -> f32[3,2]@ND
  %sum = Add(%m, %c) -> f32[3,2]@ND
  return %sum
}"""


def product(rng, *, first: bool, second: bool) -> tuple[str, list[np.ndarray[Any, Any]]]:
    text = PRODUCT.replace("TX", str(first).lower()).replace("TY", str(second).lower()).replace("f32[3,", "f32[2,")
    shapes = [(4, 2) if first else (2, 4), (2, 4) if second else (4, 2)]
    for name, (rows, columns), old in zip("xy", shapes, ("f32[2,4]", "f32[4,2]"), strict=True):
        text = text.replace(f"%{name}: {old}", f"%{name}: f32[{rows},{columns}]")
    return text, [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_s2_mat_mul_and_add_with_transpositions(first, second, rng, capsys) -> None:
    text, inputs = product(rng, first=first, second=second)
    [gemm] = through_ge_opt("s2_gemm_with_captures", text, inputs, capsys).nodes_of_type("GEMM")
    assert (gemm.attrs["transpose_a"], gemm.attrs["transpose_b"]) == (first, second)


def test_s1_mat_mul_and_add(rng, capsys) -> None:
    text, inputs = product(rng, first=False, second=False)
    graph = through_ge_opt("s1_gemm", text, inputs, capsys)
    [gemm] = graph.nodes_of_type("GEMM")
    assert [source.node.attrs["value"].data for source in gemm.inputs[3:]] == [1.0, 1.0]


@pytest.mark.parametrize(("first", "count"), [(False, 1), (True, 0)])
def test_s3_only_with_default_attributes(first, count, rng, capsys) -> None:
    text, inputs = product(rng, first=first, second=False)
    graph = through_ge_opt("s3_gemm_of_one_constant", text, inputs, capsys)
    assert len(graph.nodes_of_type("GEMM")) == count


CONCATENATED = """graph g(%x: f32[2,3]@ND, %y: f32[2,1]@ND, %z: f32[2,2]@ND) {
  %axis = Const {value=i64[]{1}} -> i64[]@ND
  %n = Neg(%y) -> f32[2,1]@ND
  %c = ConcatV2(%x, %n, %z, %axis) {N=3} -> f32[2,6]@ND
  %r = Relu(%c) -> f32[2,6]@ND
  RESULT
}"""


def test_g2_relu_before_concat(rng, capsys) -> None:
    inputs = [rng.standard_normal((2, width)).astype(np.float32) for width in (3, 1, 2)]
    graph = through_ge_opt("g2_relu_before_concat", CONCATENATED.replace("RESULT", "return %r"), inputs, capsys)
    [concat] = graph.nodes_of_type("ConcatV2")
    assert [source.node.type for source in concat.inputs] == ["Relu", "Relu", "Relu", "Const"]
    assert concat.attrs["pass_name"] == ["SampleReluBeforeConcat"]
    assert graph.outputs[0].node is concat


def test_g2_through_atc(rng, monkeypatch, capsys) -> None:
    """ONNX's Concat has its axis as an attribute; TensorFlow's ConcatV2 is the operator of the sample."""
    inputs = {
        name: rng.standard_normal((2, width)).astype(np.float32) for name, width in (("a", 3), ("b", 1), ("c", 2))
    }
    tensors = [tf_models.placeholder(name, array.shape) for name, array in inputs.items()]
    joined = tf_models.node("ConcatV2", "join", "a b c axis", N=3)
    model = tf_models.graph(*tensors, tf_models.const("axis", 1), joined, tf_models.node("Relu", "y", "join"))
    Path("net.pb").write_bytes(model.SerializeToString())
    expected = np.maximum(np.concatenate(list(inputs.values()), axis=1), 0)
    for sample, relus in (("", 1), ("g2_relu_before_concat", 3)):
        om, _ = compiled(sample, Path("net.pb"), monkeypatch, capsys)
        assert types(om)["Relu"] == relus
        [found] = InferSession(0, str(om)).infer(list(inputs.values()))
        np.testing.assert_array_equal(found, expected)


def test_g2_a_result_that_others_read_is_left_alone(rng, capsys) -> None:
    text = CONCATENATED.replace("RESULT", "%e = Exp(%c) -> f32[2,6]@ND\n  return %r, %e")
    inputs = [rng.standard_normal((2, width)).astype(np.float32) for width in (3, 1, 2)]
    assert len(through_ge_opt("g2_relu_before_concat", text, inputs, capsys).nodes_of_type("Relu")) == 1


@pytest.fixture
def add_custom(monkeypatch) -> None:
    signature = parse_signature("AddCustom(x, y) -> z")
    definition = OpDef(signature, same_as("x"), lambda op, x, y: x + y, plugin="custom")
    monkeypatch.setitem(registry._REGISTRY, "AddCustom", definition)


CUSTOM = """graph g(%x: TYPE[2,3]@ND, %y: TYPE[2,3]@ND) {
  %c = Const {value=TYPE[]{ZERO}} -> TYPE[]@ND
  %i = Identity(%c) -> TYPE[]@ND
  %z = MOVE
  %first = AddCustom(%x, %z) -> TYPE[2,3]@ND
  %second = AddCustom(%first, %y) -> TYPE[2,3]@ND
  return %second
}"""


@pytest.mark.usefixtures("add_custom")
@pytest.mark.parametrize("move", ["TensorMove(%i) -> TYPE[]@ND", None], ids=["moved", "identity only"])
@pytest.mark.parametrize(("type_", "zero", "left"), [("f32", "0.0", 1), ("f32", "0.5", 2), ("f16", "0.0005", 1)])
def test_s5_custom_addition_of_zero(move, type_, zero, left, rng, capsys) -> None:
    text = (
        CUSTOM.replace("%z = MOVE", f"%z = {move}") if move else CUSTOM.replace("  %z = MOVE\n", "").replace("%z", "%i")
    )
    text = text.replace("TYPE", type_).replace("ZERO", zero)
    Path("net.txt").write_text(text)
    assert opt.main(["net.txt", "--load", str(SAMPLES / "s5_add_custom_zero.py")]) == 0
    after = parse_graph(capsys.readouterr().out)
    assert len(after.nodes_of_type("AddCustom")) == left
    dtype = np.float16 if type_ == "f16" else np.float32
    inputs = [rng.standard_normal((2, 3)).astype(dtype) for _ in range(2)]
    results = [run_graph(graph, inputs) for graph in (parse_graph(text), after)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6, atol=2e-3 if type_ == "f16" else 1e-6)


def test_g3_channels_last_with_several_channels(rng, capsys) -> None:
    """A convolution that doubles every channel does the same channels-last, given its filter's axes."""
    weights = ", ".join(str(2.0 * (i // 3 == i % 3)) for i in range(9))
    text = f"""graph g(%x: f32[2,3,3,3]@NCHW) {{
  %w = Const {{value=f32[3,3,1,1]{{{weights}}}}} -> f32[3,3,1,1]@NCHW
  %there = Const {{value=i64[4]{{0, 2, 3, 1}}}} -> i64[4]@ND
  %back = Const {{value=i64[4]{{0, 3, 1, 2}}}} -> i64[4]@ND
  %conv = Conv2D(%x, %w) {{strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW", _x_filter_format="NCHW"}}
  %t = Transpose(%conv, %there)
  %r = Relu(%t)
  %b = Transpose(%r, %back)
  return %b
}}"""
    inputs = [rng.standard_normal((2, 3, 3, 3)).astype(np.float32)]
    graph = through_ge_opt("g3_channels_last", text, inputs, capsys)
    assert Counter(n.type for n in graph if n.type != "Data") == {"Const": 1, "Conv2D": 1, "Relu": 1, "NetOutput": 1}
