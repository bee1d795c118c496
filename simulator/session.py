"""InferSession: the simulator as users of ais_bench know it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph.types import FORMAT_TEXT
from simulator.executor import Executor
from simulator.kernels.registry import Array
from simulator.loader import ExecutionPlan, IoBinding, RunnableModel, load
from simulator.steps import all_steps

MODES = ("static", "dynbatch", "dynhw", "dyndims", "dynshape")


@dataclass(frozen=True)
class IoDesc:
    """A model input or output. ``size`` and ``realsize`` are bytes; ``format`` is GE's text, such as ``NCHW``."""

    name: str
    shape: list[int]
    datatype: np.dtype[Any]
    size: int
    format: str

    @property
    def realsize(self) -> int:
        """Bytes that the current shape takes; equal to ``size`` for static models."""
        return self.size


@dataclass
class InferSummary:
    """``exec_time_list`` holds milliseconds per run, without copying inputs and outputs."""

    exec_time_list: list[float] = field(default_factory=list)

    def reset(self) -> None:
        """Forget the times."""
        self.exec_time_list.clear()


class InferSession:
    """Runs one offline model on the CPU.

    ``model_path`` is the path of an .om file or an ``OfflineModel``. ``device_id`` and ``acl_json_path`` are accepted
    for compatibility; there is one device, the CPU. ``loop`` repeats every run. ``threads`` bounds the threads of
    matrix products (``None``: all usable cores). One session holds one arena: it is not re-entrant (R1060).
    """

    def __init__(
        self,
        device_id: int = 0,
        model_path: str | os.PathLike[str] | RunnableModel | None = None,
        acl_json_path: str | None = None,
        debug: bool = False,
        loop: int = 1,
        threads: int | None = None,
    ) -> None:
        if model_path is None:
            raise ReportedError("R1002", parameter="model_path")
        for name, value in (("loop", loop), ("threads", 1 if threads is None else threads)):
            if value < 1:
                raise ReportedError("R1001", value=value, parameter=name, reason="it must be at least 1")
        self.device_id = device_id
        self.acl_json_path = acl_json_path
        self.debug = debug
        self.loop = loop
        if isinstance(model_path, str | os.PathLike):
            self.name, model = os.fspath(model_path), _read(os.fspath(model_path))
        else:
            self.name, model = model_path.graph.name, model_path
        self._executor: Executor | None = Executor(load(model), threads, self.name)
        self._summary = InferSummary(self._executor.times)

    # -- what there is ---------------------------------------------------------------------------------------------
    def get_inputs(self) -> list[IoDesc]:
        """Return the inputs in the order in which ``infer`` takes them."""
        return [_describe(binding) for binding in self.plan.inputs]

    def get_outputs(self) -> list[IoDesc]:
        """Return the outputs in the order in which ``infer`` returns them."""
        return [_describe(binding) for binding in self.plan.outputs]

    @property
    def plan(self) -> ExecutionPlan:
        """The execution plan: memory and steps. Raises R1060 after ``free_resource``."""
        return self._live().plan

    def kernels(self) -> list[tuple[str, str, str]]:
        """Return ``(node, operator type, kernel name)`` per step; kernel ``reference`` is the slow default."""
        return [(step.node, step.type, step.kernel.name) for step in all_steps(self.plan.steps)]

    def summary(self) -> InferSummary:
        """Return the times of all runs so far."""
        return self._summary

    def reset_summaryinfo(self) -> None:
        """Forget the times of earlier runs."""
        self._summary.reset()

    # -- running ---------------------------------------------------------------------------------------------------
    def infer(
        self,
        feeds: Sequence[Any],
        mode: str = "static",
        custom_sizes: int | Sequence[int] = 100000,
        out_array: bool = True,
        *,
        allow_reinterpret: bool = False,
    ) -> list[Array]:
        """Run the model on one array per input and return fresh copies of the outputs.

        Shapes and dtypes must be those of :meth:`get_inputs`; ``allow_reinterpret`` takes any array of the right
        number of bytes. ``custom_sizes`` matters for dynamic output sizes only; outputs are numpy arrays whatever
        ``out_array`` says. Raises R1030 (count), R1031 (dtype, shape, size) and R1061 (mode).
        """
        executor = self._live()
        if mode != "static":
            reason = "static" if mode in MODES else f"static ({mode} is none of {', '.join(MODES)})"
            raise ReportedError("R1061", mode=mode, support=reason)
        arrays = _checked(feeds, executor.plan.inputs, allow_reinterpret)
        for _ in range(self.loop - 1):
            executor.run(arrays)
        return executor.run(arrays)

    def infer_pipeline(
        self,
        feeds_list: Sequence[Sequence[Any]],
        mode: str = "static",
        custom_sizes: int | Sequence[int] = 100000,
        *,
        allow_reinterpret: bool = False,
    ) -> list[list[Array]]:
        """Run several sets of feeds and return the outputs of each."""
        return [self.infer(feeds, mode, custom_sizes, allow_reinterpret=allow_reinterpret) for feeds in feeds_list]

    def infer_iteration(
        self,
        feeds: Sequence[Any],
        in_out_list: Sequence[int] | None = None,
        iteration_times: int = 1,
        *,
        allow_reinterpret: bool = False,
    ) -> list[Array]:
        """Run ``iteration_times`` times and return the last outputs.

        ``in_out_list[i]`` is the index of the output that becomes input ``i`` of the next run, -1 keeps the input;
        ``None`` keeps all. Raises R1063 for a list that does not fit.
        """
        plan = self.plan
        feedback = [-1] * len(plan.inputs) if in_out_list is None else list(in_out_list)
        self._check_feedback(feedback, iteration_times)
        arrays = list(feeds)
        outputs = self.infer(arrays, allow_reinterpret=allow_reinterpret)
        for _ in range(iteration_times - 1):
            arrays = [feed if index < 0 else outputs[index] for feed, index in zip(arrays, feedback, strict=True)]
            outputs = self.infer(arrays, allow_reinterpret=allow_reinterpret)
        return outputs

    def _check_feedback(self, feedback: Sequence[int], iteration_times: int) -> None:
        plan = self.plan
        if iteration_times < 1:
            raise ReportedError("R1001", value=iteration_times, parameter="iteration_times", reason="less than 1")
        if len(feedback) != len(plan.inputs):
            reason = f"it has {len(feedback)} entries, the model {len(plan.inputs)} inputs"
            raise ReportedError("R1063", reason=reason)
        for binding, index in zip(plan.inputs, feedback, strict=True):
            if not -1 <= index < len(plan.outputs):
                reason = f"entry {index} for input {binding.name} is no output index (0 to {len(plan.outputs) - 1})"
                raise ReportedError("R1063", reason=reason)

    def free_resource(self) -> None:
        """Give the memory back. Later calls raise R1060; the summary stays."""
        self._executor = None

    def __enter__(self) -> InferSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.free_resource()

    def _live(self) -> Executor:
        if self._executor is None:
            raise ReportedError("R1060", model=self.name, reason="its resources have been freed")
        return self._executor


