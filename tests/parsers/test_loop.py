"""Loop, Scan, If and sequences as parsed: the graphs mean what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest

from ge.verify import verify
from tests.control_models import CASES, Case
from tests.parsers.evaluation import evaluate, parse_model


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_parsed_graphs_agree_with_onnxruntime(case: Case) -> None:
    parsed = parse_model(case.model)
    verify(parsed)
    for feeds, expected in zip(case.feeds, case.expected(), strict=True):
        found = evaluate(parsed, [feeds[data.name] for data in parsed.data_nodes()])
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
