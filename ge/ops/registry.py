"""Operator definitions: signature, inference and reference semantics, side by side.

    @operator("LeakyRelu(x) [negative_slope:f=0]", infer=same_as("x"))
    def leaky_relu(op, x):
        return np.where(x >= 0, x, x * op.negative_slope)

The decorated function is the operator's meaning in numpy. It gets the attributes (``op.negative_slope``, defaults
filled in; ``op.get("_x_axis", 0)`` for our extra ones), then one argument per formal input: an array, ``None`` for an
absent optional, a list for a dynamic one. It returns an array or a tuple of arrays in output order. Narrow floats
arrive as float32 and results are rounded once to the inferred types, unless ``exact_types`` says otherwise. Handles
(types that numpy does not have) are Python objects that pass through as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from ge.errors import ReportedError
from ge.formats.layout_error import LayoutError
from ge.formats.storage_view import origin_array, stored_shape
from ge.graph.node import Node, NodeOut
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import OpenDim, Shape, TensorDesc
from ge.graph.types import NARROW_FLOATS, DataType, has_numpy_dtype, numpy_dtype
from ge.ops.known_value import KnownValue
from ge.ops.rounding import round_to_odd
from ge.ops.signature import Arity, Signature, parse_signature
from ge.tensor_memory import shape_fault

Array = np.ndarray[Any, np.dtype[Any]]
OutputSpec = tuple[Iterable[int], DataType]
"""Shape (``-1`` unknown dim, ``[-2]`` unknown rank) and element type of one output."""
InferFunction = Callable[["InferContext"], Sequence[OutputSpec]]
ComputeFunction = Callable[..., Any]
ValueOf = Callable[[Node, int], KnownValue | None]
"""Tells what is known of the value behind an input slot of a node; ``None``: nothing."""
NewValueOf = Callable[[Mapping[NodeOut, KnownValue]], ValueOf]
"""Makes a source of values that knows the given ones (Data of a body, for one) and remembers nothing else yet."""


READS = "reads"
"""Attribute of a rule of :mod:`ge.ops.inference` for one output: the names of the inputs that it reads."""

Loops = dict[Node, list[tuple[Shape, DataType]]]
"""What is known of the state of loops, by their nodes."""


class Misfit(ValueError):
    """Arguments that do not fit, found by a rule that knows no node: geometry shared by inference and computation.

    :func:`infer_node` turns it into the node's E14001; whoever calls :meth:`OpDef.evaluate` names the node likewise.
    ``solution`` is the remedy if it is not the node that is wrong, but the file of a user.
    """

    def __init__(self, reason: str, solution: str | None = None) -> None:
        super().__init__(reason)
        self.solution = solution


class OpDef:
    """One operator: what it takes, what it promises, what it computes.

    ``compute`` is ``None`` for operators without a numpy meaning (graph boundary, control flow).
    ``is_stateful`` marks operators that must not be folded, merged or removed when unread (random numbers, for one).
    ``value_infer`` may give a constant result from shapes alone (Shape, Size, Rank).
    ``plugin`` names the module of ``ge.es`` that offers the operator besides ``all`` (``custom``, for one).
    ``onnx`` says which ONNX operators the operator of a user stands for, see :mod:`ge.ops.onnx_form`.
    ``file`` is the file of a user that declares it; empty for built-in operators.
    """

    def __init__(
        self,
        signature: Signature,
        infer: InferFunction,
        compute: ComputeFunction | None,
        *,
        exact_types: bool = False,
        is_stateful: bool = False,
        value_infer: Callable[[InferContext], Array | None] | None = None,
        plugin: str = "",
        onnx: Any = None,
        file: str = "",
    ) -> None:
        self.signature = signature
        self.infer = infer
        self.compute = compute
        self.exact_types = exact_types
        self.is_stateful = is_stateful
        self.value_infer = value_infer
        self.plugin = plugin
        self.onnx = onnx
        self.file = file

    @property
    def type(self) -> str:
        """The operator type."""
        return self.signature.type

    def misfit(self, reason: str) -> Misfit:
        """Return the fault of results that do not fit what was inferred: a file of a user is named, and is to blame."""
        if not self.file:
            return Misfit(reason)
        return Misfit(f"{reason} ({self.file})", f"Correct the declaration of {self.type} in {self.file}.")

    def attributes(self, attrs: dict[str, Any]) -> Attributes:
        """Return the attributes of a node with defaults filled in."""
        return Attributes(self, attrs)

    def evaluate(
        self, attrs: dict[str, Any], inputs: Sequence[Array | None], output_types: Sequence[DataType]
    ) -> list[Array]:
        """Run the reference semantics on flat inputs and return one array per output, in ``output_types``."""
        if self.compute is None:
            raise ReportedError("E19999", reason=f"operator type {self.type} has no reference semantics")
        widened = list(inputs) if self.exact_types else [_widen(x) for x in inputs]
        arguments: list[Any] = []
        slices = self.signature.input_slices(len(widened))
        for port in self.signature.inputs:
            found = widened[slices[port.name]]
            arguments.append(found if port.arity is Arity.DYNAMIC else found[0] if found else None)
        namespace = Attributes(self, attrs, len(output_types), tuple(output_types))
        with np.errstate(all="ignore"):
            result = self.compute(namespace, *arguments)
            results = list(result) if isinstance(result, tuple | list) else [result]
            return [_to_type(r, t) for r, t in zip(results, output_types, strict=False)]


_NARROW_DTYPES = frozenset(numpy_dtype(t) for t in NARROW_FLOATS)


def _widen(array: Array | None) -> Array | None:
    return array if array is None or array.dtype not in _NARROW_DTYPES else array.astype(np.float32)


def _to_type(array: Any, dtype: DataType) -> Any:
    if not has_numpy_dtype(dtype):
        return array  # a handle
    found, target = np.asarray(array), numpy_dtype(dtype)
    if found.dtype == np.float64 and target in _NARROW_DTYPES and target != np.float16:
        found = round_to_odd(found)
    return found.astype(target, copy=False)


class Attributes:
    """Attribute values by name, defaults filled in. ``n_outputs`` and ``output_types`` describe the node at hand."""

    def __init__(
        self, definition: OpDef, attrs: dict[str, Any], n_outputs: int = 1, output_types: tuple[DataType, ...] = ()
    ) -> None:
        self._definition = definition
        self._attrs = attrs
        self.n_outputs = n_outputs
        self.output_types = output_types

    def __getattr__(self, name: str) -> Any:
        found = self._attrs.get(name)
        if found is not None:
            return found
        spec = self._definition.signature.attrs.get(name)
        if spec is None:
            raise AttributeError(f"operator {self._definition.type} has no attribute {name}")
        return spec.default

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute that is not part of the signature."""
        return self._attrs.get(name, default)


