"""Files that declare operators: how they are loaded, what may be declared, who sees it."""

from __future__ import annotations

import gc
import inspect
import re
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from ge.custom_ops import MODULE_PREFIX, custom_operators, load_custom_ops, operator_files
from ge.errors import ReportedError
from ge.es import GraphBuilder, TensorHolder, get_plugin, list_plugins
from ge.es.plugins import offered
from ge.graph import DataType, Graph, OpenDim, Shape, TensorDesc
from ge.graph.types import numpy_dtype
from ge.ops import OperatorSet, current_operators, infer_node, lookup, operator, registered_types, using
from ge.ops.inference import same_as
from ge.ops.registry import Misfit
from ge.passes import get_registered_passes

HEAD = "from ge.ops import operator\nfrom ge.ops.inference import broadcast, same_as\n"


def declaration(
    signature: str = "Mine(x)", *, body: str = "return x", infer: str = "same_as('x')", **flags: str
) -> str:
    """An operator file. The computation takes ``op`` and the inputs, by name."""
    ports = signature[signature.index("(") + 1 : signature.index(")")]
    arguments = ", ".join(["op", *(part.strip(" ?*") for part in ports.split(",") if part.strip())])
    options = "".join(f", {name}={value}" for name, value in flags.items())
    return f"{HEAD}@operator({signature!r}, infer={infer}{options})\ndef compute({arguments}):\n    {body}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def modules() -> set[str]:
    return {name for name in sys.modules if name.startswith(MODULE_PREFIX)}


def fault_of(folder: Path) -> ReportedError:
    with pytest.raises(ReportedError) as caught:
        load_custom_ops(folder)
    return caught.value


# -- which files are loaded --------------------------------------------------------------------------------------------
def test_files_of_a_folder_by_name(tmp_path) -> None:
    for name in ("b", "a", "_hidden"):
        write(tmp_path / f"{name}.py", declaration(f"Op{name.strip('_').upper()}(x)"))
    write(tmp_path / "deep" / "c.py", declaration("OpC(x)"))
    write(tmp_path / "notes.txt", "no operator")
    write(tmp_path / "native.so", "")
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    lines: list[str] = []
    operators = load_custom_ops(tmp_path, lines.append)
    assert operators.types() == ["OpA", "OpB"]
    assert lines == [
        f"Left out {tmp_path / 'native.so'}: native operators need CANN",
        f"Loaded {tmp_path / 'a.py'}: custom operators OpA",
        f"Loaded {tmp_path / 'b.py'}: custom operators OpB",
    ]
    assert operators.file_of("OpB") == tmp_path / "b.py"


def test_an_opp_folder_has_vendors_in_order(tmp_path) -> None:
    for vendor in ("beta", "alpha"):
        for stem in ("z", "m"):
            path = tmp_path / "vendors" / vendor / "custom_ops" / f"{stem}.py"
            write(path, declaration(f"{vendor.title()}{stem.upper()}(x)"))
    write(tmp_path / "vendors" / "alpha" / "custom_fusion_passes" / "p.py", "raise AssertionError")
    write(tmp_path / "outside.py", "raise AssertionError")
    assert load_custom_ops(tmp_path).types() == ["AlphaM", "AlphaZ", "BetaM", "BetaZ"]


def test_an_empty_folder_declares_nothing(tmp_path) -> None:
    assert len(load_custom_ops(tmp_path)) == 0


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "does not exist"), ("file", "no folder")])
def test_a_place_that_is_no_folder(tmp_path, name, reason) -> None:
    write(tmp_path / "file", "")
    with pytest.raises(ReportedError, match=rf"E13029: The plugin file \[{tmp_path / name}\].*{reason}"):
        operator_files(tmp_path / name)


