"""Running passes: one run of one pass over a model.

The three kinds of passes have a function each; :func:`run_pass` chooses. What goes wrong inside a pass is a
:class:`PassFailure`, which fails the compile; what GE only logs is a warning.
"""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from ge.errors import ReportedError
from ge.graph.graph import CycleError, Graph
from ge.graph.node import Node
from ge.passes import origins
from ge.passes.base import DecomposePass, FusionBasePass, PatternFusionPass, bind_hook
from ge.passes.boundary import Boundary
from ge.passes.context import PassContext
from ge.passes.match_result import MatchResult
from ge.passes.matcher import CompiledPattern, Match, Matcher, PatternFault
from ge.passes.node_index import NodeIndex, type_of
from ge.passes.pattern import Pattern, PatternMatcherConfig, ensure_pattern
from ge.passes.replacement import infer_shape
from ge.passes.rewriter import Replacement, ReplacementFault, rewrite
from ge.passes.topology import Topology
from ge.user_code import text_of

logger = logging.getLogger("atc")

NOT_CHANGED = frozenset({0x50100040, 0x50104040})
"""The two values with which GE says that a pass changed nothing."""

FAILED = "FAILED"

SHOWN_NEAR_MISSES = 20
"""Matches that fail because others read what lies inside: how many of one run are shown at info level."""


