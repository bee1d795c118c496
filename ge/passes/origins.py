"""What new nodes take over from those that they replace: origins, names of passes, attributes of scheduling.

Origins tell readers of data dumps where a tensor stands in the user's model. A node without a note of them is a node of
the model itself; one with an empty list of names is the compiler's own (TransData, Cast, folded constants).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ge.graph.node import Node, NodeOut
from ge.graph.types import FORMAT_TEXT, Format

ORIGIN_NAMES, ORIGIN_TYPES = "_datadump_original_op_names", "_datadump_original_op_types"
IS_MULTI_OP = "_datadump_is_multiop"
"""Attribute of nodes that came together in the place of others: only those outputs count that name their origin."""

OUTPUT_NAME, OUTPUT_INDEX = "_datadump_origin_name", "_datadump_origin_output_index"
OUTPUT_FORMAT, OUTPUT_TYPE = "_datadump_origin_format", "_datadump_origin_data_type"
OUTPUT_ATTRS = (OUTPUT_NAME, OUTPUT_INDEX, OUTPUT_FORMAT, OUTPUT_TYPE)
"""Attributes of output descriptors: the tensor of the model that an output stands for, format and type by name."""

_UNKNOWN_FORMAT = "RESERVED"
PASS_NAMES = "pass_name"

AGREEING_ATTRS = (
    "_user_stream_label",
    "_super_kernel_scope",
    "_super_kernel_options",
    "_op_aicore_num",
    "_op_vectorcore_num",
    "_deterministic",
    "_deterministic_level",
)
"""Attributes of which fused nodes must not have different values."""

_FIRST_FOUND = (
    *AGREEING_ATTRS,
    "_op_compile_strategy",
    "_keep_dtype",
    "_op_debug_compile",
    "_parallel_group_id",
    "_op_impl_mode_enum",
    "_op_custom_impl_mode_enum",
)
_ANY_TRUE = ("_recompute", "_optimizer", "_backward")
_AGREEING = frozenset(AGREEING_ATTRS)
_INHERITED = frozenset((*_FIRST_FOUND, *_ANY_TRUE))


def conflict(nodes: Sequence[Node]) -> str:
    """Return in which attribute ``nodes`` contradict each other, with both values; empty if they do not."""
    if all(_AGREEING.isdisjoint(node.attrs) for node in nodes):
        return ""
    for name in AGREEING_ATTRS:
        first: Node | None = None
        for node in nodes:
            value = node.attrs.get(name)
            if value is None:
                continue
            if first is None:
                first = node
            elif value != first.attrs[name]:
                values = f"[{first.attrs[name]}] on node {first.name} and [{value}] on node {node.name}"
                return f"Fusion is not supported because {name} differs: {values}"
    return ""


def inherit(old: Sequence[Node], new: Sequence[Node]) -> None:
    """Hand attributes of scheduling on; values that a new node has stay."""
    if all(_INHERITED.isdisjoint(node.attrs) for node in old):
        return
    found: dict[str, Any] = {}
    for name in _FIRST_FOUND:
        value = next((node.attrs[name] for node in old if node.attrs.get(name)), None)
        if value is not None:
            found[name] = value
    found.update({name: True for name in _ANY_TRUE if any(node.attrs.get(name) for node in old)})
    for node in new:
        for name, value in found.items():
            if node.attrs.get(name) is None:
                node.attrs[name] = value


def record_origins(old: Sequence[Node], new: Sequence[Node]) -> None:
    """Note on new nodes which nodes of the model they come from: the recorded origins of ``old``, or these.

    Constants are the compiler's own: what they hold is no tensor of the model.
    """
    names: dict[str, None] = {}
    types: list[str] = []
    for node in old:
        for name, type_ in _origins_of(node):
            if name not in names:
                names[name] = None
                types.append(type_)
    computing = [node for node in new if node.type != "Const"]
    for node in new:
        is_constant = node.type == "Const"
        node.attrs[ORIGIN_NAMES] = [] if is_constant else list(names)
        node.attrs[ORIGIN_TYPES] = [] if is_constant else list(types)
        node.attrs.pop(IS_MULTI_OP, None)
        if len(computing) > 1 and not is_constant:
            node.attrs[IS_MULTI_OP] = True


def record_outputs(new: Iterable[Node], pairs: Iterable[tuple[NodeOut, NodeOut]]) -> None:
    """Note on outputs of ``new`` nodes which tensors of the model they stand for: of ``(old, new)`` the old one's.

    Tensors in between stand for none.
    """
    made = set(new)
    for node in made:
        for desc in node.output_descs:
            for name in OUTPUT_ATTRS:
                desc.attrs.pop(name, None)
    for old, out in pairs:
        if out.node in made and OUTPUT_NAME not in out.desc.attrs:
            out.desc.attrs.update(_tensor_of(old))
            if old.node.attrs.get(IS_MULTI_OP) and OUTPUT_NAME not in out.desc.attrs:
                out.node.attrs[IS_MULTI_OP] = True  # it still gives what others make a tensor of the model of


def _tensor_of(out: NodeOut) -> dict[str, Any]:
    """Return the attributes of an output: those that it has, or what follows from its node."""
    desc, names = out.desc, [name for name, _ in _origins_of(out.node)]
    known = {name: desc.attrs[name] for name in OUTPUT_ATTRS if name in desc.attrs}
    if OUTPUT_NAME not in known and (not names or out.node.attrs.get(IS_MULTI_OP)):
        return {}
    is_known = desc.origin_format < Format.FORMAT_END and desc.origin_format != Format.FORMAT_RESERVED
    default = {
        OUTPUT_NAME: names[-1] if names else "",
        OUTPUT_INDEX: out.index,
        OUTPUT_FORMAT: FORMAT_TEXT[desc.origin_format] if is_known else _UNKNOWN_FORMAT,
        OUTPUT_TYPE: desc.data_type.name,
    }
    return default | known


def _origins_of(node: Node) -> list[tuple[str, str]]:
    names, types = node.attrs.get(ORIGIN_NAMES), node.attrs.get(ORIGIN_TYPES)
    if names is None:
        return [(node.name, node.type)]
    if types is None or len(types) != len(names):
        return [(name, node.type) for name in names]
    return list(zip(names, types, strict=True))


def record_pass(old: Sequence[Node], new: Sequence[Node], pass_name: str) -> None:
    """Note on new nodes which passes made them: those that made ``old``, then this one."""
    earlier = dict.fromkeys(name for node in old for name in node.attrs.get(PASS_NAMES, []) if name != pass_name)
    for node in new:
        node.attrs[PASS_NAMES] = [*earlier, pass_name]