def test_modules_have_names_of_their_own_and_leave_the_path_alone(tmp_path) -> None:
    write(tmp_path / "_shared_of_mine.py", "FACTOR = 3")
    write(tmp_path / "json.py", "from _shared_of_mine import FACTOR\n" + declaration(body="return x * FACTOR"))
    before = modules()
    with custom_operators(tmp_path) as operators:
        assert operators.find("Mine").evaluate({}, [np.arange(3.0)], [DataType.DT_DOUBLE])[0].tolist() == [0, 3, 6]
    [name] = modules() - before
    assert name.startswith(f"{MODULE_PREFIX}json_")
    assert "_shared_of_mine" not in sys.modules
    assert str(tmp_path) not in sys.path
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ndef f(:\n    pass\n", "line 2: SyntaxError: invalid syntax"),
        ("x = 1\n\nraise ValueError('boom')\n", "line 3: ValueError: boom"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    ],
)
def test_a_broken_file_is_named_with_the_line(tmp_path, text, reason) -> None:
    path = write(tmp_path / "broken.py", text)
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passlibname"]) == ("E13029", path)
    assert error.fields["reason"].startswith(reason)
    assert not [name for name in modules() if "broken" in name]


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        ("Mine(x", "malformed operator signature: Mine(x"),
        ("Mine(x) [a:q=1]", "attribute a is of the kind q, which is none of"),
        ("Mine(x) [a:i=1 a:i=2]", "attribute a occurs twice"),
        ("Mine(x) [a:i=one]", "'one' is no i for a default of attribute a"),
        ("Mine(x) [a:b=1]", "'1' is no b for a default of attribute a"),
        ("Mine(x) [a:f=[1]]", "'[1]' is no f for a default of attribute a"),
    ],
)
def test_a_malformed_signature_is_named_with_the_line(tmp_path, signature, reason) -> None:
    write(tmp_path / "mine.py", f"{HEAD}\noperator({signature!r}, infer=same_as('x'))(lambda op, x: x)\n")
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passname"]) == ("E13030", "Mine")
    assert error.fields["reason"].startswith(f"{tmp_path / 'mine.py'}, line 4: SignatureFault: {reason}")


def test_a_file_that_registers_passes_is_refused_and_its_passes_are_nowhere(tmp_path) -> None:
    text = (
        "from ge.passes import FusionBasePass, register_fusion_pass\n"
        "@register_fusion_pass(name='Stray', stage='BeforeInferShape')\nclass Stray(FusionBasePass): ...\n"
    )
    write(tmp_path / "mine.py", text)
    before = get_registered_passes()
    error = fault_of(tmp_path)
    assert error.code == "E13029"
    assert "registers passes (Stray)" in error.message
    assert get_registered_passes() == before


# -- what may be declared ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("type_", ["Relu", "Data", "NetOutput", "Const", "Constant", "If"])
def test_built_in_operators_cannot_be_replaced(tmp_path, type_) -> None:
    before = lookup(type_)
    path = write(tmp_path / "mine.py", declaration(f"{type_}(x)"))
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passname"]) == ("E13030", type_)
    assert f"{path}, line 3" in error.message
    assert f"built-in operator {type_}" in error.message
    assert lookup(type_) is before


def test_a_type_is_declared_once(tmp_path) -> None:
    first, second = (write(tmp_path / f"{name}.py", declaration()) for name in "ab")
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passname"]) == ("E13030", "Mine")
    assert str(second) in error.message
    assert f"declared in {first} already" in error.message


@pytest.mark.parametrize(
    ("signature", "flags", "reason"),
    [
        ("2Fast(x)", {}, "2Fast is no name"),
        ("Mine(x, x)", {}, "input 'x' needs a name of its own"),
        ("Mine(x) -> y, y", {}, "output 'y' needs a name of its own"),
        ("Mine(x*, y*)", {}, "only one input can be dynamic"),
        ("Mine(x*, y?)", {}, "an optional input cannot stand behind a dynamic one"),
        ("Mine(x) -> y?", {}, "one output or more, none of them optional"),
        ("Mine(x) -> ", {}, "one output or more, none of them optional"),
        ("Mine(x) {body}", {}, "cannot call graphs"),
        ("Mine(x) [get:i=1]", {}, "an attribute cannot be called get"),
        ("Mine(x) [n_outputs:i=1]", {}, "an attribute cannot be called n_outputs"),
        ("Mine(x) [_x_a:i=1]", {}, "an attribute cannot be called _x_a"),
        ("Mine(x) [a:I=[1.5]]", {}, "attribute a of Mine must be a list of int, not [1.5] of type list"),
        ("Mine(x)", {"plugin": "'math'"}, "takes no value_infer and no plugin"),
        ("Mine(x)", {"value_infer": "lambda ctx: None"}, "takes no value_infer and no plugin"),
        ("Mine(x)", {"onnx": "3"}, "onnx must be a text, a list of texts or a mapping, not int"),
        ("Mine(x)", {"onnx": "[3]"}, "not 3"),
        ("Mine(x)", {"onnx": "''"}, "not ''"),
        ("Mine(x)", {"onnx": "'::Mine'"}, "not '::Mine'"),
        ("Mine(x)", {"onnx": "'ai.onnx::11::Mine'"}, "'domain::Operator' (any version of the domain)"),
        ("Mine(x)", {"onnx": "{'a::B': 3}"}, "a::B must have a mapping of attribute names, or a function, not 3"),
        ("Mine(x)", {"onnx": "{'a::B': {'c': 'alpha'}}"}, "a::B is to set alpha, which is no attribute"),
    ],
)
def test_declarations_that_make_no_operator(tmp_path, signature, flags, reason) -> None:
    options = "".join(f", {name}={value}" for name, value in flags.items())
    write(tmp_path / "mine.py", f"{HEAD}\noperator({signature!r}, infer=same_as('x'){options})(lambda op, *x: x)\n")
    error = fault_of(tmp_path)
    assert error.code == "E13030"
    assert "mine.py, line 4: DeclarationFault: " in error.message
    assert reason in error.message


