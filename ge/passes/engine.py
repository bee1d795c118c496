"""Running passes: one run of one pass over a model.

The three kinds of passes have a function each; :func:`run_pass` chooses. What goes wrong inside a pass is a
:class:`PassFailure`, which fails the compile; what GE only logs is a warning.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
from ge.passes.pattern import PatternMatcherConfig, ensure_pattern
from ge.passes.replacement import infer_shape
from ge.passes.rewriter import Replacement, ReplacementFault, rewrite
from ge.passes.topology import Topology
from ge.user_code import text_of

logger = logging.getLogger("atc")

NOT_CHANGED = frozenset({0x50100040, 0x50104040})
"""The two values with which GE says that a pass changed nothing."""

FAILED = "FAILED"


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
    instance = _called(cls, cls, what="the constructor")
    if isinstance(instance, PatternFusionPass):
        return run_pattern_fusion(instance, root, context)
    if isinstance(instance, DecomposePass):
        return run_decompose(instance, root, context)
    return run_fusion_base(instance, root, context)


# -- whole graphs ------------------------------------------------------------------------------------------------------
def run_fusion_base(instance: FusionBasePass, root: Graph, context: PassContext) -> bool:
    """Call ``run``; ``None``, ``True``, 0 and GE's "not changed" are successes."""
    result = _called(type(instance), lambda: instance.run(root, context), what="run()")
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
    config = _called(type(instance), lambda: instance.matcher_config, what="matcher_config")
    if config is not None and not isinstance(config, PatternMatcherConfig):
        raise PassFailure(f"matcher_config must be a PatternMatcherConfig or None, not {type(config).__name__}")
    run = _PatternRun(instance, context, _Cap.of(root))
    changed = False
    for graph in _graphs(root):
        patterns = run.patterns(graph, config)
        if patterns is None:
            return changed
        changed |= run.over(graph, patterns)
    return changed


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

    def patterns(self, graph: Graph, config: PatternMatcherConfig | None) -> list[CompiledPattern] | None:
        """Return the patterns that can be matched; ``None`` when ``patterns()`` fails: the pass does nothing then."""
        try:
            given = self._instance.patterns_for(graph)
            if given is None:
                return []
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise TypeError(f"patterns() must return Patterns or Graphs, not {type(given).__name__}")
            patterns = [ensure_pattern(item) for item in given]
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - user code; GE goes on without the pass
            where = described(fault, type(self._instance))
            self._context.warn(f"custom pass {self._name} does nothing: patterns() failed: {where}")
            return None
        compiled = []
        for pattern in patterns:
            name = pattern.graph.name if pattern.is_valid() else "(released)"
            try:
                compiled.append(CompiledPattern(pattern, config))
            except (PatternFault, RuntimeError) as fault:
                logger.error("pattern %s of pass %s is invalid: %s", name, self._name, fault)
                self._context.warn(f"pattern {name} of custom pass {self._name} is never matched: {fault}")
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
        refusal = self._context.statistics.refuse(
            self._name, (shared.name, driver.name), f"{reader} reads {shared.name} too"
        )
        logger.debug("%s", refusal)

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
        try:
            if not self._meets(result, self._context):
                return self._context.take_refusal() or "meet_requirements() says no"
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - user code; GE takes this for a no
            where = described(fault, type(self._instance))
            self._context.warn(f"custom pass {self._name} leaves a match alone: meet_requirements() failed: {where}")
            return "meet_requirements() failed"
        finally:
            result._invalidate()
        _check_untouched(match.nodes, "meet_requirements()")
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
            graph = _called(type(self._instance), lambda: self._replaces(result, self._context), what="replacement()")
            _check_untouched(match.nodes, "replacement()")
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
    try:
        is_wanted = bool(_hook(instance, "meet_requirements")(node, context))
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # noqa: BLE001 - user code; GE takes this for a no
        where = described(fault, type(instance))
        context.warn(f"custom pass {name} leaves node {node.name} alone: meet_requirements() failed: {where}")
        is_wanted = False
    if not is_wanted:
        context.statistics.count(name, matched=1)
        return []
    replaces = _hook(instance, "replacement")
    graph = _called(type(instance), lambda: replaces(node, context), what="replacement()")
    _check_untouched((node,), "replacement()")
    boundary = Boundary.around(node)
    replacement = _checked_replacement(graph, boundary, "DecomposePass")
    cap.count()
    new = rewrite(boundary, replacement, name)
    context.statistics.count(name, matched=1, effected=1)
    return new


# -- user code ---------------------------------------------------------------------------------------------------------
def _hook(instance: FusionBasePass, name: str) -> Callable[[Any, PassContext], Any]:
    return bind_hook(getattr(instance, name))


def _called(cls: type, function: Callable[[], Any], *, what: str) -> Any:
    """Call user code; whatever it raises is a failure of the pass."""
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        raise PassFailure(f"{what} raised {described(fault, cls)}") from fault


def described(fault: BaseException, cls: type) -> str:
    """Return an exception as text: type, message, and the last line of the class's own file on the way to it."""
    text = f"{fault.code}: {fault.message}" if isinstance(fault, ReportedError) else text_of(fault)
    frames = traceback.extract_tb(fault.__traceback__)
    own = _file_of(cls)
    frame = next((f for f in reversed(frames) if f.filename == own), frames[-1] if frames else None)
    place = "" if frame is None else f" ({frame.filename}, line {frame.lineno})"
    return f"{type(fault).__name__}: {text}{place}"


def _file_of(cls: type) -> str:
    for name in ("run", "replacement", "patterns", "meet_requirements", "__init__"):
        code = getattr(cls.__dict__.get(name), "__code__", None)
        wrapped = getattr(cls.__dict__.get(name), "__wrapped__", None)
        code = getattr(wrapped, "__code__", code)
        if code is not None:
            return str(code.co_filename)
    return ""


def _check_untouched(nodes: Iterable[Node], hook: str) -> None:
    gone = next((node.name for node in nodes if node.is_removed), None)
    if gone is not None:
        raise PassFailure(f"{hook} removed node {gone}, which was to be replaced")


def _checked_replacement(graph: object, boundary: Boundary, base: str) -> Replacement:
    if not isinstance(graph, Graph):
        raise PassFailure(f"{base}.replacement must return ge.graph.Graph, not {type(graph).__name__}")
    try:
        return Replacement.fitting(graph, boundary)
    except ReplacementFault as fault:
        names = ", ".join(node.name for node in boundary.nodes) or "no node"
        raise PassFailure(f"{fault} (in place of {names})") from fault
