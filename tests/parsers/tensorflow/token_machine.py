"""A machine that runs graphs of TensorFlow 1 as its executor does: by tokens, which may be dead, in frames and turns.

It knows nothing of loops and branches as such, so it tells what a graph means that is not written as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parsers.tensorflow import graph_def_pb2 as pb

DEAD = object()
"""A token without a value."""
CONTROL = -1
"""Number of the output that control edges of a Switch lead from: it lives if the Switch does."""
MAX_TURNS = 50

Tag = tuple[tuple[str, int], ...]
"""The frames around a node with the turn that each is in, the outermost first."""
_OPS: dict[str, Callable[..., Any]] = {
    "Identity": lambda x: x,
    "LoopCond": lambda x: x,
    "AddV2": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "FloorMod": lambda x, y: x % y,
    "Greater": lambda x, y: x > y,
    "Less": lambda x, y: x < y,
    "NoOp": lambda: 0,
}


class Endless(Exception):
    """A loop went on for too long."""


class TokenMachine:
    """Runs a graph of int32 scalars. Nodes may read values of outer frames without an Enter."""

    def __init__(self, graph: pb.GraphDef) -> None:
        self.nodes = {node.name: node for node in graph.node}
        self._paths: dict[str, tuple[str, ...]] = {}
        for name in self.nodes:
            self._path(name, frozenset())
        self.tokens: dict[tuple[str, int, Tag], Any] = {}
        self._tags: set[Tag] = {()}

    def _path(self, name: str, open_names: frozenset[str]) -> tuple[str, ...]:
        if name not in self._paths:
            node = self.nodes[name]
            sources = [text.removeprefix("^").partition(":")[0] for text in node.input]
            forward = [s for s in sources if not (node.op == "Merge" and self.nodes[s].op == "NextIteration")]
            path = max(
                (self._path(s, open_names | {name}) for s in forward if s not in open_names), key=len, default=()
            )
            if node.op == "Enter":
                path = (*path, node.attr["frame_name"].s.decode())
            self._paths[name] = path[:-1] if node.op == "Exit" else path
        return self._paths[name]

    def run(self, feeds: Mapping[str, int]) -> dict[str, Any]:
        """Return the tokens of output 0 of all nodes outside of frames; nodes that never get one are not there."""
        for name, value in feeds.items():
            self.tokens[name, 0, ()] = value
        while self._sweep() or self._dead_exits():
            pass
        return {name: token for (name, output, tag), token in self.tokens.items() if not tag and output == 0}

    def _sweep(self) -> bool:
        before = len(self.tokens)
        for node in self.nodes.values():
            depth = len(self._paths[node.name])
            for tag in sorted(self._tags):
                if node.op == "Enter" and len(tag) == depth - 1 and self._names(tag) == self._paths[node.name][:-1]:
                    self._enter(node, tag)
                elif node.op == "Exit" and len(tag) == depth + 1 and self._names(tag)[:-1] == self._paths[node.name]:
                    token = self._read(node.input[0], tag)
                    if token is not DEAD and token is not None:
                        self.tokens.setdefault((node.name, 0, tag[:-1]), token)
                elif node.op not in ("Enter", "Exit", "Placeholder") and self._names(tag) == self._paths[node.name]:
                    self._fire(node, tag)
        return len(self.tokens) > before

    @staticmethod
    def _names(tag: Tag) -> tuple[str, ...]:
        return tuple(name for name, _ in tag)

    def _read(self, text: str, tag: Tag) -> Any:
        name, _, output = text.removeprefix("^").partition(":")
        depth = len(self._paths[name])
        number = CONTROL if text.startswith("^") and self.nodes[name].op == "Switch" else int(output or 0)
        return self.tokens.get((name, number, tag[:depth])) if depth <= len(tag) else None

    def _enter(self, node: pb.NodeDef, tag: Tag) -> None:
        token = self._read(node.input[0], tag)
        if token is None:
            return
        frame = self._paths[node.name][-1]
        self._tags.add((*tag, (frame, 0)))
        turns = [t for t in self._tags if t[:-1] == tag and t and t[-1][0] == frame]
        for inner in turns if node.attr["is_constant"].b else [(*tag, (frame, 0))]:
            self.tokens[node.name, 0, inner] = token

    def _fire(self, node: pb.NodeDef, tag: Tag) -> None:
        if (node.name, 0, tag) in self.tokens and node.op != "NextIteration":
            return
        data = [text for text in node.input if not text.startswith("^")]
        controls = [self._read(text, tag) for text in node.input if text.startswith("^")]
        if any(token is None for token in controls):
            return
        if node.op == "Merge":
            self._merge(node, tag)
            return
        given = [self._read(text, tag) for text in data]
        if any(token is None for token in given):
            return
        is_dead = any(token is DEAD for token in (*given, *controls))
        if node.op == "NextIteration":
            frame, turn = tag[-1]
            if not is_dead and turn < MAX_TURNS:
                following = (*tag[:-1], (frame, turn + 1))
                self._tags.add(following)
                self.tokens[node.name, 0, following] = given[0]
            elif not is_dead:
                raise Endless(frame)
        elif node.op == "Switch":
            for output in range(2):
                self.tokens[node.name, output, tag] = DEAD if is_dead or bool(given[1]) != output else given[0]
            self.tokens[node.name, CONTROL, tag] = DEAD if is_dead else 0
        elif node.op == "Const":
            self.tokens[node.name, 0, tag] = DEAD if is_dead else _value(node)
        else:
            self.tokens[node.name, 0, tag] = DEAD if is_dead else _OPS[node.op](*given)

    def _merge(self, node: pb.NodeDef, tag: Tag) -> None:
        turn = tag[-1][1] if tag else 0
        tokens: list[Any] = []
        for text in (text for text in node.input if not text.startswith("^")):
            source = self.nodes[text.partition(":")[0]]
            is_first = source.op == "Enter" and not source.attr["is_constant"].b
            is_absent = turn > 0 if is_first else turn == 0 and source.op == "NextIteration"
            tokens.append(DEAD if is_absent else self._read(text, tag))
        living = [k for k, token in enumerate(tokens) if token is not None and token is not DEAD]
        if living:
            self.tokens[node.name, 0, tag] = tokens[living[0]]
            self.tokens[node.name, 1, tag] = living[0]
        elif all(token is DEAD for token in tokens):
            self.tokens[node.name, 0, tag] = self.tokens[node.name, 1, tag] = DEAD

    def _dead_exits(self) -> bool:
        """Hand on that a loop has ended without a value; the innermost first. Return whether there was one."""
        found = [
            (node.name, 0, tag[:-1])
            for tag in sorted(self._tags, key=len, reverse=True)
            for node in self.nodes.values()
            if node.op == "Exit"
            and tag
            and self._names(tag)[:-1] == self._paths[node.name]
            and self._read(node.input[0], tag) is DEAD
            and (node.name, 0, tag[:-1]) not in self.tokens
        ]
        for key in found[:1]:
            self.tokens[key] = DEAD
        return bool(found)


def _value(node: pb.NodeDef) -> int:
    tensor = node.attr["value"].tensor
    kind = np.bool_ if tensor.dtype == pb.DT_BOOL else np.int32
    return int(np.frombuffer(tensor.tensor_content, kind)[0])
