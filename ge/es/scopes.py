"""What applies to every node that is made in a ``with`` block: attributes and control dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ge.es.tensor_holder import TensorHolder

current_attrs: ContextVar[Mapping[str, Any]] = ContextVar("current_attrs", default={})  # noqa: B039, never changed
current_dependencies: ContextVar[tuple[TensorHolder, ...]] = ContextVar("current_dependencies", default=())


@contextmanager
def attr_scope(attr_maps: Mapping[str, Any]) -> Iterator[None]:
    """Set the attributes ``attr_maps`` on every node made in the block; an inner scope adds to the outer one."""
    if not isinstance(attr_maps, Mapping):
        raise TypeError(f"attr_maps must map names to values, not be {type(attr_maps).__name__}")
    token = current_attrs.set({**current_attrs.get(), **attr_maps})
    try:
        yield
    finally:
        current_attrs.reset(token)


@contextmanager
def control_dependency_scope(tensors: list[TensorHolder]) -> Iterator[None]:
    """Let every node made in the block run after the nodes of ``tensors``; an inner scope adds to the outer one."""
    if not isinstance(tensors, list) or not all(isinstance(t, TensorHolder) for t in tensors):
        raise TypeError("tensors must be a list of TensorHolder")
    token = current_dependencies.set((*current_dependencies.get(), *tensors))
    try:
        yield
    finally:
        current_dependencies.reset(token)
