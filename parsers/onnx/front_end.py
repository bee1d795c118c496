"""``parse`` and ``precheck``: the order in which a model becomes a graph."""

from __future__ import annotations

from dataclasses import dataclass

from ge.errors import ReportedError
from ge.graph import Graph
from ge.options import Mode
from ge.session import CompileSession
from parsers.model_inputs import check_given, check_input_names, graph_name, is_other
from parsers.onnx import (
    activation,
    cast,
    concat,
    control,
    conv,
    creation,
    expand,
    fold,
    gather,
    gradient,
    loss,
    math,
    matmul,
    ml,
    norm,
    optional,
    pad,
    pool,
    quant,
    random_numbers,
    rearrange,
    recurrent,
    reduce,
    reshape,
    resize,
    roi,
    sample,
    scan,
    selection,
    sequence,
    slicing,
    softmax,
    spectral,
    strings,
    training,
)
from parsers.onnx.functions import Functions
from parsers.onnx.graph_builder import GraphBuilder, ModelContext
from parsers.onnx.model import LoadedModel, Source, load_model
from parsers.onnx.onnx_graph import OnnxGraph, give_names, read_graph
from parsers.onnx.opset import Opsets
from parsers.onnx.out_nodes import choose_outputs, warn_of_declarations
from parsers.onnx.precheck import check_nodes
from parsers.onnx.scope import Scope
from parsers.onnx.weights import TensorReader
from parsers.refusal import CheckedNode, refuse

FAMILIES = (
    activation,
    cast,
    concat,
    control,
    conv,
    creation,
    expand,
    fold,
    gather,
    gradient,
    loss,
    math,
    matmul,
    ml,
    norm,
    optional,
    pad,
    pool,
    quant,
    random_numbers,
    rearrange,
    recurrent,
    reduce,
    reshape,
    resize,
    roi,
    sample,
    scan,
    selection,
    sequence,
    slicing,
    softmax,
    spectral,
    strings,
    training,
)
"""The modules whose import fills the table of mappings."""


@dataclass(frozen=True)
class _Opened:
    loaded: LoadedModel
    graph: OnnxGraph
    opsets: Opsets
    functions: Functions


def parse(source: Source, session: CompileSession) -> Graph:
    """Turn an ONNX model (path, bytes or ModelProto) into a GE graph.

    Uses ``input_shape`` and ``out_nodes`` of ``session.options``, and checks the names in ``half_inputs``. Every fault
    of the model or of these options is a :class:`ReportedError`; unsupported operators are reported together.
    """
    opened = _open(source)
    model = opened.graph
    _check_ends(model)
    refuse(check_nodes(model, opened.opsets, opened.functions))
    inputs = [value for value in model.inputs if value.name not in model.initializers]
    options = session.options
    inner = model.defined() | {node.name for node in model.nodes}
    check_input_names(options.half_inputs, "--input_fp16_nodes", inputs, inner)
    check_input_names(options.input_shape, "--input_shape", inputs, inner)
    if options.mode is not Mode.TO_JSON:  # a listing may show open dimensions
        check_given([value for value in inputs if value.kind == "tensor_type"], options.input_shape)

    graph = Graph(graph_name(model.name))
    context = ModelContext(session, TensorReader(opened.loaded.folder, opened.loaded.pieces), opened.functions)
    builder = GraphBuilder(context, graph, Scope(opened.opsets))
    builder.add_inputs(inputs, options.input_shape)
    builder.add_initializers(model, builder.scope)
    builder.add_nodes(model.nodes, builder.scope)
    choose_outputs(builder, model, options.out_nodes)
    if not any(is_other(value, options.input_shape.get(value.name)) for value in inputs):
        warn_of_declarations(builder, model.outputs)
    return graph


def precheck(source: Source, session: CompileSession) -> list[CheckedNode]:
    """Check every node of a model without building it; for reports. Raises only for files that cannot be read."""
    opened = _open(source)
    session.info(f"checking {len(opened.graph.nodes)} nodes of {opened.loaded.file}")
    return check_nodes(opened.graph, opened.opsets, opened.functions)


def _open(source: Source) -> _Opened:
    loaded = load_model(source)
    graph = read_graph(loaded.proto.graph)
    give_names(graph)
    return _Opened(loaded, graph, Opsets(loaded.proto.opset_import, "the model"), Functions(loaded.proto))


def _check_ends(graph: OnnxGraph) -> None:
    """Every graph needs an output. One without inputs computes constants, which is allowed."""
    if not graph.outputs:
        raise ReportedError("E16001", value="output")
    for node in graph.nodes:
        for nested in node.graphs.values():
            _check_ends(nested)
