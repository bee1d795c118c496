"""The command ``om-run``: run an .om on the CPU, with the options, files and lines of ais_bench."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from atc.terminal import guarded, show, show_error, where_raised

if TYPE_CHECKING:
    from atc.input_files import Array, Run, Tensor
    from atc.run_options import RunOptions
    from atc.run_shapes import OpenTensor
    from atc.run_summary import Overflow, Sample
    from atc.shape_sets import Shapes
    from ge.errors import ReportedError
    from simulator import DumpSettings

USAGE = """\
usage: om-run --model=FILE.om [--input=FILES] [--output=DIR] [options]

Runs a compiled model on the CPU. Times are those of the CPU simulation, not of an NPU."""
NOTES = """\
Options are written --name=value or --name value; '-' and '_' in names are the same. Results are saved as
DIR/<date-time>/<name of the first input's file>_<number of the output>, with DIR/<date-time>_summary.json beside;
two files whose results would get the same name are refused. With --dump every run but those for warming up writes a
folder DIR/dump/<date time>/<device>/<model>/1/<number of the run>; times are without the writing."""
FAILED = 1
DUMP_FOLDER = "dump"
"""Folder of data dumps inside --output."""


class Times(Protocol):
    """``exec_time_list`` holds milliseconds per run."""

    @property
    def exec_time_list(self) -> Sequence[float]: ...


class Session(Protocol):
    """The part of ``simulator.InferSession`` that the command uses."""

    @property
    def is_dynamic(self) -> bool: ...
    def get_inputs(self) -> Sequence[OpenTensor]: ...
    def get_outputs(self) -> Sequence[Tensor]: ...
    def kernels(self) -> Sequence[tuple[str, str, str]]: ...
    def infer(self, feeds: Sequence[Array], /) -> Sequence[Array]: ...
    def summary(self) -> Times: ...
    def overflows(self) -> Sequence[Overflow]: ...
    def start_dump(self, dump: DumpSettings, warn: Callable[[str], None]) -> None: ...
    def follow_config(self, path: str, warn: Callable[[str], None]) -> None: ...
    def check_dump_space(self, runs: int) -> None: ...
    def without_dump(self) -> AbstractContextManager[None]: ...
    @property
    def dump_folder(self) -> str | None: ...


OpenSession = Callable[["RunOptions"], Session]


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``om-run`` with ``argv`` (by default those of the process); return 0, 1 for any error, 130 if interrupted."""
    return guarded(lambda: _run(sys.argv[1:] if argv is None else argv), FAILED)


def entry() -> None:
    """Console entry point."""
    sys.exit(main())


def _run(argv: Sequence[str]) -> int:
    """Read the command line and do what it says. This is the boundary where a fault of the program becomes R1999."""
    from atc.help_text import help_text
    from atc.lexer import UsageFault, lex
    from atc.run_options import RUN_OPTIONS, run_options
    from ge.errors import ReportedError

    values: dict[str, str] = {}
    try:
        values = lex(argv, RUN_OPTIONS)
        if values.get("help") == "true":
            for line in help_text(USAGE, RUN_OPTIONS, NOTES).splitlines():
                show(line)
            return 0
        if "infer_queue_count" in values:
            show_error("WARNING: --infer_queue_count was withdrawn and is ignored")
        run(run_options(values), values, open_session)
    except UsageFault as fault:
        return _fail(ReportedError("R1003", reason=str(fault)))
    except ReportedError as error:
        return _fail(error)
    except BrokenPipeError:
        raise
    except MemoryError:
        return _fail(ReportedError("R1062", needed="too many", purpose="inputs and results", available="too few"))
    except Exception as fault:  # noqa: BLE001 - the one boundary for faults of the program itself
        if values.get("debug") == "true":
            for line in traceback.format_exc().splitlines():
                show_error(line)
        return _fail(ReportedError("R1999", reason=where_raised(fault)))
    return 0


def open_session(options: RunOptions) -> Session:
    """Load the model; R1010 for what is no .om at all, the reader's own codes for what is wrong inside."""
    from ge.custom_ops import load_custom_ops
    from ge.errors import ReportedError
    from ge.mapped_file import why_unreadable
    from ge.options import Environment
    from simulator.session import InferSession

    path = options.model
    reason = why_unreadable(path)
    if not path.lower().endswith(".om"):
        reason = "its name does not end with .om; a model is compiled with atc first"
    if reason:
        raise ReportedError("R1010", path=path, reason=reason)
    threads = Environment.read().num_threads if options.threads is None else options.threads
    operators = load_custom_ops(options.custom_ops, show) if options.custom_ops else None
    return InferSession(options.device, path, debug=options.debug, threads=threads, custom_ops=operators)


