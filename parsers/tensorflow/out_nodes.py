"""Which tensors the compiled model returns: what ``--out_nodes`` asks for, or the nodes whose results nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from ge.errors import ReportedError
from ge.graph import DataType, NodeOut
from ge.option_grammar import OutNode
from parsers.tensorflow.graph_builder import GraphBuilder
from parsers.tensorflow.tf_graph import TfNode


def requested_nodes(requested: Sequence[OutNode], nodes: Sequence[TfNode]) -> list[str]:
    """Return the nodes that ``--out_nodes`` names. Raises E10001 for one without index, E10016 for an unknown one."""
    known = {node.name for node in nodes}
    for item in requested:
        if item.index is None:
            raise ReportedError(
                "E10001",
                value=item.name,
                parameter="--out_nodes",
                reason="outputs of TensorFlow models are named as node:index",
                solution=f"Write --out_nodes={item.name}:0 for the first output of the node.",
            )
        if item.name not in known:
            raise ReportedError("E10016", opname=item.name, parameter="--out_nodes")
    return [item.name for item in requested]


def set_outputs(builder: GraphBuilder, requested: Sequence[OutNode], defaults: Sequence[TfNode]) -> None:
    """Set the outputs of the root graph, named ``node:index``. Raises E10003 for an index out of range."""
    found: list[tuple[str, NodeOut]] = []
    for item in requested:
        assert item.index is not None
        results = builder.results[item.name]
        source = results[item.index] if item.index < len(results) else None
        if source is None:
            reason = f"node [{item.name}] has {len(results)} output{'' if len(results) == 1 else 's'}, counted from 0"
            raise ReportedError("E10003", value=str(item), parameter="--out_nodes", reason=reason)
        source.node.attrs["_user_defined_output_nodes"] = "true"
        found.append((str(item), source))
    if not requested:
        found = [
            (f"{node.name}:{index}", source)
            for node in defaults
            for index, source in enumerate(builder.results[node.name])
            if source is not None
        ]
    found = [(name, source) for name, source in found if not _is_list(name, source, builder, is_asked=bool(requested))]
    if not found:
        raise ReportedError("E13031", reason="all nodes that nobody reads give lists of tensors")
    graph = builder.graph
    graph.output_names = [name for name, _ in found]
    graph.outputs = [source for _, source in found]
    for name, source in found:
        source.desc.attrs["_origin_output_tensor_name"] = name


def _is_list(name: str, source: NodeOut, builder: GraphBuilder, *, is_asked: bool) -> bool:
    """Tell, with a warning, whether a node gives a list of tensors. Raises E13031 when such a one ``is_asked`` for."""
    if source.desc.data_type is not DataType.DT_VARIANT:
        return False
    if is_asked:
        raise ReportedError(
            "E13031",
            reason=f"[{name}] is a list of tensors, which no model can give back",
            solution="Name the node that stacks the list or reads an item of it.",
        )
    builder.session.warn(f"[{name}] is a list of tensors that nobody reads; it is no output of the model")
    return True
