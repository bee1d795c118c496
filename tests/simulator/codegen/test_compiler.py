"""Compiled kernels in sessions: modes, falling back, comparing with numpy, numbers of threads."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import atc
import simulator.codegen as codegen
from ge.errors import ReportedError
from ge.options import Environment
from simulator import InferSession
from simulator.codegen import obtain
from simulator.codegen.compiler import BUILDERS, Compiler
from simulator.codegen.emission import Emitter
from simulator.codegen.engine import Engine
from simulator.codegen.host import this_host
from simulator.loader import load
from tests.simulator.codegen.compilers import compiler
from tests.simulator.differential import check_kernel
from tests.simulator.planned_model import run_plan, single
from tests.simulator.storage_model import uniform


def network() -> bytes:
    """Two convolutions with a shortcut, a pool and a sigmoid, as an ONNX file."""
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4),
        onnx.helper.make_node("Relu", ["c1"], ["r1"]),
        onnx.helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1] * 4),
        onnx.helper.make_node("Add", ["c2", "r1"], ["sum"]),
        onnx.helper.make_node("MaxPool", ["sum"], ["pool"], kernel_shape=[3, 3], strides=[2, 2]),
        onnx.helper.make_node("Sigmoid", ["pool"], ["y"]),
    ]
    numbers = {"w1": uniform(20, 5, 3, 3), "b1": uniform(20), "w2": uniform(20, 20, 3, 3) / 8, "b2": uniform(20)}
    graph = onnx.helper.make_graph(
        nodes,
        "network",
        [onnx.helper.make_tensor_value_info("x", 1, [1, 5, 40, 44])],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 18)]
    return bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


@pytest.fixture(scope="module")
def model() -> Any:
    return atc.compile_model(
        network(), framework=5, soc_version="Ascend310P3", precision_mode_v2="origin", format_refinement="1"
    )


X = uniform(1, 5, 40, 44, seed=3)


def session(model: Any, monkeypatch: pytest.MonkeyPatch, mode: str, folder: Path, threads: int = 2) -> InferSession:
    monkeypatch.setenv("ATC_CODEGEN", mode)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return InferSession(0, model, threads=threads)


@pytest.mark.parametrize("mode", ["on", "verify"])
def test_modes(model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str) -> None:
    plain, compiled = session(model, monkeypatch, "off", tmp_path), session(model, monkeypatch, mode, tmp_path)
    assert not any(kernel.startswith("llvm-") for _, _, kernel in plain.kernels())
    ending = "+verify" if mode == "verify" else ""
    assert all(kernel.startswith("llvm-") and kernel.endswith(ending) for _, _, kernel in compiled.kernels())
    [expected], [found] = plain.infer([X]), compiled.infer([X])
    assert expected.std() > 0.05
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_mode_that_does_not_exist_is_reported() -> None:
    with pytest.raises(ReportedError, match=r"E13024.*ATC_CODEGEN.*sometimes.*on, off, verify"):
        Environment.read({"ATC_CODEGEN": "sometimes"})


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/me"}, "/caches/atc-offline/kernels"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/atc-offline/kernels"),
        ({"HOME": "/home/me"}, "/home/me/.cache/atc-offline/kernels"),
        ({"HOME": "here"}, ""),
        ({}, ""),
    ],
)
def test_the_cache_lies_among_those_of_the_user(variables: dict[str, str], folder: str) -> None:
    assert Environment.read(variables).kernel_cache == folder


def test_verifying_finds_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    builders = BUILDERS["Abs"]
    monkeypatch.setitem(BUILDERS, "Abs", (lambda request, engine: builders[0](replace(request, type="Neg"), engine),))
    plan = load(single("Abs", [uniform(40)]), Compiler(compiler().engine, is_verifying=True))
    with pytest.raises(ReportedError, match=r"R1054.*llvm-neg.*largest difference"):
        run_plan(plan, [uniform(40)])


def test_what_cannot_be_compiled_runs_on_numpy(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fail(self: Emitter) -> str:
        return "define void @kernel( {"

    monkeypatch.setattr(Emitter, "finish", fail)
    broken = Compiler(Engine(this_host()))
    with caplog.at_level(logging.WARNING, "simulator"):
        for size in (40, 41):
            check_kernel("Abs", [uniform(size)], kernel="absolute", compiler=broken)
    assert len(caplog.records) == 1
    assert "Abs runs on numpy" in caplog.text


@pytest.mark.parametrize("fault", [IndexError("no such axis"), AssertionError(), ZeroDivisionError()])
def test_builders_that_stumble_leave_the_node_to_numpy(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def stumble(*_: object) -> None:
        raise fault

    monkeypatch.setitem(BUILDERS, "Abs", (stumble,))
    check_kernel("Abs", [uniform(40)], kernel="absolute", compiler=Compiler(compiler().engine))


def test_without_llvm_numpy_runs(monkeypatch: pytest.MonkeyPatch, caplog: Any, tmp_path: Path) -> None:
    import llvmlite.binding

    def fail() -> None:
        raise RuntimeError("no target for this machine")

    monkeypatch.setattr(llvmlite.binding, "initialize_native_target", fail)
    monkeypatch.setattr(codegen, "_known", {})
    this_host.cache_clear()
    try:
        with caplog.at_level(logging.WARNING, "simulator"):
            assert obtain("on", str(tmp_path)) is None
            assert obtain("on", str(tmp_path)) is None
    finally:
        this_host.cache_clear()
    assert len(caplog.records) == 1
    assert "no target for this machine" in caplog.text


def test_any_number_of_threads_gives_the_same_bits(model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = set()
    for threads in (1, 2, 3, 7):
        compiled = session(model, monkeypatch, "on", tmp_path, threads)
        results |= {compiled.infer([X])[0].tobytes() for _ in range(3)}
    assert len(results) == 1


def peak(run: Callable[[], None]) -> int:
    """Return the most bytes that are taken while something runs for the second time."""
    run()
    gc.collect()
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("type", ["Relu", "Gelu", "Add"])
def test_a_run_allocates_nothing_that_grows(type: str) -> None:
    for size in (1000, 1_000_000):
        operands = [uniform(size, seed=slot) for slot in range(1 + (type == "Add"))]
        plan = load(single(type, operands), compiler())
        [step] = plan.steps
        assert step.kernel.name.startswith("llvm-")
        assert peak(step.call) < 4096


def test_observed_steps_run_one_by_one(model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled = session(model, monkeypatch, "on", tmp_path)
    [expected] = compiled.infer([X])
    seen: list[str] = []
    compiled._live().after_step = lambda step: seen.append(step.node)  # type: ignore[union-attr]
    assert compiled.infer([X])[0].tobytes() == expected.tobytes()
    assert seen == [node for node, _, _ in compiled.kernels()]


def test_a_second_session_compiles_nothing(model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session(model, monkeypatch, "on", tmp_path)
    monkeypatch.setattr(codegen, "_known", {})
    session(model, monkeypatch, "on", tmp_path)
    [again] = codegen._known.values()
    assert again is not None
    assert again.engine.n_compiled == 0
