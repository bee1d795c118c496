"""Pass remove-dead-captures."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar

from ge.call_tree import bodies, bodies_first, callers_first, parent_slot, unchanged_slots
from ge.graph import Graph, Node
from ge.ops import lookup
from ge.session import CompileSession
from passes.prepare.remove_dead_nodes import sweep


class RemoveDeadCaptures:
    """Before: call nodes give their bodies, and return, more than anybody needs. After: no more than that.

    1. What a loop does not change is read where it comes from, not behind the loop.
    2. Outputs of call nodes that nobody reads go, with what only they need in the bodies.
    3. State of a loop goes when neither a result that is read, nor the condition, nor a stateful operator depends on
       it, in this turn or a later one.
    4. Inputs that no body reads go.
    """

    name: ClassVar[str] = "remove-dead-captures"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Outputs go from the root inwards, inputs from the innermost bodies outwards."""
        if not graph.subgraphs:
            return False
        changed = False
        for part in callers_first(graph):
            for node in part:
                if node.subgraphs:
                    is_loop = any(formal == "body" for formal, _ in node.subgraphs)
                    changed |= _drop_state(part, node) if is_loop else _drop_outputs(part, node)
        for part in bodies_first(graph):
            changed |= sweep(part)
            for node in part:
                if node.subgraphs and not any(formal == "body" for formal, _ in node.subgraphs):
                    changed |= _drop_inputs(part, node)
            changed |= sweep(part)
        return changed


def _drop_outputs(graph: Graph, node: Node) -> bool:
    unread = {i for i in range(len(node.output_descs)) if not node.consumers(i)}
    if len(unread) == len(node.output_descs):
        return False  # the whole node is dead, or it is there for what else it does
    if not unread:
        return False
    graph.remove_outputs(node, unread)
    for body in _distinct_bodies(node):
        _drop_results(body, unread)
        sweep(body)
    return True


def _drop_inputs(graph: Graph, node: Node) -> bool:
    given = [(body, data) for body in _distinct_bodies(node) for data in body.data_nodes()]
    read = {parent_slot(data, node) for _, data in given if data.n_consumers() or data.control_outputs}
    unread = {parent_slot(data, node) for _, data in given} - read
    if unread:
        _drop_slots(graph, node, unread)
    return bool(unread)


def _drop_state(graph: Graph, node: Node) -> bool:
    found = bodies(node)
    body, condition = found["body"], found["cond"]
    changed = False
    for slot in sorted(unchanged_slots(body, node)):
        source = node.input(slot)
        if source is not None and node.consumers(slot):
            graph.replace_uses(node.output(slot), source)
            changed = True
    if not any(node.consumers(slot) for slot in range(len(node.output_descs))):
        return changed
    needed = _needed_state(node, body, condition)
    dropped = set(range(len(node.output_descs))) - needed
    if not dropped:
        return changed
    _drop_results(body, dropped)
    sweep(body)
    sweep(condition)
    _drop_slots(graph, node, dropped)
    graph.remove_outputs(node, dropped)
    return True


def _needed_state(node: Node, body: Graph, condition: Graph) -> set[int]:
    needed = {slot for slot in range(len(node.output_descs)) if node.consumers(slot)}
    needed |= _slots_behind(node, [*(out.node for out in condition.outputs), *_stateful(condition), *_stateful(body)])
    results = body.outputs
    waiting = list(needed)
    while waiting:
        found = _slots_behind(node, [results[waiting.pop()].node]) - needed
        needed |= found
        waiting.extend(found)
    return needed


def _slots_behind(caller: Node, roots: Iterable[Node]) -> set[int]:
    """Return the input slots of the caller that ``roots``, nodes of its bodies, depend on."""
    stack = list(roots)
    seen = set(stack)
    slots = set()
    while stack:
        node = stack.pop()
        if node.type == "Data":
            slots.add(parent_slot(node, caller))
        for before in (*(source.node for source in node.inputs if source is not None), *node.control_inputs):
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return slots


def _stateful(graph: Graph) -> list[Node]:
    inner = [node for node in graph if node.type not in ("Data", "NetOutput")]
    return [node for node in inner if (found := lookup(node.type)) is not None and found.is_stateful]


# -- changing signatures -----------------------------------------------------------------------------------------------
def _distinct_bodies(node: Node) -> list[Graph]:
    return list({body.name: body for body in bodies(node).values()}.values())


def _drop_results(body: Graph, indices: Collection[int]) -> None:
    net_output = body.net_output()
    assert net_output is not None
    if len(body.output_names) == len(net_output.inputs):
        body.output_names = [name for k, name in enumerate(body.output_names) if k not in indices]
    body.remove_inputs(net_output, indices)
    for position, out in enumerate(body.outputs):
        if "_parent_node_index" in out.desc.attrs:
            out.desc.attrs["_parent_node_index"] = position


def _drop_slots(graph: Graph, node: Node, slots: Collection[int]) -> None:
    """Remove inputs that no body reads, and the Data nodes that stand for them."""
    kept = [slot for slot in range(len(node.inputs)) if slot not in slots]
    moved = {old: new for new, old in enumerate(kept)}
    for body in _distinct_bodies(node):
        data_nodes = body.data_nodes()
        for data in data_nodes:
            slot = parent_slot(data, node)
            if slot in moved:
                data.attrs["_parent_node_index"] = moved[slot]
            else:
                body.remove_unread(data)
        for index, data in enumerate(data for data in data_nodes if not data.is_removed):
            data.attrs["index"] = index
    graph.remove_inputs(node, slots)
