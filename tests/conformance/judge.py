"""Runs one case and says what came of it."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import onnx
from onnx.backend.test.runner import Runner

from ge.errors import ReportedError
from tests.conformance.backend import OfflineBackend
from tests.conformance.cases import Case

RUNS = 3
"""A result must come every time: nothing may be left over from the run before, and luck with random numbers is none."""


def judge(case: Case) -> str:
    """Compile and run ``case`` and compare as onnx's own runner does; return ``""`` or what went wrong, in one line."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _run(case)
        except ReportedError as fault:
            return _one_line(fault)
        except AssertionError as fault:
            return f"differs: {_one_line(fault)}"
        except Exception as fault:  # noqa: BLE001 - whatever goes wrong is the result
            frame = traceback.extract_tb(fault.__traceback__)[-1]
            return f"{type(fault).__name__}: {_one_line(fault)} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
    return ""


def _run(case: Case) -> None:
    compiled = OfflineBackend.prepare(onnx.ModelProto.FromString(case.model))
    for inputs, expected in case.data_sets * RUNS:
        Runner.assert_similar_outputs(expected, compiled.run(inputs), case.rtol, case.atol)


def _one_line(fault: BaseException) -> str:
    return " ".join(str(fault).split())[:300]