def test_an_onnx_operator_has_one_meaning(tmp_path) -> None:
    write(tmp_path / "a.py", declaration("First(x)", onnx="'acme::Op'"))
    write(tmp_path / "b.py", declaration("Second(x)", onnx="['acme::Other', 'acme::Op']"))
    error = fault_of(tmp_path)
    assert error.fields["passname"] == "Second"
    assert f"acme::Op stands for First, which is declared in {tmp_path / 'a.py'}, already" in error.message


def test_operators_are_declared_in_their_own_files_only(tmp_path) -> None:
    """A pass file, say, cannot declare one: where the model runs nobody would load it."""
    with using(OperatorSet()), pytest.raises(ValueError, match=r"operator Mine is declared outside of custom_ops"):
        operator("Mine(x)", infer=same_as("x"))(lambda op, x: x)
    assert lookup("Mine") is None


def test_built_in_operators_have_their_onnx_names_elsewhere() -> None:
    with pytest.raises(ValueError, match="stands in parsers/onnx"):
        operator("Mine(x)", infer=same_as("x"), onnx="acme::Mine")(lambda op, x: x)
    assert lookup("Mine") is None


# -- who sees them -----------------------------------------------------------------------------------------------------
def test_operators_are_known_inside_the_block_only(tmp_path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one / "a.py", declaration("Mine(x)", body="return x + 1"))
    write(other / "a.py", declaration("Mine(x)", body="return x + 2"))
    write(other / "b.py", declaration("Yours(x)"))
    first, second = load_custom_ops(one), load_custom_ops(other)
    assert lookup("Mine") is None

    def computed() -> float:
        definition = lookup("Mine")
        assert definition is not None
        return float(definition.evaluate({}, [np.zeros(1)], [DataType.DT_DOUBLE])[0][0])

    with using(first):
        assert computed() == 1
        assert lookup("Yours") is None
        with using(second):
            assert computed() == 2
            assert "Yours" in registered_types()
        assert computed() == 1
        assert current_operators() is first
    assert lookup("Mine") is None
    assert "Mine" not in registered_types()
    assert len(current_operators()) == 0


def test_an_operator_set_and_its_functions_can_be_forgotten(tmp_path) -> None:
    write(tmp_path / "mine.py", declaration())
    with custom_operators(tmp_path) as operators:
        from ge.es.custom import Mine

        assert Mine.__name__ == "Mine"
    definition = weakref.ref(operators.find("Mine"))
    del operators, Mine
    gc.collect()
    assert definition() is None


