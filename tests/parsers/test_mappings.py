"""The table of mappings against the operators that the installed onnx package knows."""

from __future__ import annotations

import pytest
from onnx import defs, helper

from ge.ops import lookup
from parsers.onnx import mapping
from parsers.onnx.mapping import Row, find_mapping, mapped_operators
from tests.parsers.evaluation import parse_model
from tests.parsers.onnx_models import model

# GE has no operator for these; ONNX defines them by smaller ones
BY_FUNCTION_BODY = {
    "Attention", "BlackmanWindow", "CausalConvWithState", "CenterCropPad", "HammingWindow", "HannWindow",
    "LinearAttention", "NegativeLogLikelihoodLoss", "RotaryEmbedding", "SequenceMap", "SwiGLU",
}  # fmt: skip
WITHOUT_ANY = {"ImageDecoder"}


def test_every_operator_has_a_mapping_but_these() -> None:
    known = {schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    assert known - {name for domain, name in mapped_operators() if not domain} == BY_FUNCTION_BODY | WITHOUT_ANY


def test_function_bodies_stand_in_for_these() -> None:
    schemas = [defs.get_schema(name) for name in sorted(BY_FUNCTION_BODY)]
    assert [s.name for s in schemas if not (s.has_function or s.has_context_dependent_function)] == []


def test_rows_name_defined_operators() -> None:
    rows = {key: find_mapping(*key) for key in mapped_operators()}
    assert [key for key, found in rows.items() if found is None] == []
    assert [row.type for row in rows.values() if isinstance(row, Row) and lookup(row.type) is None] == []


@pytest.mark.parametrize(("domain", "type"), [("", "AcmeLeaky"), ("acme", "Leaky")])
def test_a_mapping_may_be_for_an_operator_that_onnx_does_not_define(
    domain: str, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mapping._MAPPINGS, (domain, type), Row("LeakyRelu", slope="negative_slope"))
    leaky = helper.make_node(type, ["x"], ["y"], "n", domain=domain, slope=0.25)
    graph = parse_model(model([leaky], imports={domain: 1} if domain else None))
    [node] = [n for n in graph if n.type == "LeakyRelu"]
    assert node.attrs["negative_slope"] == 0.25
