"""Which tensors the compiled model returns: the graph's outputs, or what ``--out_nodes`` asks for."""

from __future__ import annotations

from collections.abc import Sequence

from ge.errors import ReportedError
from ge.graph import NodeOut
from ge.option_grammar import OutNode
from parsers.onnx.graph_builder import GraphBuilder
from parsers.onnx.onnx_graph import OnnxGraph, OnnxValue
from parsers.onnx.weights import DATA_TYPES


def choose_outputs(builder: GraphBuilder, source: OnnxGraph, requested: Sequence[OutNode]) -> None:
    """Set the outputs of the root graph. Raises E10016 for unknown names, E10003 for an index out of range."""
    graph = builder.graph
    if not requested:
        graph.outputs, graph.output_names = builder.outputs(source.outputs)
    else:
        outputs_by_node = {node.name: node.outputs for node in source.nodes}
        graph_outputs = [value.name for value in source.outputs]
        found = [_find(builder, item, outputs_by_node, graph_outputs) for item in requested]
        graph.output_names = [name for name, _ in found]
        graph.outputs = [out for _, out in found]
        for out in graph.outputs:
            out.node.attrs["_user_defined_output_nodes"] = "true"
    for out, name in zip(graph.outputs, graph.output_names, strict=True):
        out.desc.attrs["_origin_output_tensor_name"] = name


def warn_of_declarations(builder: GraphBuilder, outputs: Sequence[OnnxValue]) -> None:
    """Warn of outputs whose type or shape is not what the model says of them; what its nodes make counts."""
    for value in outputs:
        found = builder.scope.values.get(value.name)
        if value.kind != "tensor_type" or found is None:
            continue
        desc = found.desc
        dims = list(desc.shape)
        is_ranked = value.dims is not None and not desc.shape.is_unknown_rank()
        other_type = value.elem_type in DATA_TYPES and DATA_TYPES[value.elem_type] is not desc.data_type
        other_shape = is_ranked and not _agree(value.dims or [], dims)
        if other_type or other_shape:
            builder.session.warn(
                f"the model declares its output {value.name} as {value.describe()}, but its nodes make "
                f"{desc.data_type.name.removeprefix('DT_')} {dims}"
            )


def _agree(declared: Sequence[int], made: Sequence[int]) -> bool:
    return len(declared) == len(made) and all(a == b or a < 1 or b < 0 for a, b in zip(declared, made, strict=True))


def _find(
    builder: GraphBuilder, item: OutNode, outputs_by_node: dict[str, list[str]], graph_outputs: list[str]
) -> tuple[str, NodeOut]:
    values = builder.scope.values
    whole_name = str(item)  # a tensor's own name may end in :0
    if whole_name in graph_outputs:
        found = values.get(whole_name)
        if found is not None:
            return whole_name, found
    if item.index is None:
        hint = f"Outputs of the model are {', '.join(graph_outputs)}; inner tensors are named as node:index."
        raise ReportedError("E10016", opname=item.name, parameter="--out_nodes", solution=hint)
    results = builder.results.get(item.name)
    if results is None:
        raise ReportedError("E10016", opname=item.name, parameter="--out_nodes")
    tensors = outputs_by_node[item.name]
    if item.index >= len(tensors) or results[item.index] is None:
        reason = f"node [{item.name}] has {len(tensors)} output{'' if len(tensors) == 1 else 's'}, counted from 0"
        raise ReportedError("E10003", value=whole_name, parameter="--out_nodes", reason=reason)
    found = results[item.index]
    assert found is not None
    return tensors[item.index] or whole_name, found
