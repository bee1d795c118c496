"""Operators of users: sets of definitions that one compile or one inference session sees, and nobody else.

A set is filled while files are executed (:meth:`OperatorSet.declaring`) and looked into where :func:`using` says so. It
stands beside the built-in operators and never in front of them.

What users write is not trusted to be right: results of their functions are checked, and whatever a function raises is
reported with its file and line.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ge.errors import ReportedError
from ge.graph.attributes import conform
from ge.graph.tensor_desc import OpenDim, Shape
from ge.graph.types import NARROW_FLOATS, DataType, has_numpy_dtype, numpy_dtype
from ge.ops.onnx_form import OnnxForm, onnx_forms
from ge.ops.registry import (
    READS,
    Array,
    Attributes,
    ComputeFunction,
    InferContext,
    InferFunction,
    Misfit,
    OpDef,
    OutputSpec,
    current_users_operators,
    is_built_in,
    users_operators,
)
from ge.ops.signature import Arity, Signature
from ge.plugin_files import located
from ge.tensor_memory import MAX_RANK, shape_fault

CUSTOM_PLUGIN = "custom"
"""The module of ``ge.es`` that offers operators of users."""

_ALIASES = frozenset({"Constant"})
"""Types that readers take for built-in ones."""


class DeclarationFault(ValueError):
    """An operator that cannot be declared."""

    def __init__(self, optype: str, reason: str) -> None:
        super().__init__(reason)
        self.optype = optype


class FileFault(Misfit):
    """A function of a user's file that is wrong, whatever the node."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(reason, f"Correct the operator's file {file}.")


class OperatorSet:
    """Operators of users by type, and the files that declare them."""

    def __init__(self) -> None:
        self._definitions: dict[str, OpDef] = {}
        self._files: dict[str, Path] = {}
        self._forms: dict[tuple[str, str], tuple[OpDef, OnnxForm]] = {}
        self._declaring: Path | None = None

    def __len__(self) -> int:
        return len(self._definitions)

    def find(self, type: str) -> OpDef | None:
        """Return a definition, or ``None``."""
        return self._definitions.get(type)

    def types(self) -> list[str]:
        """Return the operator types in the order of their declaration."""
        return list(self._definitions)

    def file_of(self, type: str) -> Path:
        """Return the file that declares an operator of the set."""
        return self._files[type]

    def find_onnx(self, domain: str, type: str) -> tuple[OpDef, OnnxForm] | None:
        """Return the operator that stands for one of ONNX (``domain`` is empty for ONNX's own), and how it does."""
        return self._forms.get((domain, type))

    def onnx_operators(self) -> list[tuple[OpDef, OnnxForm]]:
        """Return all operators of ONNX that the set stands for, in the order of their declaration."""
        return list(self._forms.values())

    @contextmanager
    def declaring(self, file: Path) -> Iterator[None]:
        """Let the operators that are defined in the block become those of the set; ``file`` defines them."""
        self._declaring = file
        try:
            with using(self):
                yield
        finally:
            self._declaring = None

    def add(self, definition: OpDef) -> OpDef:
        """Take an operator over and return it as it is in the set. Raises :class:`DeclarationFault`."""
        file = self._declaring
        if file is None:
            raise DeclarationFault(definition.type, f"operator {definition.type} is declared outside of custom_ops")
        self._check_type(definition.type)
        _check_signature(definition.signature)
        if definition.value_infer is not None or definition.plugin not in ("", CUSTOM_PLUGIN):
            raise DeclarationFault(definition.type, "a custom operator takes no value_infer and no plugin")
        try:
            forms = onnx_forms(definition.onnx)
        except (TypeError, ValueError) as fault:
            raise DeclarationFault(definition.type, str(fault)) from fault
        for form in forms:
            self._check_form(definition, form)
        _check_functions(definition)
        added = _guarded(definition, file)
        self._definitions[added.type] = added
        self._files[added.type] = file
        self._forms.update({(form.domain, form.type): (added, form) for form in forms})
        return added

    def _check_type(self, type: str) -> None:
        if not type.isidentifier():
            raise DeclarationFault(type, f"{type} is no name")
        if is_built_in(type) or type in _ALIASES:
            raise DeclarationFault(type, f"there is a built-in operator {type}, which cannot be replaced")
        if type in self._definitions:
            raise DeclarationFault(type, f"operator {type} is declared in {self._files[type]} already")

    def _check_form(self, definition: OpDef, form: OnnxForm) -> None:
        taken = self._forms.get((form.domain, form.type))
        if taken is not None:
            other = taken[0].type
            raise DeclarationFault(
                definition.type, f"{form} stands for {other}, which is declared in {self._files[other]}, already"
            )
        unknown = [name for name in form.attributes.values() if name not in definition.signature.attrs]
        if unknown:
            raise DeclarationFault(definition.type, f"{form} is to set {unknown[0]}, which is no attribute")


