"""Fusion of kernels: rounds of pairs that share data, best ones first, until nothing changes."""

from __future__ import annotations

from dataclasses import replace

from ge.ascir import AscGraphFault, check
from ge.graph import Graph, Node, NodeOut
from ge.passes.origins import ORIGIN_NAMES, ORIGIN_TYPES
from ge.passes.topology import Topology
from ge.tensor_memory import memory_size
from passes.lowering.emission import MAX_OPS
from passes.lowering.fused_nodes import FusedGraph, Kernel, Numbers, compressed, fused_name
from passes.lowering.fused_program import Fused, Part, Unmergeable, fuse
from passes.lowering.kernel_rules import MAX_OUTPUT_BYTES, YES, NotFused, Pair, Verdict, priority, strategies_allow
from passes.lowering.refusal import KernelStop
from passes.lowering.strategy import LoweringStrategy
from passes.lowering.tiling import groups_of

_CONTROL_TYPES = frozenset(
    {
        "StreamActive", "StreamSwitch", "StreamMerge", "Exit", "Enter", "RefEnter", "NextIteration", "RefNextIteration",
    }
)  # fmt: skip


def fuse_kernels(fused: FusedGraph, strategy: LoweringStrategy, numbers: Numbers) -> list[KernelStop]:
    """Fuse kernels of one graph with each other; return the pairs that stay apart in the end."""
    if fused.graph.nodes_of_type(*_CONTROL_TYPES):
        return []
    fusion = _Fusion(fused, strategy, numbers)
    for _ in range(strategy.max_fusion_rounds):
        if not fusion.run_round():
            break
    return fusion.stops()


