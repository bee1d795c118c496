"""Fused operators against the chains that they take the place of: the same executor, one thread.

    python -m bench.fused_kernels [CASE ...] [--sizes 1000 100000 10000000] [--runs 7] [--json FILE]

Each case is a small ONNX model that holds the operator as exporters write it, in pieces. It is compiled with the
built-in fusions and without them (`--oo_level=O1`), and the outputs are compared before any time is printed. Measured
is the processor time of the kernels, in turns, so that other work on the machine meets both alike. A ratio below 1 says
that fusing pays. The goal: nowhere above 1.05.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.parser import parse_model
from threadpoolctl import threadpool_limits

import atc
from bench.measurement import machine, write_json
from simulator.executor import kernel_arithmetic
from simulator.loader import load

GOAL = 1.05
LEAST_SECONDS = 0.25
"""There are more rounds than asked for until they take so long together."""
LEVELS = ("O3", "O1")
"""With the built-in fusions, and without."""
WIDTH = 768
CHANNELS = 16
HEAD = '<ir_version: 9, opset_import: ["" : 18]>'

Array = NDArray[Any]
Weights = dict[str, Array]


@dataclass(frozen=True)
class Case:
    """A chain as ONNX text; ``x`` is its input, ``y`` its output, ``weights`` what it reads besides."""

    name: str
    body: str
    weights: Weights
    is_image: bool = False

    def model(self, size: int) -> onnx.ModelProto:
        """Return the model for an input of about ``size`` elements."""
        dims = self.dims(size)
        shape = ",".join(map(str, dims))
        model = parse_model(f"{HEAD} chain (float[{shape}] x) => (float[{shape}] y) {{ {self.body} }}")
        for name, value in self.weights.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        return model

    def dims(self, size: int) -> tuple[int, ...]:
        """Return rows of 768 elements, or a picture of 16 channels."""
        if not self.is_image:
            return (max(size // WIDTH, 1), WIDTH)
        height = max(int((size / CHANNELS) ** 0.5), 1)
        return (1, CHANNELS, height, height)


def scalars(**values: float) -> Weights:
    return {name: np.array(value, np.float32) for name, value in values.items()}


def cases() -> list[Case]:
    """Return all cases, their weights seeded."""
    rng = np.random.default_rng(7)

    def weights(*shape: int) -> Array:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)

    line = {"scale": weights(WIDTH), "shift": weights(WIDTH)}
    mean = "s = Constant<value_ints=[-1]>() m = ReduceMean(x, s)"
    filters = {"f": weights(CHANNELS, CHANNELS, 3, 3) / 144, "b": weights(1, CHANNELS, 1, 1)}
    norm = {name: weights(CHANNELS) for name in ("scale", "shift", "mean", "variance")}
    return [
        Case(
            "Gelu",
            "a = Div(x, r) e = Erf(a) g = Add(e, one) h = Mul(x, g) y = Mul(h, half)",
            scalars(r=2**0.5, one=1, half=0.5),
        ),
        Case(
            "GeluTanh",
            "c = Pow(x, three) d = Mul(c, k) s = Add(x, d) i = Mul(s, r) t = Tanh(i) g = Add(t, one) h = Mul(x, g) "
            "y = Mul(h, half)",
            scalars(three=3, k=0.044715, r=(2 / np.pi) ** 0.5, one=1, half=0.5),
        ),
        Case("Swish", "s = Sigmoid(x) y = Mul(x, s)", {}),
        Case("HardSwish", "s = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, s)", {}),
        Case(
            "LayerNorm",
            f"{mean} d = Sub(x, m) q = Pow(d, two) v = ReduceMean(q, s) w = Add(v, e) r = Sqrt(w) n = Div(d, r) "
            "z = Mul(n, scale) y = Add(z, shift)",
            {**line, **scalars(two=2, e=1e-5)},
        ),
        Case(
            "RmsNorm",
            "s = Constant<value_ints=[-1]>() q = Pow(x, two) v = ReduceMean(q, s) w = Add(v, e) r = Sqrt(w) "
            "i = Reciprocal(r) n = Mul(x, i) y = Mul(n, scale)",
            {"scale": line["scale"], **scalars(two=2, e=1e-5)},
        ),
        Case(
            "Softmax",
            "s = Constant<value_ints=[-1]>() m = ReduceMax(x, s) d = Sub(x, m) e = Exp(d) t = ReduceSum(e, s) "
            "y = Div(e, t)",
            {},
        ),
        Case("Conv+bias", "c = Conv<pads=[1,1,1,1]>(x, f) y = Add(c, b)", filters, is_image=True),
        Case(
            "Conv+BatchNorm",
            "c = Conv<pads=[1,1,1,1]>(x, f) y = BatchNormalization(c, scale, shift, mean, variance)",
            {"f": filters["f"], **norm},
            is_image=True,
        ),
        Case(
            "MatMul+bias", "p = MatMul(x, w) y = Add(p, b)", {"w": weights(WIDTH, WIDTH) / WIDTH, "b": weights(WIDTH)}
        ),
    ]


@dataclass(frozen=True)
class Comparison:
    """Seconds of processor time per run, and kernels, with and without fusion; medians.

    ``ratio`` is the median of the ratios of neighbouring runs, which see the same processor.
    """

    fused: float
    chain: float
    ratio: float
    fused_kernels: list[str]
    chain_kernels: list[str]


class Candidate:
    """A compiled model, ready to run; counts the processor time of its kernels, not that of copying in and out."""

    def __init__(self, model: onnx.ModelProto, x: Array, oo_level: str) -> None:
        compiled = atc.compile_model(model, soc_version="Ascend310P3", precision_mode_v2="origin", oo_level=oo_level)
        self.plan, self.x = load(compiled), x
        self.kernels = [step.kernel.name for step in self.plan.steps]

    def seconds(self) -> float:
        """Run once. The input is fresh every time: kernels may write over it."""
        np.copyto(self.plan.inputs[0].array, self.x)
        start = time.process_time()
        for step in self.plan.steps:
            step.call()
        return time.process_time() - start

    @property
    def y(self) -> Array:
        """The output of the last run."""
        return self.plan.outputs[0].array


def compare(case: Case, size: int, runs: int) -> Comparison:
    """Measure one case. Raises AssertionError if nothing is fused or the results differ."""
    model, x = case.model(size), np.random.default_rng(size).standard_normal(case.dims(size), np.float32) * 2
    times: list[tuple[float, float]] = []
    for order in (LEVELS, LEVELS[::-1]):  # what is made second gets the worse memory
        candidates = {level: Candidate(model, x, level) for level in order}
        fused, chain = (candidates[level] for level in LEVELS)
        first = fused.seconds() + chain.seconds()
        assert len(fused.kernels) < len(chain.kernels), f"{case.name}: nothing is fused"
        scale = float(np.abs(chain.y).max())
        np.testing.assert_allclose(fused.y, chain.y, rtol=1e-3, atol=1e-4 * scale, err_msg=case.name)
        times += [(fused.seconds(), chain.seconds()) for _ in range(max(runs, int(LEAST_SECONDS / first)))]
    fused_time, chain_time = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(with_fusion / without for with_fusion, without in times)
    return Comparison(fused_time, chain_time, ratio, fused.kernels, chain.kernels)


def main() -> None:
    known = {case.name: case for case in cases()}
    parser = argparse.ArgumentParser(description="Fused operators against the chains that they replace.")
    parser.add_argument("cases", nargs="*", metavar="CASE", default=list(known))
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**3, 10**5, 10**7], help="elements of the input")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"unknown case {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    print(machine("numpy"))
    print("fused / chain, processor time of one thread in ms")
    print(f"{'':16}" + "".join(f"{f'{size:,} elements':>30}" for size in arguments.sizes))
    record: dict[str, dict[int, dict[str, Any]]] = {}
    slowest = 0.0
    with threadpool_limits(1), kernel_arithmetic():
        for name in arguments.cases:
            found = {size: compare(known[name], size, arguments.runs) for size in arguments.sizes}
            cells = [f"{1000 * c.fused:9.3f} / {1000 * c.chain:9.3f} = {c.ratio:4.2f}" for c in found.values()]
            kernels = next(iter(found.values()))
            names = f"{', '.join(kernels.fused_kernels)} for {len(kernels.chain_kernels)} kernels"
            print(f"{name:16}" + "".join(f"{cell:>30}" for cell in cells) + f"   {names}", flush=True)
            record[name] = {size: asdict(comparison) for size, comparison in found.items()}
            slowest = max(slowest, *(comparison.ratio for comparison in found.values()))
    print(f"highest ratio {slowest:.2f} (goal: at most {GOAL:g})")
    write_json(arguments.json, {"cases": record, "goal": GOAL})


if __name__ == "__main__":
    main()
