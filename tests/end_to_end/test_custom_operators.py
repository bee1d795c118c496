"""Custom operators the whole way: model, compile, file, run; and who knows of them when."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import atc
from atc.command import main as atc_main
from atc.opt import main as ge_opt
from atc.run_command import main as om_run
from ge.custom_ops import MODULE_PREFIX, custom_operators, load_custom_ops
from ge.errors import ReportedError
from ge.graph.compare import first_difference
from ge.ops import lookup, using
from om_format import load
from simulator import InferSession

ADD_CUSTOM = Path(__file__).parent / "add_custom"
SOFT_CLIP = """
import numpy as np
from ge.ops import operator
from ge.ops.inference import same_as

ONNX = {"acme.signal::SoftClip": {"s": "sharpness"}}

@operator("SoftClip(x) [limit:f! sharpness:f=1]", infer=same_as("x"), onnx=ONNX)
def soft_clip(op, x):
    return op.limit * np.tanh(op.sharpness * x / op.limit)
"""


def soft_clip(x: np.ndarray, limit: float, sharpness: float) -> np.ndarray:
    wide = x.astype(np.float64)
    return limit * (1 - 2 / (np.exp(2 * sharpness * wide / limit) + 1))


def clip_model(
    *, dims: Any = (2, 5), elem_type: int = TensorProto.FLOAT, constant: np.ndarray | None = None
) -> ModelProto:
    """y = SoftClip(x * 2, limit 1.5) - 1; or of a constant, to which x is added."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["double"], "double"),
        helper.make_node("SoftClip", ["double"], ["clipped"], "clip", domain="acme.signal", limit=1.5, s=0.75),
        helper.make_node("Sub", ["clipped", "one"], ["y"], "minus"),
    ]
    held = [numpy_helper.from_array(np.array(1, helper.tensor_dtype_to_np_dtype(elem_type)), "one")]
    if constant is not None:
        nodes[0] = helper.make_node("Identity", ["c"], ["double"], "double")
        nodes[2] = helper.make_node("Add", ["clipped", "x"], ["y"], "sum")
        held.append(numpy_helper.from_array(constant, "c"))
    ends = [helper.make_tensor_value_info(name, elem_type, dims) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.signal", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.fixture
def opp(tmp_path: Path) -> Path:
    """An opp folder that declares SoftClip."""
    return with_operators(tmp_path / "opp", soft_clip=SOFT_CLIP)


def with_operators(opp: Path, **texts: str) -> Path:
    folder = opp / "vendors" / "acme" / "custom_ops"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return opp


def compiled(model: ModelProto, opp: Path, **options: Any) -> Any:
    return atc.compile_model(model, soc_version="Ascend310P3", precision_mode_v2="origin", opp=opp, **options)


def code_of(action: Callable[[], object]) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        action()
    return caught.value


# -- the command lines -------------------------------------------------------------------------------------------------
def run_atc(model: Path, output: Path, *options: str) -> int:
    common = ["--framework=5", "--soc_version=Ascend310P3", "--precision_mode_v2=origin"]
    return atc_main([f"--model={model}", f"--output={output}", *common, *options])


def test_from_a_model_to_numbers(tmp_path, opp, rng, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(clip_model(), "m.onnx")
    x = rng.standard_normal((2, 5)).astype(np.float32)
    np.save("x.npy", x)
    file = Path("opp/vendors/acme/custom_ops/soft_clip.py")
    assert run_atc(Path("m.onnx"), Path("m"), "--opp=opp") == 0
    assert f"Loaded {file}: custom operators SoftClip\n" in capsys.readouterr().out
    run = ["--model=m.om", "--input=x.npy", "--output=out", "--output_dirname=r", "--outfmt=NPY"]
    for place in ("opp", str(file.parent)):
        assert om_run([*run, f"--custom_ops={place}"]) == 0
        assert f"Loaded {file}: custom operators SoftClip\n" in capsys.readouterr().out
        np.testing.assert_allclose(np.load("out/r/x_0.npy"), soft_clip(2 * x, 1.5, 0.75) - 1, rtol=1e-6, atol=1e-6)
    assert lookup("SoftClip") is None


def test_without_the_operator_nothing_runs(tmp_path, opp, capsys, monkeypatch) -> None:
    """Not even where it lies in the working directory, or where the environment names it."""
    monkeypatch.chdir(tmp_path)
    onnx.save(clip_model(), "m.onnx")
    assert run_atc(Path("m.onnx"), Path("m"), "--opp=opp") == 0
    Path("custom_ops").mkdir()
    shutil.copy(opp / "vendors/acme/custom_ops/soft_clip.py", "custom_ops")
    monkeypatch.setenv("ASCEND_OPP_PATH", str(opp))
    capsys.readouterr()
    known = {name for name in sys.modules if name.startswith(MODULE_PREFIX)}
    assert om_run(["--model=m.om"]) == 1
    shown = capsys.readouterr()
    assert "Loaded" not in shown.out
    assert shown.err.splitlines() == [
        "R1052: Node [clip] is of the operator type [SoftClip], which is not built in, and no custom operators are "
        "loaded.",
        "        Solution: Name the folder with the file that declares SoftClip: om-run --custom_ops=<dir>, or "
        "InferSession(..., custom_ops=<dir>). Nothing is loaded by itself.",
    ]
    assert {name for name in sys.modules if name.startswith(MODULE_PREFIX)} == known
    (tmp_path / "empty").mkdir()
    assert om_run(["--model=m.om", "--custom_ops=empty"]) == 1
    assert "no custom operators are loaded" in capsys.readouterr().err
    assert om_run(["--model=m.om", "--custom_ops=nowhere"]) == 1
    assert "E13029: The plugin file [nowhere] cannot be loaded. Reason: it does not exist" in capsys.readouterr().err


def test_a_compile_without_the_operator_names_node_and_remedy(tmp_path, opp, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(clip_model(), "m.onnx")
    assert run_atc(Path("m.onnx"), Path("m")) == 255
    out = capsys.readouterr().out
    assert "The folder ./opp is not used; --opp=opp would load its passes and operators" in out
    assert "E13010: No parser for node [clip] of type [acme.signal::1::SoftClip]." in out
    assert "<opp>/vendors/<vendor>/custom_ops and name <opp> with --opp" in out
    assert not Path("m.om").exists()


def test_other_modes_of_atc(tmp_path, opp, capsys, monkeypatch) -> None:
    """Checks and JSON of a model know its operators; what looks at an .om needs no file of a user."""
    monkeypatch.chdir(tmp_path)
    onnx.save(clip_model(), "m.onnx")
    check = ["--mode=3", "--model=m.onnx", "--framework=5", "--soc_version=Ascend310P3", "--check_report=r.json"]
    assert atc_main([*check, "--opp=opp"]) == 0
    assert atc_main(check) == 255
    assert run_atc(Path("m.onnx"), Path("m"), "--opp=opp") == 0
    to_json = ["--mode=1", "--om=m.onnx", "--framework=5", "--json=m.json"]
    assert atc_main([*to_json, "--opp=opp"]) == 0
    assert '"SoftClip"' in Path("m.json").read_text()
    capsys.readouterr()
    for arguments in (["--mode=6", "--om=m.om"], ["--mode=1", "--om=m.om", "--json=om.json"]):
        assert atc_main(arguments) == 0
        assert "Loaded" not in capsys.readouterr().out
    assert '"SoftClip"' in Path("om.json").read_text()


def test_looking_at_graphs(tmp_path, opp, capsys, monkeypatch) -> None:
    """A model needs its operators to become a graph; graphs that are there need none."""
    monkeypatch.chdir(tmp_path)
    onnx.save(clip_model(), "m.onnx")
    assert run_atc(Path("m.onnx"), Path("m"), "--opp=opp") == 0
    capsys.readouterr()
    for name, options in (("m.om", []), ("m.onnx", ["--custom-ops=opp"])):
        assert atc_main(["graph", "show", name, *options]) == 0
        shown = capsys.readouterr()
        assert "1  SoftClip" in shown.out
        assert ("custom operators SoftClip" in shown.err) is bool(options)
    assert atc_main(["graph", "diff", "m.onnx", "m.om", "--custom-ops=opp"]) == 1
    assert "SoftClip" not in capsys.readouterr().out
    assert atc_main(["graph", "show", "m.onnx"]) == 2
    assert "E13010" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("\n\nboom()\n", "E13029", ["bad.py", "line 3: NameError: name 'boom' is not defined"]),
        (SOFT_CLIP, "E13030", ["[SoftClip]", "bad.py", "declared in", "soft_clip.py already"]),
        (SOFT_CLIP.replace("SoftClip(", "Relu("), "E13030", ["[Relu]", "bad.py, line 8", "built-in operator Relu"]),
        (SOFT_CLIP.replace("SoftClip(", "Mine(").replace("acme.signal::SoftClip", "Relu"), "E13030",
         ["[Mine]", "bad.py", "ONNX itself defines ai.onnx::Relu"]),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_leaves_no_om(tmp_path, opp, capsys, text, code, parts) -> None:
    with_operators(opp, zz_bad=text)
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m", f"--opp={opp}") == 255
    out = capsys.readouterr().out
    assert code in out
    assert [part for part in parts if part not in out] == []
    assert not (tmp_path / "m.om").exists()


def test_native_operators_are_left_out_with_a_warning(tmp_path, opp, capsys) -> None:
    (opp / "vendors/acme/custom_ops/libops.so").touch()
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m", f"--opp={opp}") == 0
    assert "WARNING: native operators need CANN and are left out: " in capsys.readouterr().out


def test_running_a_model_loads_no_passes(tmp_path, opp, capsys) -> None:
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m", f"--opp={opp}") == 0
    passes = opp / "vendors/acme/custom_fusion_passes"
    passes.mkdir()
    (passes / "p.py").write_text("raise AssertionError('a pass was loaded')")
    assert om_run([f"--model={tmp_path / 'm.om'}", f"--custom_ops={opp}"]) == 0


def test_the_environment_may_name_the_folder_for_a_compile(tmp_path, opp, capsys, monkeypatch) -> None:
    monkeypatch.setenv("ASCEND_OPP_PATH", str(opp))
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m") == 0
    assert "soft_clip.py: custom operators SoftClip" in capsys.readouterr().out


# -- sessions ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE])
@pytest.mark.parametrize("dims", [(2, 5), ("n", 5)])
def test_numbers_from_memory_and_from_a_file(tmp_path, opp, rng, elem_type, dims) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    shape = {} if dims == (2, 5) else {"input_shape": "x:-1,5"}
    model = compiled(clip_model(dims=dims, elem_type=elem_type), opp, **shape)
    path = tmp_path / "m.om"
    model.save(path)
    sessions = [
        InferSession(0, model),
        InferSession(0, path, custom_ops=opp),
        InferSession(0, path, custom_ops=load_custom_ops(opp)),
        InferSession(0, load(path), custom_ops=str(opp)),
    ]
    tolerance = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}[np.dtype(dtype).type]
    for rows in (2, 2) if dims == (2, 5) else (1, 3, 2):
        x = rng.standard_normal((rows, 5)).astype(dtype)
        expected = soft_clip(2 * x, 1.5, 0.75) - 1
        for session in sessions:
            [y] = session.infer([x])
            assert y.dtype == dtype
            np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dims", [(2, 5), ("n", 5)])
def test_a_file_alone_is_refused(tmp_path, opp, dims) -> None:
    compiled(clip_model(dims=dims), opp, input_shape="x:-1,5" if dims[0] == "n" else "x:2,5").save(tmp_path / "m.om")
    for source in (tmp_path / "m.om", load(tmp_path / "m.om")):
        error = code_of(lambda source=source: InferSession(0, source))
        assert (error.code, error.fields["node"], error.fields["optype"]) == ("R1052", "clip", "SoftClip")


def test_all_that_is_missing_is_named_at_once(tmp_path, opp) -> None:
    texts = {f"op{i}": SOFT_CLIP.replace("SoftClip", f"Clip{i}") for i in range(12)}
    with_operators(opp, **texts)
    nodes = [
        helper.make_node(
            f"Clip{i % 12}", [f"x{i}" if i else "x"], [f"x{i + 1}"], f"n{i}", domain="acme.signal", limit=2.0
        )
        for i in range(15)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3,)) for name in ("x", "x15")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.signal", 1)]
    compiled(helper.make_model(graph, opset_imports=opsets, ir_version=10), opp).save(tmp_path / "m.om")
    only = with_operators(tmp_path / "some", op0=texts["op0"], op1=texts["op1"])
    error = code_of(lambda: InferSession(0, tmp_path / "m.om", custom_ops=only))
    assert "of custom operators only Clip0, Clip1 are loaded" in error.message
    assert [e.fields["optype"] for e in (error, *error.also)] == [f"Clip{i}" for i in range(2, 12)]


@pytest.mark.parametrize("elements", [4, 1 << 18], ids=["folded", "at load time"])
def test_constants_that_custom_operators_make(tmp_path, opp, rng, elements) -> None:
    constant = rng.standard_normal(elements).astype(np.float32)
    # the constant is broadcast: a Const of its own would make the file grow
    text = SOFT_CLIP.replace('infer=same_as("x")', "infer=lambda ctx: [([2, *ctx.shape('x')], ctx.dtype('x'))]")
    with_operators(opp, soft_clip=text.replace("return ", "x = np.stack([x, x])\n    return "))
    model = compiled(clip_model(dims=(2, elements), constant=constant), opp)
    kept = [node for node in model.graph if node.type == "SoftClip"]
    assert [node.attrs.get("_load_time_const") for node in kept] == ([] if elements == 4 else [True])
    model.save(tmp_path / "m.om")
    x = rng.standard_normal((2, elements)).astype(np.float32)
    [y] = InferSession(0, tmp_path / "m.om", custom_ops=opp).infer([x])
    np.testing.assert_allclose(y, x + soft_clip(constant, 1.5, 0.75), rtol=1e-5, atol=1e-5)


def test_a_stateful_operator_is_not_folded(opp) -> None:
    with_operators(opp, soft_clip=SOFT_CLIP.replace("onnx=", "is_stateful=True, onnx="))
    model = compiled(clip_model(dims=(4,), constant=np.ones(4, np.float32)), opp)
    assert [node.name for node in model.graph if node.type == "SoftClip"] == ["clip"]


FAULTS = {
    "1 / 0": "soft_clip.py, line 10: ZeroDivisionError: division by zero",
    "x[:1]": "output 0",
    "(x, x)": "returns 2 results, the node has 1",
    "x.sort() or x": "soft_clip.py, line 10: ValueError",
    "exit(0)": "soft_clip.py, line 10: SystemExit: 0",
}


@pytest.mark.parametrize("dims", [(2, 5), ("n", 5)], ids=["static", "dynamic"])
@pytest.mark.parametrize("result", FAULTS)
def test_faults_in_a_run_name_the_node(opp, dims, result) -> None:
    with_operators(opp, soft_clip=SOFT_CLIP.replace("op.limit * np.tanh(op.sharpness * x / op.limit)", result))
    model = compiled(clip_model(dims=dims), opp, input_shape="x:-1,5" if dims[0] == "n" else "x:2,5")
    error = code_of(lambda: InferSession(0, model).infer([np.ones((2, 5), np.float32)]))
    assert error.code == "R1050"
    assert "[clip" in error.message
    assert FAULTS[result] in error.message
    assert "soft_clip.py" in error.message
    assert "Correct the" in error.solution
    assert "soft_clip.py" in error.solution


@pytest.mark.parametrize("result", FAULTS)
def test_faults_while_folding_name_the_node(opp, result) -> None:
    with_operators(opp, soft_clip=SOFT_CLIP.replace("op.limit * np.tanh(op.sharpness * x / op.limit)", result))
    error = code_of(lambda: compiled(clip_model(dims=(4,), constant=np.ones(4, np.float32)), opp))
    assert (error.code, error.fields["opname"], error.fields["optype"]) == ("E14001", "clip", "SoftClip")
    assert FAULTS[result] in error.message
    assert "soft_clip.py" in error.message
    assert "soft_clip.py" in error.solution


@pytest.mark.parametrize("infer", ["lambda ctx: 1 / 0", "lambda ctx: [([-5], ctx.dtype('x'))]", "lambda ctx: []"])
def test_faults_of_inference_name_the_file_to_correct(opp, infer) -> None:
    with_operators(opp, soft_clip=SOFT_CLIP.replace('same_as("x")', infer))
    error = code_of(lambda: compiled(clip_model(), opp))
    assert (error.code, error.fields["opname"]) == ("E14001", "clip")
    assert "soft_clip.py" in error.solution


def test_faults_at_load_time_name_the_node(tmp_path, opp) -> None:
    """The folder given to a run need not be the one that the model was compiled with."""
    double = SOFT_CLIP.replace('infer=same_as("x")', "infer=lambda ctx: [([2, *ctx.shape('x')], ctx.dtype('x'))]")
    with_operators(opp, soft_clip=double.replace("return ", "x = np.stack([x, x])\n    return "))
    model = compiled(clip_model(dims=(2, 1 << 18), constant=np.ones(1 << 18, np.float32)), opp)
    model.save(tmp_path / "m.om")
    with_operators(opp, soft_clip=double.replace("return ", "return 1 / 0, "))
    error = code_of(lambda: InferSession(0, tmp_path / "m.om", custom_ops=opp))
    assert error.code == "R1050"
    assert "clip (SoftClip, kernel reference)" in error.message
    assert "soft_clip.py, line 10: ZeroDivisionError" in error.message


def test_a_file_whose_operator_has_another_signature_is_refused(tmp_path, opp) -> None:
    """The reader holds attributes of a file against the signature that was loaded."""
    compiled(clip_model(), opp).save(tmp_path / "m.om")
    for changed, reason in (
        ("limit:s!", "attribute limit must be of the kind 's', it is float 1.5"),
        ("limit:f! other:i!", "attribute other must be of the kind 'i', it is missing"),
    ):
        with_operators(opp, soft_clip=SOFT_CLIP.replace("limit:f!", changed))
        error = code_of(lambda: InferSession(0, tmp_path / "m.om", custom_ops=opp))
        assert error.code == "E10041"
        assert reason in error.message
    with_operators(opp, soft_clip=SOFT_CLIP.replace("(x)", "(x, y)", 1).replace("(op, x)", "(op, x, y)"))
    error = code_of(lambda: InferSession(0, tmp_path / "m.om", custom_ops=opp))
    assert error.code == "E10041"
    assert "has 1 inputs, the signature takes 2..2" in error.message


def test_a_file_does_not_decide_what_is_loaded(tmp_path, opp) -> None:
    """Whatever a file says about folders and modules: only the folder that the user names is looked into."""
    trap = with_operators(tmp_path / "trap", soft_clip="raise AssertionError('loaded')")
    model = compiled(clip_model(), opp)
    folder = str(trap / "vendors/acme/custom_ops")
    for name in ("custom_ops", "opp", "ASCEND_OPP_PATH", "_recorded_options"):
        model.attrs[name] = folder
    clip = model.graph.find("clip")
    clip.attrs |= {"custom_ops": folder, "_module": "soft_clip", "_file": f"{folder}/soft_clip.py"}
    model.save(tmp_path / "m.om")
    assert code_of(lambda: InferSession(0, tmp_path / "m.om")).code == "R1052"
    [y] = InferSession(0, tmp_path / "m.om", custom_ops=opp).infer([np.ones((2, 5), np.float32)])
    np.testing.assert_allclose(y, soft_clip(np.full((2, 5), 2.0), 1.5, 0.75) - 1, rtol=1e-6)
    session_type = "../../trap/soft_clip"
    model.graph.set_type(clip, session_type)
    model.save(tmp_path / "n.om")
    error = code_of(lambda: InferSession(0, tmp_path / "n.om", custom_ops=opp))
    assert (error.code, error.fields["optype"]) == ("R1052", session_type)


# -- the file ----------------------------------------------------------------------------------------------------------
def test_a_file_holds_what_the_compile_made(tmp_path, opp) -> None:
    model = compiled(clip_model(), opp)
    model.save(tmp_path / "m.om")
    with custom_operators(opp):
        again = load(tmp_path / "m.om")
        again.save(tmp_path / "again.om")
    blind = load(tmp_path / "m.om")
    for other in (again, blind):
        assert first_difference(model.graph, other.graph) is None
        assert other.plan == model.plan
        assert other.graph.find("clip").attrs["sharpness"] == 0.75
    assert (tmp_path / "again.om").read_bytes() == (tmp_path / "m.om").read_bytes()


def test_equal_compiles_give_equal_files(tmp_path, opp) -> None:
    for name in "ab":
        compiled(clip_model(), opp, output=str(tmp_path / "m")).save(tmp_path / f"{name}.om")
    elsewhere = shutil.copytree(opp, tmp_path / "elsewhere")
    compiled(clip_model(), elsewhere, output=str(tmp_path / "m")).save(tmp_path / "c.om")
    assert len({(tmp_path / f"{name}.om").read_bytes() for name in "abc"}) == 1


# -- two at a time -----------------------------------------------------------------------------------------------------
def test_compiles_and_sessions_do_not_see_each_other(tmp_path, rng) -> None:
    """The same name means something else in each folder, and each folder has a name of its own."""
    x = rng.standard_normal((2, 5)).astype(np.float32)
    kinds = {"tanh": lambda v: soft_clip(v, 1.5, 0.75), "half": lambda v: v / 2, "twice": lambda v: v * 2}
    bodies = {"half": "x / 2", "twice": "x * 2", "tanh": "op.limit * np.tanh(op.sharpness * x / op.limit)"}
    opps = {
        kind: with_operators(
            tmp_path / kind,
            soft_clip=SOFT_CLIP.replace(bodies["tanh"], bodies[kind]),
            own=SOFT_CLIP.replace("SoftClip", f"Only{kind.title()}"),
        )
        for kind in kinds
    }
    models = {kind: compiled(clip_model(), opp) for kind, opp in opps.items()}
    sessions = {kind: InferSession(0, model) for kind, model in models.items()}
    for kind in [*kinds, *reversed(kinds)]:
        np.testing.assert_allclose(sessions[kind].infer([x])[0], kinds[kind](2.0 * x) - 1, rtol=1e-5, atol=1e-6)
    for kind, model in models.items():
        assert model.operators.types() == [f"Only{kind.title()}", "SoftClip"]
    foreign = clip_model()
    foreign.graph.node[1].op_type = "OnlyHalf"
    assert compiled(foreign, opps["half"]).graph.find("clip").type == "OnlyHalf"
    assert code_of(lambda: compiled(foreign, opps["twice"])).code == "E13010"
    assert lookup("SoftClip") is None


def test_a_failed_compile_leaves_nothing_behind(tmp_path, opp) -> None:
    broken = with_operators(tmp_path / "broken", a=SOFT_CLIP, b="raise ValueError")
    assert code_of(lambda: compiled(clip_model(), broken)).code == "E13029"
    assert lookup("SoftClip") is None
    assert code_of(lambda: compiled(clip_model(), tmp_path)).code == "E13010"
    compiled(clip_model(), opp)


def test_sessions_run_on_other_threads_than_they_were_opened_on(tmp_path, opp) -> None:
    """Kernels of a dynamic model are chosen while it runs."""
    compiled(clip_model(dims=("n", 5)), opp, input_shape="x:-1,5").save(tmp_path / "m.om")
    x = np.ones((3, 5), np.float32)
    sessions = [InferSession(0, tmp_path / "m.om", custom_ops=opp) for _ in range(4)]
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda s=s: results.append(s.infer([x])[0])) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for y in results:
        np.testing.assert_allclose(y, soft_clip(2 * x, 1.5, 0.75) - 1, rtol=1e-6)


