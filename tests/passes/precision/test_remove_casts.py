"""Casts behind Casts: what goes, and above all what stays."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ge.graph import DataType
from ge.graph.types import data_type_by_short_name, numpy_dtype
from ge.ops.cast import convert
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from ge.verify import verify
from passes.infer.infer_shapes import InferShapes
from passes.precision.remove_casts import RemoveCasts

MADE = "_datadump_original_op_names=[]"
TYPES = ["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]


def number(name: str) -> int:
    """Return the value of ``dst_type`` for a type."""
    return int(data_type_by_short_name(name))


def chain(start: str, *steps: str, made: bool = False, extra: str = "") -> str:
    """Return the nodes left of a chain of Casts behind an input of type ``start``, as their types."""
    attrs = f", {MADE}" if made else ""
    lines, last = [], "%x"
    for k, name in enumerate(steps):
        lines.append(f"%c{k} = Cast({last}) {{dst_type={number(name)}{attrs}}}")
        last = f"%c{k}"
    return left(f"graph g(%x: {start}[2,3]@ND) {{ {' '.join(lines)} {extra} %y = Identity({last}) return %y }}")


def left(text: str) -> str:
    """Return ``type->type`` per Cast that is left, names of others."""
    session = CompileSession(CompileOptions(), Environment())
    graph = parse_graph(text)
    InferShapes().run(graph, session)
    RemoveCasts().run(graph, session)
    verify(graph)
    words = []
    for node in graph.topological_order():
        if node.type == "Cast":
            before, after = node.input_descs[0], node.output_descs[0]
            assert before is not None
            words.append(f"{before.data_type.name[3:].lower()}->{after.data_type.name[3:].lower()}")
        elif node.type not in ("Data", "Identity", "Const"):
            words.append(node.name)
    return " ".join(words)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("f32", "f32"), ""),
        (("f16", "f32", "f16"), ""),
        (("f16", "f32", "bf16"), "float16->bf16"),
        (("f16", "f32", "f64", "f16"), ""),
        (("i8", "f32", "f16"), "int8->float16"),
        (("i64", "f32", "f16"), "int64->float16"),
        (("bool", "i32", "f32"), "bool->float"),
        # what is lost stays lost: to integers, to bool, by rounding, by wrapping
        (("f32", "i32", "bool"), "float->int32 int32->bool"),
        (("f32", "i32", "f32"), "float->int32 int32->float"),
        (("f32", "bool", "f32"), "float->bool bool->float"),
        (("f32", "f16", "f32"), "float->float16 float16->float"),
        (("f32", "f16", "f64"), "float->float16 float16->double"),
        (("f64", "f32", "f16"), "double->float float->float16"),
        (("f16", "bf16", "f16"), "float16->bf16 bf16->float16"),
        (("i64", "f32", "bf16"), "int64->float float->bf16"),
        (("i64", "i32", "i64"), "int64->int32 int32->int64"),
        (("i32", "f64", "i8"), "int32->double double->int8"),
        (("f32", "i64", "i32"), "float->int64 int64->int32"),
    ],
)
def test_pairs_of_the_model(types: tuple[str, ...], expected: str) -> None:
    assert chain(*types) == expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        # the model asked for no rounding
        (("f32", "f16", "f32"), ""),
        (("f32", "bf16", "f32"), ""),
        (("f32", "i32", "f32"), "float->int32 int32->float"),
        (("f32", "i32", "bool"), "float->int32 int32->bool"),
        (("f32", "f16", "f64"), "float->float16 float16->double"),
    ],
)
def test_pairs_of_the_compiler(types: tuple[str, ...], expected: str) -> None:
    assert chain(*types, made=True) == expected


def test_whatever_pairs_become_gives_the_same_numbers() -> None:
    """All triples of types, over values at the borders of all of them."""
    borders = [0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 65504.0, 65519.0, 65520.0, 1e-8, 6e-8, 1e-40, 3.4e38, 1e39, np.inf]
    borders += [float(2**k + d) for k in (7, 8, 11, 15, 16, 24, 31, 32, 53) for d in (-1, 0, 1)]
    values = np.array([*borders, *(-v for v in borders), np.nan])
    wholes = np.array([2**k + d for k in (0, 7, 8, 11, 15, 16, 24, 31, 32, 53, 62) for d in (-1, 0, 1)], np.int64)
    with np.errstate(all="ignore"):
        for start, between, end in product(TYPES, repeat=3):
            source, middle, target = (data_type_by_short_name(name) for name in (start, between, end))
            x = convert(values, source)
            if x.dtype.kind in "iu":
                x = np.concatenate([x, wholes.astype(x.dtype), (-wholes).astype(x.dtype)])
            left_over = [word.split("->") for word in chain(start, between, end).split()]
            found = x
            for _, name in left_over:
                found = convert(found, DataType[f"DT_{name.upper()}"])
            expected = convert(convert(x, middle), target)
            assert found.dtype == numpy_dtype(target)
            np.testing.assert_array_equal(
                found.astype(np.float64), expected.astype(np.float64), err_msg=f"{start} {between} {end}"
            )


def test_the_first_cast_stays_for_its_other_readers() -> None:
    assert chain("f32", "f16", "f32", made=True, extra="%n = Neg(%c0)") == "float->float16 n"


@pytest.mark.parametrize("extra", ["", "%n = Neg(%c0)"], ids=["both go", "one goes"])
def test_who_reads_and_who_waits_is_as_late_as_before(extra: str) -> None:
    text = f"""graph g(%x: f32[2,3]@ND) {{
  %a = Neg(%x) %b = Abs(%x) %p = Exp(%x)
  %c0 = Cast(%p) {{dst_type=1, {MADE}}} ctrl(%a)
  %c1 = Cast(%c0) {{dst_type=0, {MADE}}} ctrl(%b)
  %y = Identity(%c1)
  %z = Sqrt(%x) ctrl(%c1)
  {extra}
  return %y, %z
}}"""
    graph = parse_graph(text)
    session = CompileSession(CompileOptions(), Environment())
    InferShapes().run(graph, session)
    assert RemoveCasts().run(graph, session)
    verify(graph)
    waits = {node.name: sorted(before.name for before in node.control_inputs) for node in graph}
    assert waits["y"] == ["a", "b"]
    assert waits["z"] == ["a", "b", "p"]
    assert [node.name for node in graph.nodes_of_type("Cast")] == (["c0"] if extra else [])
