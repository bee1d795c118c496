"""Pass build-tasks."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph, NodeOut
from ge.plan import GraphPlan, Task
from ge.session import CompileSession
from ge.tensor_memory import first_without_size, is_computing


class BuildTasks:
    """Before: nodes in topological order. After: ``session.plan`` has a task list per graph, in that order.

    1. Every node that computes becomes one task. Data, NetOutput, constants and load-time constants do not, nor do
       views: a Reshape that only looks at its input's bytes in another way has nothing to run.
    2. With a tensor anywhere that no arena can hold (unknown shape, strings, handles) the plan is not static: no tensor
       gets a fixed place. A warning names the first one.
    """

    name: ClassVar[str] = "build-tasks"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """List the tasks of the graph and its bodies; the graph stays as it is."""
        parts = graph.all_graphs()
        causes = [out for out in map(first_without_size, parts) if out is not None]
        if causes:
            session.warn(f"the model is dynamic: {_described(causes[0])}")
        session.plan.is_static = not causes
        session.plan.graphs = {part.name: _listed(part) for part in parts}
        return False


def _described(out: NodeOut) -> str:
    node, desc = out.node, out.desc
    what = "input" if node.type == "Data" else f"output {out.index} of node"
    kind = "" if node.type == "Data" else f" ({node.type})"
    if not desc.shape.is_unknown_shape():
        return f"{what} {node.name}{kind} is of type {desc.data_type.name}, which has no fixed size"
    return f"{what} {node.name}{kind} has the shape {desc.shape}, which is known at run time only"


def _listed(graph: Graph) -> GraphPlan:
    return GraphPlan(tasks=[Task(node.name) for node in graph if is_computing(node)])