# -- ge.es -------------------------------------------------------------------------------------------------------------
def test_ge_es_offers_them_in_custom_and_all(tmp_path) -> None:
    write(tmp_path / "mine.py", declaration("ScaledAdd(x, y, bias?) -> z [alpha:f=1 mode:s! axes:I=[0]]"))
    with custom_operators(tmp_path):
        from ge.es.all import ScaledAdd as from_all
        from ge.es.custom import ScaledAdd

        assert from_all is ScaledAdd
        assert (offered("custom"), dir(get_plugin("custom"))) == (["ScaledAdd"], ["ScaledAdd"])
        assert "ScaledAdd" in offered("all")
        assert not {"ScaledAdd"} & {*offered("math"), *offered("nn")}
        assert list_plugins() == ["all", "custom", "math", "nn"]
        found: dict[str, object] = {}
        exec("from ge.es.custom import *", found)  # noqa: S102, what the import statement itself does is tested
        assert found["ScaledAdd"] is ScaledAdd
    for module in ("custom", "all"):
        with pytest.raises(ImportError, match="cannot import name 'ScaledAdd'"):
            exec(f"from ge.es.{module} import ScaledAdd")  # noqa: S102


def test_their_functions_are_like_those_of_built_in_operators(tmp_path) -> None:
    write(tmp_path / "mine.py", declaration("ScaledAdd(x, y, bias?) -> z [alpha:f=1 mode:s! axes:I=[0]]"))
    write(tmp_path / "parts.py", declaration("Parts(x) -> part* [n:i=2]", infer="lambda ctx: []"))
    write(tmp_path / "pair.py", declaration("Pair(x) -> low, high", infer="lambda ctx: []"))
    with custom_operators(tmp_path):
        from ge.es.custom import Pair, Parts, ScaledAdd

        parameters = inspect.signature(ScaledAdd).parameters
        assert {name: p.default for name, p in parameters.items() if p.default is not p.empty} == {
            "bias": None,
            "alpha": 1.0,
            "axes": [0],
        }
        assert [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY] == ["alpha", "mode", "axes"]
        assert "alpha: float, default 1.0" in ScaledAdd.__doc__
        builder = GraphBuilder("g")
        x = builder.create_input(0)
        with pytest.raises(TypeError, match="ScaledAdd: missing a required"):
            ScaledAdd(x, 1.0)
        with pytest.raises(TypeError, match="attribute alpha of ScaledAdd must be a float"):
            ScaledAdd(x, 1.0, alpha="2", mode="")
        z = ScaledAdd(x, [1.0, 2.0], alpha=2, mode="plain")
        assert isinstance(z, TensorHolder)
        low, high, parts = Pair(z).low, Pair(z).high, Parts(z, 3)
        assert len(parts) == 3
        graph = builder.build_and_reset([low, high, *parts])
    node = next(node for node in graph.get_all_nodes() if node.type == "ScaledAdd")
    assert (node.get_attr("alpha"), node.get_attr("mode"), node.get_inputs_size()) == (2.0, "plain", 2)


# -- what their functions may do ---------------------------------------------------------------------------------------
def node_of(signature_type: str, shape: Shape, n_outputs: int = 1) -> Graph:
    graph = Graph("g")
    x = graph.add_node("Data", "x", output_descs=[TensorDesc(shape)])
    graph.add_node(signature_type, "n", [x.output()], n_outputs=n_outputs)
    return graph


@pytest.mark.parametrize(
    ("infer", "reason"),
    [
        ("lambda ctx: 1 / 0", "mine.py, line 3: ZeroDivisionError: division by zero"),
        ("lambda ctx: ctx.shape('z')", "LookupError: operator Mine has no input 'z'"),
        ("lambda ctx: exit(1)", "SystemExit: 1"),
        ("lambda ctx: None", "returns None, not a list of a shape and a type per output"),
        ("lambda ctx: []", "describes 0 outputs, the node has 1"),
        ("lambda ctx: [3]", "describes output 0 as 3, not as a shape and a type"),
        ("lambda ctx: [(3, ctx.dtype('x'))]", "with the shape 3, which is no list of numbers"),
        ("lambda ctx: [([1.5], ctx.dtype('x'))]", "with the shape [1.5], which is no list of numbers"),
        ("lambda ctx: [([2, -3], ctx.dtype('x'))]", "with the shape [2, -3]; a dim is -1 where it is not known"),
        ("lambda ctx: [([2 ** 63], ctx.dtype('x'))]", "with the shape [9223372036854775808]"),
        ("lambda ctx: [([1] * 65, ctx.dtype('x'))]", "with the shape [1, 1,"),
        ("lambda ctx: [([1], 'float32')]", "with the type 'float32', which is no DataType"),
    ],
)
def test_faults_of_inference_are_those_of_the_node(tmp_path, infer, reason) -> None:
    write(tmp_path / "mine.py", declaration(infer=infer))
    with custom_operators(tmp_path), pytest.raises(ReportedError) as caught:
        infer_node(node_of("Mine", Shape([2, 3])).find("n"))
    assert caught.value.code == "E14001"
    assert (caught.value.fields["opname"], caught.value.fields["optype"]) == ("n", "Mine")
    assert reason in caught.value.message
    assert "mine.py" in caught.value.message
    assert caught.value.solution == f"Correct the operator's file {tmp_path / 'mine.py'}."