def run(options: RunOptions, arguments: Mapping[str, str], opener: OpenSession) -> None:
    """Run the model as ``options`` say: inputs, warm-up, measured runs, files, summary.

    With several sets of shapes that happens once for each, in a folder of its own.
    """
    from atc import output_files
    from ge.atomic_file import check_writable

    folder = output_files.output_folder(options.output, options.output_dirname) if options.output else None
    if folder:
        check_writable(folder / output_files.MADE_UP_NAME, code=output_files.CODE)
    session = opener(options)
    if options.debug:
        _show_model(session)
    _check_dynamic(options, session)
    if options.dump or options.acl_json_path:
        _start_dump(options, session)
    try:
        _run_all(options, arguments, session, folder)
    finally:
        if session.dump_folder is not None and os.path.isdir(session.dump_folder):
            show(f"The dump is in {session.dump_folder}")


def _start_dump(options: RunOptions, session: Session) -> None:
    """Let all runs but those for warming up be dumped. Raises R1044, R1046."""
    from pathlib import Path

    from simulator import DumpMode, DumpSettings

    if options.acl_json_path:
        if options.dump:
            show_error("WARNING: --acl_json_path goes before --dump, which is ignored")
        session.follow_config(options.acl_json_path, _warn)
        return
    mode = DumpMode(options.dump_mode)
    settings = DumpSettings(Path(options.output, DUMP_FOLDER), mode, options.dump_layers, options.dump_extra)
    session.start_dump(settings, _warn)


def _warn(line: str) -> None:
    show_error(f"WARNING: {line}")


def _run_all(options: RunOptions, arguments: Mapping[str, str], session: Session, folder: Path | None) -> None:
    """Run the model in all shapes that the options give."""
    from atc.run_shapes import shaped_inputs
    from atc.shape_sets import as_text

    if options.shapes_from != "--dymShape_range":
        _run_at(options, arguments, session, options.shape_sets[0] if options.shape_sets else {}, folder)
        return
    for shapes in options.shape_sets:
        shaped_inputs(session.get_inputs(), shapes, options.shapes_from)  # all are looked at before the first one runs
    for i, shapes in enumerate(options.shape_sets):
        show(f"Shapes: {as_text(shapes)}")
        _run_at(options, arguments, session, shapes, folder / f"dymshape_{i}" if folder else None)


def _check_dynamic(options: RunOptions, session: Session) -> None:
    """Raise R1061 for shapes that a static model cannot take, R1036 for sizes that do not fit its outputs."""
    from ge.errors import ReportedError

    if options.shapes_from and not session.is_dynamic:
        raise ReportedError(
            "R1061",
            mode="dynshape",
            support="static",
            solution=f"Drop {options.shapes_from}, or compile the model with open dimensions: -1 or low~high in "
            "--input_shape.",
        )
    outputs = session.get_outputs()
    if options.output_sizes and len(options.output_sizes) != len(outputs):
        names = ", ".join(tensor.name for tensor in outputs)
        raise ReportedError("R1036", outputs=len(outputs), names=names, sizes=len(options.output_sizes))


def _run_at(
    options: RunOptions, arguments: Mapping[str, str], session: Session, shapes: Shapes, folder: Path | None
) -> None:
    """Run the model with inputs of these shapes; those that are not given are the model's, or those of the files."""
    from atc import input_files, output_files
    from atc.progress import working
    from atc.run_summary import Summary
    from ge.atomic_file import write_atomically

    turns = _planned(options, session, shapes)
    if folder and options.input:
        wanted = [sample for one, _ in turns for sample in one.wanted]
        output_files.check_names(wanted)
        output_files.check_inputs_stay(folder, wanted, len(session.get_outputs()), options.outfmt)
        output_files.check_division([one for one, _ in turns], session.get_outputs())
    samples: list[Sample] = []
    times: list[float] = []
    session.check_dump_space(len(turns) * options.loop)
    made_up = [] if options.input else _made_up(options, turns[0][1])
    with working(f"running {options.model}"):
        for i, (one, inputs) in enumerate(turns):
            feeds = input_files.load_run(one, inputs) if options.input else made_up
            results = _measured(session, feeds, options.warmup_count if i == 0 else 0, options.loop, times)
            _check_sizes(options, session, results)
            if folder:
                samples += _saved(folder, one, results, options.outfmt)
    summary = Summary(times, _batchsize(options, turns[0][1]), samples, session.overflows())
    for line in summary.lines():
        show(line)
    if folder:
        write_atomically(f"{folder}_summary.json", summary.text(arguments), code=output_files.CODE)
        show(f"Results are in {folder}")


