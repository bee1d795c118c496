"""``parse`` and ``precheck``: the order in which a frozen graph becomes a GE graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ge.errors import ReportedError
from ge.graph import Graph
from ge.options import Mode
from ge.session import CompileSession
from parsers.model_inputs import check_given, check_input_names, fed_desc
from parsers.refusal import CheckedNode, refuse
from parsers.tensorflow import families
from parsers.tensorflow.control_flow import raise_graph
from parsers.tensorflow.data_types import data_type
from parsers.tensorflow.functions import FunctionLibrary
from parsers.tensorflow.graph_builder import GraphBuilder, ModelContext
from parsers.tensorflow.model import LoadedModel, Source, load_model
from parsers.tensorflow.model_inputs import INPUT_OPS, TfInput, read_input, with_inner_inputs
from parsers.tensorflow.out_nodes import requested_nodes, set_outputs
from parsers.tensorflow.precheck import check_functions, check_nodes
from parsers.tensorflow.tf_graph import Reference, TfGraph, TfNode, read_graph
from parsers.tensorflow.trimming import default_outputs, leftovers_in_words, needed_nodes, unread_inputs

__all__ = ["families", "parse", "precheck"]


@dataclass(frozen=True)
class _Opened:
    """A file and what of it is compiled: ``nodes``, which ``outputs`` need."""

    loaded: LoadedModel
    graph: TfGraph
    nodes: list[TfNode]
    outputs: list[TfNode]


def parse(source: Source, session: CompileSession) -> Graph:
    """Turn a frozen graph (path, bytes or GraphDef) into a GE graph.

    Uses ``input_shape`` and ``out_nodes`` of ``session.options``, and checks the names in ``half_inputs``. Every fault
    of the model or of these options is a :class:`ReportedError`; faults of nodes are reported together.
    """
    opened = _open(source, session)
    refuse(_checked(opened))
    options = session.options
    inputs = [read_input(node, opened.graph.producer) for node in opened.nodes if node.op in INPUT_OPS]
    inner = {node.name for node in opened.graph.nodes}
    check_input_names(options.half_inputs, "--input_fp16_nodes", inputs, inner)
    check_input_names(options.input_shape, "--input_shape", inputs, inner)
    if options.mode is not Mode.TO_JSON:  # a listing may show open dimensions
        check_given(inputs, options.input_shape)

    nodes, outputs = _raised(opened, session)
    context = ModelContext(session, opened.loaded.pieces, FunctionLibrary(opened.graph.functions))
    builder = GraphBuilder(context, Graph("graph"))
    _add_inputs(builder, inputs)
    builder.add_nodes(nodes)
    set_outputs(builder, options.out_nodes, outputs)
    return builder.graph


def precheck(source: Source, session: CompileSession) -> list[CheckedNode]:
    """Check every node that the outputs need without building it; for reports.

    Loops and branches that are not well formed are the fault of the first node that does not fit. Raises only for files
    that cannot be read, for options that do not fit them, and for cycles.
    """
    opened = _open(source, session)
    checked = _checked(opened)
    if any(node.causes for node in checked):
        return checked
    try:
        _raised(opened, session)
    except ReportedError as fault:
        if "opname" not in fault.fields:
            raise
        return [node._replace(causes=(fault,)) if node.name == fault.fields["opname"] else node for node in checked]
    return checked


def _open(source: Source, session: CompileSession) -> _Opened:
    loaded = load_model(source)
    whole = read_graph(loaded.proto)
    graph = with_inner_inputs(whole, session.options.input_shape)
    requested = session.options.out_nodes
    # of the whole graph: cutting off what lies above an inner input must not lay bare new outputs
    outputs = [] if requested else default_outputs(whole.nodes)
    names = requested_nodes(requested, graph.nodes) if requested else [node.name for node in outputs]
    if not requested:
        names += [node.name for node in unread_inputs(whole, whole.nodes)]
    nodes = needed_nodes(graph.nodes, names)
    ignored = leftovers_in_words(graph.nodes, {node.name for node in nodes})
    if ignored:
        session.warn(f"what belongs to training is left out: {ignored}")
    if not requested and not outputs:
        raise ReportedError(
            "E13031",
            reason="every node of the graph is read by another one, or has no result",
            solution="Name the outputs with --out_nodes.",
        )
    session.info(f"{len(nodes)} of {len(graph.nodes)} nodes of {loaded.file} are needed")
    return _Opened(loaded, graph, nodes, outputs)


def _checked(opened: _Opened) -> list[CheckedNode]:
    known = {node.name for node in opened.graph.nodes}
    library = FunctionLibrary(opened.graph.functions)
    checked = check_nodes(opened.nodes, known, Counter(node.name for node in opened.graph.nodes), library)
    return checked + check_functions(opened.nodes, library)


def _raised(opened: _Opened, session: CompileSession) -> tuple[list[TfNode], list[TfNode]]:
    """Return the nodes and the outputs with loops and branches in place of the nodes that they are made of.

    What lies inside of them is no output, though nobody reads it. Raises E13031 when there is no other.
    """
    requested = [Reference(item.name, item.index or 0) for item in session.options.out_nodes]
    nodes = raise_graph(opened.nodes, requested)
    known = {node.name for node in nodes}
    outputs = [node for node in opened.outputs if node.name in known]
    if not requested and not outputs:
        raise ReportedError(
            "E13031",
            reason="all nodes that nobody reads are inside of loops and branches",
            solution="Name the outputs with --out_nodes.",
        )
    names = [reference.node for reference in requested] or [node.name for node in outputs]
    return needed_nodes(nodes, names), outputs


def _add_inputs(builder: GraphBuilder, inputs: list[TfInput]) -> None:
    """Add a Data node per input, in the order of the file."""
    shapes = builder.session.options.input_shape
    for index, value in enumerate(inputs):
        dtype = data_type(value.elem_type, f"model input [{value.name}]")
        builder.add_data(value.name, index, fed_desc(value, shapes.get(value.name), dtype))