class InferContext:
    """What an inference function may ask. Shapes are origin shapes.

    ``value(name)`` is the constant behind an input, if it is known now; ``known(name)`` what is known of it, if only
    single elements. ``fail`` builds the error to raise.
    ``new_value_of`` makes sources of values for bodies, which are inferred more than once. ``loops`` remembers, while
    the loops around a node are inferred, what its own turns agreed on last.
    """

    def __init__(
        self,
        node: Node,
        definition: OpDef,
        value_of: ValueOf,
        new_value_of: NewValueOf | None = None,
        loops: Loops | None = None,
    ) -> None:
        self.node = node
        self.op = definition.attributes(node.attrs)
        self._definition = definition
        self._value_of = value_of
        self.new_value_of = _known_or_const if new_value_of is None else new_value_of
        self.loops: Loops = {} if loops is None else loops
        self._slices = definition.signature.input_slices(len(node.inputs))

    def _slot(self, name: str) -> int:
        if name not in self._slices:
            raise LookupError(f"operator {self.node.type} has no input {name!r}")
        start: int = self._slices[name].start
        return start

    @property
    def n_outputs(self) -> int:
        """Outputs that the node has."""
        return len(self.node.output_descs)

    def has(self, name: str) -> bool:
        """True when the input is connected."""
        return self.node.input(self._slot(name)) is not None

    def desc(self, name: str) -> TensorDesc:
        """Descriptor of an input. A missing required input is a reported error."""
        source = self.node.input(self._slot(name))
        if source is None:
            raise self.fail(f"input {name} is not connected")
        return source.desc

    def shape(self, name: str) -> Shape:
        """Origin shape of an input."""
        return self.desc(name).origin_shape

    def dtype(self, name: str) -> DataType:
        """Element type of an input."""
        return self.desc(name).data_type

    def descs(self, name: str) -> list[TensorDesc]:
        """Descriptors of a dynamic input (absent slots skipped)."""
        return [source.desc for source in self.node.inputs[self._slices[name]] if source is not None]

    def value(self, name: str) -> Array | None:
        """Constant value of an input; ``None`` when absent or not known at compile time."""
        found = self.known(name)
        return None if found is None else found.whole

    def known(self, name: str) -> KnownValue | None:
        """What is known of the value of an input: all elements, some, or nothing."""
        return self.known_at(self._slot(name))

    def known_at(self, slot: int) -> KnownValue | None:
        """Like ``known``, by input slot."""
        return None if self.node.input(slot) is None else self._value_of(self.node, slot)

    def ints(self, name: str) -> list[int] | None:
        """Constant integer vector behind an input, flattened; ``None`` when not known."""
        value = self.value(name)
        return None if value is None else [int(v) for v in np.ravel(value)]

    def fail(self, reason: str | Misfit, *, value: object = None) -> ReportedError:
        """Return the error for arguments that do not fit: ``raise ctx.fail("...")``.

        ``value`` names the argument in question; without it all connected inputs are named.
        """
        solution = reason.solution if isinstance(reason, Misfit) else None
        named = ", ".join(name for name in self._slices if self._is_connected(name)) if value is None else value
        node = self.node
        return ReportedError(
            "E14001", opname=node.name, optype=node.type, value=named, reason=str(reason), solution=solution
        )

    def _is_connected(self, name: str) -> bool:
        return any(source is not None for source in self.node.inputs[self._slices[name]])


