"""Plugin modules: what ``from ge.es.<plugin> import <Operator>`` finds.

CANN spreads its operator functions over packages by family; which package holds an operator differs between versions,
so ``all``, ``math`` and ``nn`` all offer every operator here. ``custom`` offers those whose definition says
``plugin="custom"``, as operators of users do, and which ``math`` and ``nn`` leave out. Functions are made when they are
first asked for; which operators of users there are depends on the compile that asks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from ge.ops import lookup, registered_types
from ge.ops.fused import FUSED_TYPES
from ge.ops.registry import OpDef

PLUGINS = ("all", "custom", "math", "nn")

BOUNDARY_TYPES = frozenset({"Data", "RefData", "AippData", "AnyData", "Variable", "NetOutput", *FUSED_TYPES})
"""Made by a GraphBuilder's own methods only."""


def list_plugins() -> list[str]:
    """Return the names of the plugin modules."""
    return list(PLUGINS)


def get_plugin(plugin_name: str) -> ModuleType | None:
    """Return the plugin module of that name; ``None`` when there is none."""
    return importlib.import_module(f"ge.es.{plugin_name}") if plugin_name in PLUGINS else None


def offered(plugin: str) -> list[str]:
    """Return the operator types that a plugin offers now, sorted."""
    return [type_ for type_ in registered_types() if _offers(plugin, lookup(type_))]


def function(plugin: str, type: str) -> Callable[..., Any]:
    """Return the function of an operator. Raises ``AttributeError`` when the plugin does not offer it."""
    definition = lookup(type)
    if definition is None or not _offers(plugin, definition):
        raise AttributeError(f"module ge.es.{plugin} has no operator {type}")
    return _function_of(definition)


def _offers(plugin: str, definition: OpDef | None) -> bool:
    if definition is None or definition.type in BOUNDARY_TYPES:
        return False
    is_custom = definition.plugin == "custom"
    return plugin == "all" or is_custom == (plugin == "custom")


_functions: WeakKeyDictionary[OpDef, Callable[..., Any]] = WeakKeyDictionary()
"""Functions by definition: those of operators of users go when the operators do."""


def _function_of(definition: OpDef) -> Callable[..., Any]:
    found = _functions.get(definition)
    if found is None:
        from ge.es.op_function import make_function  # numpy and builder parts are not needed to list plugins

        found = _functions[definition] = make_function(definition)
    return found


def attribute(plugin: str, name: str) -> Any:
    """Answer a plugin module's ``__getattr__``."""
    if name == "__all__":
        return offered(plugin)
    return function(plugin, name)
