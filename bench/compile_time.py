"""Compile time: `atc.compile_model(path).save(om)` against `onnx.load` + `onnx.save` of the same file.

    python -m bench.compile_time [--model light_resnet50] [--runs 7] [--json FILE]

The model has materialised random weights. Both sides read from a warm page cache and end with an fsync of what they
wrote. Origin precision: the weights are stored as they are. The goal: at most three times as long.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import onnx

import atc
from bench.measurement import BUILD, alternate, machine, write_json
from models.materialise_light import LIGHT_NAMES, light_model, materialise

GOAL = 3.0


def load_and_save(source: Path, target: Path) -> None:
    """What the onnx package needs for reading the model and writing it to the disk."""
    model = onnx.load(source)
    with target.open("wb") as file:
        onnx.save(model, file)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile time against onnx.load + onnx.save.")
    parser.add_argument("--model", choices=LIGHT_NAMES, default="light_resnet50")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    source = BUILD / f"{arguments.model}.onnx"
    onnx.save(materialise(light_model(arguments.model)), source)

    def compile_and_save() -> None:
        model = atc.compile_model(source, framework=5, soc_version="Ascend310P3", precision_mode_v2="origin")
        model.save(BUILD / f"{arguments.model}.om")

    times = alternate(
        {
            "compile_model + save": compile_and_save,
            "onnx.load + onnx.save": lambda: load_and_save(source, BUILD / f"{arguments.model}.copy.onnx"),
        },
        arguments.runs,
    )
    ours, theirs = times.values()
    ratio = ours.median / theirs.median
    print(f"compile time, {arguments.model}, {source.stat().st_size / 1e6:.0f} MB")
    print(machine("onnx", "numpy", "protobuf"))
    for name, value in times.items():
        print(f"  {name:<24} {value}")
    print(f"  ratio of medians {ratio:.2f} (goal: at most {GOAL:g})")
    write_json(arguments.json, {"model": arguments.model, "times": times, "ratio": ratio})


if __name__ == "__main__":
    main()