class PassFailure(Exception):
    """A pass that fails the compile. ``retcode`` is what GE would call its status."""

    def __init__(self, reason: str, retcode: str = FAILED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retcode = retcode


def run_pass(cls: type[FusionBasePass], root: Graph, context: PassContext) -> bool:
    """Run a fresh instance of a pass over a model; return whether it may have changed something.

    Raises :class:`PassFailure`.
    """
    instance = _called(cls, cls, what="the constructor", hook="__init__")
    if isinstance(instance, PatternFusionPass):
        return run_pattern_fusion(instance, root, context)
    if isinstance(instance, DecomposePass):
        return run_decompose(instance, root, context)
    return run_fusion_base(instance, root, context)


# -- whole graphs ------------------------------------------------------------------------------------------------------
def run_fusion_base(instance: FusionBasePass, root: Graph, context: PassContext) -> bool:
    """Call ``run``; ``None``, ``True``, 0 and GE's "not changed" are successes."""
    result = _called(type(instance), lambda: instance.run(root, context), what="run()", hook="run")
    if result is None or result is True:
        return True
    if result is False:
        raise PassFailure(_with_message("run() returned False", context))
    if not isinstance(result, int):
        raise PassFailure(f"python pass returned unsupported type: {type(result).__name__}")
    result = int.__int__(result)
    if result in NOT_CHANGED:
        return False
    if result:
        raise PassFailure(_with_message(f"run() returned the status {result}", context), str(result))
    return True


def _with_message(reason: str, context: PassContext) -> str:
    message = context.get_error_message()
    return f"{message} ({reason})" if message else reason


# -- patterns ----------------------------------------------------------------------------------------------------------
def run_pattern_fusion(instance: PatternFusionPass, root: Graph, context: PassContext) -> bool:
    """Replace all matches in the root graph, then in each body; patterns are asked for anew for each of them."""
    config = _called(type(instance), lambda: instance.matcher_config, what="matcher_config", hook="matcher_config")
    if config is not None and not isinstance(config, PatternMatcherConfig):
        raise PassFailure(f"matcher_config must be a PatternMatcherConfig or None, not {type(config).__name__}")
    run = _PatternRun(instance, context, _Cap.of(root))
    changed = False
    for graph in _graphs(root):
        patterns = run.patterns(graph, config)
        if patterns is None:
            return changed
        changed |= run.over(graph, patterns)
    run.tell_near_misses()
    return changed


def patterns_of(cls: type[PatternFusionPass]) -> list[Pattern]:
    """Return the patterns of a pass, for somebody who wants to look at them. Raises :class:`PassFailure`."""
    instance = _called(cls, cls, what="the constructor", hook="__init__")

    def asked() -> list[Pattern]:
        return [ensure_pattern(item) for item in instance.patterns() or ()]

    return list(_called(cls, asked, what="patterns()", hook="patterns"))


def _graphs(root: Graph) -> Iterable[Graph]:
    """Iterate over the root and the bodies that a node still calls when their turn comes."""
    yield root
    callers: dict[str, list[Node]] = {}
    for part in root.all_graphs():
        for node in part:
            for _, name in node.subgraphs:
                callers.setdefault(name, []).append(node)
    for body in list(root.subgraphs.values()):
        if any(_belongs_to(root, node) and _calls(node, body) for node in callers.get(body.name, ())):
            yield body
        elif any(_calls(node, body) for part in root.all_graphs() for node in part):
            yield body  # a rewrite gave it to another node


def _calls(node: Node, body: Graph) -> bool:
    return any(name == body.name for _, name in node.subgraphs)


def _belongs_to(root: Graph, node: Node) -> bool:
    return not node.is_removed and (node.graph is root or root.subgraphs.get(node.graph.name) is node.graph)


@dataclass
class _Cap:
    """How many rewrites one run of a pass may do: a replacement that contains its own pattern would never end."""

    limit: int
    done: int = 0

    @classmethod
    def of(cls, root: Graph) -> _Cap:
        return cls(10 * sum(map(len, root.all_graphs())) + 1000)

    def count(self) -> None:
        self.done += 1
        if self.done > self.limit:
            raise PassFailure(
                f"it rewrote the graph {self.limit} times and found a match again: "
                "does the replacement contain its own pattern?"
            )


class _PatternRun:
    """One run of a pattern pass; its hooks are looked at once."""

    def __init__(self, instance: PatternFusionPass, context: PassContext, cap: _Cap) -> None:
        self._instance = instance
        self._context = context
        self._cap = cap
        self._name = context.get_pass_name()
        self._meets = _hook(instance, "meet_requirements")
        self._replaces = _hook(instance, "replacement")
        self._near_misses = 0

    def patterns(self, graph: Graph, config: PatternMatcherConfig | None) -> list[CompiledPattern] | None:
        """Return the patterns that can be matched; ``None`` when ``patterns()`` fails: the pass does nothing then."""

        def asked() -> list[Pattern]:
            given = self._instance.patterns_for(graph)
            if given is None:
                return []
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise TypeError(f"patterns() must return Patterns or Graphs, not {type(given).__name__}")
            return [ensure_pattern(item) for item in given]

        try:
            patterns = _tried(type(self._instance), asked, hook="patterns")
        except HookFault as fault:  # GE goes on without the pass
            self._context.warn(f"{self._context.title} does nothing: patterns() failed: {fault}")
            return None
        compiled = []
        for place, pattern in enumerate(patterns):
            name = pattern.graph.name if pattern.is_valid() else f"number {place}"
            try:
                if any(pattern is other for other in patterns[:place]):
                    raise PatternFault("patterns() returns it twice, and a Pattern can be used once")
                if not pattern.is_valid():
                    raise PatternFault(
                        "it was used before: patterns() is called for each graph of a model and must make new Patterns"
                    )
                compiled.append(CompiledPattern(pattern, config))
            except (PatternFault, RuntimeError) as fault:
                logger.error("pattern %s of pass %s is invalid: %s", name, self._name, fault)
                self._context.warn(f"pattern {name} of {self._context.title} is never matched: {fault}")
        return compiled

    def over(self, graph: Graph, patterns: list[CompiledPattern]) -> bool:
        """Match one pattern after the other until it is found no more."""
        if not patterns:
            return False
        index, topology = NodeIndex(graph), Topology(graph)
        before = self._cap.done
        for pattern in patterns:
            matcher = Matcher(pattern, index)
            pending = index.of_type(pattern.driver_type)[::-1]
            while pending:
                driver = pending.pop()
                match = None if driver.is_removed else matcher.match_at(driver)
                if match is not None:
                    new = self._replace(match, matcher, index, topology)
                    pending.extend(node for node in reversed(new) if type_of(node) == pattern.driver_type)
                elif matcher.obstacle is not None and not driver.is_removed:
                    self._leave_shared(driver, *matcher.obstacle)
        changed = self._cap.done > before
        if changed:
            index.apply()
        return changed

    def _leave_shared(self, driver: Node, shared: Node, reader: str) -> None:
        """Remember why what looks like a match is none. It does not count, as in GE."""
        what = f"the constant {shared.name}" if type_of(shared) == "Const" else shared.name
        refusal = self._context.statistics.refuse(self._name, (shared.name, driver.name), f"{reader} reads {what} too")
        self._near_misses += 1
        logger.log(logging.INFO if self._near_misses <= SHOWN_NEAR_MISSES else logging.DEBUG, "%s", refusal)

    def tell_near_misses(self) -> None:
        """Say how many more there were than were shown."""
        more = self._near_misses - SHOWN_NEAR_MISSES
        if more > 0:
            logger.info("%s left %d more places alone, because others read what would lie inside", self._name, more)

    def _replace(self, match: Match, matcher: Matcher, index: NodeIndex, topology: Topology) -> list[Node]:
        """Replace one match if nothing speaks against it; return the new nodes."""
        reason = self._refusal(match, topology)
        if reason:
            self._context.statistics.count(self._name, matched=1)
            names = tuple(node.name for node in match.nodes)
            logger.info("%s", self._context.statistics.refuse(self._name, names, reason))
            return []
        replacement = self._replacement(match)
        self._cap.count()
        new = rewrite(match.boundary, replacement, self._name)
        self._context.statistics.count(self._name, matched=1, effected=1)
        index.insert_after(match.boundary.anchor, new)
        topology.insert(new)
        matcher.note(new, replacement)
        return new

    def _refusal(self, match: Match, topology: Topology) -> str:
        """Return why a match is left alone; empty if it is not."""
        result = MatchResult(match)
        asked = partial(self._meets, result, self._context)
        try:
            if not _tried(type(self._instance), lambda: bool(asked()), hook="meet_requirements"):
                return self._context.take_refusal() or "meet_requirements() says no"
        except HookFault as fault:  # GE takes this for a no
            self._context.warn(f"{self._context.title} leaves a match alone: meet_requirements() failed: {fault}")
            return "meet_requirements() failed"
        finally:
            result._invalidate()
        _check_untouched(match.boundary, "meet_requirements()")
        try:
            if topology.closes_cycle(match.nodes):
                return "fusing it would close a cycle"
        except CycleError as cycle:
            raise PassFailure(f"the graph {match.boundary.graph.name} has a {cycle}") from cycle
        # GE quirk, custom_passes.md 3: it fails the compile here
        return origins.conflict(match.nodes)

    def _replacement(self, match: Match) -> Replacement:
        result = MatchResult(match)
        try:
            graph = _called(
                type(self._instance),
                lambda: self._replaces(result, self._context),
                what="replacement()",
                hook="replacement",
            )
            _check_untouched(match.boundary, "replacement()")
            replacement = _checked_replacement(graph, match.boundary, "PatternFusionPass")
            if self._instance.infers_replacement:
                infer_shape(graph, result)
                _adopt_descs(replacement, match.boundary)
        finally:
            result._invalidate()
        return replacement


def _adopt_descs(replacement: Replacement, boundary: Boundary) -> None:
    """Let the new outputs have the formats, attributes and names of unknown dims of the old ones.

    Inference does not know the former, and would give the same names in every replacement.
    """
    for new, old in zip(replacement.outputs, boundary.outputs, strict=True):
        if new.node in replacement.inputs:
            continue
        new.desc.format, new.desc.origin_format = old.desc.format, old.desc.origin_format
        new.desc.attrs = new.desc.attrs | old.desc.attrs
        if new.desc.shape == old.desc.shape:
            new.desc.shape, new.desc.origin_shape = old.desc.shape, old.desc.origin_shape


# -- single nodes ------------------------------------------------------------------------------------------------------
def run_decompose(instance: DecomposePass, root: Graph, context: PassContext) -> bool:
    """Replace the nodes of the pass's types, in the root graph and in each body; new nodes are left alone."""
    types = instance.op_types
    if not types:
        raise PassFailure("op_types is not set: register the class with register_decompose_pass")
    cap = _Cap.of(root)
    for graph in _graphs(root):
        index, before = NodeIndex(graph), cap.done
        for node in [node for type_ in dict.fromkeys(types) for node in index.of_type(type_)]:
            if not node.is_removed:
                index.insert_after(node, _decomposed(instance, node, context, cap))
        if cap.done > before:
            index.apply()
    return cap.done > 0


def _decomposed(instance: DecomposePass, node: Node, context: PassContext, cap: _Cap) -> list[Node]:
    name = context.get_pass_name()
    meets = _hook(instance, "meet_requirements")
    try:
        is_wanted = _tried(type(instance), lambda: bool(meets(node, context)), hook="meet_requirements")
    except HookFault as fault:  # GE takes this for a no
        context.warn(f"{context.title} leaves node {node.name} alone: meet_requirements() failed: {fault}")
        is_wanted = False
    if not is_wanted:
        context.statistics.count(name, matched=1)
        return []
    if node.is_removed:
        raise PassFailure(f"meet_requirements() removed node {node.name}, which was to be replaced")
    boundary = Boundary.around(node)
    replaces = _hook(instance, "replacement")
    graph = _called(type(instance), lambda: replaces(node, context), what="replacement()", hook="replacement")
    _check_untouched(boundary, "replacement()")
    replacement = _checked_replacement(graph, boundary, "DecomposePass")
    cap.count()
    new = rewrite(boundary, replacement, name)
    context.statistics.count(name, matched=1, effected=1)
    return new


# -- user code ---------------------------------------------------------------------------------------------------------
def _hook(instance: FusionBasePass, name: str) -> Callable[[Any, PassContext], Any]:
    return bind_hook(getattr(instance, name))


class HookFault(Exception):
    """What a hook raised, as text with its place."""


def _tried(cls: type, function: Callable[[], Any], *, hook: str) -> Any:
    """Call user code. Whatever it raises becomes a :class:`HookFault`; only an interrupt passes through."""
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        raise HookFault(described(fault, cls, hook)) from fault


def _called(cls: type, function: Callable[[], Any], *, what: str, hook: str) -> Any:
    """Call user code; whatever it raises is a failure of the pass."""
    try:
        return _tried(cls, function, hook=hook)
    except HookFault as fault:
        raise PassFailure(f"{what} raised {fault}") from fault.__cause__


def described(fault: BaseException, cls: type, hook: str) -> str:
    """Return an exception as text: type, message, and the last line of the class's own files on the way to it.

    Where the compiler found the fault in what the hook returned, that is the place where the hook begins.
    """
    text = f"{fault.code}: {fault.message}" if isinstance(fault, ReportedError) else text_of(fault)
    frames = traceback.extract_tb(fault.__traceback__)
    own = _files_of(cls)
    frame = next((f for f in reversed(frames) if f.filename in own), None)
    place = _definition_of(cls, hook, text) if frame is None else f"{frame.filename}, line {frame.lineno}"
    if not place and frames:
        place = f"{frames[-1].filename}, line {frames[-1].lineno}"
    return f"{type(fault).__name__}: {text}{f' ({place})' if place else ''}"


_HERE = frozenset({FusionBasePass.__module__, "builtins"})


def _codes(cls: type, name: str = "") -> list[CodeType]:
    """Return the code of the functions (of that name) that a pass and the user's classes above it define."""
    codes = []
    for owner in cls.__mro__:
        members = {} if owner.__module__ in _HERE else owner.__dict__
        for key, member in members.items():
            function = (
                member.fget if isinstance(member, property) else inspect.unwrap(member) if callable(member) else None
            )
            code = getattr(function, "__code__", None)
            if code is not None and name in ("", key):
                codes.append(code)
    return codes


def _files_of(cls: type) -> set[str]:
    return {code.co_filename for code in _codes(cls)} - {inspect.getfile(PatternFusionPass)}


def _definition_of(cls: type, hook: str, text: str) -> str:
    """Return where a hook begins; of several ``@pattern`` methods the one that the ``text`` of the fault names."""
    own = _files_of(cls)
    named = [code for code in _codes(cls) if f"@pattern method {code.co_name} " in text]
    code = next((code for code in (*named, *_codes(cls, hook), *_codes(cls)) if code.co_filename in own), None)
    return "" if code is None else f"{code.co_filename}, line {code.co_firstlineno}"


def _check_untouched(boundary: Boundary, hook: str) -> None:
    """Fail if a hook took away what is to be replaced, or what feeds it."""
    for nodes, role in (
        (boundary.nodes, "which was to be replaced"),
        ([source.node for source in boundary.inputs], "which feeds what was to be replaced"),
    ):
        gone = next((node.name for node in nodes if node.is_removed or node.graph is not boundary.graph), None)
        if gone is not None:
            raise PassFailure(f"{hook} removed node {gone}, {role}")


def _checked_replacement(graph: object, boundary: Boundary, base: str) -> Replacement:
    if not isinstance(graph, Graph):
        raise PassFailure(f"{base}.replacement must return ge.graph.Graph, not {type(graph).__name__}")
    try:
        return Replacement.fitting(graph, boundary)
    except ReplacementFault as fault:
        names = ", ".join(node.name for node in boundary.nodes) or "no node"
        raise PassFailure(f"{fault} (in place of {names})") from fault
