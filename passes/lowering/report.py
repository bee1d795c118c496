"""What fusion did, for people: per kernel its operators and the memory traffic it spares, and where fusion ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ge.graph import NodeOut
from ge.tensor_memory import memory_size
from passes.lowering.fused_nodes import FusedGraph, Kernel
from passes.lowering.refusal import Rule


@dataclass(frozen=True)
class KernelReport:
    """One fused node. Bytes are those of whole tensors; ``saved`` is what its operators would have moved besides."""

    name: str
    fuse_type: str
    operators: tuple[str, ...]
    program: tuple[str, ...]
    loads: int
    stores: int
    read: int
    written: int
    unfused: int

    @property
    def saved(self) -> int:
        """Bytes that are neither written nor read again, because they never leave the kernel."""
        return self.unfused - self.read - self.written


def kernel_report(fused: FusedGraph, kernel: Kernel) -> KernelReport:
    """Describe one kernel."""
    types = [op.type for op in kernel.graph.ops]
    return KernelReport(
        kernel.node.name,
        "+".join(kind.name.lower() for kind in sorted(kernel.fuse_types)),
        tuple(f"{node.name} ({node.type})" for node in kernel.origins),
        tuple(kernel.graph.types()),
        types.count("Load"),
        types.count("Store"),
        _bytes(dict.fromkeys(kernel.sources)),
        _bytes(kernel.results),
        sum(_traffic(fused, node) for node in kernel.origins),
    )


def _traffic(fused: FusedGraph, node: Any) -> int:
    """Bytes that an operator of the model reads and writes."""
    read = [source for source in fused.inputs[node] if source is not None and source.node.type != "Const"]
    return _bytes(dict.fromkeys(read)) + _bytes(NodeOut(node, k) for k in range(len(node.output_descs)))


def _bytes(tensors: Iterable[NodeOut]) -> int:
    return sum(memory_size(tensor.desc) or 0 for tensor in tensors)


def fusion_report(results: Sequence[FusedGraph]) -> dict[str, Any]:
    """Return the report of a model as data for JSON: graphs with their kernels and the places where fusion ended."""
    return {"version": 1, "graphs": [_graph_report(fused) for fused in results]}


def _graph_report(fused: FusedGraph) -> dict[str, Any]:
    reports = [kernel_report(fused, kernel) for kernel in fused.kernels.values()]
    return {
        "graph": fused.graph.name,
        "bytes_saved": sum(report.saved for report in reports),
        "kernels": [
            {
                "name": report.name,
                "fuse_type": report.fuse_type,
                "operators": list(report.operators),
                "program": list(report.program),
                "loads": report.loads,
                "stores": report.stores,
                "bytes_read": report.read,
                "bytes_written": report.written,
                "bytes_saved": report.saved,
            }
            for report in reports
        ],
        "operators_left": [_stop(stop.rule.value, stop.node, stop.reader, stop.detail) for stop in _stops(fused)],
        "kernels_apart": [_stop(stop.code, stop.first, stop.second, stop.detail) for stop in fused.kernel_stops],
    }


def _stops(fused: FusedGraph) -> list[Any]:
    """Return the places of the operators where fusion ended: what became of a box is said by its last stop."""
    return [stop for stop in fused.stops if stop.rule is not Rule.LIFTED]


def _stop(rule: str, node: str, reader: str, detail: str) -> dict[str, str]:
    return {"rule": rule, "node": node, "reader": reader, "detail": detail}


def report_text(report: dict[str, Any]) -> str:
    """Return the report for reading."""
    lines: list[str] = []
    for graph in report["graphs"]:
        kernels = graph["kernels"]
        lines.append(f"graph {graph['graph']}: {len(kernels)} kernels, {graph['bytes_saved']} bytes of traffic saved")
        for kernel in kernels:
            lines.append(f"  {kernel['name']}: {', '.join(kernel['operators'])}")
            lines.append(
                f"    {kernel['loads']} loads ({kernel['bytes_read']} bytes), {kernel['stores']} stores "
                f"({kernel['bytes_written']} bytes), {kernel['bytes_saved']} bytes saved"
            )
        for title, key in (("fusion ended", "operators_left"), ("kernels apart", "kernels_apart")):
            if graph[key]:
                lines.append(f"  {title}:")
                lines += [f"    {_line(stop)}" for stop in graph[key]]
    return "\n".join(lines)


def _line(stop: dict[str, str]) -> str:
    place = f"{stop['node']} -> {stop['reader']}" if stop["reader"] else stop["node"]
    return f"[{stop['rule']}] {place}{': ' + stop['detail'] if stop['detail'] else ''}"