@contextmanager
def using(operators: OperatorSet) -> Iterator[OperatorSet]:
    """Let the operators of the set be known in the block, in place of those of an outer one."""
    with users_operators(operators):
        yield operators


def current_operators() -> OperatorSet:
    """Return the set that is in use; an empty one where none is."""
    found = current_users_operators()
    return found if isinstance(found, OperatorSet) else OperatorSet()


# -- what may be declared ----------------------------------------------------------------------------------------------
def _check_signature(signature: Signature) -> None:
    def fault(reason: str) -> DeclarationFault:
        return DeclarationFault(signature.type, reason)

    if signature.subgraphs:
        raise fault("a custom operator cannot call graphs")
    if not signature.outputs or any(port.arity is Arity.OPTIONAL for port in signature.outputs):
        raise fault("an operator has one output or more, none of them optional")
    for what, ports in (("input", signature.inputs), ("output", signature.outputs)):
        names = [port.name for port in ports]
        bad = next((n for n in names if not n.isidentifier() or names.count(n) > 1), None)
        if bad is not None:
            raise fault(f"{what} {bad!r} needs a name of its own")
        arities = [port.arity for port in ports]
        if arities.count(Arity.DYNAMIC) > 1:
            raise fault(f"only one {what} can be dynamic")
        if Arity.DYNAMIC in arities and Arity.OPTIONAL in arities[arities.index(Arity.DYNAMIC) :]:
            raise fault(f"an optional {what} cannot stand behind a dynamic one: which one is meant could not be told")
    for name, spec in signature.attrs.items():
        if not name.isidentifier() or name.startswith("_") or hasattr(Attributes, name) or name in _TAKEN:
            raise fault(f"an attribute cannot be called {name}")
        if spec.default is not None:
            try:
                conform(spec, spec.default, signature.type)
            except TypeError as mismatch:
                raise fault(str(mismatch)) from mismatch


def _check_functions(definition: OpDef) -> None:
    """Refuse functions that could never be called as they will be."""
    names = [port.name for port in definition.signature.inputs]
    computed_with = ", ".join(["op", *names])
    for what, function, arguments in (
        ("computation", definition.compute, computed_with),
        ("inference", definition.infer, "ctx"),
    ):
        reason = _calling_fault(function, arguments.count(",") + 1)
        if reason:
            raise DeclarationFault(definition.type, f"its {what} must be a function of ({arguments}): {reason}")
    _check_rule(definition)


def _calling_fault(function: object, n_arguments: int) -> str:
    """Return why ``function`` gives no result for so many arguments; empty if it may."""
    if isinstance(function, type):
        return f"{function.__name__} is a class"
    if not callable(function):
        return f"{function!r} is no function"
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return "it yields or awaits"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions of C modules need not say what they take
        return ""
    try:
        signature.bind(*range(n_arguments))
    except TypeError as fault:
        return f"it takes {signature}, {fault}"
    return ""


def _check_rule(definition: OpDef) -> None:
    """Check what a rule of :mod:`ge.ops.inference` says of itself."""
    reads = getattr(definition.infer, READS, None)
    if not isinstance(reads, tuple):
        if getattr(definition.infer, "__module__", "") == "ge.ops.inference":
            name = getattr(definition.infer, "__name__", "it")
            raise DeclarationFault(
                definition.type, f"infer={name} is no rule; {name}(...) with names of inputs may be one"
            )
        return
    names = [port.name for port in definition.signature.inputs]
    unknown = next((name for name in reads if name not in names), None)
    if unknown is not None:
        raise DeclarationFault(definition.type, f"its inference reads {unknown!r}; its inputs are {', '.join(names)}")
    if not reads:
        raise DeclarationFault(definition.type, "its inference names no input")
    outputs = definition.signature.outputs
    if len(outputs) != 1 or outputs[0].arity is Arity.DYNAMIC:
        made = ", ".join(port.name + ("*" if port.arity is Arity.DYNAMIC else "") for port in outputs)
        raise DeclarationFault(definition.type, f"its inference describes one output, its outputs are {made}")


