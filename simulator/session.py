"""InferSession: the simulator as users of ais_bench know it."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ge.custom_ops import load_custom_ops
from ge.errors import ReportedError
from ge.graph import Graph
from ge.graph.types import FORMAT_TEXT, has_numpy_dtype, numpy_dtype
from ge.ops import OperatorSet, current_operators, lookup, using
from ge.options import Environment
from ge.tensor_memory import memory_size
from simulator.binding import missing_operator
from simulator.codegen import obtain
from simulator.dump_settings import DumpSettings
from simulator.dynamic import DynamicExecutor
from simulator.executor import Executor
from simulator.feeds import Port, dim_limits, fitting_arrays
from simulator.kernels.registry import Array
from simulator.loader import ExecutionPlan, RunnableModel, load
from simulator.overflow import Overflow
from simulator.padding_check import check_step

if TYPE_CHECKING:
    from simulator.dump import Dumper

logger = logging.getLogger("simulator")

MAX_THREADS = 99_999
MODES = ("static", "dynbatch", "dynhw", "dyndims", "dynshape")


@dataclass(frozen=True)
class IoDesc:
    """A model input or output. ``format`` is GE's text, such as ``NCHW``.

    ``shape`` and ``format`` say how arrays lie in memory, ``origin_shape`` and ``origin_format`` what the user's model
    means; they differ where a model was compiled to take or give a layout of the hardware.

    ``size`` and ``realsize`` are bytes, 0 where the shape has open dimensions (-1). ``limits`` are the least and the
    greatest value of every dimension (a greatest of -1: no limit), ``None`` when even their number is open.
    """

    name: str
    shape: list[int]
    datatype: np.dtype[Any]
    size: int
    format: str
    limits: Sequence[tuple[int, int]] | None = None
    origin_shape: Sequence[int] = ()
    origin_format: str = ""

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

    ``model_path`` is the path of an .om file or an ``OfflineModel``. ``device_id`` is accepted for compatibility: there
    is one device, the CPU. ``loop`` repeats every run. ``threads`` bounds the threads of
    compiled kernels and matrix products (``None``: all usable cores). One session holds one arena: it is not re-entrant
    (R1060).

    ``custom_ops`` names the folder with the files that declare the custom operators of the model (or an opp folder, or
    gives what :func:`ge.custom_ops.load_custom_ops` has loaded); no other session sees them. Without it an
    ``OfflineModel`` has those that it was compiled with, and a file has none: R1052 names what is missing.

    ``dump`` names a folder into which every run dumps what all operators read and make, or is a ``DumpSettings`` that
    says more (see :meth:`start_dump`). ``acl_json_path`` is a file that says it in the form of Ascend's runtimes; it
    goes before ``dump``. Raises R1046 for what it holds.
    """

    def __init__(
        self,
        device_id: int = 0,
        model_path: str | os.PathLike[str] | RunnableModel | None = None,
        acl_json_path: str | None = None,
        debug: bool = False,
        loop: int = 1,
        threads: int | None = None,
        custom_ops: str | os.PathLike[str] | OperatorSet | None = None,
        dump: DumpSettings | str | os.PathLike[str] | None = None,
    ) -> None:
        if model_path is None:
            raise ReportedError("R1002", parameter="model_path")
        if threads is not None:
            threads = _number("threads", threads, MAX_THREADS)
        self.device_id = device_id
        self.acl_json_path = acl_json_path
        self.debug = debug
        self.loop = _number("loop", loop)
        self._operators = _operators(custom_ops, model_path)
        with using(self._operators):
            if isinstance(model_path, str | os.PathLike):
                self.name, model = os.fspath(model_path), _read(os.fspath(model_path))
            elif hasattr(model_path, "graph") and hasattr(model_path, "plan"):
                self.name, model = model_path.graph.name, model_path
            else:
                raise TypeError(f"model_path must be a path or an OfflineModel, not {type(model_path).__name__}")
            _check_operators(model.graph)
            self._executor: Executor | DynamicExecutor | None
            if model.plan.is_static:
                environment = Environment.read()
                compiler = obtain(environment.codegen, environment.kernel_cache)
                hire = None if compiler is None else compiler.crew
                self._executor = Executor(load(model, compiler), threads, self.name, hire)
            else:
                self._executor = DynamicExecutor(model, threads, self.name)
            if debug and isinstance(self._executor, Executor):
                self._executor.after_step = check_step
        self._model: RunnableModel | None = model
        self._dumper: Dumper | None = None
        self._summary = InferSummary(self._executor.times)
        if acl_json_path is not None:
            self.follow_config(acl_json_path)
        elif dump is not None:
            self.start_dump(dump)

    # -- what there is ---------------------------------------------------------------------------------------------
    def get_inputs(self) -> list[IoDesc]:
        """Return the inputs in the order in which ``infer`` takes them."""
        return [_describe(port) for port in self._live().inputs]

    def get_outputs(self) -> list[IoDesc]:
        """Return the outputs in the order in which ``infer`` returns them."""
        return [_describe(port) for port in self._live().outputs]

    @property
    def is_dynamic(self) -> bool:
        """Whether shapes are known when the model runs only."""
        return isinstance(self._live(), DynamicExecutor)

    @property
    def plan(self) -> ExecutionPlan:
        """The execution plan: memory and steps. Raises R1060 after ``free_resource``, R1061 for a dynamic model."""
        executor = self._live()
        if isinstance(executor, DynamicExecutor):
            raise ReportedError("R1061", mode="static", support="dynshape")
        return executor.plan

    def kernels(self) -> list[tuple[str, str, str]]:
        """Return ``(node, operator type, kernel name)`` per step; kernel ``reference`` is the slow default.

        In a dynamic model these are the kernels of the last run, empty before it.
        """
        return self._live().kernels()

    def summary(self) -> InferSummary:
        """Return the times of all runs so far."""
        return self._summary

    def reset_summaryinfo(self) -> None:
        """Forget the times of earlier runs, and what overflowed in them."""
        self._summary.reset()
        if self._executor is not None and self._executor.overflow is not None:
            self._executor.overflow.forget()

    def overflows(self) -> list[Overflow]:
        """Return the nodes that made infinite elements of finite ones or saturated integers, in order of execution.

        Counted are models that compute in float16 or bfloat16, for each node the most elements of one run.
        """
        counter = self._live().overflow
        return [] if counter is None else counter.found()

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

        Shapes and dtypes must be those of :meth:`get_inputs`, open dimensions within their limits;
        ``allow_reinterpret`` takes any array of the right number of bytes where the shape is fixed. A dynamic model
        takes the modes ``static`` and ``dynshape`` (or ``dymshape``) alike. ``custom_sizes`` is not needed: outputs
        take what they need; they are numpy arrays whatever ``out_array`` says. Raises R1030 (count), R1031 and R1033
        (dtype, shape, size) and R1061 (mode).
        """
        executor = self._live()
        offered = ("static", "dynshape") if self.is_dynamic else ("static",)
        asked = "dyn" + mode.removeprefix("dym") if mode.startswith("dym") else mode  # ais_bench has both spellings
        if asked not in offered:
            known = "" if asked in MODES else f" ({mode} is none of {', '.join(MODES)})"
            raise ReportedError("R1061", mode=mode, support=f"{', '.join(offered)}{known}")
        arrays = fitting_arrays(feeds, executor.inputs, allow_reinterpret)
        with using(self._operators):
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
        feedback = [-1] * len(self._live().inputs) if in_out_list is None else list(in_out_list)
        self._check_feedback(feedback, iteration_times)
        arrays = list(feeds)
        outputs = self.infer(arrays, allow_reinterpret=allow_reinterpret)
        for _ in range(iteration_times - 1):
            arrays = [feed if index < 0 else outputs[index] for feed, index in zip(arrays, feedback, strict=True)]
            outputs = self.infer(arrays, allow_reinterpret=allow_reinterpret)
        return outputs

    # -- dumping ---------------------------------------------------------------------------------------------------
    def start_dump(
        self, dump: DumpSettings | str | os.PathLike[str], warn: Callable[[str], None] = logger.warning
    ) -> None:
        """Dump every run from now on, numbered from 0, to a new folder below that of ``dump``.

        ``warn`` takes lines about layers that do not exist and files that will not fit on the disk. Raises R1044 when
        it can be seen that nothing can be written there; otherwise the run does that stops for it.
        """
        from simulator.dump import Dumper

        executor = self._live()
        assert self._model is not None
        name = os.path.splitext(os.path.basename(self.name))[0]
        plan = None if isinstance(executor, DynamicExecutor) else executor.plan
        settings = DumpSettings.of(dump)
        executor.observer = self._dumper = Dumper(self._model, settings, name, self.device_id, warn, plan)

    def follow_config(self, path: str, warn: Callable[[str], None] = logger.warning) -> None:
        """Dump what the entry ``dump`` of a configuration file asks for. Raises R1044 and R1046."""
        from simulator.dump_config import read_dump_config

        self._live()
        assert self._model is not None
        config = read_dump_config(path)
        if config is None:
            return
        file_name = os.path.splitext(os.path.basename(self.name))[0]
        settings = config.settings_for(file_name, self._model.graph.name)
        if settings is None:
            names = ", ".join(config.models)
            warn(f"nothing is dumped: {path} asks for the models {names}, this one is {file_name}")
            return
        self.start_dump(settings, warn)

    def stop_dump(self) -> None:
        """Dump no more."""
        self._live().observer = self._dumper = None

    @property
    def dump_folder(self) -> str | None:
        """The folder in which every run has its own; ``None`` before the first one that is dumped."""
        return None if self._dumper is None or self._dumper.folder is None else str(self._dumper.folder)

    @contextmanager
    def without_dump(self) -> Iterator[None]:
        """Neither dump nor count the runs in the block: warm-up, for instance."""
        dumper = self._dumper
        if dumper is None:
            yield
            return
        dumper.is_paused = True
        try:
            yield
        finally:
            dumper.is_paused = False

    def check_dump_space(self, runs: int) -> None:
        """Warn when the files of so many runs will not fit on the disk."""
        if self._dumper is not None:
            self._dumper.check_space(runs)

    def _check_feedback(self, feedback: Sequence[int], iteration_times: int) -> None:
        inputs: Sequence[Port] = self._live().inputs
        outputs = self._live().outputs
        _number("iteration_times", iteration_times)
        if len(feedback) != len(inputs):
            reason = f"it has {len(feedback)} entries, the model {len(inputs)} inputs"
            raise ReportedError("R1063", reason=reason)
        for port, index in zip(inputs, feedback, strict=True):
            if not -1 <= index < len(outputs):
                reason = f"entry {index} for input {port.name} is no output index (0 to {len(outputs) - 1})"
                raise ReportedError("R1063", reason=reason)

    def free_resource(self) -> None:
        """Give the memory back. Later calls raise R1060; the summary stays."""
        self._executor = self._model = None

    def __enter__(self) -> InferSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.free_resource()

    def _live(self) -> Executor | DynamicExecutor:
        if self._executor is None:
            raise ReportedError("R1060", model=self.name, reason="its resources have been freed")
        return self._executor


def _operators(
    custom_ops: str | os.PathLike[str] | OperatorSet | None, model: str | os.PathLike[str] | RunnableModel
) -> OperatorSet:
    """Return the custom operators of a session: nothing that a file says decides what they are."""
    if isinstance(custom_ops, OperatorSet):
        return custom_ops
    if custom_ops is not None:
        return load_custom_ops(custom_ops, logger.info)
    found = getattr(model, "operators", None)
    return found if isinstance(found, OperatorSet) else current_operators()


MAX_MISSING = 10
"""Operator types that are reported at once when they are missing."""


def _check_operators(graph: Graph) -> None:
    """Raise R1052 for the first node of each operator type that nobody defines."""
    missing: dict[str, ReportedError] = {}
    for part in graph.all_graphs():
        for node in part:
            if lookup(node.type) is None and node.type not in missing:
                missing[node.type] = missing_operator(node)
                if len(missing) == MAX_MISSING:
                    break
    if missing:
        first, *others = missing.values()
        first.also = tuple(others)
        raise first


def _number(name: str, value: int, most: int | None = None) -> int:
    """Return ``value`` as an int of at least 1. Raises R1001."""
    limit = "at least 1" if most is None else f"from 1 to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or (most is not None and number > most):
        raise ReportedError("R1001", value=value, parameter=name, reason=f"it must be a whole number, {limit}")
    return number


def _read(path: str) -> RunnableModel:
    from om_format import load as load_model

    return load_model(path)


def _describe(port: Port) -> IoDesc:
    desc = port.desc
    size = memory_size(desc)
    dtype = numpy_dtype(desc.data_type) if has_numpy_dtype(desc.data_type) else np.dtype(object)
    return IoDesc(
        port.name,
        list(desc.shape),
        dtype,
        0 if size is None else size,
        FORMAT_TEXT[desc.format],
        dim_limits(desc),
        list(desc.origin_shape),
        FORMAT_TEXT[desc.origin_format],
    )
