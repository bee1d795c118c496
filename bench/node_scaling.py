"""How the time of compiling, loading and running grows with the number of nodes.

    python -m bench.node_scaling [FORM ...] [--nodes 1000 5000 20000] [--runs 3] [--json FILE]

Per form of graph (`models/synthetic_graphs.py`) and size: the best processor time of some runs, and what a node costs.
(Processor time: all of it is one thread of Python, and other work on the machine would bend the curve.) A straight line
costs the same per node at every size. The goals: a node of the largest graph costs at most twice as much as one of the
smallest, and 20,000 nodes of one graph compile, saving included, in less than six seconds (those of `branches` lie in
13,000 graphs).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

import atc
from bench.measurement import BUILD, machine, write_json
from models.synthetic_graphs import FORMS, WIDTH, make
from simulator import InferSession

GROWTH_GOAL = 2.0
SECONDS_GOAL = 6.0
SECONDS_NODES = 20_000


def measure(form: str, nodes: int, runs: int) -> dict[str, float]:
    """Best seconds of compiling and saving, of loading, and of one run."""
    source, target = BUILD / f"{form}.onnx", BUILD / f"{form}.om"
    onnx.save(make(form, nodes), source)
    feed = np.linspace(0.5, 1, WIDTH, dtype=np.float32)[None]

    def compile_and_save() -> None:
        atc.compile_model(source, soc_version="Ascend310P3", precision_mode_v2="origin").save(target)

    seconds = {"compile": best(compile_and_save, runs), "load": best(lambda: InferSession(0, target), runs)}
    session = InferSession(0, target)
    return {**seconds, "run": best(lambda: session.infer([feed]), runs)}


def best(action: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time against the number of nodes.")
    parser.add_argument("forms", nargs="*", metavar="FORM", default=list(FORMS))
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000, 20_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    unknown = set(arguments.forms) - FORMS.keys()
    if unknown:
        parser.error(f"unknown form {', '.join(sorted(unknown))}; there are {', '.join(FORMS)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    print(machine("onnx", "numpy", "protobuf"))
    print(
        f"{'form':<18}{'nodes':>8}   seconds: {'compile':>8}{'load':>8}{'run':>8}   us a node: {'compile':>8}{'run':>8}"
    )
    record: dict[str, dict[int, dict[str, float]]] = {}
    missed = []
    for form in arguments.forms:
        rows = record[form] = {}
        for nodes in arguments.nodes:
            row = rows[nodes] = measure(form, nodes, arguments.runs)
            compile_us, run_us = (1e6 * row[kind] / nodes for kind in ("compile", "run"))
            seconds = f"{row['compile']:>8.3f}{row['load']:>8.3f}{row['run']:>8.3f}"
            print(
                f"{form:<18}{nodes:>8}            {seconds}              {compile_us:>8.1f}{run_us:>8.2f}", flush=True
            )
        growth = growth_per_node(rows)
        print(f"{'':<18} a node of the largest costs {growth:.2f} times one of the smallest (goal: {GROWTH_GOAL:g})")
        is_slow = form != "branches" and SECONDS_NODES in rows and rows[SECONDS_NODES]["compile"] > SECONDS_GOAL
        if growth > GROWTH_GOAL or is_slow:
            missed.append(form)
    print(f"goals missed by: {', '.join(missed) or 'none'}")
    write_json(arguments.json, record)


def growth_per_node(rows: dict[int, dict[str, float]]) -> float:
    """Cost of a node in the largest graph over that in the smallest, for compiling, loading and running: the worst."""
    small, large = min(rows), max(rows)
    return max(rows[large][kind] / large / (rows[small][kind] / small) for kind in rows[small])


if __name__ == "__main__":
    main()
