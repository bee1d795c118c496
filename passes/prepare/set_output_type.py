"""Pass set-output-type."""

from __future__ import annotations

from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import DataType, Graph, Node, TensorDesc
from ge.graph.types import has_numpy_dtype
from ge.session import CompileSession


class SetOutputType:
    """Before: results in the model's types. After: a Cast in front of NetOutput gives those that --output_type asks.

    Results are told apart by their place, which --out_nodes gives; their producers may have changed since. A result
    that has the type already gets no Cast. String results and types that cannot be computed here are E10001.
    """

    name: ClassVar[str] = "set-output-type"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Insert the Casts."""
        net_output = graph.net_output()
        wanted = session.options.output_type
        if net_output is None:
            return False
        changed = False
        for slot, source in enumerate(graph.outputs):
            target = wanted.whole
            if slot < len(session.options.out_nodes):
                chosen = session.options.out_nodes[slot]
                target = wanted.per_output.get((chosen.name, chosen.index or 0), target)
            if target is not None and source.desc.data_type != target:
                _insert_cast(graph, net_output, slot, target)
                changed = True
        return changed


def _insert_cast(graph: Graph, net_output: Node, slot: int, target: DataType) -> None:
    source = net_output.input(slot)
    assert source is not None
    if source.desc.data_type is DataType.DT_STRING or not has_numpy_dtype(target):
        raise ReportedError(
            "E10001",
            value=target.name,
            parameter="--output_type",
            reason=f"output {source} is {source.desc.data_type.name} and cannot be computed in that type here",
        )
    cast = graph.add_node(
        "Cast",
        graph.unique_name(f"{source.node.name}_{source.index}_output_cast"),
        [source],
        {"dst_type": int(target), "_datadump_original_op_names": []},
        output_descs=[TensorDesc(source.desc.shape, source.desc.format, target)],
    )
    graph.set_input(net_output, slot, cast.output(0))