def test_a_session_is_not_touched_by_operators_in_use_around_it(tmp_path, opp) -> None:
    other = with_operators(tmp_path / "other", soft_clip=SOFT_CLIP.replace("op.limit * np.tanh", "0 * np.tanh"))
    session = InferSession(0, compiled(clip_model(), opp))
    x = np.ones((2, 5), np.float32)
    with using(load_custom_ops(other)):
        np.testing.assert_allclose(session.infer([x])[0], soft_clip(2 * x, 1.5, 0.75) - 1, rtol=1e-6)


# -- sample S5: a pass over a custom operator --------------------------------------------------------------------------
def add_custom_model(nothing: np.ndarray) -> ModelProto:
    """AddCustom(AddCustom(x, Identity(nothing)), y), as the sample for CANN has it: in ONNX's own domain."""
    nodes = [
        helper.make_node("Identity", ["nothing"], ["moved"], "identity"),
        helper.make_node("AddCustom", ["x", "moved"], ["inner"], "first"),
        helper.make_node("AddCustom", ["inner", "y"], ["z"], "second"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, nothing.shape) for name in "xyz"]
    graph = helper.make_graph(nodes, "g", ends[:2], ends[2:], [numpy_helper.from_array(nothing, "nothing")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


@pytest.mark.parametrize(("offset", "adds"), [(0.0, 1), (5e-4, 1), (2e-3, 2)])
def test_s5_adding_next_to_nothing(tmp_path, rng, capsys, offset, adds) -> None:
    nothing = np.full((8, 64), offset, np.float16)
    onnx.save(add_custom_model(nothing), tmp_path / "m.onnx")
    feeds = [rng.standard_normal((8, 64)).astype(np.float16) for _ in range(2)]
    for name, feed in zip("xy", feeds, strict=True):
        np.save(tmp_path / f"{name}.npy", feed)
    results = {}
    for name, switch in (("on", "MergeAddCustomPass:on"), ("off", "MergeAddCustomPass:off")):
        om = tmp_path / name
        assert run_atc(tmp_path / "m.onnx", om, f"--opp={ADD_CUSTOM}", f"--optimization_switch={switch}") == 0
        assert "custom passes MergeAddCustomPass" in capsys.readouterr().out
        types = [node.type for node in load(f"{om}.om").graph]
        assert types.count("AddCustom") == (adds if name == "on" else 2)
        inputs = f"--input={tmp_path / 'x.npy'},{tmp_path / 'y.npy'}"
        save = [f"--output={tmp_path}", f"--output_dirname=r_{name}", "--outfmt=NPY"]
        assert om_run([f"--model={om}.om", inputs, *save, f"--custom_ops={ADD_CUSTOM}"]) == 0
        results[name] = np.load(tmp_path / f"r_{name}" / "x_0.npy")
    expected = feeds[0].astype(np.float64) + feeds[1] + (offset if adds == 2 else 0)
    np.testing.assert_allclose(results["on"], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(results["off"], results["on"], rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize(("move", "nothing", "adds"), [(True, 0.0, 1), (False, 0.0, 1), (True, 1.0, 2)])
def test_s5_behind_a_move(tmp_path, capsys, move, nothing, adds) -> None:
    """TensorMove has no counterpart in ONNX: the graph is given as text."""
    text = f"""graph g(%x: f16[2]@ND, %y: f16[2]@ND) {{
      %c = Const {{value=f16[2]{{{nothing}, {nothing}}}}} -> f16[2]@ND
      %i = Identity(%c) -> f16[2]@ND
      {"%m = TensorMove(%i) -> f16[2]@ND" if move else ""}
      %a = AddCustom(%x, {"%m" if move else "%i"}) -> f16[2]@ND
      %b = AddCustom(%a, %y) -> f16[2]@ND
      return %b as "z"
    }}"""
    (tmp_path / "g.txt").write_text(text)
    sample = ADD_CUSTOM / "vendors/sample/custom_fusion_passes/merge_add_custom.py"
    assert ge_opt([str(tmp_path / "g.txt"), f"--load={sample}", f"--custom-ops={ADD_CUSTOM}", "--verify-each"]) == 0
    shown = capsys.readouterr()
    assert "custom operators AddCustom" in shown.err
    assert shown.out.count("= AddCustom(") == adds
    assert ("= TensorMove(" in shown.out) == (adds == 2)


def test_a_pass_file_needs_the_operator_to_be_there(tmp_path, capsys) -> None:
    only_passes = tmp_path / "opp" / "vendors" / "sample" / "custom_fusion_passes"
    shutil.copytree(ADD_CUSTOM / "vendors/sample/custom_fusion_passes", only_passes)
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m", f"--opp={tmp_path / 'opp'}") == 255
    out = capsys.readouterr().out
    assert "E13029" in out
    assert "merge_add_custom.py" in out
    assert "ImportError: cannot import name 'AddCustom' from 'ge.es.all'" in out


def test_a_pass_file_cannot_declare_operators(tmp_path, opp, capsys) -> None:
    passes = opp / "vendors/acme/custom_fusion_passes"
    passes.mkdir()
    (passes / "p.py").write_text(SOFT_CLIP.replace("SoftClip(", "Other("))
    onnx.save(clip_model(), tmp_path / "m.onnx")
    assert run_atc(tmp_path / "m.onnx", tmp_path / "m", f"--opp={opp}") == 255
    out = capsys.readouterr().out
    assert "E13029" in out
    assert "line 8: DeclarationFault: operator Other is declared outside of custom_ops" in out
