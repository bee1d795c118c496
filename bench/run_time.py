"""Run time: InferSession against onnx's ReferenceEvaluator and onnxruntime, with the same number of threads.

    python -m bench.run_time [MODEL ...] [--runs 7] [--threads N] [--json FILE]

Models are `light_*` names (random weights, without the softmax) and `digits`. The outputs are compared before any time
is printed. The ReferenceEvaluator takes seconds, so it is measured in three rounds only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from threadpoolctl import threadpool_limits

import atc
from bench.measurement import Times, alternate, machine, usable_cores, write_json
from models.materialise_light import LIGHT_NAMES, before_softmax, example_input, light_model, materialise
from simulator import InferSession

Outputs = list[NDArray[np.generic]]

DIGITS = Path(__file__).resolve().parent.parent / "models" / "digits" / "digits.onnx"
GOAL = 5.0
OURS, REFERENCE, RUNTIME = "InferSession", "ReferenceEvaluator", "onnxruntime"


def candidates(model: onnx.ModelProto, threads: int) -> dict[str, Callable[[], Outputs]]:
    """One ready call per contender, all on the same input."""
    feeds = example_input(model, 1)
    content = model.SerializeToString()
    offline = atc.compile_model(content, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
    session = InferSession(0, offline, threads=threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    runtime = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    reference = ReferenceEvaluator(model)
    return {
        OURS: lambda: session.infer(list(feeds.values())),
        REFERENCE: lambda: reference.run(None, feeds),
        RUNTIME: lambda: runtime.run(None, feeds),
    }


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
    print(machine("onnx", "onnxruntime", "numpy"))
    print(f"{arguments.threads} threads each, fp32, CPU simulation")
    record: dict[str, dict[str, Times]] = {}
    for name in arguments.models:
        times = record[name] = measure(name, arguments.threads, arguments.runs)
        print(f"run time, {name}; the outputs agree")
        for contender, value in times.items():
            print(f"  {contender:<20} {value}")
        faster = times[REFERENCE].median / times[OURS].median
        print(f"  {faster:.1f} times faster than {REFERENCE} (goal: at least {GOAL:g})")
        print(f"  {times[OURS].median / times[RUNTIME].median:.2f} times as long as {RUNTIME}")
    write_json(arguments.json, {"threads": arguments.threads, "models": record})


if __name__ == "__main__":
    main()
