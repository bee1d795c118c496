"""Operator functions, made from the signatures of the registered operators.

``MatMul(x1, x2, bias=None, *, transpose_x1=False, transpose_x2=False) -> TensorHolder``

Parameters, in this order: the inputs of the signature (an optional one defaults to ``None`` unless a parameter without
default follows, a dynamic one is a list), the builder where no input can tell it, ``<out>_num`` per dynamic output, the
bodies, and by keyword only the attributes. Names that Python reserves get ``in_``, ``out_`` or ``attr_`` in front; an
output named like an input gets ``ref_``, an attribute named like an input ``attr_``.

Operators with several inputs, or with optional ones only, take numbers and nested lists for tensors.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ge.es.graph_builder import GraphBuilder
from ge.es.tensor_holder import TensorHolder
from ge.es.tensor_like import TensorLike, convert_to_tensor_holder, resolve_builder  # noqa: F401, for annotations
from ge.graph.attributes import conform
from ge.graph.graph import Graph
from ge.graph.tensor import Tensor  # noqa: F401
from ge.graph.types import DataType  # noqa: F401
from ge.ops.registry import OpDef
from ge.ops.signature import Arity, AttrSpec, Port, Signature

ATTR_TYPES = {
    "i": "int",
    "f": "float",
    "b": "bool",
    "s": "str",
    "t": "DataType",
    "I": "list[int]",
    "F": "list[float]",
    "B": "list[bool]",
    "S": "list[str]",
    "II": "list[list[int]]",
    "tensor": "Tensor",
}
"""Python types of the attribute kinds."""

MAX_OUTPUTS = 1 << 16
"""Most elements of a dynamic output."""


class OperatorOutput:
    """Results of an operator with several outputs: a field per output, a list where the output is dynamic."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *values: TensorHolder | list[TensorHolder]) -> None:
        for name, value in zip(self._fields, values, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"


@dataclass(frozen=True)
class Parameters:
    """The parameters of an operator function: Python names beside the parts of the signature that they stand for."""

    inputs: tuple[tuple[str, Port], ...]
    builder: str
    counts: tuple[tuple[str, Port], ...]
    bodies: tuple[tuple[str, Port], ...]
    attrs: tuple[tuple[str, AttrSpec], ...]
    takes_tensor_like: bool

    @classmethod
    def of(cls, signature: Signature) -> Parameters:
        """Name the parameters of an operator."""
        formal = {port.name for port in signature.inputs}
        all_optional = all(p.arity is Arity.OPTIONAL for p in signature.inputs)
        builder = "" if not all_optional else "owner_builder" if signature.inputs else "owner_graph_builder"
        return cls(
            tuple((_free(p.name, "in_"), p) for p in signature.inputs),
            builder,
            tuple((f"{output_name(p, signature)}_num", p) for p in signature.outputs if p.arity is Arity.DYNAMIC),
            tuple((p.name, p) for p in signature.subgraphs),
            tuple((f"attr_{a}" if a in formal else _free(a, "attr_"), spec) for a, spec in signature.attrs.items()),
            len(signature.inputs) > 1 or all_optional,
        )

    def signature(self, returns: Any) -> inspect.Signature:
        """Return the Python signature; annotations are text in the terms of this module."""
        tensor = "TensorHolder | TensorLike" if self.takes_tensor_like else "TensorHolder"
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        rows: list[tuple[str, str, bool]] = []  # name, annotation, has a default
        for name, port in self.inputs:
            is_optional = port.arity is Arity.OPTIONAL
            annotation = f"list[{tensor}]" if port.arity is Arity.DYNAMIC else tensor
            rows.append((name, f"{annotation} | None" if is_optional else annotation, is_optional))
        if self.builder:
            rows.append((self.builder, "GraphBuilder | None" if self.inputs else "GraphBuilder", bool(self.inputs)))
        rows += [(name, "int", False) for name, _ in self.counts]
        rows += [(name, "list[Graph]" if p.arity is Arity.DYNAMIC else "Graph", False) for name, p in self.bodies]
        last_without = max((i for i, (_, _, has) in enumerate(rows) if not has), default=-1)
        found = [
            inspect.Parameter(name, kind, annotation=a, default=None if i > last_without else inspect.Parameter.empty)
            for i, (name, a, _) in enumerate(rows)
        ]
        found += [_attr_parameter(name, spec) for name, spec in self.attrs]
        return inspect.Signature(found, return_annotation=returns)


def _attr_parameter(name: str, spec: AttrSpec) -> inspect.Parameter:
    annotation = ATTR_TYPES[spec.kind]
    if not spec.is_required and spec.default is None:
        annotation = f"{annotation} | None"
    default = inspect.Parameter.empty if spec.is_required else _default(spec)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _default(spec: AttrSpec) -> Any:
    return spec.default if spec.default is None else conform(spec, spec.default, "a default")


def _free(name: str, prefix: str) -> str:
    return prefix + name if keyword.iskeyword(name) else name


def output_name(port: Port, signature: Signature) -> str:
    """Return the Python name of an output."""
    return f"ref_{port.name}" if any(p.name == port.name for p in signature.inputs) else _free(port.name, "out_")


def make_function(definition: OpDef) -> Callable[..., Any]:
    """Return the function of an operator, with a signature and a docstring of its own."""
    formal = definition.signature
    parameters = Parameters.of(formal)
    result, annotation = _result_of(formal)
    signature = parameters.signature(annotation)
    positional, has_required_names = _positional(signature)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) == len(positional) and not (kwargs or has_required_names):  # as most are called
                given = dict(zip(positional, args, strict=True))
            else:
                given = signature.bind(*args, **kwargs).arguments
        except TypeError as fault:
            raise TypeError(f"{formal.type}: {fault}") from None
        return result(_build(formal, parameters, given))

    call.__name__ = call.__qualname__ = formal.type
    call.__module__ = "ge.es.all"
    call.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
    call.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()} | {"return": annotation}
    call.__doc__ = describe(formal, parameters)
    return call


