"""The check before building: unsupported operators, duplicate names, inputs that do not exist; all of them at once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import replace

from ge.errors import ReportedError
from parsers.refusal import CheckedNode
from parsers.tensorflow.functions import FunctionLibrary, functions_in
from parsers.tensorflow.mapping import find_mapping
from parsers.tensorflow.tf_graph import TfNode
from parsers.tensorflow.trimming import is_leftover

_VARIABLES = frozenset(
    {"Variable", "VariableV2", "VarHandleOp", "ReadVariableOp", "ResourceGather", "TemporaryVariable"}
)
_TABLES = frozenset({"HashTable", "HashTableV2", "LookupTableFind", "LookupTableFindV2", "MutableHashTableV2"})
_UNFROZEN = (
    "The graph still reads a variable: freeze it, so that variables become constants (TensorFlow 2: "
    "convert_variables_to_constants_v2, TensorFlow 1: convert_variables_to_constants), and compile the result."
)
_UNFED = "Tables live outside of a frozen graph: look the values up before, and feed what was found."


def check_nodes(
    nodes: Sequence[TfNode], known: Collection[str], uses: Counter[str], library: FunctionLibrary, prefix: str = ""
) -> list[CheckedNode]:
    """Check ``nodes``; ``known`` are the names that they may read, ``uses`` says how often the file has each name."""
    checked = []
    for node in nodes:
        named = replace(node, name=prefix + node.name)
        twice = [ReportedError("E13009", opname=named.name)] if uses[node.name] > 1 else []
        checked.append(CheckedNode(named.name, node.op, (*twice, *_causes(named, known, library))))
    return checked


def check_functions(nodes: Sequence[TfNode], library: FunctionLibrary) -> list[CheckedNode]:
    """Check the nodes of all functions that ``nodes`` call, or that these call; they are named ``<function>/<node>``.

    A function that is not there is a cause of the first node that names it.
    """
    checked: list[CheckedNode] = []
    seen: set[str] = set()
    waiting = deque((node, "") for node in nodes)
    while waiting:
        node, prefix = waiting.popleft()
        for name in _called(node, library):
            if name in seen:
                continue
            seen.add(name)
            if name not in library:
                missing = ReportedError("E12013", functionname=name)
                checked.append(CheckedNode(prefix + node.name, node.op, (missing,)))
                continue
            inner, known = library.nodes(name)
            checked += check_nodes(inner, known, Counter(node.name for node in inner), library, f"{name}/")
            waiting += [(node, f"{name}/") for node in inner]
    return checked


def _called(node: TfNode, library: FunctionLibrary) -> list[str]:
    return [*([node.op] if node.op in library else []), *(called.name for called in functions_in(node))]


def _causes(node: TfNode, known: Collection[str], library: FunctionLibrary) -> list[ReportedError]:
    causes = [*node.faults]
    missing = [str(reference) for reference in node.inputs if reference.node not in known]
    missing += [f"^{name}" for name in node.controls if name not in known]
    causes += [ReportedError("E12009", inputopname=name, opname=node.name) for name in missing]
    entry = find_mapping(node.op)
    if entry is None:
        return causes if node.op in library else [*causes, _unsupported(node)]
    count = len(node.inputs)
    if not node.faults and (count < entry.least or (entry.most is not None and count > entry.most)):
        causes.append(_wrong_count(node, entry.least, entry.most))
    return causes


def _unsupported(node: TfNode) -> ReportedError:
    fault = ReportedError("E10501", opname=node.name, optype=node.op)
    if node.op in _VARIABLES:
        fault.solution = _UNFROZEN
    elif node.op in _TABLES:
        fault.solution = _UNFED
    elif is_leftover(node.op):
        fault.solution = "It belongs to training; name the outputs that are wanted with --out_nodes."
    return fault


def _wrong_count(node: TfNode, least: int, most: int | None) -> ReportedError:
    takes = f"{least} or more" if most is None else f"{least}" if least == most else f"{least} to {most}"
    reason = f"it takes {takes}"
    return ReportedError(
        "E13014", value=len(node.inputs), parameter="number of inputs", opname=node.name, reason=reason
    )