def _read(path: str) -> RunnableModel:
    from om_format import load as load_model

    return load_model(path)


def _describe(binding: IoBinding) -> IoDesc:
    array = binding.array
    text = FORMAT_TEXT[binding.desc.format]
    return IoDesc(binding.name, list(array.shape), array.dtype, array.nbytes, text)


def _checked(feeds: Sequence[Any], inputs: Sequence[IoBinding], allow_reinterpret: bool) -> list[Array]:
    arrays = [np.asarray(feed) for feed in feeds]
    if len(arrays) != len(inputs):
        names = ", ".join(binding.name for binding in inputs)
        raise ReportedError("R1030", expected=len(inputs), names=names, actual=len(arrays))
    return [_fit(a, binding, allow_reinterpret) for a, binding in zip(arrays, inputs, strict=True)]


def _fit(array: Array, binding: IoBinding, allow_reinterpret: bool) -> Array:
    """Return ``array`` as the input takes it. Byte order is adapted, nothing else converted."""
    target = binding.array
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype == target.dtype and native.shape == target.shape:
        return native
    if allow_reinterpret and native.nbytes == target.nbytes and not native.dtype.hasobject:
        return np.ascontiguousarray(native).reshape(-1).view(target.dtype).reshape(target.shape)
    raise ReportedError(
        "R1031",
        name=binding.name,
        expected_dtype=target.dtype.name,
        expected_shape=list(target.shape),
        expected=target.nbytes,
        actual_dtype=native.dtype.name,
        actual_shape=list(native.shape),
        actual=native.nbytes,
    )