def _positional(signature: inspect.Signature) -> tuple[list[str], bool]:
    """Return the names of the positional parameters, and whether others must be given by name."""
    by_name = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    positional = [name for name, p in signature.parameters.items() if p not in by_name]
    return positional, any(p.default is inspect.Parameter.empty for p in by_name)


def _build(formal: Signature, parameters: Parameters, given: dict[str, Any]) -> list[list[TensorHolder]]:
    """Add the node and return its holders per formal output."""
    items = [(name, item) for name, port in parameters.inputs for item in _items(formal, parameters, name, port, given)]
    builder = _builder(formal, parameters, given)
    attrs = {
        spec.name: conform(spec, given[name], formal.type)
        for name, spec in parameters.attrs
        if name in given and not (given[name] is None and spec.default is None and not spec.is_required)
    }
    widths = _widths(formal, parameters, given)
    bodies = _bodies(formal, parameters, given)
    inputs = [_holder(formal, name, item, builder) for name, item in items]
    if not any(port.arity is Arity.DYNAMIC for port in formal.inputs):
        while inputs and inputs[-1] is None:
            inputs.pop()
    holders = builder._add_operator(formal.type, inputs, attrs, sum(widths), bodies)
    if not formal.outputs:
        return [holders]
    parts, start = [], 0
    for width in widths:
        parts.append(holders[start : start + width])
        start += width
    return parts


def _builder(formal: Signature, parameters: Parameters, given: dict[str, Any]) -> GraphBuilder:
    owner = given.get(parameters.builder) if parameters.builder else None
    if owner is not None and not isinstance(owner, GraphBuilder):
        raise TypeError(f"{formal.type}: {parameters.builder} must be a GraphBuilder, not {type(owner).__name__}")
    try:
        return resolve_builder(owner, *(given.get(name) for name, _ in parameters.inputs))
    except ValueError as fault:
        raise ValueError(f"{formal.type}: {fault}") from None


def _items(formal: Signature, parameters: Parameters, name: str, port: Port, given: dict[str, Any]) -> list[Any]:
    """Return what is given for the flat inputs of one formal input."""
    value = given.get(name)
    if port.arity is Arity.DYNAMIC and not isinstance(value, list | tuple):
        raise TypeError(f"{formal.type}: {name} must be a list of tensors, not {type(value).__name__}")
    items = list(value) if port.arity is Arity.DYNAMIC and isinstance(value, list | tuple) else [value]
    for item in items:
        if item is None and port.arity is not Arity.OPTIONAL:
            raise TypeError(f"{formal.type}: input {name} must be a tensor, not None")
        if not (parameters.takes_tensor_like or item is None or isinstance(item, TensorHolder)):
            raise TypeError(f"{formal.type}: input {name} must be a TensorHolder, not {type(item).__name__}")
    return items