def _planned(options: RunOptions, session: Session, shapes: Shapes) -> list[tuple[Run, Sequence[Tensor]]]:
    """Return the runs in order, each with its inputs in the shapes that they have in it."""
    from atc import input_files, run_shapes

    inputs = session.get_inputs()
    files = input_files.assign_files(options.input, inputs) if options.input else []
    reinterprets = options.allow_reinterpret
    if options.shapes_from == "--auto_set_dymshape_mode":
        shaped = [(sample, run_shapes.inputs_of_files(inputs, sample)) for sample in files]
        return [
            (one, tensors)
            for sample, tensors in shaped
            for one in input_files.plan_runs([sample], tensors, allow_reinterpret=reinterprets)
        ]
    tensors: Sequence[Tensor] = inputs
    if session.is_dynamic:
        tensors = run_shapes.shaped_inputs(inputs, shapes, options.shapes_from)
    if not options.input:
        return [(input_files.Run(((),)), tensors)]
    return [(one, tensors) for one in input_files.plan_runs(files, tensors, allow_reinterpret=reinterprets)]


def _check_sizes(options: RunOptions, session: Session, results: Sequence[Array]) -> None:
    """Raise R1037 for a result that is larger than --outputSize allows."""
    from ge.errors import ReportedError

    for tensor, result, most in zip(session.get_outputs(), results, options.output_sizes, strict=False):
        if result.nbytes > most:
            raise ReportedError("R1037", name=tensor.name, actual=result.nbytes, expected=most)


def _made_up(options: RunOptions, inputs: Sequence[Tensor]) -> list[Array]:
    from atc import made_up_inputs
    from ge.errors import ReportedError

    try:
        if options.pure_data_type == "zero":
            show("Inputs are made up: zeros")
            return made_up_inputs.zero_inputs(inputs)
        show(f"Inputs are made up: random, seed {made_up_inputs.SEED}")
        return made_up_inputs.random_inputs(inputs)
    except MemoryError:
        purpose = f"inputs {', '.join(f'{t.name} {t.datatype}{list(t.shape)}' for t in inputs)}"
        needed = sum(tensor.size for tensor in inputs)
        raise ReportedError("R1062", needed=needed, purpose=purpose, available="too few") from None


def _measured(session: Session, feeds: Sequence[Array], warmups: int, loop: int, times: list[float]) -> Sequence[Array]:
    """Run ``warmups`` times unmeasured and ``loop`` times measured; add the measured times to ``times``."""
    with session.without_dump():
        for _ in range(warmups):
            session.infer(feeds)
    known = len(session.summary().exec_time_list)
    results: Sequence[Array] = []
    for _ in range(loop):
        results = session.infer(feeds)
    times += list(session.summary().exec_time_list)[known:]
    return results


def _saved(folder: Path, one: Run, results: Sequence[Array], form: str) -> list[Sample]:
    from atc.output_files import save_run
    from atc.run_summary import Sample

    paths = save_run(folder, one, results, form)
    return [Sample(files, outfiles) for files, outfiles in zip(one.wanted, paths, strict=True)]


def _batchsize(options: RunOptions, inputs: Sequence[Tensor]) -> int:
    if options.batchsize is not None:
        return options.batchsize
    return inputs[0].shape[0] if inputs and inputs[0].shape else 1


def _show_model(session: Session) -> None:
    for kind, tensors in (("input", session.get_inputs()), ("output", session.get_outputs())):
        for i, tensor in enumerate(tensors):
            size = "open" if any(dim < 0 for dim in tensor.shape) else f"{tensor.size} bytes"
            show(f"{kind} {i}: {tensor.name} {tensor.datatype} {list(tensor.shape)}, {size}")
    kernels = session.kernels()
    if session.is_dynamic:
        show(f"steps: {len(kernels)}; their kernels are chosen for the shapes of a run")
        return
    slow = [(node, optype) for node, optype, kernel in kernels if kernel == "reference"]
    show(f"steps: {len(kernels)}, {len(slow)} of them with the slow reference kernel")
    for node, optype in slow:
        show(f"  {node} ({optype})")


def _fail(error: ReportedError) -> int:
    for line in error.lines():
        show_error(line)
    return FAILED


if __name__ == "__main__":
    entry()
