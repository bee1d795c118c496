"""Memory plan: the planned arena of every static model beside its lower bound.

    python -m bench.arena [--json FILE]

Bound: the most bytes that are live at one step. The goal: at most 1.05 times the bound where a model has more than
1 MB of activations. Exits with status 1 if a model misses it or does not compile.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import atc
from bench.measurement import write_json
from ge.errors import ReportedError
from models.materialise_light import LIGHT_FOLDER, LIGHT_NAMES

ROOT = Path(__file__).resolve().parent.parent
GOAL = 1.05
SMALL = 1_000_000
# models beside the checkout whose shapes are static once the shapes of their inputs are given
STATIC_SAMPLES = ("ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "conv_zoo", "vit_tiny")


def models() -> dict[str, tuple[Path, str]]:
    """Name -> model file and `--input_shape`. The weights do not matter here, so the light models keep theirs."""
    found = {"digits": (ROOT / "models" / "digits" / "digits.onnx", "")}
    found |= {name: (LIGHT_FOLDER / f"{name}.onnx", "") for name in LIGHT_NAMES}
    for name in STATIC_SAMPLES:
        path = ROOT.parent / "shared" / "models" / "onnx" / f"{name}.onnx"
        if path.exists():
            found[name] = path, input_shape(path.with_suffix(".npz"))
    return found


def input_shape(sample: Path) -> str:
    """The shapes of the `in:` arrays of a sample file, in the form of `--input_shape`."""
    with np.load(sample, allow_pickle=False) as arrays:
        shapes = {key[3:]: arrays[key].shape for key in arrays.files if key.startswith("in:")}
    return ";".join(f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items())


def main() -> None:
    parser = argparse.ArgumentParser(description="Planned arena against its lower bound.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    record: dict[str, dict[str, float]] = {}
    refused: list[str] = []
    print(f"{'model':<32} {'arena MB':>10} {'bound MB':>10} {'ratio':>7} {'without reuse MB':>17}")
    for name, (path, shape) in models().items():
        options: dict[str, Any] = {"input_shape": shape} if shape else {}
        try:
            model = atc.compile_model(
                path, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin", **options
            )
        except ReportedError as error:
            print(f"{name:<32} {error}")
            refused.append(name)
            continue
        plan = model.plan.graphs[model.graph.name]
        ratio = plan.arena_size / plan.bound
        record[name] = {"arena": plan.arena_size, "bound": plan.bound, "naive": plan.naive_size, "ratio": ratio}
        sizes = (value / 1e6 for value in (plan.arena_size, plan.bound, plan.naive_size))
        arena, bound, naive = (f"{size:.3f}" for size in sizes)
        print(f"{name:<32} {arena:>10} {bound:>10} {ratio:>7.3f} {naive:>17}")
    write_json(arguments.json, record)
    missed = [name for name, row in record.items() if row["naive"] > SMALL and row["ratio"] > GOAL]
    if missed:
        print(f"above {GOAL} times the bound: {', '.join(missed)}")
    sys.exit(1 if missed or refused else 0)


if __name__ == "__main__":
    main()
