"""Frozen graphs as plain objects: nodes, the outputs that they read, control edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ge.errors import ReportedError
from parsers.execution_order import ordered
from parsers.tensorflow import graph_def_pb2 as pb

_MAX_INDEX = 2**63 - 1


class Reference(NamedTuple):
    """An output that a node reads: ``name`` or ``name:index`` in the file."""

    node: str
    output: int

    def __str__(self) -> str:
        return f"{self.node}:{self.output}"


@dataclass(frozen=True, eq=False)
class TfNode:
    """A node. ``controls`` are the nodes that must run before it; ``faults`` what is wrong with its inputs."""

    name: str
    op: str
    inputs: tuple[Reference, ...]
    controls: tuple[str, ...]
    attributes: Mapping[str, pb.AttrValue]
    faults: tuple[ReportedError, ...] = ()
    bodies: Mapping[str, TfBody] = field(default_factory=dict)
    """What the node calls, by formal name, where it is not a function of the library."""

    def producers(self) -> Iterable[str]:
        """Names of the nodes that must be there before this one, those of control edges last."""
        yield from (reference.node for reference in self.inputs)
        yield from self.controls

    def without_inputs(self, op: str, attributes: Mapping[str, pb.AttrValue]) -> TfNode:
        """Return a node of the same name and another type that reads nothing."""
        return replace(self, op=op, inputs=(), controls=(), attributes=attributes, faults=())


@dataclass(frozen=True, eq=False)
class TfBody:
    """What a node calls: a function, a branch, the turn of a loop, or its condition.

    Per argument ``arguments`` has the references under which the nodes read it. A body reads nothing else from outside.
    ``function`` is empty for bodies that are no function of the library.
    """

    arguments: Sequence[Sequence[Reference]]
    nodes: Sequence[TfNode]
    results: Sequence[Reference]
    function: str = ""


@dataclass(frozen=True, eq=False)
class TfGraph:
    """The nodes of a graph in the order of the file, and the functions that they may call, by name.

    ``producer`` is the version of TensorFlow's graph format; 0 where the file does not say.
    """

    nodes: Sequence[TfNode]
    functions: Mapping[str, pb.FunctionDef] = field(default_factory=dict)
    producer: int = 0

    def by_name(self) -> dict[str, TfNode]:
        """Return the nodes by name; of several with one name the first."""
        found: dict[str, TfNode] = {}
        for node in self.nodes:
            found.setdefault(node.name, node)
        return found


def read_graph(proto: pb.GraphDef) -> TfGraph:
    """Turn a GraphDef into objects. Raises E13009 for two functions of one name."""
    functions: dict[str, pb.FunctionDef] = {}
    for function in proto.library.function:
        if function.signature.name in functions:
            raise ReportedError("E13009", opname=function.signature.name)
        functions[function.signature.name] = function
    return TfGraph([read_node(node) for node in proto.node], functions, proto.versions.producer)


def read_node(proto: pb.NodeDef) -> TfNode:
    """Turn a NodeDef into an object; references that cannot be read are kept as its faults."""
    inputs: list[Reference] = []
    controls: dict[str, None] = {}
    faults: list[ReportedError] = []
    for text in proto.input:
        if text.startswith("^"):
            controls[text[1:]] = None
            continue
        try:
            inputs.append(read_reference(text, f"input {len(inputs)} of node {proto.name}"))
        except ReportedError as fault:
            faults.append(fault)
    return TfNode(proto.name, proto.op, tuple(inputs), tuple(controls), dict(proto.attr), tuple(faults))


def read_reference(text: str, owner: str) -> Reference:
    """Read ``name`` or ``name:index``. Raises E10014 for an index that is no number, E10013 for a huge one."""
    name, colon, index = text.rpartition(":")
    if not colon:
        return Reference(text, 0)
    if not (index.isascii() and index.isdecimal()):
        raise ReportedError(
            "E10014", value=text, parameter=owner, solution="Write a node's name, or name:index with decimal digits."
        )
    if len(index) > 19 or int(index) > _MAX_INDEX:
        raise ReportedError("E10013", value=text, parameter=owner)
    return Reference(name, int(index))


def execution_order(nodes: Sequence[TfNode]) -> list[TfNode]:
    """Return the nodes so that producers come first; ties keep the file's order. Raises E13025 for a cycle."""
    number = {node.name: i for i, node in enumerate(nodes)}
    before = [{number[name] for name in node.producers() if name in number} for node in nodes]
    return [nodes[i] for i in ordered(before, [node.name for node in nodes])]
