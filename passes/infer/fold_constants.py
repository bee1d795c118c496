"""Pass fold-constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ge.call_tree import callers_first
from ge.constant_values import ConstantValues
from ge.graph import Graph, Node, Tensor
from ge.graph.types import byte_size, has_numpy_dtype
from ge.ops.registry import Array
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST, is_constant
from passes.prepare.sink_constants import sink_into_bodies


@dataclass
class FoldConstants:
    """Before: operators on constants. After: Const nodes, or load-time constants where folding would bloat the file.

    1. A result that grows the file by at most ``small`` bytes over the constants it replaces becomes a Const.
    2. So does any other, while the sum of such growth stays within ``limit`` bytes for the whole model.
    3. The rest is marked ``_load_time_const``: evaluated once at load, constant for every later pass.
    4. So are results beyond ``memory`` bytes in sum, except views: the compiler would have to keep them all.
    5. Callers come before their bodies, which get the constants made (see ``sink_constants``) and go on from there.
    """

    name: ClassVar[str] = "fold-constants"
    limit: int = 256 << 10
    small: int = 1 << 10
    memory: int = 128 << 20

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Fold all graphs of the model."""
        budget = _Budget(self.limit, self.small, self.memory)
        for part in graph.all_graphs():
            for node in part.nodes_of_type("Const"):
                budget.hold(node)
        changed = False
        for part in callers_first(graph):
            changed |= _fold(part, budget)
            for copy in sink_into_bodies(part):
                budget.hold(copy)
        return changed


@dataclass
class _Budget:
    """How much the file and the memory may still grow; how many Const nodes hold each array, and show each memory."""

    limit: int
    small: int
    memory: int
    uses: Counter[int] = field(default_factory=Counter)
    holders: Counter[int] = field(default_factory=Counter)
    made: dict[int, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def allows(self, growth: int) -> bool:
        """Tell whether the file may grow by so many bytes, and count them."""
        if growth <= self.small:
            return True
        if growth > self.limit:
            return False
        self.limit -= growth
        return True

    def hold(self, const: Node) -> None:
        """Be told of a Const node."""
        array = const.attrs["value"].array
        self.uses[id(array)] += 1
        self.holders[id(_owner(array))] += 1

    def drop(self, const: Node) -> None:
        """Be told of a Const node that was removed; memory that none holds any more is free again."""
        array = const.attrs["value"].array
        owner = id(_owner(array))
        self.uses[id(array)] -= 1
        self.holders[owner] -= 1
        if not self.holders[owner]:
            self.memory += self.made.pop(owner, 0)

    def may_keep(self, node: Node) -> bool:
        """False when the results of ``node`` need not even be computed: there was no room for others of the type."""
        return node.type not in self.refused or _made_bytes(node) <= self.memory

    def keeps(self, node: Node, results: Sequence[Array]) -> bool:
        """Tell whether there is room in memory for the results of ``node``, and take it. Views need none."""
        owners = {id(owner): owner for owner in map(_owner, results)}
        fresh = {key: owner.nbytes for key, owner in owners.items() if owner.flags.owndata and not self.holders[key]}
        if sum(fresh.values()) > self.memory:
            self.refused.add(node.type)
            return False
        self.memory -= sum(fresh.values())
        self.made.update(fresh)
        return True


def _owner(array: Array) -> Array:
    """Return the array whose memory ``array`` shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _fold(graph: Graph, budget: _Budget) -> bool:
    values = ConstantValues()
    changed = False
    for node in graph.topological_order():
        if node.type in ("Const", "Data", "NetOutput") or not graph.is_read(node):
            continue
        if not (values.is_constant(node) and _is_storable(node)):
            continue
        if budget.allows(_growth(node, budget.uses)) and _replace(graph, node, values, budget):
            changed = True
        elif LOAD_TIME_CONST not in node.attrs and _depends_on_constants(node):
            node.attrs[LOAD_TIME_CONST] = True
            changed = True
    return changed


def _depends_on_constants(node: Node) -> bool:
    """False where the value follows from parts of inputs that are not constant as a whole."""
    return all(is_constant(source.node) for source in node.inputs if source is not None)


def _is_storable(node: Node) -> bool:
    return all(not d.origin_shape.is_unknown_shape() and has_numpy_dtype(d.data_type) for d in node.output_descs)


def _growth(node: Node, uses: Counter[int]) -> int:
    freed = 0
    for source in node.inputs:
        if source is not None and source.node.type == "Const" and source.node.n_consumers() == 1:
            value = source.node.attrs["value"]
            freed += value.nbytes if uses[id(value.array)] == 1 else 0
    return _made_bytes(node) - freed


def _made_bytes(node: Node) -> int:
    return sum(byte_size(desc.data_type, desc.origin_shape.elements) for desc in node.output_descs)


def _replace(graph: Graph, node: Node, values: ConstantValues, budget: _Budget) -> bool:
    if not budget.may_keep(node):
        return False
    results = [result for out in node.outputs() if (result := values.of(out)) is not None]
    if len(results) < len(node.output_descs) or not budget.keeps(node, results):
        return False
    for index, result in enumerate(results):
        out = node.output(index)
        if not node.consumers(index) and out not in graph.outputs:
            continue
        tensor = Tensor.of(result)
        tensor.desc.format = out.desc.format
        tensor.desc.origin_format = out.desc.origin_format
        stem = node.name if len(results) == 1 else f"{node.name}_{index}"
        folded = graph.add_const(graph.unique_name(f"{stem}_folded"), tensor)
        folded.node.attrs["_datadump_original_op_names"] = []
        budget.hold(folded.node)
        graph.replace_uses(out, folded)
    _remove_unread(graph, node, budget)
    return True


def _remove_unread(graph: Graph, node: Node, budget: _Budget) -> None:
    sources = [s.node for s in node.inputs if s is not None]
    graph.remove_unread(node)
    for source in dict.fromkeys(sources):
        if source.type == "Const" and not source.is_removed and not graph.is_read(source):
            budget.drop(source)
            graph.remove_unread(source)