_REGISTRY: dict[str, OpDef] = {}


class UsersOperators(Protocol):
    """Operators that stand beside the built-in ones for a while: an :class:`ge.ops.operator_set.OperatorSet`."""

    def find(self, type: str) -> OpDef | None: ...
    def types(self) -> list[str]: ...
    def add(self, definition: OpDef) -> OpDef: ...


_users: ContextVar[UsersOperators | None] = ContextVar("users_operators", default=None)


@contextmanager
def users_operators(operators: UsersOperators) -> Iterator[None]:
    """Look operators that are not built in up in ``operators`` inside the block, and declare new ones there."""
    token = _users.set(operators)
    try:
        yield
    finally:
        _users.reset(token)


def current_users_operators() -> UsersOperators | None:
    """Return the operators that stand beside the built-in ones now."""
    return _users.get()


def is_built_in(type: str) -> bool:
    """Tell whether an operator type belongs to the program itself."""
    return type in _REGISTRY


def register(definition: OpDef) -> OpDef:
    """Add a definition: to the built-in ones, or to those of a user where :func:`users_operators` says so.

    A second built-in one of the same type is a programming error.
    """
    users = _users.get()
    if users is not None:
        return users.add(definition)
    if definition.type in _REGISTRY:
        raise ValueError(f"operator {definition.type} is defined twice")
    if definition.onnx is not None:
        raise ValueError(f"operator {definition.type}: what ONNX calls a built-in operator stands in parsers/onnx")
    _REGISTRY[definition.type] = definition
    return definition


