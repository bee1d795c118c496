"""The check before building: unsupported operators and duplicate names, all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from onnx import defs

from ge.errors import ReportedError
from parsers.onnx.custom import custom_mapping
from parsers.onnx.functions import Functions, operators_of_body
from parsers.onnx.mapping import built_in_mapping
from parsers.onnx.onnx_graph import OnnxGraph, OnnxNode
from parsers.onnx.opset import Opsets, schema_of, type_string
from parsers.refusal import CheckedNode


def check_nodes(graph: OnnxGraph, opsets: Opsets, functions: Functions) -> list[CheckedNode]:
    """Check the nodes of ``graph``, of its nested graphs and of the functions that they call."""
    return list(_check_graph(graph, opsets, functions, set()))


def _check_graph(
    graph: OnnxGraph, opsets: Opsets, functions: Functions, seen: set[int], path: str = ""
) -> Iterator[CheckedNode]:
    uses = Counter([node.name for node in graph.nodes] + [value.name for value in graph.inputs])
    for node in graph.nodes:
        causes = [ReportedError("E13009", opname=path + node.name)] if uses[node.name] > 1 else []
        causes += _support(node, opsets, functions, path)
        yield CheckedNode(path + node.name, node.op_type, tuple(causes))
        for nested in node.graphs.values():
            yield from _check_graph(nested, opsets, functions, seen, path)
        body = functions.find(node)
        if body is not None and id(body) not in seen:
            seen.add(id(body))
            yield from _check_graph(body.graph, body.opsets, functions, seen, f"{path}{node.name}/")


def _support(node: OnnxNode, opsets: Opsets, functions: Functions, path: str) -> list[ReportedError]:
    if functions.find(node) is not None:
        return []
    try:
        version = opsets.version(node.domain, f"node {path}{node.name} ({node.op_type})")
    except ReportedError as no_import:
        return [no_import]
    if is_supported(node.domain, node.op_type, version) or custom_mapping(node.domain, node.op_type) is not None:
        return []
    optype = type_string(node.domain, version, node.op_type)
    return [ReportedError("E13010", opname=path + node.name, optype=optype)]


@cache
def is_supported(domain: str, op_type: str, version: int) -> bool:
    """Tell whether an operator can be mapped, or is defined by ONNX through others that can be.

    One that ONNX knows must be in ``version``; of one that it does not know (of another domain, for one) there is only
    the mapping.
    """
    schema = schema_of(domain, op_type, version)
    if built_in_mapping(domain, op_type) is not None:
        return schema is not None or not defs.has(op_type, domain=domain)
    if schema is None:
        return False
    smaller = operators_of_body(schema, version)
    return smaller is not None and all(is_supported(*operator) for operator in smaller)
