"""Which passes there are: registration by decorator, and registries that keep the passes of a compile apart.

Classes register with the registry that is current. That is the one of the process, unless pass files are being loaded
for a compile: :func:`registering_in` makes its registry the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from ge.passes.base import DecomposePass, FusionBasePass, PassStage, PatternFusionPass

PATTERN_FUSION, FUSION_BASE, DECOMPOSE = "pattern_fusion", "fusion_base", "decompose"

PassClass = TypeVar("PassClass", bound=type[FusionBasePass])


class RegistrationFault(Exception):
    """A pass that cannot be registered. It is also a ``TypeError`` or a ``ValueError``."""

    def __init__(self, pass_name: str, reason: str) -> None:
        super().__init__(reason)
        self.pass_name = pass_name


class RegistrationTypeError(RegistrationFault, TypeError):
    """An argument of another type."""


class RegistrationValueError(RegistrationFault, ValueError):
    """An argument that does not do."""


@dataclass(frozen=True)
class PassDescriptor:
    """One registered pass."""

    descriptor_key: str
    pass_name: str
    module_name: str
    class_name: str
    stage: PassStage
    kind: str
    cls: type[FusionBasePass]
    op_types: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields without the class, with the stage as text."""
        return {
            "descriptor_key": self.descriptor_key,
            "pass_name": self.pass_name,
            "module_name": self.module_name,
            "class_name": self.class_name,
            "stage": self.stage.value,
            "kind": self.kind,
            "op_types": None if self.op_types is None else list(self.op_types),
        }