def operator(signature: str, *, infer: InferFunction, **flags: Any) -> Callable[[ComputeFunction], ComputeFunction]:
    """Define an operator by decorating its numpy meaning; see the module docstring. Flags are those of OpDef."""

    def decorate(compute: ComputeFunction) -> ComputeFunction:
        register(OpDef(parse_signature(signature), infer, compute, **flags))
        return compute

    return decorate


def lookup(type: str) -> OpDef | None:
    """Return the definition of an operator type, or ``None``."""
    found = _REGISTRY.get(type)
    if found is None:
        users = _users.get()
        return None if users is None else users.find(type)
    return found


def definition(node: Node) -> OpDef:
    """Return the definition of a node's type. Raises E10501 for an unregistered type."""
    found = lookup(node.type)
    if found is None:
        raise ReportedError("E10501", opname=node.name, optype=node.type)
    return found


def registered_types() -> list[str]:
    """Return all operator types, sorted, those of users too where they are known."""
    users = _users.get()
    return sorted([*_REGISTRY, *([] if users is None else users.types())])


def const_value(node: Node, slot: int) -> KnownValue | None:
    """Return the value behind an input slot if its producer is a Const (the default ``value_of``)."""
    source = node.input(slot)
    if source is None or source.node.type != "Const":
        return None
    value = source.node.attrs.get("value")
    return KnownValue(origin_array(value.array, source.desc)) if isinstance(value, Tensor) else None


def _known_or_const(known: Mapping[NodeOut, KnownValue]) -> ValueOf:
    def value_of(node: Node, slot: int) -> KnownValue | None:
        source = node.input(slot)
        return known[source] if source is not None and source in known else const_value(node, slot)

    return value_of


def infer_node(
    node: Node,
    value_of: ValueOf = const_value,
    new_value_of: NewValueOf | None = None,
    loops: Loops | None = None,
) -> bool:
    """Infer and set the output descriptors of ``node``; return whether any changed.

    Works in the origin view: sets origin shape and type, and the storage shape that follows from them and the format
    of the output. Call nodes infer their bodies too, with values from ``new_value_of`` (by default: those of Const
    nodes only); they hand ``loops`` on.
    """
    found = definition(node)
    context = InferContext(node, found, value_of, new_value_of, loops)
    for spec in found.signature.attrs.values():
        if spec.is_required and node.attrs.get(spec.name) is None:
            raise context.fail(f"attribute {spec.name} is missing", value=spec.name)
    try:
        results = found.infer(context)
    except Misfit as fault:
        raise context.fail(fault) from fault
    changed = False
    for index, (desc, (dims, dtype)) in enumerate(zip(node.output_descs, results, strict=False)):
        shape = named_dims(node, index, Shape(dims))
        reason = shape_fault(shape)
        if reason:
            raise context.fail(f"output {index} would have the shape {shape}, but {reason}")
        before = desc.layout
        changed |= desc.origin_shape != shape
        desc.origin_shape, desc.data_type = shape, dtype
        try:
            desc.shape = stored_shape(desc)
        except LayoutError as fault:
            raise context.fail(f"output {index} cannot lie in memory as it is said to: {fault}") from fault
        changed |= desc.layout != before
    for index in range(len(node.output_descs)):
        for reader in node.consumers(index):
            reader.node.take_desc(reader.index)
    return changed


def named_dims(node: Node, index: int, shape: Shape) -> Shape:
    """Name the unknown dims of an output that have no name yet. Names given inside a body mean nothing outside."""
    if -1 not in shape:
        return shape
    is_foreign = bool(node.subgraphs)
    given = {dim.name for s in node.inputs if s is not None for dim in s.desc.origin_shape if isinstance(dim, OpenDim)}
    return Shape(
        OpenDim(f"{node.name}:{index}.{axis}")
        if dim == -1 and (not isinstance(dim, OpenDim) or (is_foreign and dim.name not in given))
        else dim
        for axis, dim in enumerate(shape)
    )