def _holder(formal: Signature, name: str, item: Any, builder: GraphBuilder) -> TensorHolder | None:
    try:
        return convert_to_tensor_holder(item, builder)
    except (TypeError, ValueError) as fault:
        raise type(fault)(f"{formal.type}: input {name}: {fault}") from None


def _widths(formal: Signature, parameters: Parameters, given: dict[str, Any]) -> list[int]:
    """Return the number of flat outputs per formal output."""
    counts = {port.name: (name, given[name]) for name, port in parameters.counts}
    widths = []
    for port in formal.outputs:
        name, count = counts.get(port.name, ("", 1))
        if not isinstance(count, int):
            raise TypeError(f"{formal.type}: {name} must be an int, not {type(count).__name__}")
        if not 0 <= count <= MAX_OUTPUTS:
            raise ValueError(f"{formal.type}: {name} must be between 0 and {MAX_OUTPUTS}, not {count}")
        widths.append(count)
    return widths


def _bodies(formal: Signature, parameters: Parameters, given: dict[str, Any]) -> list[tuple[str, Graph]]:
    """Return ``(name in the signature, graph)`` of all bodies; those of a dynamic one are numbered."""
    found: list[tuple[str, Graph]] = []
    for name, port in parameters.bodies:
        value = given[name]
        if port.arity is Arity.DYNAMIC and not isinstance(value, list | tuple):
            raise TypeError(f"{formal.type}: {name} must be a list of Graph, not {type(value).__name__}")
        graphs = list(value) if port.arity is Arity.DYNAMIC else [value]
        for place, graph in enumerate(graphs):
            if not isinstance(graph, Graph):
                raise TypeError(f"{formal.type}: {name} must be a Graph, not {type(graph).__name__}")
            found.append((f"{port.name}{place}" if port.arity is Arity.DYNAMIC else port.name, graph))
    return found


def _result_of(formal: Signature) -> tuple[Callable[[list[list[TensorHolder]]], Any], Any]:
    """Return how the holders of all outputs are handed out, and the type of that."""
    outputs = formal.outputs
    if len(outputs) == 1 and outputs[0].arity is Arity.DYNAMIC:
        return (lambda parts: parts[0]), list[TensorHolder]
    if len(outputs) <= 1:
        return (lambda parts: parts[0][0]), TensorHolder
    names = tuple(output_name(p, formal) for p in outputs)
    annotations = {
        name: list[TensorHolder] if p.arity is Arity.DYNAMIC else TensorHolder
        for name, p in zip(names, outputs, strict=True)
    }
    namespace = {
        "_fields": names,
        "__annotations__": annotations,
        "__module__": "ge.es.all",
        "__doc__": f"Results of {formal.type}: {', '.join(names)}.",
    }
    kind = type(f"{formal.type}Output", (OperatorOutput,), namespace)

    def results(parts: list[list[TensorHolder]]) -> Any:
        pairs = zip(parts, outputs, strict=True)
        return kind(*(part if p.arity is Arity.DYNAMIC else part[0] for part, p in pairs))

    return results, kind


_ARITY_WORDS = {Arity.REQUIRED: "tensor", Arity.OPTIONAL: "tensor, optional", Arity.DYNAMIC: "list of tensors"}


def describe(formal: Signature, parameters: Parameters) -> str:
    """Return the docstring of an operator function: one line per parameter."""
    lines = [f"Add the operator {formal.type} to the graph of its inputs.", ""]
    lines += [f"{name}: {_ARITY_WORDS[port.arity]}" for name, port in parameters.inputs]
    if parameters.builder:
        lines.append(f"{parameters.builder}: the builder, where no input tells it")
    lines += [f"{name}: number of outputs {port.name}" for name, port in parameters.counts]
    lines += [f"{name}: {'list of graphs' if p.arity is Arity.DYNAMIC else 'graph'}" for name, p in parameters.bodies]
    for name, spec in parameters.attrs:
        lines.append(f"{name}: {ATTR_TYPES[spec.kind]}{'' if spec.is_required else f', default {spec.default!r}'}")
    outputs = ", ".join(output_name(p, formal) + ("*" if p.arity is Arity.DYNAMIC else "") for p in formal.outputs)
    return "\n".join([*lines, "", f"Returns {outputs if outputs else 'a holder for control dependencies'}."])
