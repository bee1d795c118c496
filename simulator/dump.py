"""The data dump: what operators read and make, as files.

    {path}/{YYYYMMDDHHMMSS}/{device}/{model}/1/{number of the run}/
        {type}.{name}.{task}.{stream}.{time stamp}      the bytes as they are stored, in the form of device dumps
        npy/{that name}.{input|output}.{slot}.npy       the same tensor in origin format, shape and type
        manifest.json                                   what is in the files

A run has its folder when it is done, or has stopped at a node; a fault of writing leaves none. An operator in the body
of a loop has a file for every turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ge.atomic_file import check_writable
from ge.errors import ReportedError
from ge.formats import LayoutError
from ge.graph import Node, NodeOut, TensorDesc
from ge.graph.types import FORMAT_TEXT, has_numpy_dtype
from ge.tensor_memory import is_computing, is_constant, memory_size
from simulator.binding import constant_array
from simulator.dump_data import DumpedTensor, write
from simulator.dump_folder import CODE, MANIFEST, RunFolder, free_bytes, new_folder
from simulator.dump_names import Clock, file_name, sanitised
from simulator.dump_origin import as_npy, groups_of, rnn_sizes
from simulator.dump_selection import DumpedOp, names_of, original_tensor, select
from simulator.dump_settings import DumpMode, DumpSettings
from simulator.dump_statistics import statistics, table
from simulator.loader import ExecutionPlan, RunnableModel

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any
"""An array, a handle, or ``None`` for what is absent."""

MODEL_ID = 1
STATISTICS_FILE = "stats.csv"
FORMAT_VERSION = 1
"""Of manifest.json."""
MAX_MODEL_NAME = 100


@dataclass
class _Run:
    """What has been dumped of the run under way."""

    folder: RunFolder
    files: list[dict[str, object]] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    kept: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    statistics: list[dict[str, object]] = field(default_factory=list)


class Dumper:
    """Dumps the runs of one session. An executor tells it before and after which node it is.

    ``warn`` takes lines about names that select nothing and disks that are too small. Raises R1044 when it can be seen
    that nothing can be written.
    """

    def __init__(
        self,
        model: RunnableModel,
        settings: DumpSettings,
        name: str,
        device: int,
        warn: Callable[[str], None],
        plan: ExecutionPlan | None = None,
    ) -> None:
        self.settings = settings
        self._root = Path(settings.path)
        _check_writable(self._root)
        self._device, self._name = device, sanitised(name)[:MAX_MODEL_NAME] or "model"
        self._warn = warn
        selection = select(model.graph, model.plan, settings)
        for line in selection.warnings:
            warn(line)
        self._ops = selection.ops
        self._at_start, self._behind = _without_task(selection.ops, plan)
        inputs = enumerate(model.graph.data_nodes()) if plan is None else ()
        self._fed = {node.name: place for place, node in inputs if node.name in self._ops}
        self._clock = Clock()
        self._folder: Path | None = None
        self._older = self._root
        self._runs = 0
        self._run: _Run | None = None
        self._is_space_checked = False
        self.is_paused = False
        self.seconds = 0.0

    @property
    def folder(self) -> Path | None:
        """The folder that the numbered folders of runs are in; ``None`` before the first run."""
        return self._folder

    def check_space(self, runs: int = 1) -> None:
        """Warn when the files of so many runs will not fit on the disk, as far as shapes are known."""
        self._is_space_checked = True
        if self.settings.stats:
            return
        steps = [(max(first, self._runs), min(last + 1, self._runs + runs)) for first, last in self.settings.steps]
        if steps:
            runs = min(runs, sum(max(end - start, 0) for start, end in steps))
        needed = runs * sum(self._bytes_of(op) for op in self._ops.values())
        free = free_bytes(self._root)
        if free is not None and needed > free:
            times = f" for {runs} runs" if runs > 1 else ""
            self._warn(f"the dump takes some {needed} bytes{times}, but only {free} are free in {self._root}")

    def _bytes_of(self, op: DumpedOp) -> int:
        return sum(2 * _stored_bytes(desc) for desc in self._descs(op))  # as stored, and as .npy

    def _descs(self, op: DumpedOp) -> list[TensorDesc]:
        descs = [] if self.settings.mode is DumpMode.OUTPUT else [s.desc for s in op.node.inputs if s is not None]
        return descs if self.settings.mode is DumpMode.INPUT else [*descs, *op.node.output_descs]

    # -- what an executor tells ----------------------------------------------------------------------------------------
    @contextmanager
    def run(self, feeds: Sequence[Value]) -> Iterator[None]:
        """Dump what happens in the block: one run of the model on ``feeds``."""
        number, self.seconds = self._runs, 0.0
        if self.is_paused or not self._ops:
            yield
            return
        self._runs += 1
        steps = self.settings.steps
        if steps and not any(first <= number <= last for first, last in steps):
            yield
            return
        if not self._is_space_checked:
            self.check_space()
        self._run = run = _Run(RunFolder(self._home() / str(number)))
        try:
            self._dump_start(feeds)
            yield
        except ReportedError as fault:
            if fault.code == CODE:
                run.folder.discard(self._older)
            else:
                self._finish(run, number, fault)  # what came before the node that failed is what one wants to see
            raise
        except BaseException:
            run.folder.discard(self._older)
            raise
        else:
            self._finish(run, number)
        finally:
            self._run = None

    def before(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Keep the inputs that the node will write over."""
        run = self._run
        if run is None or name not in self._ops or self.settings.mode is DumpMode.OUTPUT:
            return
        start = time.perf_counter()
        kept = [_is_written(x, outputs) for x in inputs]
        if any(kept):
            run.kept[name] = tuple(x.copy() if is_lost else x for x, is_lost in zip(inputs, kept, strict=True))
        self.seconds += time.perf_counter() - start

    def after(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Dump a node that has run, and the views of what it made."""
        run, start = self._run, time.perf_counter()
        if run is None:
            return
        op = self._ops.get(name)
        if op is not None:
            self._dump(run, op, run.kept.pop(name, inputs), outputs)
        for view, array in self._behind.get(name, ()):
            self._dump(run, view, (None,) * len(view.node.inputs), array)
        self.seconds += time.perf_counter() - start

    # -- writing -------------------------------------------------------------------------------------------------------
    def _home(self) -> Path:
        if self._folder is None:
            self._older = next(path for path in (self._root, *self._root.parents) if path.exists())
            stamped = new_folder(self._root)
            self._folder = stamped / str(self._device) / self._name / str(MODEL_ID)
        return self._folder

    def _dump_start(self, feeds: Sequence[Value]) -> None:
        """Dump what is there before anything runs: inputs and constants."""
        assert self._run is not None
        for name, place in self._fed.items():
            self._dump(self._run, self._ops[name], (), [feeds[place]])
        for op, arrays in self._at_start:
            self._dump(self._run, op, (None,) * len(op.node.inputs), arrays)

    def _dump(self, run: _Run, op: DumpedOp, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        node, stamp = op.node, self._clock.stamp()
        tensors, skipped = self._tensors(op, inputs, outputs)
        if not tensors and not skipped:
            return
        turn = run.turns[node.name] = run.turns.get(node.name, -1) + 1
        if self.settings.stats:
            run.statistics += [_statistics_row(op, stamp, tensor) for tensor in tensors]
            return
        full = file_name(node.type, node.name, op.task, op.stream, stamp)
        with run.folder.dump_file(full) as (file, name):
            sums = write(file, node.name, stamp, tensors)
        entries = [self._entry(run, full, tensor, crc) for tensor, crc in zip(tensors, sums, strict=True)]
        run.files.append(_described(op, name, stamp, turn, [*entries, *skipped]))

    def _tensors(
        self, op: DumpedOp, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> tuple[list[DumpedTensor], list[dict[str, object]]]:
        """Return what can be dumped of a node, inputs first, and entries for what cannot."""
        tensors: list[DumpedTensor] = []
        skipped: list[dict[str, object]] = []
        sources: list[tuple[str, int, NodeOut, Value]] = []
        if self.settings.mode is not DumpMode.OUTPUT:
            pairs = zip(op.node.inputs, inputs, strict=False)
            sources += [("input", i, s, x) for i, (s, x) in enumerate(pairs) if s is not None]
        if self.settings.mode is not DumpMode.INPUT:
            sources += [("output", i, op.node.output(i), y) for i, y in enumerate(outputs)]
        for kind, index, out, value in sources:
            if self._is_left_out(op, kind, index):
                continue
            if isinstance(value, np.ndarray) and has_numpy_dtype(out.desc.data_type):
                tensors.append(
                    DumpedTensor(kind, index, out.desc, value, original_tensor(out), rnn_sizes(out.node.attrs))
                )
            elif value is not None:
                reason = f"values of type {out.desc.data_type.name} have no bytes"
                skipped.append({"kind": kind, "index": index, "reason": reason})
        return tensors, skipped

    def _is_left_out(self, op: DumpedOp, kind: str, index: int) -> bool:
        return any(
            (kind, index) == (one.kind, one.index)
            and (one.name == op.node.type if one.is_type else one.name in names_of(op))
            for one in self.settings.left_out
        )

    def _entry(self, run: _Run, full: str, tensor: DumpedTensor, crc: int) -> dict[str, object]:
        desc, array = tensor.desc, tensor.array
        origin: dict[str, object] = {
            "format": FORMAT_TEXT[desc.origin_format],
            "shape": list(desc.origin_shape),
            "dtype": tensor.origin.data_type.name,
        }
        entry: dict[str, object] = {
            "kind": tensor.kind,
            "index": tensor.index,
            "original": {"name": tensor.origin.name, "index": tensor.origin.index},
            "storage": {
                "format": FORMAT_TEXT[desc.format],
                "shape": list(array.shape),
                "dtype": desc.data_type.name,
                "groups": groups_of(desc),
            },
            "origin": origin,
            "size": tensor.size,
            "crc32": f"{crc:08x}",
        }
        try:
            found = as_npy(tensor.in_origin(), tensor.origin.data_type)
        except LayoutError as fault:
            return entry | {"npy": None, "reason": str(fault)}
        origin["shape"] = list(found.shape)
        saved = run.folder.write_npy(full, f".{tensor.kind}.{tensor.index}.npy", found)
        return entry | {"npy": saved, "npy_dtype": found.dtype.str}

    def _finish(self, run: _Run, number: int, fault: ReportedError | None = None) -> None:
        manifest: dict[str, object] = {
            "format_version": FORMAT_VERSION,
            "model": self._name,
            "data_index": number,
            "dump_mode": self.settings.mode.value,
        }
        if fault is not None:
            manifest["stopped"] = f"{fault.code}: {fault.message}"
        try:
            if self.settings.stats:
                run.folder.write_text(STATISTICS_FILE, table(run.statistics, self.settings.stats))
            run.folder.finish(manifest, run.files)
        except BaseException:
            run.folder.discard(self._older)
            raise


def _check_writable(folder: Path) -> None:
    try:
        check_writable(folder / MANIFEST, code=CODE)
    except ReportedError as fault:
        raise ReportedError(CODE, file=str(folder), errmsg=fault.fields["errmsg"]) from fault


def _described(
    op: DumpedOp, name: str, stamp: int, turn: int, tensors: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    return {
        "op": op.node.name,
        "type": op.node.type,
        "task": op.task if op.has_task else None,
        "stream": op.stream if op.has_task else None,
        "timestamp": stamp,
        "turn": turn,
        "file": name,
        "original_names": list(op.original_names),
        "original_types": list(op.original_types),
        "tensors": list(tensors),
    }


def _statistics_row(op: DumpedOp, stamp: int, tensor: DumpedTensor) -> dict[str, object]:
    try:
        array = tensor.in_origin()
    except LayoutError:
        array = tensor.array  # padding included, for want of something better
    row: dict[str, object] = {
        "op": op.node.name,
        "type": op.node.type,
        "task": op.task if op.has_task else "",
        "stream": op.stream if op.has_task else "",
        "timestamp": stamp,
        "kind": tensor.kind,
        "index": tensor.index,
        "shape": "x".join(map(str, array.shape)),
        "dtype": tensor.desc.data_type.name,
    }
    return row | statistics(as_npy(array, tensor.desc.data_type))


def _is_written(x: Value, outputs: Sequence[Value]) -> bool:
    return isinstance(x, np.ndarray) and any(isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in outputs)


def _stored_bytes(desc: TensorDesc) -> int:
    size = memory_size(desc)
    return 0 if size is None else size


# -- what has no task ------------------------------------------------------------------------------------------------
Values = Sequence[Array | None]


def _without_task(
    ops: Mapping[str, DumpedOp], plan: ExecutionPlan | None
) -> tuple[list[tuple[DumpedOp, Values]], dict[str, list[tuple[DumpedOp, Values]]]]:
    """Return what is there when a run starts, and views by the node whose memory they show.

    A dynamic model has no planned memory: its views are steps, and only the constants of its file are known here.
    """
    at_start: list[tuple[DumpedOp, Values]] = []
    behind: dict[str, list[tuple[DumpedOp, Values]]] = {}
    for op in ops.values():
        if op.has_task:
            continue
        if plan is None:
            values: Values = [constant_array(op.node.graph, op.node)] if op.node.type == "Const" else []
        else:
            values = [plan.values.get((op.node.name, index)) for index in range(len(op.node.output_descs))]
        if not any(value is not None for value in values):
            continue
        maker = _maker(op.node)
        if maker is None:
            continue
        if maker.type == "Data" or is_constant(maker):
            at_start.append((op, values))
        else:
            behind.setdefault(maker.name, []).append((op, values))
    return at_start, behind


def _maker(node: Node) -> Node | None:
    """Return the node whose memory a view shows; ``None`` for the inputs of a body, which are the caller's memory."""
    while not (is_constant(node) or is_computing(node) or node.type == "Data"):
        source = node.input(0)
        if source is None:
            return None
        node = source.node
    return None if node.type == "Data" and node.graph.parent is not None else node
