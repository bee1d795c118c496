"""Run time: InferSession against onnx's ReferenceEvaluator and onnxruntime, with the same number of threads.

    python -m bench.run_time [MODEL ...] [--runs 7] [--threads N] [--json FILE]

InferSession runs each model twice: as it is compiled by default, in the layouts of the chip, where convolutions are
compiled for this machine, and in the layouts of the model (`--format_refinement=0`). ATC_CODEGEN=off measures numpy's
kernels in both.

Models are `light_*` names (random weights, without the softmax) and `digits`. The outputs are compared before any time
is printed. The ReferenceEvaluator takes seconds, so it is measured in three rounds only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from threadpoolctl import threadpool_limits

import atc
from bench.measurement import Times, alternate, machine, usable_cores, write_json
from models.materialise_light import LIGHT_NAMES, before_softmax, example_input, light_model, materialise
from simulator import InferSession

Array = NDArray[np.float32]
Outputs = list[NDArray[Any]]

DIGITS = Path(__file__).resolve().parent.parent / "models" / "digits" / "digits.onnx"
GOAL = 5.0
OURS, PLAIN, REFERENCE, RUNTIME = "InferSession", "unrefined", "ReferenceEvaluator", "onnxruntime"


class BatchNormalization(OpRun):
    """Takes the place of the evaluator's own: below opset 14 that one mixes in statistics of the batch."""

    def _run(
        self, x: Array, scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float = 1e-5, **_: object
    ) -> tuple[Array]:
        per_channel = (-1, *(1,) * (x.ndim - 2))
        factor = (scale / np.sqrt(variance + np.float32(epsilon))).reshape(per_channel)
        return ((x - mean.reshape(per_channel)) * factor + bias.reshape(per_channel),)


def candidates(model: onnx.ModelProto, threads: int) -> dict[str, Callable[[], Outputs]]:
    """One ready call per contender, all on the same input."""
    feeds = example_input(model, 1)
    content = model.SerializeToString()
    plain, refined = (session_of(content, threads, refinement) for refinement in "01")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    runtime = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    reference = ReferenceEvaluator(model, new_ops=[BatchNormalization])
    return {
        OURS: lambda: refined.infer(list(feeds.values())),
        PLAIN: lambda: plain.infer(list(feeds.values())),
        REFERENCE: lambda: reference.run(None, feeds),
        RUNTIME: lambda: runtime.run(None, feeds),
    }


def session_of(content: bytes, threads: int, refinement: str) -> InferSession:
    """Compile a model in its own layouts ("0") or in those of the chip ("1"), and load it."""
    offline = atc.compile_model(
        content,
        framework=5,
        soc_version="Ascend310P3",
        precision_mode_v2="origin",
        format_refinement=refinement,
    )
    return InferSession(0, offline, threads=threads)


def check_agreement(contenders: dict[str, Callable[[], Outputs]]) -> None:
    """Raise AssertionError unless all outputs agree within rtol 1e-3 and atol 1e-4 of the output's scale."""
    expected = contenders[RUNTIME]()
    for name, run in contenders.items():
        for actual, wanted in zip(run(), expected, strict=True):
            scale = float(np.abs(wanted).max())
            np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-4 * scale, err_msg=name)


def measure(name: str, threads: int, runs: int) -> dict[str, Times]:
    model = onnx.load(DIGITS) if name == "digits" else before_softmax(materialise(light_model(name)))
    with threadpool_limits(threads):
        contenders = candidates(model, threads)
        check_agreement(contenders)
        return alternate(contenders, runs, fewer={REFERENCE: min(3, runs)})


def main() -> None:
    parser = argparse.ArgumentParser(description="Run time against the ReferenceEvaluator and onnxruntime.")
    parser.add_argument("models", nargs="*", metavar="MODEL", default=["light_resnet50", "light_squeezenet", "digits"])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    unknown = set(arguments.models) - {*LIGHT_NAMES, "digits"}
    if unknown:
        parser.error(f"unknown model {', '.join(sorted(unknown))}; there are digits, {', '.join(LIGHT_NAMES)}")
    print(machine("onnx", "onnxruntime", "numpy", "llvmlite"))
    print(f"{arguments.threads} threads each, fp32, CPU simulation")
    record: dict[str, dict[str, Times]] = {}
    for name in arguments.models:
        times = record[name] = measure(name, arguments.threads, arguments.runs)
        print(f"run time, {name}; the outputs agree")
        for contender, value in times.items():
            print(f"  {contender:<20} {value}")
        faster = times[REFERENCE].median / times[OURS].median
        print(f"  {faster:.1f} times faster than {REFERENCE} (goal: at least {GOAL:g})")
        for contender in (OURS, PLAIN):
            ratio = times[contender].median / times[RUNTIME].median
            print(f"  {contender}: {ratio:.2f} times as long as {RUNTIME}")
    write_json(arguments.json, {"threads": arguments.threads, "models": record})


if __name__ == "__main__":
    main()
