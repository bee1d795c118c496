"""Graph text: a lossless, readable form of a graph; what pass tests are written in.

    graph net(%x: f32[1,3,8,8]@NCHW) {
      %w = Const {value=f32[2]{0.5, -1.0}} -> f32[2]@ND
      %y = Conv2D(%x, %w, _, _) {strides=[1,1,2,2]} ctrl(%a) -> f32[1,64,4,4]@NCHW | [1,4,4,4,16]@NC1HWC0
      %i:2 = If(%c, %y:0) {then_branch=@g1, else_branch=@g2} -> f32[]@ND, f32[-1(1~8),4]@ND
      return %y as "probability", %i:1
    }

Grammar (``x?`` optional, ``x*`` any number; tokens are separated by white space or need none; ``#`` starts a comment):

    text    := graph graph*                         the root first, then its subgraphs
    graph   := "graph" NAME "(" [param ("," param)*] ")" [attrs] "{" node* "return" [out ("," out)*] "}"
    param   := VALUE ":" desc [attrs]               a Data node; its index is its place in the list unless given
    node    := VALUE [":" COUNT] "=" NAME ["(" [use ("," use)*] ")"] [attrs] [ctrl] ["->" desc ("," desc)*]
    use     := VALUE [":" INDEX] | "_"              "_" is an absent input
    ctrl    := "ctrl" "(" VALUE ("," VALUE)* ")"    nodes that must run before
    out     := use ["as" STRING]                    a result and its name in the model
    desc    := TYPE dims "@" FORMAT ["|" dims "@" FORMAT [":" GROUPS]] [attrs]    origin view, then the storage view
               if it differs; GROUPS is its sub-format
    dims    := "[" [dim ("," dim)*] "]"             dim := INT ["(" MIN "~" MAX ")"]; "[-2]" is an unknown rank
    attrs   := "{" [NAME "=" value ("," NAME "=" value)*] "}"
    value   := INT | FLOAT | STRING | "true" | "false" | "[" [value ("," value)*] "]" | "bytes" STRING (hex)
             | "dtype" TYPE | "desc" "(" desc ")" | "@" NAME (subgraph) | tensor
    tensor  := TYPE dims "{" [value ("," value)*] "}" | TYPE dims "sha256" ":" HEX

Names of other than letters, digits and ``_ . / -`` are written as JSON strings. Attributes of a descriptor follow its
format without a space. A node's results default to one value of unknown rank. Tensors above 64 elements are given by
hash; their data travels beside the text (``side`` of :func:`print_graph` and :func:`parse_graph`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

import numpy as np

from ge.error import GeError
from ge.formats.packed_format import MAX_GROUPS
from ge.graph import DataType, Format, Graph, Node, NodeOut, Shape, Tensor, TensorDesc
from ge.graph.types import (
    FORMAT_BY_TEXT,
    FORMAT_TEXT,
    data_type_by_short_name,
    numpy_dtype,
    short_name,
)

MAX_INLINE_ELEMENTS = 64
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./\-]+\Z")
_DESC_NAME = "%name"

SideTensors = dict[str, np.ndarray[Any, Any]]
"""Data of large tensors by the hash that stands in the text."""


# -- printing ------------------------------------------------------------------------------------------------------
def print_graph(graph: Graph, side: SideTensors | None = None) -> str:
    """Return the text of ``graph`` and its subgraphs; data of large tensors is put into ``side`` when given."""
    return "\n".join(_print_one(part, side) for part in graph.all_graphs())


def _print_one(graph: Graph, side: SideTensors | None) -> str:
    params = graph.data_nodes()
    header = ", ".join(_print_param(node, place, side) for place, node in enumerate(params))
    attrs = _print_attrs(graph.attrs, side)
    lines = [f"graph {_name(graph.name)}({header}){' ' + attrs if attrs else ''} {{"]
    lines += [f"  {_print_node(node, side)}" for node in graph if node.type not in ("Data", "NetOutput")]
    net_output = graph.net_output()
    if net_output is not None:
        lines.append(f"  {_print_node(net_output, side)}")
    results = ", ".join(_print_result(graph, i, out) for i, out in enumerate(graph.outputs))
    lines.append(f"  return {results}".rstrip())
    return "\n".join([*lines, "}"])


def _print_param(node: Node, place: int, side: SideTensors | None) -> str:
    attrs = {k: v for k, v in node.attrs.items() if not (k == "index" and v == place)}
    text = f"%{_name(node.name)}: {_print_desc(node.output_descs[0], side)}"
    return f"{text} {_print_attrs(attrs, side)}" if attrs else text


def _print_result(graph: Graph, place: int, out: NodeOut) -> str:
    name = graph.output_names[place] if place < len(graph.output_names) else ""
    return f"{_use(out)} as {json.dumps(name)}" if name else _use(out)


def _print_node(node: Node, side: SideTensors | None) -> str:
    count = len(node.output_descs)
    parts = [f"%{_name(node.name)}{'' if count == 1 else f':{count}'} = {_name(node.type)}"]
    if node.inputs:
        parts[0] += f"({', '.join('_' if s is None else _use(s) for s in node.inputs)})"
    attrs: dict[str, Any] = dict(node.attrs)
    attrs.update({name: _SubgraphRef(graph) for name, graph in node.subgraphs})
    if attrs:
        parts.append(_print_attrs(attrs, side))
    if node.control_inputs:
        parts.append(f"ctrl({', '.join('%' + _name(n.name) for n in node.control_inputs)})")
    if count:
        parts.append("-> " + ", ".join(_print_desc(d, side) for d in node.output_descs))
    return " ".join(parts)


def _use(out: NodeOut) -> str:
    return f"%{_name(out.node.name)}" + (f":{out.index}" if out.index else "")


def _name(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else json.dumps(name)


def _print_desc(desc: TensorDesc, side: SideTensors | None) -> str:
    dims = _print_dims(desc.origin_shape, desc.shape_range)
    text = f"{short_name(desc.data_type)}{dims}@{FORMAT_TEXT[desc.origin_format]}"
    if (desc.shape, desc.format, desc.sub_format) != (desc.origin_shape, desc.origin_format, 0):
        text += f" | {desc.shape}@{FORMAT_TEXT[desc.format]}{f':{desc.sub_format}' if desc.sub_format else ''}"
    attrs = dict(desc.attrs)
    if desc.name:
        attrs[_DESC_NAME] = desc.name
    return text + (_print_attrs(attrs, side) if attrs else "")


def _print_dims(shape: Shape, ranges: list[tuple[int, int]]) -> str:
    if len(ranges) != len(shape):
        return str(shape)
    dims = (str(d) if d >= 0 and (d, d) == r else f"{d}({r[0]}~{r[1]})" for d, r in zip(shape, ranges, strict=True))
    return f"[{','.join(dims)}]"


class _SubgraphRef(str):
    """Name of a subgraph among the attributes."""


def _print_attrs(attrs: dict[str, Any], side: SideTensors | None) -> str:
    if not attrs:
        return ""
    return "{" + ", ".join(f"{_name(k)}={_print_value(v, side)}" for k, v in attrs.items()) + "}"


def _print_value(value: Any, side: SideTensors | None) -> str:
    if isinstance(value, _SubgraphRef):
        return f"@{_name(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DataType):
        return f"dtype {short_name(value)}"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return _print_float(float(value))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bytes):
        return f'bytes "{value.hex()}"'
    if isinstance(value, Tensor):
        return _print_tensor(value, side)
    if isinstance(value, TensorDesc):
        return f"desc({_print_desc(value, side)})"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_print_value(v, side) for v in value) + "]"
    raise TypeError(f"attribute value of type {type(value).__name__} has no graph text")


def _print_float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _print_tensor(tensor: Tensor, side: SideTensors | None) -> str:
    head = f"{short_name(tensor.data_type)}{Shape(tensor.array.shape)}"
    array = tensor.array
    if array.size <= MAX_INLINE_ELEMENTS:
        flat = array.ravel()
        if array.dtype == object:
            return f"{head}{{{', '.join(_print_value(v, side) for v in flat)}}}"
        if flat.dtype.kind == "c":
            plain = [part for v in flat.tolist() for part in (v.real, v.imag)]
        else:
            plain = flat.tolist() if flat.dtype.kind in "biuf" else [float(v) for v in flat]
        return f"{head}{{{', '.join(_print_value(v, side) for v in plain)}}}"
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    if side is not None:
        side[digest] = array
    return f"{head} sha256:{digest}"


# -- parsing -------------------------------------------------------------------------------------------------------
class GraphTextError(ValueError):
    """Malformed graph text; the message gives line and column and shows the line."""


MAX_OUTPUTS = 100_000
"""Outputs of one node; a bound for numbers that are mistyped."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<value>%(?:[A-Za-z0-9_./\-]+|"(?:[^"\\]|\\.)*"))
      | (?P<arrow>->)
      | (?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf)(?![A-Za-z0-9_./\-]) )
      | (?P<word>[A-Za-z0-9_./\-]+)
      | (?P<sign>[\[\](){},=:@|~])""",
    re.X,
)


def parse_graph(text: str, side: SideTensors | None = None) -> Graph:
    """Build the graph that ``text`` describes. Raises :class:`GraphTextError`."""
    parser = _Parser(text, side or {})
    try:
        return parser.parse()
    except GraphTextError:
        raise
    except RecursionError:
        raise parser.error("values are nested too deeply") from None
    except (ArithmeticError, GeError, LookupError, TypeError, ValueError) as fault:
        # values that do not fit each other, escapes that are none
        raise parser.error(f"this cannot be read ({type(fault).__name__}: {fault})") from fault


class _Parser:
    def __init__(self, text: str, side: SideTensors) -> None:
        self.text = text
        self.side = side
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(f"unexpected character {text[at]!r}", at)
            if match.lastgroup != "space":
                self.tokens.append((str(match.lastgroup), match.group().strip(), at))
            at = match.end()
        self.tokens.append(("end", "end of text", len(text)))
        self.at = 0

    # reading tokens
    def error(self, reason: str, position: int | None = None) -> GraphTextError:
        """Return the error for what stands at ``position``, by default at the token that is looked at."""
        at = self.tokens[min(self.at, len(self.tokens) - 1)][2] if position is None else position
        start = self.text.rfind("\n", 0, at) + 1
        line = self.text[start:].split("\n", 1)[0]
        number = self.text.count("\n", 0, at) + 1
        return GraphTextError(f"line {number}, column {at - start + 1}: {reason}\n  {line}\n  {' ' * (at - start)}^")

    def _peek(self) -> str:
        return self.tokens[self.at][1]

    def _take(self, what: str | None = None) -> str:
        text = self.tokens[self.at][1]
        if what is not None and text != what:
            raise self.error(f"expected {what!r}, found {text!r}")
        self.at += 1
        return text

    def _try(self, what: str) -> bool:
        if self._peek() != what:
            return False
        self.at += 1
        return True

    def _take_name(self) -> str:
        kind, text, _ = self.tokens[self.at]
        if kind not in ("word", "string", "number"):
            raise self.error(f"expected a name, found {text!r}")
        self.at += 1
        return str(json.loads(text)) if kind == "string" else text

    def _take_value_name(self) -> str:
        kind, text, _ = self.tokens[self.at]
        if kind != "value":
            raise self.error(f"expected a %name, found {text!r}")
        self.at += 1
        return str(json.loads(text[1:])) if text[1] == '"' else text[1:]

    def _take_int(self) -> int:
        text = self._peek()
        try:
            number = int(text)
        except ValueError:
            raise self.error(f"expected an integer, found {text!r}") from None
        self.at += 1
        return number

    def _take_groups(self) -> int:
        groups = self._take_int()
        if not 0 <= groups <= MAX_GROUPS:
            raise self.error(f"a format has 0 to {MAX_GROUPS} groups, not {groups}")
        return groups

    def _list(self, close: str, item: Any) -> list[Any]:
        found: list[Any] = []
        while not self._try(close):
            if found:
                self._take(",")
            found.append(item())
        return found

    # grammar
    def parse(self) -> Graph:
        root = self._graph()
        while self.tokens[self.at][0] != "end":
            root.add_subgraph(self._graph())
        return root

    def _graph(self) -> Graph:
        self._take("graph")
        graph = Graph(self._take_name())
        self._take("(")
        pending: list[tuple[Node, list[Any], list[str]]] = []
        self._list(")", lambda: self._param(graph))
        opening, *ahead = self.tokens[self.at : self.at + 3]
        if opening[1] == "{" and len(ahead) == 2 and ahead[0][0] != "value" and ahead[1][1] == "=":
            graph.attrs.update(self._attrs())
        self._take("{")
        while self._peek() != "return":
            self._node(graph, pending)
        for node, uses, controls in pending:
            self._connect(graph, node, uses, controls)
        self._take("return")
        self._results(graph)
        return graph

    def _param(self, graph: Graph) -> None:
        name = self._take_value_name()
        self._take(":")
        desc = self._desc()
        attrs: dict[str, Any] = {"index": len(graph)}
        if self._peek() == "{":
            attrs.update(self._attrs())
        graph.add_node("Data", name, attrs=attrs, output_descs=[desc])

    def _node(self, graph: Graph, pending: list[tuple[Node, list[Any], list[str]]]) -> None:
        start = self.at
        name = self._take_value_name()
        count = self._take_int() if self._try(":") else 1
        if not 0 <= count <= MAX_OUTPUTS:
            raise self.error(f"a node has at most {MAX_OUTPUTS} outputs, %{name} has {count}")
        self._take("=")
        type_ = self._take_name()
        uses = self._list(")", self._use) if self._try("(") else []
        attrs = self._attrs() if self._peek() == "{" else {}
        controls: list[str] = []
        if self._try("ctrl"):
            self._take("(")
            controls = self._list(")", self._take_value_name)
        descs = [TensorDesc([-2]) for _ in range(count)]
        if self._try("->"):
            descs = [self._desc()]
            while self._try(","):
                descs.append(self._desc())
            if len(descs) != count:
                raise self.error(f"%{name} has {count} outputs and {len(descs)} descriptors")
        if name in graph:
            raise self.error(f"%{name} is defined twice", self.tokens[start][2])
        node = graph.add_node(type_, name, [None] * len(uses), output_descs=descs)
        node.subgraphs = [(k, str(v)) for k, v in attrs.items() if isinstance(v, _SubgraphRef)]
        node.attrs.update({k: v for k, v in attrs.items() if not isinstance(v, _SubgraphRef)})
        pending.append((node, uses, controls))

    def _use(self) -> tuple[str, int, int] | None:
        if self._try("_"):
            return None
        position = self.tokens[self.at][2]
        name = self._take_value_name()
        return name, self._take_int() if self._try(":") else 0, position

    def _resolve(self, graph: Graph, use: tuple[str, int, int]) -> NodeOut:
        name, index, position = use
        node = graph.find(name)
        if node is None or not 0 <= index < len(node.output_descs):
            raise self.error(f"%{name}:{index} is not defined", position)
        return node.output(index)

    def _connect(self, graph: Graph, node: Node, uses: list[Any], controls: list[str]) -> None:
        for slot, use in enumerate(uses):
            if use is not None:
                graph.set_input(node, slot, self._resolve(graph, use))
        for name in controls:
            before = graph.find(name)
            if before is None:
                raise self.error(f"%{name} is not defined")
            graph.add_control(before, node)

    def _results(self, graph: Graph) -> None:
        outputs: list[NodeOut] = []
        names: list[str] = []
        while not self._try("}"):
            if outputs:
                self._take(",")
            use = self._use()
            if use is None:
                raise self.error("a result cannot be absent")
            outputs.append(self._resolve(graph, use))
            names.append(str(json.loads(self._take())) if self._try("as") else "")
        if graph.net_output() is None:
            graph.outputs = outputs
        if any(names):
            graph.output_names = names

    def _desc(self) -> TensorDesc:
        data_type = self._data_type()
        origin, ranges = self._dims()
        self._take("@")
        origin_format = self._format()
        shape, format_, groups = origin, origin_format, 0
        if self._try("|"):
            shape, _ = self._dims()
            self._take("@")
            format_ = self._format()
            groups = self._take_groups() if self._try(":") else 0
        desc = TensorDesc(shape, format_, data_type, origin, origin_format)
        desc.sub_format = groups
        desc.shape_range = ranges
        _, text, end = self.tokens[self.at - 1]
        if self._peek() == "{" and self.tokens[self.at][2] == end + len(text):
            desc.attrs = self._attrs()
            desc.name = str(desc.attrs.pop(_DESC_NAME, ""))
        return desc

    def _data_type(self) -> DataType:
        try:
            found = data_type_by_short_name(self._peek())
        except KeyError:
            raise self.error(f"{self._peek()!r} is not an element type") from None
        self.at += 1
        return found

    def _format(self) -> Format:
        found = FORMAT_BY_TEXT.get(self._peek())
        if found is None:
            raise self.error(f"{self._peek()!r} is not a format")
        self.at += 1
        return found

    def _dims(self) -> tuple[Shape, list[tuple[int, int]]]:
        self._take("[")
        dims = self._list("]", self._dim)
        shape = Shape(d for d, _ in dims)
        if all(r is None for _, r in dims):
            return shape, []
        return shape, [(d, d) if r is None else r for d, r in dims]

    def _dim(self) -> tuple[int, tuple[int, int] | None]:
        dim = self._take_int()
        if not self._try("("):
            return dim, None
        low = self._take_int()
        self._take("~")
        high = self._take_int()
        self._take(")")
        return dim, (low, high)

    def _attrs(self) -> dict[str, Any]:
        self._take("{")
        return dict(self._list("}", self._attr))

    def _attr(self) -> tuple[str, Any]:
        kind, text, _ = self.tokens[self.at]
        if kind == "value" and text == _DESC_NAME:
            self.at += 1
            name = text
        else:
            name = self._take_name()
        self._take("=")
        return name, self._value()

    def _value(self) -> Any:
        kind, text, _ = self.tokens[self.at]
        if kind == "string":
            self.at += 1
            return json.loads(text)
        if kind == "number" or text == "nan":
            self.at += 1
            return float(text) if re.search(r"[.ein]", text) else int(text)
        if self._try("["):
            return self._list("]", self._value)
        if self._try("@"):
            return _SubgraphRef(self._take_name())
        if text in ("true", "false"):
            self.at += 1
            return text == "true"
        if self._try("bytes"):
            return bytes.fromhex(json.loads(self._take()))
        if self._try("dtype"):
            return self._data_type()
        if self._try("desc"):
            self._take("(")
            desc = self._desc()
            self._take(")")
            return desc
        return self._tensor()

    def _tensor(self) -> Tensor:
        data_type = self._data_type()
        shape, _ = self._dims()
        if self._try("sha256"):
            self._take(":")
            digest = self._take()
            if digest not in self.side:
                raise self.error(f"the data of tensor sha256:{digest} is not at hand")
            return Tensor.of(self.side[digest])
        self._take("{")
        items = self._list("}", self._value)
        if data_type in (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128):
            items = [complex(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        if len(items) != shape.elements:
            raise self.error(f"a tensor of shape {shape} needs {shape.elements} elements, found {len(items)}")
        if data_type is DataType.DT_STRING:
            strings = np.empty(len(items), dtype=object)
            strings[:] = items
            return Tensor.of(strings.reshape(shape))
        return Tensor.of(np.array(items).astype(numpy_dtype(data_type)).reshape(shape))
