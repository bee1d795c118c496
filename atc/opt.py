"""``ge-opt``: run any part of the pipeline on a model or on graph text, and look at the graph between passes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from atc.plugins import load_pass_file
from atc.terminal import guarded, program_fault, show_error
from ge.custom_ops import load_custom_ops
from ge.errors import ReportedError
from ge.graph import Graph
from ge.graph.types import FORMAT_BY_TEXT
from ge.mapped_file import MappedFile
from ge.ops import using
from ge.options import INPUT_FORMATS, CompileOptions, Environment, Framework, parse_input_shape
from ge.passes.bootstrap import PassFiles
from ge.passes.registry import PassRegistry
from ge.session import CompileSession
from ge.text import GraphTextError, SideTensors, parse_graph, print_graph
from ge.verify import verify
from parsers.front_ends import parse_model, recognise
from parsers.onnx import check_onnx_names
from passes.driver import Driver, Step
from passes.pipeline import compile_passes, named_passes
from passes.selection import SOLUTION, explanation_of, select_passes

FAILED = 1
FORM = "Correct the graph text; 'ge-opt model.onnx' prints one as an example."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--passes", "selection", help="Passes to run, name or name{option=value}, separated by commas.")
@click.option(
    "--load",
    "pass_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Load custom passes from a file; --passes may name them, without it all of them run.",
)
@click.option(
    "--custom-ops",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with files of custom operators, or an opp folder.",
)
@click.option("--all", "run_all", is_flag=True, help="Run the whole pipeline.")
@click.option("--input-shape", default="", help="Shapes of the inputs of a model, as for atc.")
@click.option(
    "--print-after", is_flag=True, help="Print the graph after each pass that changed it, instead of once at the end."
)
@click.option("--time-passes", is_flag=True, help="Print a table of times to stderr.")
@click.option("--verify-each", is_flag=True, help="Check the graph after each pass.")
@click.option("--explain", metavar="PASS", help="Show what a pass, of a loaded file too, does and stop.")
@click.option("--list", "list_passes", is_flag=True, help="List the passes in pipeline order and stop.")
def command(
    source: Path | None,
    selection: str | None,
    pass_files: tuple[Path, ...],
    custom_ops: Path | None,
    run_all: bool,
    input_shape: str,
    print_after: bool,
    time_passes: bool,
    verify_each: bool,
    explain: str | None,
    list_passes: bool,
) -> None:
    """Run passes on SOURCE (an .onnx model, a frozen .pb, or graph text) and print the resulting graph text."""
    if list_passes:
        for step in compile_passes():
            click.echo(f"# {step}" if isinstance(step, str) else step.name)
        return
    if source is None and explain is None:
        raise click.UsageError("name a model or a graph text file")
    session = _session(input_shape, is_verifying=verify_each)
    if custom_ops is not None:
        session.operators = load_custom_ops(custom_ops, session.emit)
        check_onnx_names(session.operators)
    with using(session.operators):
        files = PassFiles(session.passes)
        for path in pass_files:
            load_pass_file(path, files, session)
        if explain is not None:
            click.echo(_explanation(explain, session.passes))
            return
        assert source is not None
        steps = compile_passes() if run_all else select_passes(selection or "", session.passes)
        _run(source, steps, session, print_after=print_after, time_passes=time_passes)


def _run(
    source: Path,
    steps: Sequence[Step],
    session: CompileSession,
    *,
    print_after: bool,
    time_passes: bool,
) -> None:
    """Run the passes and print what was asked for."""
    side: SideTensors = {}
    graph = _load(source, session)

    def show(name: str, current: Graph) -> None:
        if print_after and driver.records[-1].changed:
            click.echo(f"# after {name}")
            click.echo(print_graph(current, side))

    driver = Driver(session, after_pass=show)
    driver.run(graph, steps)
    if not (print_after and any(record.changed for record in driver.records)):
        click.echo(print_graph(graph, side))
    if time_passes:
        for record in driver.records:
            mark = "changed" if record.changed else ""
            click.echo(f"{record.seconds * 1e3:9.2f} ms  {record.name:24} {mark}".rstrip(), err=True)


def _session(input_shape: str, *, is_verifying: bool) -> CompileSession:
    # a pass that is asked for by name shall do what it is for
    options = CompileOptions(input_shape=parse_input_shape(input_shape), format_refinement=True)
    return CompileSession(
        options, Environment.read(), lambda line: click.echo(line, err=True), is_verifying=is_verifying
    )


def _load(source: Path, session: CompileSession) -> Graph:
    try:
        mapped = MappedFile.open(source)
    except (OSError, ValueError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        raise ReportedError("E13001", file=source, errmsg=reason) from fault
    head = b"" if mapped is None else mapped[:4096].lstrip()
    if mapped is not None and head.startswith((b"graph ", b"graph\t", b"#")):
        try:
            graph = parse_graph(mapped[:].decode())
        except (GraphTextError, UnicodeDecodeError) as fault:
            raise ReportedError("E10001", value=source, parameter="SOURCE", reason=str(fault), solution=FORM) from fault
        try:
            verify(graph)
        except ReportedError as fault:  # here it is no pass that made the graph
            wrong = fault.fields.get("reason", fault.message)
            raise ReportedError("E10001", value=source, parameter="SOURCE", reason=wrong) from fault
        return graph
    framework = Framework.ONNX if mapped is None else recognise(memoryview(mapped))
    input_format = FORMAT_BY_TEXT[INPUT_FORMATS[framework][0]]
    session.options = replace(session.options, framework=framework, input_format=input_format)
    return parse_model(source, session)


def _explanation(name: str, custom: PassRegistry) -> str:
    descriptor = custom.by_name(name)
    if descriptor is not None:
        return "\n\n".join(explanation_of(descriptor))
    found = named_passes().get(name)
    if found is None:
        raise ReportedError(
            "E10001", value=name, parameter="--explain", reason="there is no pass of that name", solution=SOLUTION
        )
    return inspect.cleandoc(found.__doc__ or "")


def main(argv: list[str] | None = None) -> int:
    """Run ``ge-opt`` and return its exit status: 0, 1 for a reported error, 2 for wrong usage, 130 if interrupted."""
    return guarded(lambda: _call(argv), FAILED)


def _call(argv: list[str] | None) -> int:
    """Do what is asked; this is the boundary where a fault of the program becomes E19999."""
    try:
        command.main(args=argv, prog_name="ge-opt", standalone_mode=False)
    except ReportedError as error:
        return _fail(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        raise
    except Exception as fault:  # noqa: BLE001 - the one boundary for faults of the program itself
        return _fail(program_fault(fault, "this graph"))
    return 0


def _fail(error: ReportedError) -> int:
    for line in error.lines():
        show_error(line)
    return FAILED


def entry() -> None:
    """Console entry point."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
