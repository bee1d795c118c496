"""ONNX's node cases with every dimension of every input open: what passes with fixed shapes passes so too."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import Runner

import atc
from ge.errors import ReportedError
from om_format import OfflineModel
from simulator import InferSession
from tests.conformance.cases import Case, load_cases
from tests.end_to_end.test_dynamic_models import Promises

NEEDS_SIZES = {
    "test_causal_conv_with_state": "its function body is built from the sizes of its inputs",
    "test_col2im": "the number of its results' axes is the length of an input",
    "test_tensorscatter": "its index arithmetic is built from the sizes of its inputs",
}
"""Cases that cannot be compiled without sizes, by the start of their names."""


def compiled(model: onnx.ModelProto, is_open: bool) -> OfflineModel:
    fixed = {tensor.name for tensor in model.graph.initializer}
    shapes = {
        value.name: [-1] * len(value.type.tensor_type.shape.dim)
        for value in model.graph.input
        if value.name not in fixed and value.type.tensor_type.HasField("shape")
    }
    options = {"soc_version": "Ascend310P3", "precision_mode_v2": "origin"}
    return atc.compile_model(model, **options, **({"input_shape": shapes} if is_open and shapes else {}))


def outcome(case: Case, is_open: bool) -> str:
    """Return ``""`` or what went wrong."""
    try:
        model = compiled(onnx.ModelProto.FromString(case.model), is_open)
        session = InferSession(0, model, threads=1)
        for inputs, expected in case.data_sets:
            Runner.assert_similar_outputs(expected, session.infer(inputs), case.rtol, case.atol)
        if not session.is_dynamic:
            return ""
        promises = Promises(model)
        for inputs, _ in case.data_sets:
            names = [port.name for port in session.get_inputs()]
            promises.run({name: np.asarray(value) for name, value in zip(names, inputs, strict=True)})
        return "; ".join(promises.broken)
    except (ReportedError, AssertionError) as fault:
        return str(fault).partition("\n")[0]


@pytest.mark.slow
def test_node_cases_with_open_dimensions() -> None:
    logging.getLogger("atc").setLevel(logging.ERROR)
    cases = [case for case in load_cases() if case.suite == "node" and case.only_tensors]
    assert len(cases) > 1500
    broken = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in cases:
            found = outcome(case, is_open=True)
            is_excused = case.name.startswith(tuple(NEEDS_SIZES)) and "expanded" not in case.name
            if bool(found) != is_excused and not outcome(case, is_open=False):
                broken[case.name] = found or "it passes: take it from the list"
    assert not broken