def test_inference_may_refuse_with_its_own_words(tmp_path) -> None:
    text = f"{HEAD}def infer(ctx):\n    raise ctx.fail('x must be flat', value='x')\n"
    write(tmp_path / "mine.py", text + "operator('Mine(x)', infer=infer)(lambda op, x: x)\n")
    with custom_operators(tmp_path), pytest.raises(ReportedError) as caught:
        infer_node(node_of("Mine", Shape([2, 3])).find("n"))
    message = "E14001: Argument [x] of node [n] of type [Mine] is invalid. Reason: x must be flat"
    assert str(caught.value) == message


def test_open_dims_keep_their_names(tmp_path) -> None:
    write(tmp_path / "mine.py", declaration(infer="lambda ctx: [([*ctx.shape('x'), 4], ctx.dtype('x'))]"))
    graph = node_of("Mine", Shape([OpenDim("batch"), 3]))
    with custom_operators(tmp_path):
        infer_node(graph.find("n"))
    dims = graph.find("n").output_descs[0].shape
    assert dims == [-1, 3, 4]
    assert dims[0].name == "batch"


@pytest.mark.parametrize(
    ("dims", "expected"), [("[-2]", [-2]), ("()", []), ("[-1, 0]", [-1, 0]), ("(np.int64(3),)", [3])]
)
def test_shapes_that_inference_may_give(tmp_path, dims, expected) -> None:
    write(tmp_path / "mine.py", "import numpy as np\n" + declaration(infer=f"lambda ctx: [({dims}, ctx.dtype('x'))]"))
    graph = node_of("Mine", Shape([2]))
    with custom_operators(tmp_path):
        infer_node(graph.find("n"))
    assert graph.find("n").output_descs[0].shape == expected


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return x / missing", "mine.py, line 5: NameError: name 'missing' is not defined"),
        ("x += 1; return x", "line 5: ValueError: output array is read-only"),
        ("return x, x", "returns 2 results, the node has 1"),
        ("return None", "TypeError: the computation returns NoneType, which is no array of numbers"),
        ("return {1}", "TypeError: the computation returns set, which is no array of numbers"),
        ("return [[1, 2], [3]]", "returns 2 results, the node has 1"),
        ("return ([[1, 2], [3]],)", "ValueError"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_faults_of_computation_say_where(tmp_path, body, reason) -> None:
    write(tmp_path / "mine.py", declaration(body=body))
    x = np.ones(3, np.float32)
    operators = load_custom_ops(tmp_path)
    with pytest.raises(ValueError, match=r"mine\.py") as caught:
        operators.find("Mine").evaluate({}, [x], [DataType.DT_FLOAT])
    assert reason in str(caught.value)
    assert x.tolist() == [1, 1, 1]


def test_computation_sees_attributes_types_and_absent_inputs(tmp_path) -> None:
    body = "return (x * op.alpha if bias is None else bias), np.full(x.shape, op.n_outputs), np.asarray(len(rest))"
    signature = "Mine(x, bias?, rest*) -> a, b, c [alpha:f=2.5]"
    write(tmp_path / "mine.py", "import numpy as np\n" + declaration(signature, body=body, infer="lambda ctx: []"))
    definition = load_custom_ops(tmp_path).find("Mine")
    types = [DataType.DT_FLOAT16, DataType.DT_INT32, DataType.DT_INT64]
    x = np.array([1, 2], np.float16)
    a, b, c = definition.evaluate({}, [x, None, x, x], types)
    assert [(r.dtype, r.tolist()) for r in (a, b, c)] == [
        (np.float16, [2.5, 5.0]),
        (np.int32, [3, 3]),
        (np.int64, 2),
    ]
    assert definition.evaluate({"alpha": 0.0}, [x], types)[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("made", "declared", "fits"),
    [
        ("int64", DataType.DT_FLOAT, True),
        ("float64", DataType.DT_FLOAT, True),
        ("float64", DataType.DT_BF16, True),
        ("int64", DataType.DT_UINT8, True),
        ("bool", DataType.DT_INT32, True),
        ("float32", DataType.DT_INT32, False),
        ("int64", DataType.DT_BOOL, False),
        ("complex64", DataType.DT_FLOAT, False),
    ],
)
def test_results_become_the_declared_type_unless_they_would_be_cut(tmp_path, made, declared, fits) -> None:
    write(tmp_path / "mine.py", declaration(body=f"return x.astype('{made}')"))
    definition = load_custom_ops(tmp_path).find("Mine")
    x = np.array([0, 1], np.float32)
    if fits:
        [result] = definition.evaluate({}, [x], [declared])
        assert (result.dtype, result.tolist()) == (numpy_dtype(declared), [0, 1])
    else:
        with pytest.raises(Misfit, match=rf"returns {made} for an output of {declared.name}.*") as caught:
            definition.evaluate({}, [x], [declared])
        assert caught.value.solution == f"Correct the operator's file {tmp_path / 'mine.py'}."


# -- functions that could never be called ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("declaring", "reason"),
    [
        ("def f(op): return 1", "its computation must be a function of (op, x, y): it takes (op), too many"),
        ("def f(op, x, y, z): return 1", "it takes (op, x, y, z), missing a required argument: 'z'"),
        ("def f(op, x, y, *, k): return 1", "missing a required"),
        ("def f(op, x, y): yield 1", "it yields or awaits"),
        ("async def f(op, x, y): return 1", "it yields or awaits"),
        ("class f: pass", "f is a class"),
        ("class f:\n    def __init__(self, op, x, y): pass", "f is a class"),
        ("f = 3", "3 is no function"),
    ],
)
def test_computations_that_cannot_be_called(tmp_path, declaring, reason) -> None:
    write(tmp_path / "mine.py", f"{HEAD}{declaring}\noperator('Mine(x, y)', infer=same_as('x'))(f)\n")
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passname"]) == ("E13030", "Mine")
    assert reason in error.message