class _Fusion:
    def __init__(self, fused: FusedGraph, strategy: LoweringStrategy, numbers: Numbers) -> None:
        self.fused = fused
        self.graph: Graph = fused.graph
        self.strategy = strategy
        self.numbers = numbers
        self.topology = Topology(fused.graph)

    # -- pairs --------------------------------------------------------------------------------------------------------
    def pairs(self) -> list[Pair]:
        """Return the pairs that share data, best ones first."""
        order = {node: place for place, node in enumerate(self.graph.topological_order())}
        found: dict[tuple[Node, Node], bool] = {}
        kernels = [node for node in self.fused.kernels if node.type == "AscBackend"]
        for node in kernels:
            for tensor in node.outputs():
                for reader in node.consumers(tensor.index):
                    if reader.node in self.fused.kernels and reader.node.type == "AscBackend":
                        found[node, reader.node] = True
        for tensor in dict.fromkeys(source for node in kernels for source in node.inputs if source is not None):
            readers = [r.node for r in tensor.node.consumers(tensor.index) if r.node in self.fused.kernels]
            ordered = sorted(dict.fromkeys(readers), key=order.__getitem__)
            for place, first in enumerate(ordered):
                for second in ordered[place + 1 :]:
                    if "NoKernel" not in first.type + second.type:
                        found.setdefault((first, second), False)
        pairs = [Pair(self.fused.kernels[a], self.fused.kernels[b], is_vertical, self.strategy)
                 for (a, b), is_vertical in found.items()]  # fmt: skip
        distance = {id(pair): order[pair.second.node] - order[pair.first.node] for pair in pairs}
        return sorted(pairs, key=lambda pair: (priority(pair), -self._saved_bytes(pair), distance[id(pair)]))

    def _saved_bytes(self, pair: Pair) -> int:
        first = pair.first.results if pair.is_vertical else pair.first.sources
        shared = set(first) & set(pair.second.sources)
        return sum(memory_size(tensor.desc) or 0 for tensor in shared)

    def run_round(self) -> bool:
        """Fuse the pairs of this round, as long as their kernels are still there. Tell whether any was fused."""
        is_changed = False
        for pair in self.pairs():
            if pair.first.node.is_removed or pair.second.node.is_removed:
                continue
            verdict, program = self.judge(pair)
            if verdict and program is not None:
                self._replace(pair, program)
                is_changed = True
        return is_changed

    def stops(self) -> list[KernelStop]:
        """Return the pairs that are left, with the reason for each."""
        found = []
        for pair in self.pairs():
            verdict, _ = self.judge(pair)
            if not verdict:
                found.append(KernelStop(verdict.code_text, pair.first.node.name, pair.second.node.name, verdict.detail))
        return found

    # -- one pair -----------------------------------------------------------------------------------------------------
    def judge(self, pair: Pair) -> tuple[Verdict, Fused | None]:
        """Return whether two kernels may be fused, and their common program if so."""
        first, second = pair.first, pair.second
        if not self._saved_bytes(pair):
            return Verdict(NotFused.NO_SHARED_DATA, "no elements are shared"), None
        if second.node in first.node.control_outputs or first.node in second.node.control_outputs:
            return Verdict(NotFused.CYCLE, "one has to run before the other"), None
        if self.topology.closes_cycle([first.node, second.node]):
            return Verdict(NotFused.CYCLE, "another way leads from one to the other"), None
        if not pair.is_vertical and self._output_bytes(pair) > MAX_OUTPUT_BYTES:
            return Verdict(NotFused.MEMORY, "the results are too large to be made together"), None
        if first.vector_core_num != second.vector_core_num:
            return Verdict(NotFused.CORE_NUMBER, f"{first.vector_core_num} and {second.vector_core_num} cores"), None
        verdict = self._labels_agree(first, second) and strategies_allow(pair)
        if not verdict:
            return verdict, None
        size = len(first.graph.ops) + len(second.graph.ops)
        most = min(self.strategy.max_fusion_size, MAX_OPS)
        if size > most:
            return Verdict(NotFused.SIZE, f"{size} operators, at most {most}"), None
        return self._program(pair)

    def _labels_agree(self, first: Kernel, second: Kernel) -> Verdict:
        labels = {str(k.node.attrs.get("_user_stream_label", "")) for k in (first, second)} - {""}
        return YES if len(labels) < 2 else Verdict(NotFused.STRATEGY, f"streams {' and '.join(sorted(labels))}")

    def _output_bytes(self, pair: Pair) -> int:
        return sum(memory_size(tensor.desc) or 0 for tensor in (*pair.first.results, *pair.second.results))

    def _program(self, pair: Pair) -> tuple[Verdict, Fused | None]:
        parts = [Part(k.graph, k.sources, k.results) for k in (pair.first, pair.second)]
        try:
            program = fuse("fused", parts[0], parts[1], self._stored(pair))
            check(program.graph)
        except Unmergeable as reason:
            return Verdict(NotFused.AXIS_MAPPING, str(reason)), None
        except AscGraphFault as fault:
            return Verdict(NotFused.AXIS_MAPPING, str(fault)), None
        if groups_of(program.graph) is None:
            return Verdict(NotFused.AXIS_GROUP, "one axis would be two kinds of loop"), None
        count, most = len(program.sources), self.strategy.max_inputs_after_fusion
        if count > most and count > max(len(part.sources) for part in parts):
            return Verdict(NotFused.INPUTS, f"{count} inputs, at most {most}"), None
        return YES, program

    def _stored(self, pair: Pair) -> list[NodeOut]:
        """Return the results of the first kernel that somebody else needs."""
        node = pair.first.node
        # with a NetOutput, results of the graph have a reader like others
        results = set(self.graph.outputs) if self.graph.net_output() is None else set()
        return [
            tensor for index, tensor in enumerate(pair.first.results)
            if node.output(index) in results or any(r.node is not pair.second.node for r in node.consumers(index))
        ]  # fmt: skip

    # -- the new kernel -----------------------------------------------------------------------------------------------
    def _replace(self, pair: Pair, program: Fused) -> None:
        graph, fused = self.graph, self.fused
        first, second = pair.first, pair.second
        origins = list(dict.fromkeys((*first.origins, *second.origins)))
        number = self.numbers.take()
        name = fused_name(f"autofuse_{number}", compressed(n.type for n in origins), self.strategy.max_name_length)
        old = {t: fused.providers[t] for t in (*first.results, *second.results)}
        inputs = [fused.provider(source) for source in program.sources]
        descs = [old[tensor].desc.copy() for tensor in program.results]
        made = graph.add_node("AscBackend", graph.unique_name(name), inputs, output_descs=descs)
        for index, tensor in enumerate(program.results):
            graph.replace_uses(old[tensor], made.output(index))
            fused.providers[tensor] = made.output(index)
        for tensor in (*first.results, *second.results):
            if tensor not in program.results:
                del fused.providers[tensor]
        kernel = Kernel(
            made, first.fuse_types | second.fuse_types, replace(program.graph, name=name),
            list(program.sources), list(program.results), origins, number,
            [*first.unused_inputs, *second.unused_inputs], first.vector_core_num, is_from_lowering=False,
        )  # fmt: skip
        made.attrs.update(_merged_attrs(first.node, second.node))
        self._move_control_edges(made, first.node, second.node)
        for node in (second.node, first.node):
            del fused.kernels[node]
            graph.remove_node(node)
        fused.kernels[made] = kernel
        self.topology.insert([made])

    def _move_control_edges(self, made: Node, *olds: Node) -> None:
        for old in olds:
            for before in old.control_inputs:
                self.graph.remove_control(before, old)
                if before not in olds:
                    self.graph.add_control(before, made)
            for after in old.control_outputs:
                self.graph.remove_control(old, after)
                if after not in olds:
                    self.graph.add_control(made, after)


def _merged_attrs(first: Node, second: Node) -> dict[str, object]:
    merged = {**second.attrs, **first.attrs}
    for name in (ORIGIN_NAMES, ORIGIN_TYPES):
        merged[name] = [*first.attrs.get(name, []), *second.attrs.get(name, [])]
    return merged
