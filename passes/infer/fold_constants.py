"""Pass fold-constants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from ge.call_tree import callers_first
from ge.constant_values import ConstantValues
from ge.formats import stored_array
from ge.graph import Graph, Node, Tensor
from ge.graph.types import byte_size, has_numpy_dtype
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST, is_constant
from passes.prepare.sink_constants import sink_into_bodies


@dataclass
class FoldConstants:
    """Before: operators on constants. After: Const nodes, or load-time constants where folding would bloat the file.

    1. A result that grows the file by at most ``small`` bytes over the constants it replaces becomes a Const.
    2. So does any other, while the sum of such growth stays within ``limit`` bytes for the whole model.
    3. The rest is marked ``_load_time_const``: evaluated once at load, constant for every later pass.
    4. Callers come before their bodies, which get the constants made (see ``sink_constants``) and go on from there.
    """

    name: ClassVar[str] = "fold-constants"
    limit: int = 256 << 10
    small: int = 1 << 10

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Fold all graphs of the model."""
        budget = _Budget(self.limit, self.small, _uses_of_arrays(graph))
        changed = False
        for part in callers_first(graph):
            changed |= _fold(part, budget)
            budget.uses.update(id(copy.attrs["value"].array) for copy in sink_into_bodies(part))
        return changed


@dataclass
class _Budget:
    """How much the file may still grow, and how many Const nodes hold each array."""

    limit: int
    small: int
    uses: Counter[int]

    def allows(self, growth: int) -> bool:
        if growth <= self.small:
            return True
        if growth > self.limit:
            return False
        self.limit -= growth
        return True


def _fold(graph: Graph, budget: _Budget) -> bool:
    values = ConstantValues()
    changed = False
    for node in graph.topological_order():
        if node.type in ("Const", "Data", "NetOutput") or not graph.is_read(node):
            continue
        if not (values.is_constant(node) and _is_storable(node)):
            continue
        if budget.allows(_growth(node, budget.uses)) and _replace(graph, node, values, budget.uses):
            changed = True
        elif _depends_on_constants(node):
            changed |= _leave_to_loading(node)
    return changed


def _leave_to_loading(node: Node) -> bool:
    """Mark a load-time constant. What a fusion made of a model's weights stands for no tensor of the model any more."""
    changed = LOAD_TIME_CONST not in node.attrs
    node.attrs[LOAD_TIME_CONST] = True
    if node.attrs.get("_datadump_original_op_names"):
        for name in ("_datadump_original_op_types", "_datadump_is_multiop", "pass_name"):
            node.attrs.pop(name, None)
        node.attrs["_datadump_original_op_names"] = []
        changed = True
    return changed


def _depends_on_constants(node: Node) -> bool:
    """False where the value follows from parts of inputs that are not constant as a whole."""
    return all(is_constant(source.node) for source in node.inputs if source is not None)


def _is_storable(node: Node) -> bool:
    return all(not d.origin_shape.is_unknown_shape() and has_numpy_dtype(d.data_type) for d in node.output_descs)


def _uses_of_arrays(graph: Graph) -> Counter[int]:
    """Count the Const nodes per array: one that others hold too stays in the file whatever becomes of this one."""
    constants = (node for part in graph.all_graphs() for node in part if node.type == "Const")
    return Counter(id(node.attrs["value"].array) for node in constants)


def _growth(node: Node, uses: Counter[int]) -> int:
    made = sum(byte_size(d.data_type, d.origin_shape.elements) for d in node.output_descs)
    freed = 0
    for source in node.inputs:
        if source is not None and source.node.type == "Const" and source.node.n_consumers() == 1:
            value = source.node.attrs["value"]
            freed += value.nbytes if uses[id(value.array)] == 1 else 0
    return made - freed


def _replace(graph: Graph, node: Node, values: ConstantValues, uses: Counter[int]) -> bool:
    results = [values.of(out) for out in node.outputs()]
    if any(r is None for r in results):
        return False
    for index, result in enumerate(results):
        out = node.output(index)
        if not node.consumers(index) and out not in graph.outputs:
            continue
        assert result is not None
        tensor = Tensor.of(stored_array(result, out.desc))
        tensor.desc = out.desc.copy()
        tensor.desc.shape_range, tensor.desc.name, tensor.desc.attrs = [], "", {}
        stem = node.name if len(results) == 1 else f"{node.name}_{index}"
        folded = graph.add_const(graph.unique_name(f"{stem}_folded"), tensor)
        folded.node.attrs["_datadump_original_op_names"] = []
        uses[id(tensor.array)] += 1
        graph.replace_uses(out, folded)
    _remove_unread(graph, node, uses)
    return True


def _remove_unread(graph: Graph, node: Node, uses: Counter[int]) -> None:
    sources = [s.node for s in node.inputs if s is not None]
    graph.remove_unread(node)
    for source in dict.fromkeys(sources):
        if source.type == "Const" and not source.is_removed and not graph.is_read(source):
            uses[id(source.attrs["value"].array)] -= 1
            graph.remove_unread(source)
