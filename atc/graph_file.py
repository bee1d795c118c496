"""Files that hold a graph, told apart by their content: stage dumps, graph text, offline models, models.

Whatever the file, the result is a ``ModelDef``. Nothing is required of the graph but that it can be shown: operators
may be unknown, constants may lack their data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ge.dump.settings import Detail
from ge.errors import ReportedError
from ge.graph import Graph, Shape, Tensor
from ge.graph.types import DATA_TYPE_BY_PROTO, DataType, data_type_by_short_name, numpy_dtype, short_name
from ge.options import CompileOptions, Environment, Framework, parse_input_shape
from ge.proto import ge_ir_pb2 as pb
from ge.proto.attr_def import InvalidGraphDef
from ge.proto.tensor_bytes import Array, array_of, chunks, stored_bytes
from ge.session import CompileSession
from ge.text import SideTensors, parse_graph
from parsers.front_ends import parse_model, recognise

MAX_BYTES = 2**31 - 1
"""Largest file that is read into memory."""
MAX_ABSENT_BYTES = 1 << 28
"""Largest tensor outside constants whose data a graph text does not hold."""
SHOWN_ELEMENTS = 8
"""A constant of at most so many elements is shown by its values, a larger one by its digest."""
REMEDY = (
    "Give a stage dump (ge_onnx_*.pbtxt, ge_proto_*.txt), a graph text, an offline model (.om), an ONNX model or a "
    "frozen TensorFlow graph."
)


class Kind(Enum):
    """What a file is."""

    GE_ONNX = "ge_onnx dump"
    GE_PROTO = "ge_proto dump"
    GRAPH_TEXT = "graph text"
    OFFLINE_MODEL = "offline model"
    ONNX = "ONNX model"
    TENSORFLOW = "TensorFlow graph"


@dataclass(frozen=True)
class GraphFile:
    """A file and its model: ``model.graph[0]`` is the root, the others are bodies.

    ``detail`` says how much of the graph the file tells. ``constant_text`` shows a tensor: a short one by its values,
    others by a digest; the text is empty where the file does not hold the data.
    """

    path: str
    kind: Kind
    model: pb.ModelDef
    detail: Detail
    constant_text: Callable[[pb.TensorDef], str]


def load(path: str, input_shape: str = "") -> GraphFile:
    """Read ``path``; ``input_shape`` is for models with open dims, as in ``--input_shape`` of ``atc``.

    Raises the codes of the front ends and of the .om reader for such files, E13026, E13001 and E13015 for what
    cannot be read, E13005 for what is none of the kinds.
    """
    content = _content(path)
    try:
        kind = _recognise(content)
        if kind is Kind.OFFLINE_MODEL:
            found = _offline_model(path)
        elif kind in _FRAMEWORKS:
            found = _model(path, kind, input_shape)
        else:
            found = _READERS[kind](path, content.decode())
        if not found.model.graph:
            raise InvalidGraphDef("it holds no graph")
    except (InvalidGraphDef, _Unreadable) as fault:
        raise _refusal(path, str(fault)) from None
    except UnicodeDecodeError:
        raise _refusal(path, "it is a text, but not in UTF-8") from None
    return found


class _Unreadable(Exception):
    """The content is none of the kinds; the text says why."""


def _refusal(path: str, reason: str) -> ReportedError:
    return ReportedError("E13005", file=path, reason=reason, solution=REMEDY)


def _content(path: str) -> bytes:
    try:
        status = os.stat(path)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise ReportedError("E13026", pathname=path, reason=reason) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ReportedError("E13026", pathname=path, reason=f"it is {kind}")
    if not 0 < status.st_size <= MAX_BYTES:
        raise ReportedError("E13015", file=path, size=status.st_size, maxsize=MAX_BYTES, solution=REMEDY)
    try:
        with open(path, "rb") as file:
            # an offline model is mapped, not read
            return file.read(4) if file.peek(4)[:4] == _OM_MAGIC else file.read(MAX_BYTES)
    except OSError as fault:
        raise ReportedError("E13001", file=path, errmsg=fault.strerror or str(fault)) from None


# -- telling files apart -------------------------------------------------------------------------------------------
_OM_MAGIC = b"IMOD"
_HEAD_BYTES = 1 << 16
_COMMENTS = re.compile(rb"(?:\s+|#[^\n]*)*+")
_LISTING = re.compile(rb'graph\("')
_GRAPH_TEXT = re.compile(rb'graph\s+(?:"(?:[^"\\\n]|\\.)*"|[A-Za-z0-9_./\-]+)\s*\(')
_ONNX_FIELD = re.compile(rb"(?:ir_version|producer_name|producer_version|opset_import|model_version)\s*:")
_PROTO_TEXT = re.compile(rb"[a-z_]+\s*[:{<]")
_MODEL_DEF_FIELD = re.compile(rb"(?:version|custom_version|graph)\s*[:{<]")
_STRING = re.compile(rb""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_NODE_OF = {Kind.GE_ONNX: re.compile(rb"\bop_type\s*:"), Kind.GE_PROTO: re.compile(rb"\bop\s*:?\s*[{<]")}


def _recognise(content: bytes) -> Kind:
    if content.startswith(_OM_MAGIC):
        return Kind.OFFLINE_MODEL
    head = content[:_HEAD_BYTES]
    match = _COMMENTS.match(head)
    text = head[match.end() if match else 0 :]
    if _LISTING.match(text):
        raise _Unreadable(
            "it is a readable listing, which does not tell everything; the ge_onnx or ge_proto dump of the stage does"
        )
    if _GRAPH_TEXT.match(text):
        return Kind.GRAPH_TEXT
    if _ONNX_FIELD.match(text):
        return Kind.GE_ONNX
    if _PROTO_TEXT.match(text):
        text = _STRING.sub(b"", text)
        first = {kind: match.start() for kind, sign in _NODE_OF.items() if (match := sign.search(text))}
        if first:
            return min(first, key=lambda kind: first[kind])
        if _MODEL_DEF_FIELD.match(text) and recognise(content) is not Framework.TENSORFLOW:
            return Kind.GE_PROTO
    if recognise(content) is Framework.TENSORFLOW:
        return Kind.TENSORFLOW
    return Kind.ONNX  # whose reader says what else the content looks like


# -- the kinds -----------------------------------------------------------------------------------------------------
def _ge_onnx(path: str, text: str) -> GraphFile:
    from ge.dump.onnx_reading import read_onnx_text
    from ge.dump.protobuf_text import TextFormError

    try:
        model, detail = read_onnx_text(text)
    except TextFormError as fault:
        raise _Unreadable(f"it is not the text form of an ONNX model: {fault}") from None
    return GraphFile(path, Kind.GE_ONNX, model, detail, constant_text)


def _ge_proto(path: str, text: str) -> GraphFile:
    from ge.dump.protobuf_text import TextFormError, parse_message

    try:
        model = parse_message(text, pb.ModelDef)
    except TextFormError as fault:
        raise _Unreadable(f"it is not the text form of ge.proto.ModelDef: {fault}") from None
    return GraphFile(path, Kind.GE_PROTO, model, Detail.FULL, constant_text)


def _offline_model(path: str) -> GraphFile:
    from om_format.partitions import PartitionType
    from om_format.reader import open_model

    file = open_model(path)
    pool = file.partition(PartitionType.WEIGHTS_DATA)

    def text(tensor: pb.TensorDef) -> str:
        offset, size = tensor.desc.data_offset, tensor.desc.weight_size
        if tensor.data or offset == 0:
            return constant_text(tensor)
        if offset < 0 or size < 0 or size > pool.size - offset:
            raise InvalidGraphDef(f"a constant takes the bytes {offset} to {offset + size} of {pool.size} weights")
        return constant_text(tensor, pool[offset : offset + size])

    return GraphFile(path, Kind.OFFLINE_MODEL, file.model_def(), Detail.FULL, text)


_FRAMEWORKS = {Kind.ONNX: Framework.ONNX, Kind.TENSORFLOW: Framework.TENSORFLOW}


def _model(path: str, kind: Kind, input_shape: str) -> GraphFile:
    framework, shapes = _FRAMEWORKS[kind], parse_input_shape(input_shape)
    session = CompileSession(CompileOptions(framework=framework, input_shape=shapes), Environment.read())
    try:
        graph = parse_model(path, session)
    except ReportedError as error:
        if error.code in ("E13005", "E16004"):
            error.solution = REMEDY
        raise
    return _of_graph(path, kind, graph, {})


_ABSENT = re.compile(r"\b([a-z][a-z0-9]*)\[([0-9, ]*)\]\s*sha256:([0-9a-f]{64})\b")


def _graph_text(path: str, text: str) -> GraphFile:
    """Read graph text; of tensors whose data is not in the text the digest is known."""
    side: SideTensors = {}
    digests: dict[int, str] = {}
    try:
        for type_name, dims, digest in _ABSENT.findall(text):
            shape = tuple(int(d) for d in dims.split(",") if d.strip())
            side[digest] = np.broadcast_to(np.zeros((), numpy_dtype(data_type_by_short_name(type_name))), shape)
            digests[id(side[digest])] = digest
        graph = parse_graph(text, side)
    except (ValueError, LookupError, OverflowError, TypeError) as fault:
        raise _Unreadable(f"it is not a graph text: {fault}") from None
    for part in graph.all_graphs():
        for node in part:
            for name, value in node.attrs.items():
                if node.type != "Const" and isinstance(value, Tensor) and value.nbytes > MAX_ABSENT_BYTES:
                    raise _Unreadable(f"attribute {name} of node {node.name} takes {value.nbytes} bytes")
    return _of_graph(path, Kind.GRAPH_TEXT, graph, digests)


def _of_graph(path: str, kind: Kind, graph: Graph, digests: dict[int, str]) -> GraphFile:
    """Make a file of a graph without copying its constants. ``digests`` are those of arrays that hold no data."""
    from ge.proto.graph_def import model_def

    tensors: list[Tensor] = []

    def place(tensor: Tensor) -> int:
        tensors.append(tensor)
        return len(tensors)

    def text(stored: pb.TensorDef) -> str:
        number = stored.desc.data_offset
        if not 0 < number <= len(tensors):
            return constant_text(stored)
        tensor = tensors[number - 1]
        known = digests.get(id(tensor.array))
        if known is not None:
            # the digest of a graph text is that of the elements in memory
            is_as_stored = tensor.array.dtype.kind != "O" and tensor.nbytes == tensor.array.nbytes
            return _digest_text(stored, known) if is_as_stored else ""
        if tensor.array.size <= SHOWN_ELEMENTS or tensor.array.dtype.kind == "O":
            return constant_text(stored, np.frombuffer(stored_bytes(tensor), np.uint8))
        digest = hashlib.sha256()
        for chunk in chunks(tensor):
            digest.update(chunk.data)
        return _digest_text(stored, digest.hexdigest())

    try:
        model = model_def(graph, place)
    except (TypeError, ValueError) as fault:
        raise _Unreadable(str(fault)) from None
    return GraphFile(path, kind, model, Detail.FULL, text)


_READERS: dict[Kind, Callable[[str, str], GraphFile]] = {
    Kind.GE_ONNX: _ge_onnx,
    Kind.GE_PROTO: _ge_proto,
    Kind.GRAPH_TEXT: _graph_text,
}


# -- constants -----------------------------------------------------------------------------------------------------
def constant_text(tensor: pb.TensorDef, data: Array | None = None) -> str:
    """Return values or digest of a tensor whose bytes are ``data`` (by default those in the message).

    Empty when there are no bytes although the shape says that there must be some.
    """
    data = np.frombuffer(tensor.data, np.uint8) if data is None else data
    shape = Shape(tensor.desc.shape.dim)
    if data.size == 0 and shape.elements != 0:
        return ""
    if 0 <= shape.elements <= SHOWN_ELEMENTS:
        dtype = DATA_TYPE_BY_PROTO.get(tensor.desc.dtype, DataType.DT_UNDEFINED)
        try:
            values = array_of(data, dtype, shape).ravel()
        except ValueError:
            pass  # shown by its digest, as what cannot be understood
        else:
            return f"{tensor_head(tensor.desc)}{{{', '.join(map(_element_text, values))}}}"
    return _digest_text(tensor, hashlib.sha256(data.data).hexdigest())


def _digest_text(tensor: pb.TensorDef, digest: str) -> str:
    return f"{tensor_head(tensor.desc)} sha256:{digest[:16]}"


def _element_text(value: object) -> str:
    if isinstance(value, str | bytes):
        return json.dumps(value if isinstance(value, str) else value.decode(errors="replace"), ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def tensor_head(desc: pb.TensorDescriptor) -> str:
    """Return type and shape as graph text has them: ``f32[2,3]``."""
    return f"{type_text(desc.dtype)}[{','.join(map(str, desc.shape.dim))}]"


def type_text(number: int) -> str:
    """Return the short name of an element type of a message; its number where it has no name."""
    return short_name(DATA_TYPE_BY_PROTO[number]) if number in DATA_TYPE_BY_PROTO else f"type{number}"