@pytest.mark.parametrize(
    ("infer", "reason"),
    [
        ("same_as('z')", "its inference reads 'z'; its inputs are x, y"),
        ("broadcast('x', 'Y')", "its inference reads 'Y'; its inputs are x, y"),
        ("broadcast()", "its inference names no input"),
        ("same_as", "infer=same_as is no rule; same_as(...) with names of inputs may be one"),
        ("broadcast", "infer=broadcast is no rule"),
        ("None", "its inference must be a function of (ctx): None is no function"),
        ("lambda: []", "its inference must be a function of (ctx): it takes (), too many"),
        ("lambda ctx, node: []", "missing a required argument: 'node'"),
        ("dict", "dict is a class"),
    ],
)
def test_inference_that_cannot_be_called(tmp_path, infer, reason) -> None:
    write(tmp_path / "mine.py", declaration("Mine(x, y)", infer=infer))
    error = fault_of(tmp_path)
    assert (error.code, error.fields["passname"]) == ("E13030", "Mine")
    assert reason in error.message


@pytest.mark.parametrize(("outputs", "shown"), [("a, b", "a, b"), ("a*", r"a\*")])
def test_a_rule_for_one_output_needs_one_output(tmp_path, outputs, shown) -> None:
    write(tmp_path / "mine.py", declaration(f"Mine(x) -> {outputs}"))
    assert re.search(f"describes one output, its outputs are {shown}$", fault_of(tmp_path).message)


@pytest.mark.parametrize(
    "function",
    [
        "lambda op, x, y: x",
        "lambda *all: all[1]",
        "lambda op, x, y, more=1: x",
        "functools.partial(max, 1)",
        "np.where",
    ],
)
def test_functions_that_can_be_called(tmp_path, function) -> None:
    write(
        tmp_path / "mine.py",
        f"import functools\nimport numpy as np\n{HEAD}operator('Mine(x, y)', infer=same_as('y'))({function})\n",
    )
    assert load_custom_ops(tmp_path).types() == ["Mine"]