_TAKEN = frozenset({"n_outputs", "output_types"})


# -- functions of users ------------------------------------------------------------------------------------------------
def _guarded(definition: OpDef, file: Path) -> OpDef:
    """Return the definition with checks around its functions."""
    compute = None if definition.compute is None else _guarded_compute(definition.compute, file)
    return OpDef(
        definition.signature,
        _guarded_infer(definition.infer, file),
        compute,
        exact_types=definition.exact_types,
        is_stateful=definition.is_stateful,
        plugin=CUSTOM_PLUGIN,
        onnx=definition.onnx,
        file=str(file),
    )


def _called(function: Callable[..., Any], file: Path, *arguments: Any) -> Any:
    """Call a function of a user; what it raises becomes a :class:`Misfit` that says where."""
    try:
        return function(*arguments)
    except (ReportedError, Misfit, MemoryError):
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        raise FileFault(file, f"{file}, {located(fault, file)}") from fault


def _guarded_infer(infer: InferFunction, file: Path) -> InferFunction:
    def inferred(ctx: InferContext) -> Sequence[OutputSpec]:
        results = _called(infer, file, ctx)
        if not isinstance(results, list | tuple):
            raise FileFault(
                file, f"its inference ({file}) returns {results!r}, not a list of a shape and a type per output"
            )
        if len(results) != ctx.n_outputs:
            raise FileFault(
                file, f"its inference ({file}) describes {len(results)} outputs, the node has {ctx.n_outputs}"
            )
        return [_checked_spec(index, spec, file) for index, spec in enumerate(results)]

    return inferred


def _checked_spec(index: int, spec: object, file: Path) -> OutputSpec:
    where = f"its inference ({file}) describes output {index}"
    if not isinstance(spec, list | tuple) or len(spec) != 2:
        raise FileFault(file, f"{where} as {spec!r}, not as a shape and a type")
    dims, dtype = spec
    if not isinstance(dtype, DataType) or not has_numpy_dtype(dtype):
        raise FileFault(file, f"{where} with the type {dtype!r}, which is no DataType that tensors have here")
    try:
        shape = [dim if isinstance(dim, OpenDim) else operator.index(dim) for dim in dims]
    except TypeError:
        raise FileFault(file, f"{where} with the shape {dims!r}, which is no list of numbers") from None
    if shape != [-2] and (len(shape) > MAX_RANK or any(not -1 <= dim < 1 << 63 for dim in shape)):
        raise FileFault(
            file,
            f"{where} with the shape {shape}; a dim is -1 where it is not known (look before computing with one), and "
            "[-2] stands for an unknown rank",
        )
    too_large = shape_fault(Shape(shape))
    if too_large:
        raise FileFault(file, f"{where} with the shape {shape}, but {too_large}")
    return shape, dtype


def _guarded_compute(compute: ComputeFunction, file: Path) -> ComputeFunction:
    def computed(op: Attributes, *arguments: Any) -> tuple[Array, ...]:
        found = _called(compute, file, op, *[_read_only(argument) for argument in arguments])
        results = tuple(found) if isinstance(found, tuple | list) else (found,)
        if len(results) != op.n_outputs:
            raise FileFault(
                file, f"its computation ({file}) returns {len(results)} results, the node has {op.n_outputs}"
            )
        return tuple(_called(_as_tensor, file, *pair) for pair in zip(results, op.output_types, strict=True))

    return computed


def _read_only(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_read_only(item) for item in argument]
    if not isinstance(argument, np.ndarray):
        return argument
    view = argument.view()
    view.flags.writeable = False
    return view


def _as_tensor(result: Any, dtype: DataType) -> Array:
    array = np.asarray(result)
    if array.dtype == object and dtype is not DataType.DT_STRING:
        raise TypeError(f"the computation returns {type(result).__name__}, which is no array of numbers")
    if has_numpy_dtype(dtype) and _loses_its_kind(array.dtype, dtype):
        raise TypeError(
            f"the computation returns {array.dtype} for an output of {dtype.name}: it must round or cut itself"
        )
    return array.view()


_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _loses_its_kind(made: np.dtype[Any], declared: DataType) -> bool:
    """Tell whether a conversion would make another kind of number: of a fraction a whole number, for one."""
    target = np.dtype(np.float32) if declared in NARROW_FLOATS else numpy_dtype(declared)
    if made.kind not in _KINDS or target.kind not in _KINDS:
        return False
    return _KINDS[made.kind] > _KINDS[target.kind]
