"""``parse`` and ``precheck``: the order in which a model becomes a graph."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ge.errors import ReportedError
from ge.graph import Graph
from ge.option_grammar import Dim, open_dims
from ge.options import Mode
from ge.session import CompileSession
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
from parsers.onnx.onnx_graph import OnnxGraph, OnnxValue, give_names, read_graph
from parsers.onnx.opset import Opsets
from parsers.onnx.out_nodes import choose_outputs, warn_of_declarations
from parsers.onnx.precheck import CheckedNode, check_nodes, refuse
from parsers.onnx.scope import Scope
from parsers.onnx.weights import TensorReader

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
    _check_input_names(options.half_inputs, "--input_fp16_nodes", inputs, model)
    _check_input_names(options.input_shape, "--input_shape", inputs, model)
    if options.mode is not Mode.TO_JSON:  # a listing may show open dimensions
        _check_given(inputs, options.input_shape)

    graph = Graph(_graph_name(model.name))
    context = ModelContext(session, TensorReader(opened.loaded.folder, opened.loaded.pieces), opened.functions)
    builder = GraphBuilder(context, graph, Scope(opened.opsets))
    builder.add_inputs(inputs, options.input_shape)
    builder.add_initializers(model, builder.scope)
    builder.add_nodes(model.nodes, builder.scope)
    choose_outputs(builder, model, options.out_nodes)
    if not any(_is_other(value, options.input_shape.get(value.name)) for value in inputs):
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


def _check_input_names(asked: Collection[str], parameter: str, inputs: Sequence[OnnxValue], graph: OnnxGraph) -> None:
    """Raise E10016 or E10017 for a name in an option that is none of the model's inputs; it lists those."""
    names = [value.name for value in inputs]
    hint = f"Inputs of the model are {', '.join(f'{v.name} ({v.describe()})' for v in inputs) or 'none'}."
    inner = graph.defined() | {node.name for node in graph.nodes}
    for name in asked:
        if name not in names:
            code = "E10017" if name in inner else "E10016"
            raise ReportedError(code, opname=name, parameter=parameter, solution=hint)


def _check_given(inputs: Sequence[OnnxValue], shapes: Mapping[str, Sequence[Dim]]) -> None:
    """Dims that the model leaves open must be given, if only as open. Raises E10001 that shows how, for all inputs."""
    loose = [v for v in inputs if v.kind == "tensor_type" and v.name not in shapes and (v.dims is None or -1 in v.dims)]
    if not loose:
        return
    found = ", ".join(f"{v.name} {'of unknown rank' if v.dims is None else v.dims}" for v in loose)
    fixed = ";".join(f"{v.name}:{','.join(str(max(d, 1)) for d in v.dims or [])}" for v in loose)
    still_open = ";".join(f"{v.name}:{','.join(map(str, v.dims or [-1]))}" for v in loose)
    raise ReportedError(
        "E10001",
        value="NULL",
        parameter="--input_shape",
        reason=f"the model leaves dimensions of its inputs open: {found}",
        solution=f'Fix them, for example with --input_shape="{fixed}", or leave them to run time with -1 or a range '
        f'low~high per dimension: --input_shape="{still_open}".',
    )


def _is_other(value: OnnxValue, asked: Sequence[Dim] | None) -> bool:
    """True when a fixed dim of a model input has been given another size."""
    return asked is not None and any(0 < a != b for a, b in zip(value.dims or [], open_dims(asked), strict=False))


def _graph_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:200] or "graph"
