"""The classes that passes are made from, and what is checked when such a class comes to be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from ge.es.graph_builder import GraphBuilder
from ge.es.tensor_holder import TensorHolder
from ge.graph.graph import Graph
from ge.passes.context import PassContext
from ge.passes.pattern import PATTERN_MARK, Pattern, PatternInputs, PatternMatcherConfig, ensure_pattern

if TYPE_CHECKING:
    from ge.graph.node import Node
    from ge.passes.match_result import MatchResult

__all__ = ["DecomposePass", "FusionBasePass", "PassContext", "PassStage", "PatternFusionPass"]

HOOK_PARAMETERS = "__ge_hook_parameters__"
"""Attribute of a hook that was wrapped: how many arguments it takes, ``self`` included."""

Hook = Callable[..., Any]


class PassStage(str, Enum):  # noqa: UP042 - CANN's: its text is PassStage.<NAME>
    """Where in a compile custom passes run."""

    BEFORE_INFER_SHAPE = "BeforeInferShape"
    AFTER_INFER_SHAPE = "AfterInferShape"
    AFTER_BUILTIN_FUSION_PASS = "AfterBuiltinFusionPass"
    AFTER_ORIGIN_GRAPH_OPTIMIZE = "AfterOriginGraphOptimize"


class FusionBasePass:
    """A pass that does with the whole graph what it likes."""

    def run(self, graph: Graph, context: PassContext) -> bool | int | None:
        """Change the graph. ``None``, ``True`` and 0 say that all went well; everything else fails the compile."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")


class PatternFusionPass(FusionBasePass):
    """A pass that replaces every place where a pattern is found.

    Patterns are methods marked with ``@pattern``, which take ``inputs`` and return a tensor or several (the outputs of
    one pattern), or all together the result of ``patterns()``. ``meet_requirements(match_result)`` decides per match.
    ``replacement(inputs)``, ``replacement(inputs, match_result)`` return tensors, ``replacement(match_result)`` a
    graph. Every hook may take the context as a further last argument.
    """

    infers_replacement: ClassVar[bool] = False
    """Whether the compiler infers replacements (ours; custom passes call ``infer_shape``)."""

    def __init__(self, matcher_config: PatternMatcherConfig | None = None) -> None:
        self._matcher_config = matcher_config

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_hooks(cls, "PatternFusionPass", "patterns() and replacement()")
        methods = [m for m in cls.__dict__.values() if callable(m) and getattr(m, PATTERN_MARK, False)]
        for method in methods:
            if _count(method) != 2 or _needs_keywords(method):
                raise TypeError(f"{cls.__name__}.{method.__name__}: @pattern methods only support method(self, inputs)")
        if methods and "patterns" in cls.__dict__:
            raise TypeError(
                f"{cls.__name__} cannot combine @pattern methods with patterns(): declare the patterns in one style"
            )
        if methods:
            cls.patterns = _patterns_of(methods)  # type: ignore[method-assign]
        replacement = cls.__dict__.get("replacement")
        if replacement is not None and _is_expression(replacement):
            cls.replacement = _as_graph_hook(cls.__name__, replacement)  # type: ignore[method-assign]

    @property
    def matcher_config(self) -> PatternMatcherConfig | None:
        """How strictly patterns are matched; ``None``: neither constants nor attributes are compared."""
        return self._matcher_config

    def patterns(self) -> Iterable[Pattern | Graph] | None:
        """Return the patterns. Each is matched in turn until it is found no more."""
        raise NotImplementedError(f"{type(self).__name__} has no patterns")

    def patterns_for(self, graph: Graph) -> Iterable[Pattern | Graph] | None:
        """Return the patterns that are looked for in one graph (ours: built-in fusions leave out what cannot occur)."""
        return self.patterns()

    def meet_requirements(self, match_result: MatchResult) -> bool:
        """Tell whether a match is to be replaced."""
        return True

    def replacement(self, match_result: MatchResult) -> Graph:
        """Return the graph that takes the place of a match: an input per placeholder, an output per output."""
        raise NotImplementedError(f"{type(self).__name__} does not define replacement()")


class DecomposePass(FusionBasePass):
    """A pass that replaces single nodes of the types in ``op_types``, which the registration sets."""

    op_types: ClassVar[list[str] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_hooks(cls, "DecomposePass", "meet_requirements() and replacement()")

    def meet_requirements(self, node: Node) -> bool:
        """Tell whether a node is to be replaced."""
        return True

    def replacement(self, node: Node) -> Graph:
        """Return the graph that takes the place of ``node``: an input per connected tensor, an output per output."""
        raise NotImplementedError(f"{type(self).__name__} does not define replacement()")


# -- hooks ---------------------------------------------------------------------------------------------------------
def _parameters(method: Hook) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


def _positional(method: Hook) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in _parameters(method) if p.kind in kinds]


