"""The planned arena against a bound counted anew from the .om alone: peak of live bytes over the emitted order."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from ge.graph import Graph, NodeOut
from om_format import OfflineModel, load
from tests.end_to_end.agreement import compile_to

MEGABYTE = 1 << 20


def peak_of_live_bytes(model: OfflineModel) -> int:
    """Count, step by step, the memory that must be there; tensors that share bytes on purpose count once."""
    graph: Graph = model.graph
    plan = model.plan.graphs[graph.name]
    step_of = {task.node: step for step, task in enumerate(plan.tasks)}
    last_step = len(plan.tasks)

    def born(out: NodeOut) -> int:
        node = out.node
        while node.name not in step_of and node.type != "Data":
            node = node.inputs[0].node
        return step_of.get(node.name, -1)

    lives: dict[int, list[tuple[int, int, int]]] = {}
    for node in graph:
        for out in node.outputs():
            if (node.name, out.index) not in plan.blocks:
                continue
            readers = [reader.node for reader in node.consumers(out.index)]
            ends = [last_step if r.type == "NetOutput" else step_of.get(r.name, -1) for r in readers]
            start = born(out)
            block = plan.blocks[node.name, out.index]
            lives.setdefault(block.offset, []).append((start, max([start, *ends]), -(-block.size // 512) * 512))
    # tensors at one offset whose lives touch are one tensor that changes its name (views, in-place operators)
    merged: list[tuple[int, int, int]] = []
    for spans in lives.values():
        spans.sort()
        first, last, size = spans[0]
        for start, end, bytes_ in spans[1:]:
            if start <= last:
                last, size = max(last, end), max(size, bytes_)
            else:
                merged.append((first, last, size))
                first, last, size = start, end, bytes_
        merged.append((first, last, size))
    return max(sum(size for first, last, size in merged if first <= step <= last) for step in range(-1, last_step + 1))


def _assert_tight(om: Path, smallest: int = MEGABYTE) -> None:
    model = load(om)
    bound = peak_of_live_bytes(model)
    arena = model.plan.graphs[model.graph.name].arena_size
    assert bound > smallest
    assert bound <= arena <= 1.05 * bound


@pytest.mark.parametrize(
    "name", ["densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"]
)
def test_arena_of_light_models_is_within_five_percent_of_the_bound(name: str, tmp_path: Path) -> None:
    # the original models: their memory plan is that of the ones with weights
    model = Path(onnx.__file__).parent / f"backend/test/data/light/light_{name}.onnx"
    _assert_tight(compile_to(tmp_path, model, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bvlc_alexnet", "vgg19", "zfnet512"])
def test_arena_of_large_light_models_is_within_five_percent_of_the_bound(name: str, tmp_path: Path) -> None:
    model = Path(onnx.__file__).parent / f"backend/test/data/light/light_{name}.onnx"
    _assert_tight(compile_to(tmp_path, model, {}))


@pytest.mark.parametrize("name", ["ch_PP-OCRv4_det_infer", "ch_ppocr_mobile_v2.0_cls_infer", "vit_tiny", "conv_zoo"])
def test_arena_of_sample_models_is_within_five_percent_of_the_bound(
    name: str, sample_model: Callable, tmp_path: Path
) -> None:
    sample = sample_model(f"onnx/{name}.onnx")
    _assert_tight(compile_to(tmp_path, sample.path, sample.inputs), smallest=0)
