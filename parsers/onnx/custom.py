"""Mappings of custom operators: made from what their declarations say (``onnx=``, see :mod:`ge.ops.onnx_form`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onnx import defs

from ge.errors import ReportedError
from ge.graph import Node, NodeOut, Tensor
from ge.graph.attributes import conform
from ge.ops import OpDef, OperatorSet, current_operators
from ge.ops.onnx_form import OnnxForm
from ge.ops.signature import Arity, AttrSpec
from ge.plugin_files import located

if TYPE_CHECKING:
    from parsers.onnx.node_builder import NodeBuilder

Outputs = Node | NodeOut | Sequence[NodeOut | None]


def custom_mapping(domain: str, op_type: str) -> Callable[[NodeBuilder], Outputs] | None:
    """Return what maps an ONNX operator for which a custom operator stands; ``None`` when none does."""
    found = current_operators().find_onnx(domain, op_type)
    return None if found is None else lambda n: _mapped(n, *found)


def check_onnx_names(operators: OperatorSet) -> None:
    """Raise E13030 for a custom operator that is to stand for one which ONNX defines, or the front end maps itself."""
    from parsers.onnx.mapping import mapped_operators  # that module imports this one

    mapped = frozenset(mapped_operators())
    for definition, form in operators.onnx_operators():
        is_defined = defs.has(form.type, domain=form.domain)
        if is_defined or (form.domain, form.type) in mapped:
            owner = f"ONNX itself defines {form}" if is_defined else f"{form} has a meaning here"
            raise ReportedError(
                "E13030",
                passname=definition.type,
                reason=f"{operators.file_of(definition.type)}: {owner}, which cannot be replaced",
                solution="Give the operator a domain of its own, in the model and in onnx= of the declaration.",
            )


def _mapped(n: NodeBuilder, definition: OpDef, form: OnnxForm) -> Outputs:
    if form.function is not None:
        return _by_function(n, definition, form.function)
    _check_inputs(n, definition)
    attributes = _attributes(n, definition, form)
    return n.add(definition.type, *n.inputs, n_outputs=_n_outputs(n, definition), **attributes)


def _by_function(n: NodeBuilder, definition: OpDef, function: Callable[[NodeBuilder], Any]) -> Outputs:
    file = current_operators().file_of(definition.type)
    try:
        found = function(n)
    except (ReportedError, MemoryError):
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        raise n.fail(f"{file}, {located(fault, file)}") from fault
    if isinstance(found, Node | NodeOut):  # an output is a tuple too
        return found
    items = list(found) if isinstance(found, list | tuple) else []
    if not items or not all(isinstance(item, Node | NodeOut) for item in items):
        raise n.fail(f"its mapping function ({file}) returns {found!r}, not a node or outputs of nodes")
    return [item.output() if isinstance(item, Node) else item for item in items]


def _check_inputs(n: NodeBuilder, definition: OpDef) -> None:
    signature = definition.signature
    count = len(n.inputs)
    while count and n.inputs[count - 1] is None:
        count -= 1
    least, most = signature.min_inputs, signature.max_inputs
    if count < least or (most is not None and count > most):
        takes = f"{least} or more" if most is None else f"{least}" if least == most else f"{least} to {most}"
        raise n.fail(f"it has {count} inputs, but takes {takes}")
    for port in signature.inputs:
        given = n.inputs[:count][signature.input_slices(count)[port.name]]
        if port.arity is not Arity.OPTIONAL and None in given:
            raise n.fail(f"its input {port.name} is absent")


def _n_outputs(n: NodeBuilder, definition: OpDef) -> int:
    fixed = sum(port.arity is not Arity.DYNAMIC for port in definition.signature.outputs)
    return max(fixed, len(n.outputs)) if definition.signature.has_dynamic_output else fixed


def _attributes(n: NodeBuilder, definition: OpDef, form: OnnxForm) -> dict[str, Any]:
    renamed = {ours: theirs for theirs, ours in form.attributes.items()}
    values: dict[str, Any] = {}
    read = set()
    for name, spec in definition.signature.attrs.items():
        theirs = renamed.get(name, name)
        read.add(theirs)
        if n.has_attr(theirs):
            values[name] = _converted(n, theirs, spec)
        elif spec.is_required:
            raise n.fail(f"attribute {theirs} is missing")
    for name in n.attribute_names():
        if name not in read:
            n.builder.session.warn(f"node {n.name} ({n.op_type}): attribute {name} is unknown and ignored")
    return values


def _converted(n: NodeBuilder, name: str, spec: AttrSpec) -> Any:
    """Return an attribute in the kind that the operator's signature declares; numbers of element types are ONNX's."""
    value = n.attr(name)
    if spec.kind == "t" and isinstance(value, int):
        return n.element_type(value, name)
    if spec.kind == "tensor" and hasattr(value, "dtype"):
        return Tensor.of(value)
    try:
        return conform(spec, value, n.op_type)
    except TypeError as fault:
        raise n.fail(str(fault)) from fault