def _count(method: Hook) -> int:
    return len(_positional(method))


def _needs_keywords(method: Hook) -> bool:
    return any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in _parameters(method))


def _check_hooks(cls: type, base: str, instead: str) -> None:
    if "run" in cls.__dict__:
        raise TypeError(
            f"{cls.__name__} overrides run(), which is never called for a {base}: implement {instead} instead"
        )
    for name in ("meet_requirements", "replacement"):
        hook = cls.__dict__.get(name)
        if hook is None or (name == "replacement" and base == "PatternFusionPass" and _is_expression(hook)):
            continue
        if not 2 <= _count(hook) <= 3 or _needs_keywords(hook):
            subject = "node" if base == "DecomposePass" else "match_result"
            raise TypeError(
                f"{cls.__name__}.{name}{inspect.signature(hook)} cannot be called: "
                f"it must be {name}(self, {subject}) or {name}(self, {subject}, context)"
            )


def bind_hook(method: Hook) -> Callable[[Any, PassContext], Any]:
    """Return a bound hook as a function of its subject and the context, whether or not it asks for the context."""
    function = getattr(method, "__func__", method)
    wanted = getattr(function, HOOK_PARAMETERS, None)
    if wanted is None:
        wanted = _count(method) + 1
    if wanted >= 3:
        return method
    return lambda subject, context: method(subject)


# -- expressions ---------------------------------------------------------------------------------------------------
def _is_expression(replacement: Hook) -> bool:
    positional = _positional(replacement)
    return len(positional) >= 2 and positional[1].name == "inputs"


def _patterns_of(methods: list[Hook]) -> Hook:
    def patterns(self: PatternFusionPass) -> list[Pattern]:
        return [_pattern_of(self, method) for method in methods]

    return patterns


def _pattern_of(owner: PatternFusionPass, method: Hook) -> Pattern:
    builder = GraphBuilder(f"{type(owner).__name__}_{method.__name__}_pattern")
    inputs = PatternInputs(builder)
    result = method(owner, inputs)
    if isinstance(result, Pattern | Graph):
        return ensure_pattern(result)
    if isinstance(result, list | tuple) and result and all(isinstance(item, Pattern | Graph) for item in result):
        raise TypeError(
            f"@pattern method {method.__name__} supports a single pattern only: "
            "write a method for each of several patterns, or patterns(self)"
        )
    outputs = _tensors(result, f"@pattern method {method.__name__}")
    found = Pattern(builder.build_and_reset(outputs))
    for tensor in (*inputs.created(), *outputs):
        found.capture_tensor(tensor)
    return found


def _as_graph_hook(owner: str, method: Hook) -> Hook:
    """Return a hook ``(self, match_result, context)`` for a replacement that is written as an expression."""
    parameters = _positional(method)
    if len(parameters) > 4 or _needs_keywords(method):
        raise TypeError(
            f"{owner}.replacement{inspect.signature(method)} cannot be called: it must be replacement(self, inputs), "
            "replacement(self, inputs, match_result), replacement(self, inputs, context) or "
            "replacement(self, inputs, match_result, context)"
        )
    if len(parameters) == 4 and parameters[3].name != "context":
        raise TypeError(
            f"{owner}.replacement with four arguments must be replacement(self, inputs, match_result, context)"
        )
    takes_context_only = len(parameters) == 3 and parameters[2].name == "context"

    @wraps(method)
    def replacement(self: PatternFusionPass, match_result: MatchResult, context: PassContext | None = None) -> Graph:
        builder = GraphBuilder(f"{type(self).__name__}_replacement")
        further = (context,) if takes_context_only else (match_result, context)[: len(parameters) - 2]
        result = method(self, PatternInputs(builder), *further)
        if isinstance(result, Graph):
            return result
        return builder.build_and_reset(_tensors(result, "replacement"))

    setattr(replacement, HOOK_PARAMETERS, 3)
    return replacement


def _tensors(result: object, what: str) -> list[TensorHolder]:
    found = list(result) if isinstance(result, list | tuple) else [result]
    tensors = [item for item in found if isinstance(item, TensorHolder)]
    if not found or len(tensors) != len(found):
        shown = type(result).__name__ if result != found else f"{type(result).__name__} {result!r}"
        raise TypeError(f"{what} must return a TensorHolder or a non-empty list or tuple of them, not {shown}")
    return tensors