class PassRegistry:
    """A set of passes with different names, in the order of their registration."""

    def __init__(self) -> None:
        self._by_key: dict[str, PassDescriptor] = {}

    def __iter__(self) -> Iterator[PassDescriptor]:
        return iter(list(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, descriptor: PassDescriptor) -> None:
        """Add a pass. Raises ``ValueError`` when its name or its class is taken."""
        if self.by_name(descriptor.pass_name) is not None:
            reason = f"python pass name already exists: {descriptor.pass_name}"
            raise RegistrationValueError(descriptor.pass_name, reason)
        if descriptor.descriptor_key in self._by_key:
            reason = f"python pass descriptor_key already exists: {descriptor.descriptor_key}"
            raise RegistrationValueError(descriptor.pass_name, reason)
        self._by_key[descriptor.descriptor_key] = descriptor

    def add_class(self, cls: type[FusionBasePass]) -> None:
        """Add a class that was registered before. Raises ``TypeError`` unless it was."""
        descriptor = getattr(cls, "__ge_pass_descriptor__", None)
        if not isinstance(descriptor, PassDescriptor) or descriptor.cls is not cls:
            name = getattr(cls, "__name__", repr(cls))
            reason = f"{name} is no registered pass: decorate the class with register_fusion_pass"
            raise RegistrationTypeError(name, reason)
        self.add(descriptor)

    def by_key(self, descriptor_key: str) -> PassDescriptor | None:
        """Return the pass with that key, or ``None``."""
        return self._by_key.get(descriptor_key)

    def by_name(self, name: str) -> PassDescriptor | None:
        """Return the pass of that name, or ``None``."""
        return next((d for d in self._by_key.values() if d.pass_name == name), None)

    def of_stage(self, stage: PassStage) -> list[PassDescriptor]:
        """Return the passes of a stage in the order in which they run: by name."""
        return sorted((d for d in self._by_key.values() if d.stage is stage), key=lambda d: d.pass_name)

    def clear(self) -> None:
        """Forget all passes."""
        self._by_key.clear()


_process_registry = PassRegistry()
_current: ContextVar[PassRegistry] = ContextVar("pass_registry", default=_process_registry)


def current_registry() -> PassRegistry:
    """Return the registry with which classes register now."""
    return _current.get()


@contextmanager
def registering_in(registry: PassRegistry) -> Iterator[None]:
    """Let classes that are defined in the block register with ``registry``."""
    token = _current.set(registry)
    try:
        yield
    finally:
        _current.reset(token)


def register_fusion_pass(*, name: str, stage: PassStage, kind: str | None = None) -> Callable[[PassClass], PassClass]:
    """Register a :class:`PatternFusionPass` or a :class:`FusionBasePass` under ``name``.

    ``kind`` ("pattern_fusion", "fusion_base") follows from the class. Raises ``ValueError`` for a name that is taken,
    ``TypeError`` for other classes and arguments of other types.
    """
    place = _checked_stage(name, stage)

    def decorate(cls: PassClass) -> PassClass:
        _check_class(name, cls, FusionBasePass)
        if issubclass(cls, DecomposePass):
            raise RegistrationTypeError(name, f"{cls.__name__} is a DecomposePass: use register_decompose_pass")
        found = PATTERN_FUSION if issubclass(cls, PatternFusionPass) else FUSION_BASE
        if kind is not None and kind != found:
            raise RegistrationValueError(name, f"kind of {cls.__name__} is {found!r}, not {kind!r}")
        return _register(name, place, found, cls, None)

    return decorate


def register_decompose_pass(
    *, name: str, stage: PassStage, op_types: Iterable[str]
) -> Callable[[PassClass], PassClass]:
    """Register a :class:`DecomposePass` under ``name`` for nodes of the types ``op_types``.

    Raises ``ValueError`` for a name that is taken and for no types at all, ``TypeError`` for other classes and
    arguments of other types.
    """
    place = _checked_stage(name, stage)
    types = _checked_types(name, op_types)

    def decorate(cls: PassClass) -> PassClass:
        _check_class(name, cls, DecomposePass)
        cls.op_types = list(types)  # type: ignore[attr-defined]  # it is a DecomposePass
        return _register(name, place, DECOMPOSE, cls, types)

    return decorate


def _register(name: str, stage: PassStage, kind: str, cls: PassClass, types: tuple[str, ...] | None) -> PassClass:
    key = f"{cls.__module__}:{cls.__qualname__}:{name}"
    descriptor = PassDescriptor(key, name, cls.__module__, cls.__qualname__, stage, kind, cls, types)
    _current.get().add(descriptor)
    cls.__ge_pass_descriptor__ = descriptor  # type: ignore[attr-defined]
    return cls


def _checked_stage(name: object, stage: object) -> PassStage:
    if not isinstance(name, str):
        raise RegistrationTypeError(repr(name), f"name must be a str, not {type(name).__name__}")
    if not name.strip():
        raise RegistrationValueError(repr(name), "name must not be empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise RegistrationValueError(repr(name), "name must be text that a file can hold") from None
    if not isinstance(stage, str):
        raise RegistrationTypeError(name, f"stage must be a PassStage, not {type(stage).__name__}")
    try:
        return PassStage(stage)
    except ValueError:
        known = ", ".join(known.value for known in PassStage)
        raise RegistrationValueError(name, f"stage must be one of {known}, not {stage!r}") from None


def _checked_types(name: str, op_types: object) -> tuple[str, ...]:
    if isinstance(op_types, str | bytes) or not isinstance(op_types, Iterable):
        raise RegistrationTypeError(name, f"op_types must be a list of str, not {type(op_types).__name__}")
    types = tuple(op_types)
    bad = next((t for t in types if not isinstance(t, str) or not t), None)
    if bad is not None:
        raise RegistrationTypeError(name, f"op_types must hold names of operator types, not {bad!r}")
    if not types:
        raise RegistrationValueError(name, "op_types must not be empty")
    return types


def _check_class(name: str, cls: object, base: type) -> None:
    if not isinstance(cls, type) or not issubclass(cls, base):
        found = cls.__name__ if isinstance(cls, type) else type(cls).__name__
        raise RegistrationTypeError(name, f"{found} is not a subclass of {base.__name__}")


def get_registered_passes() -> list[PassDescriptor]:
    """Return the registered passes in the order of their registration."""
    return list(_current.get())


def get_registered_pass_dicts() -> list[dict[str, Any]]:
    """Return the registered passes as dictionaries, without their classes."""
    return [descriptor.as_dict() for descriptor in _current.get()]


def get_registered_pass_by_descriptor_key(descriptor_key: str) -> PassDescriptor | None:
    """Return the pass with that key (``module:class:name``), or ``None``."""
    return _current.get().by_key(descriptor_key)


def clear_registered_passes() -> None:
    """Forget all registered passes."""
    _current.get().clear()
