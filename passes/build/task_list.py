"""Pass build-tasks."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import Graph
from ge.plan import GraphPlan, Task
from ge.session import CompileSession
from ge.tensor_memory import has_fixed_sizes, is_computing


class BuildTasks:
    """Before: nodes in topological order. After: ``session.plan`` has a task list per graph, in that order.

    1. Every node that computes becomes one task. Data, NetOutput, constants and load-time constants do not, nor do
       views: a Reshape that only looks at its input's bytes in another way has nothing to run.
    2. With an unknown dimension anywhere the plan is not static: no tensor gets a fixed place.
    """

    name: ClassVar[str] = "build-tasks"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """List the tasks of the graph and its bodies; the graph stays as it is."""
        parts = graph.all_graphs()
        session.plan.is_static = all(map(has_fixed_sizes, parts))
        session.plan.graphs = {part.name: _listed(part) for part in parts}
        return False


def _listed(graph: Graph) -> GraphPlan:
    return GraphPlan(tasks=[Task(node.name) for node in graph if is_computing(node)])
