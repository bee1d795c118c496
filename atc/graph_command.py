"""``atc graph``: look at a graph, or at what has changed from one to another.

Nothing here is a contract with scripts but the exit status: 0, of ``diff`` also 1 for graphs that differ, 2 for what
cannot be done (as diff and cmp have it).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from atc.graph_report import Line
from atc.progress import working
from atc.terminal import guarded, program_fault, show, show_error
from ge.collector import collector_at_rest
from ge.errors import ReportedError

logger = logging.getLogger("atc")

EQUAL, DIFFERENT, FAILED = 0, 1, 2

_INPUT_SHAPE = click.option(
    "--input-shape",
    "--input_shape",
    default="",
    metavar="SHAPES",
    help="Shapes of the inputs of a model, as for atc.",
)
_CUSTOM_OPS = click.option(
    "--custom-ops",
    "--custom_ops",
    default="",
    metavar="DIR",
    help="Folder with the files of the custom operators of an ONNX model, or an opp folder.",
)
_HTML = click.option("--html", metavar="FILE", help="Also write a page with all nodes, to be opened in a browser.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look at graphs.

    A FILE is a stage dump (ge_onnx_*.pbtxt or ge_proto_*.txt), a graph text, an offline model (.om), an ONNX model or a
    frozen TensorFlow graph; its content decides.
    """


@command.command("show")
@click.argument("file")
@_INPUT_SHAPE
@_CUSTOM_OPS
@_HTML
def show_graph(file: str, input_shape: str, custom_ops: str, html: str | None) -> int:
    """Show inputs, outputs, operators, element types, formats and constants of FILE."""
    from atc.graph_file import load
    from atc.graph_report import summary_lines
    from atc.graph_view import graphs_of

    _check_page(html, file)
    with _operators(custom_ops), working(f"reading {file}"), collector_at_rest():
        found = load(file, input_shape)
        graphs = graphs_of(found, with_constants=html is not None)
    if html is not None:
        from atc.graph_page import show_page

        _write_page(html, show_page(found, graphs))
    _print(summary_lines(found, graphs), html)
    return EQUAL


@command.command("diff")
@click.argument("a")
@click.argument("b")
@click.option("--all", "show_all", is_flag=True, help="Show every difference, not only the first few of each kind.")
@_INPUT_SHAPE
@_CUSTOM_OPS
@_HTML
def diff_graphs(a: str, b: str, show_all: bool, input_shape: str, custom_ops: str, html: str | None) -> int:
    """Show what has changed from A to B: nodes removed, added, renamed, rewired; attributes, types, formats, shapes.

    Nodes are the same if they have the same name, or a new name but the same place in the graph. Ids, streams and
    places in memory are not compared. The exit status is 0 if nothing has changed, 1 if something has, 2 for errors.
    """
    from atc.graph_changes import compare
    from atc.graph_file import load
    from atc.graph_report import comparison_lines

    _check_page(html, a, b)
    with _operators(custom_ops), working(f"comparing {a} with {b}"), collector_at_rest():
        comparison = compare(load(a, input_shape), load(b, input_shape))
    if html is not None:
        from atc.graph_page import comparison_page

        _write_page(html, comparison_page(comparison))
    _print(comparison_lines(comparison, show_all=show_all), html)
    return EQUAL if comparison.is_equal else DIFFERENT


@contextmanager
def _operators(folder: str) -> Iterator[None]:
    """Let the custom operators of a folder be known in the block; none is loaded where none is named."""
    if not folder:
        yield
        return
    from ge.custom_ops import load_custom_ops
    from ge.ops import using
    from parsers.onnx import check_onnx_names

    operators = load_custom_ops(folder, show_error)
    check_onnx_names(operators)
    with using(operators):
        yield


def _check_page(html: str | None, *files: str) -> None:
    """Raise E10001 for no name, or if the page would take the place of a file that is read; E13004 for a place that
    cannot be written. Nothing is read or shown before."""
    if html is None:
        return
    if not html:
        raise ReportedError("E10001", value=html, parameter="--html", reason="it names no file")
    found = next((file for file in files if os.path.realpath(html) == os.path.realpath(file)), None)
    if found is not None:
        reason = f"the page would take the place of {found}, which is read"
        raise ReportedError("E10001", value=html, parameter="--html", reason=reason)
    from ge.atomic_file import check_writable

    check_writable(html)


def _write_page(path: str, page: str) -> None:
    from ge.atomic_file import write_atomically

    write_atomically(path, page)


def _print(lines: Sequence[Line], page: str | None) -> None:
    """Show the report, and where the page is, if one was written."""
    _show_lines(lines)
    if page is not None:
        show(f"the page is {page}")


def _show_lines(lines: Sequence[Line]) -> None:
    """Write the lines: in colours on a terminal, plainly elsewhere."""
    if not sys.stdout.isatty():
        for line in lines:
            show(line.text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))


def main(argv: Sequence[str]) -> int:
    """Run ``atc graph`` with the arguments behind these two words and return its exit status."""
    return guarded(lambda: _run(argv), FAILED)


def _run(argv: Sequence[str]) -> int:
    """Do what is asked; this is the boundary where a fault of the program becomes E19999."""
    try:
        status = command.main(args=list(argv), prog_name="atc graph", standalone_mode=False)
    except ReportedError as error:
        return _fail(error)
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, BrokenPipeError):
        raise
    except Exception as fault:  # the one boundary for faults of the program itself
        logger.debug("atc graph failed", exc_info=True)
        return _fail(program_fault(fault, "this graph"))
    return status if isinstance(status, int) else EQUAL


def _fail(error: ReportedError) -> int:
    for line in error.lines():
        show_error(line)
    return FAILED
