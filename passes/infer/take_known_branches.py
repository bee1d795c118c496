"""Pass take-known-branches."""

from __future__ import annotations

from typing import ClassVar

from ge.call_tree import bodies, callers_first, parent_slot, unchanged_slots
from ge.constant_values import ConstantValues
from ge.graph import Graph, Node, NodeOut
from ge.graph_inference import infer_graph
from ge.ops.known_value import KnownValue
from ge.session import CompileSession


class TakeKnownBranches:
    """Before: If(constant) {a, b}, Case(constant) {...}. After: the nodes of the branch that is taken.

    1. A condition is known when it follows from constants or shapes, in bodies also from constants that they are given.
    2. What is known then may decide more conditions: shapes are inferred again, and the pass starts anew.
    """

    name: ClassVar[str] = "take-known-branches"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Take the branches in all graphs of the model."""
        changed = False
        while graph.subgraphs and _take_all(graph, session):
            infer_graph(graph)
            changed = True
        return changed


def _take_all(root: Graph, session: CompileSession) -> bool:
    known: dict[str, dict[NodeOut, KnownValue]] = {}
    changed = False
    for part in callers_first(root):
        if part is not root and part.name not in root.subgraphs:
            continue  # a branch that is taken, or is not
        values = ConstantValues(known.get(part.name))
        for node in part:
            branch = _branch(node, values)
            if branch is not None:
                session.info(f"node {node.name} ({node.type}) always takes its branch {branch.name}")
                _inline(part, node, branch)
                changed = True
            elif node.subgraphs:
                _tell_bodies(node, values, known)
    return changed


def _branch(node: Node, values: ConstantValues) -> Graph | None:
    """Return the branch that ``node`` takes if that is known."""
    if node.type not in ("If", "StatelessIf", "Case"):
        return None
    found = values.known_input(node, 0)
    if found is None or found.whole is None or found.whole.size != 1:
        return None
    value = found.whole.reshape(-1)[0]
    if node.type != "Case":
        return bodies(node)["then_branch" if value else "else_branch"]
    branches = [body for formal, body in bodies(node).items() if formal.startswith("branches")]
    return branches[int(value)] if 0 <= int(value) < len(branches) else branches[-1]


def _tell_bodies(caller: Node, values: ConstantValues, known: dict[str, dict[NodeOut, KnownValue]]) -> None:
    found = bodies(caller)
    fixed = unchanged_slots(found["body"], caller) if "body" in found else set(range(len(caller.inputs)))
    for body in found.values():
        told = known.setdefault(body.name, {})
        for data in body.data_nodes():
            slot = parent_slot(data, caller)
            value = values.known_input(caller, slot) if slot in fixed else None
            if value is not None:
                told[data.output()] = value


def _inline(graph: Graph, call: Node, branch: Graph) -> None:
    """Put the nodes of ``branch`` in place of ``call``; its other bodies go."""
    copies: dict[NodeOut, NodeOut] = {}
    made: dict[Node, Node] = {}
    for node in branch.topological_order():
        if node.type == "Data":
            source = call.input(parent_slot(node, call))
            assert source is not None
            copies[node.output()] = source
        elif node.type != "NetOutput":
            made[node] = copy = _copy(graph, node, copies)
            for before in (*call.control_inputs, *(made[b] for b in node.control_inputs if b in made)):
                graph.add_control(before, copy)
            for after in call.control_outputs:
                graph.add_control(copy, after)
    for out, result in zip(call.outputs(), branch.outputs, strict=True):
        graph.replace_uses(out, copies[result])
    root, names = graph.root, dict.fromkeys(name for _, name in call.subgraphs)
    graph.remove_unread(call)
    for name in names:
        _remove_body(root, name, keeps_inner=name == branch.name)


def _copy(graph: Graph, node: Node, copies: dict[NodeOut, NodeOut]) -> Node:
    copy = graph.add_node(
        node.type,
        graph.unique_name(node.name),
        [None if source is None else copies[source] for source in node.inputs],
        node.attrs,
        output_descs=[desc.copy() for desc in node.output_descs],
    )
    copy.subgraphs = list(node.subgraphs)
    copies.update(zip(node.outputs(), copy.outputs(), strict=True))
    return copy


def _remove_body(root: Graph, name: str, *, keeps_inner: bool) -> None:
    """Remove a body, and the bodies of its nodes unless they have a new caller."""
    waiting = [name]
    while waiting:
        body = root.subgraphs[waiting[-1]]
        root.remove_subgraph(waiting.pop())
        if not keeps_inner:
            waiting.extend(dict.fromkeys(inner for node in body for _, inner in node.subgraphs))
