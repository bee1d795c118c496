"""Pass set-output-type."""

from __future__ import annotations

from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, TensorDesc
from ge.graph.types import FLOATING
from ge.session import CompileSession

_NUMERIC_TARGETS = FLOATING | {DataType.DT_UINT8, DataType.DT_INT8}


class SetOutputType:
    """Before: results in the model's types. After: a Cast in front of NetOutput gives those that --output_type asks.

    A result that has the type already gets no Cast. String results cannot be converted (E10001).
    """

    name: ClassVar[str] = "set-output-type"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Insert the Casts."""
        node = graph.net_output()
        wanted = session.options.output_types
        if node is None or not wanted:
            return False
        changed = False
        for slot, source in enumerate(graph.outputs):
            target = wanted.get(f"{source.node.name}:{source.index}", wanted.get(""))
            if target is not None and source.desc.data_type != target:
                _insert_cast(graph, node, slot, target)
                changed = True
        return changed


def _insert_cast(graph: Graph, net_output: Node, slot: int, target: DataType) -> None:
    source = net_output.inputs[slot]
    assert source is not None
    if source.desc.data_type is DataType.DT_STRING or target not in _NUMERIC_TARGETS:
        raise ReportedError(
            "E10001",
            value=target.name,
            parameter="--output_type",
            reason=f"output {source} is {source.desc.data_type.name} and cannot be given that type",
        )
    desc = TensorDesc(source.desc.shape, source.desc.format, target)
    cast = graph.add_node(
        "Cast",
        graph.unique_name(f"{source.node.name}_{source.index}_output_cast"),
        [source],
        {"dst_type": int(target), "_datadump_original_op_names": []},
        output_descs=[desc],
    )
    graph.set_input(net_output, slot, cast.output(0))
