"""What a pass must leave as it is: the inputs and results of a model and of its bodies."""

from __future__ import annotations

from dataclasses import dataclass

from ge.graph import Graph, NodeOut, TensorDesc

Tensors = tuple[TensorDesc, ...]


@dataclass(frozen=True)
class Interface:
    """Inputs (name, index and descriptor) and results (descriptors) of the root graph, and the numbers of both of
    each body."""

    inputs: tuple[tuple[str, int, TensorDesc], ...]
    results: Tensors
    result_names: tuple[str, ...]
    bodies: dict[str, tuple[tuple[int, ...], int]]
    ended: frozenset[str]
    """Names of the graphs with a NetOutput."""

    @classmethod
    def of(cls, graph: Graph) -> Interface:
        """Look at a model."""
        return cls(
            tuple((n.name, int(n.attrs.get("index", 0)), n.output_descs[0].copy()) for n in graph.data_nodes()),
            tuple(out.desc.copy() for out in graph.outputs),
            tuple(graph.output_names),
            {
                body.name: (tuple(int(n.attrs.get("index", 0)) for n in body.data_nodes()), len(body.outputs))
                for body in graph.subgraphs.values()
            },
            frozenset(part.name for part in graph.all_graphs() if part.net_output() is not None),
        )

    def change(self, graph: Graph) -> str:
        """Return what of it has changed; empty if nothing has. Shapes that were not known may be known now."""
        now = Interface.of(graph)
        bare = next((part.name for part in graph.all_graphs() if part.name in self.ended - now.ended), None)
        if bare is not None:
            return f"the NetOutput of graph {bare} was removed"
        if [entry[:2] for entry in now.inputs] != [entry[:2] for entry in self.inputs]:
            return f"the inputs of the model were {self._named()}, now they are {now._named()}"
        for (name, _, before), (_, _, after) in zip(self.inputs, now.inputs, strict=True):
            if (before.data_type, before.shape, before.format) != (after.data_type, after.shape, after.format):
                return f"input {name} of the model was {before!r}, now it is {after!r}"
        if len(now.results) != len(self.results):
            return f"the model had {len(self.results)} results, now it has {len(now.results)}"
        if now.result_names != self.result_names:
            return f"the results were named {list(self.result_names)}, now they are {list(now.result_names)}"
        for place, (before, after) in enumerate(zip(self.results, now.results, strict=True)):
            if not _agree(before, after):
                return f"result {place} of the model ({graph.outputs[place]}) was {before!r}, now it is {after!r}"
        for name, body in self.bodies.items():
            if name in now.bodies and now.bodies[name] != body:
                return f"graph {name}, a body of a node, has other inputs or another number of results than before"
        return ""

    def _named(self) -> str:
        return ", ".join(f"{name} (index {index})" for name, index, _ in self.inputs) or "none"


def _agree(before: TensorDesc, after: TensorDesc) -> bool:
    """Tell whether what is known of a result still holds."""
    one, other = before.origin_shape, after.origin_shape
    if one.is_unknown_rank() or other.is_unknown_rank():
        return True
    fits = all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=False))
    return before.data_type is after.data_type and len(one) == len(other) and fits


def missing_descs(graph: Graph) -> list[NodeOut]:
    """Return the outputs of which not even the rank is known."""
    return [
        out
        for part in graph.all_graphs()
        for node in part
        for out in node.outputs()
        if out.desc.origin_shape.is_unknown_rank()
    ]
