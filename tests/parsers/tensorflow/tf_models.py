"""Small frozen graphs for the tests, made of our own messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import atc
from ge.graph import DataType, Graph
from ge.graph.types import data_type_of
from ge.options import Framework
from parsers.tensorflow import graph_def_pb2 as pb
from parsers.tensorflow import parse
from parsers.tensorflow.data_types import DATA_TYPES
from simulator import InferSession
from tests.parsers.evaluation import evaluate, session

Array = np.ndarray[Any, np.dtype[Any]]

_NUMBERS: dict[DataType, int] = {}
for _number, _dtype in DATA_TYPES.items():
    _NUMBERS.setdefault(_dtype, _number)


class Type(int):
    """An attribute that is an element type, by TensorFlow's number."""


class Func(str):
    """An attribute that is the name of a function."""


def type_of(array: Array) -> Type:
    """Return TensorFlow's number of an array's element type."""
    return Type(_NUMBERS[DataType.DT_STRING if array.dtype == object else data_type_of(array.dtype)])


def shape_proto(dims: Sequence[int] | None) -> pb.TensorShapeProto:
    """Return a shape; ``None`` is an unknown rank."""
    if dims is None:
        return pb.TensorShapeProto(unknown_rank=True)
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in dims])


def tensor_proto(array: Any) -> pb.TensorProto:
    """Return a tensor in TensorFlow's usual encoding: bytes, or ``string_val`` for texts."""
    array = np.asarray(array)
    proto = pb.TensorProto(dtype=type_of(array), tensor_shape=shape_proto(array.shape))  # type: ignore[arg-type]
    if array.dtype == object:
        proto.string_val.extend(value if isinstance(value, bytes) else value.encode() for value in array.ravel())
    else:
        proto.tensor_content = array.tobytes()
    return proto


def attr_value(value: Any) -> pb.AttrValue:
    """Return an attribute whose kind follows from the Python type of ``value``."""
    match value:
        case pb.AttrValue():
            return value
        case bool():
            return pb.AttrValue(b=value)
        case Type():
            return pb.AttrValue(type=int(value))  # type: ignore[arg-type]
        case Func():
            return pb.AttrValue(func=pb.NameAttrList(name=str(value)))
        case int():
            return pb.AttrValue(i=value)
        case float():
            return pb.AttrValue(f=value)
        case str():
            return pb.AttrValue(s=value.encode())
        case pb.TensorShapeProto():
            return pb.AttrValue(shape=value)
        case pb.TensorProto():
            return pb.AttrValue(tensor=value)
        case np.ndarray() | np.generic():
            return pb.AttrValue(tensor=tensor_proto(value))
        case list():
            return pb.AttrValue(list=_list_value(value))
    raise TypeError(f"no attribute can hold {value!r}")


def _list_value(values: list[Any]) -> pb.AttrValue.ListValue:
    if values and isinstance(values[0], Type):
        return pb.AttrValue.ListValue(type=[int(value) for value in values])  # type: ignore[misc]
    if values and isinstance(values[0], str):
        return pb.AttrValue.ListValue(s=[value.encode() for value in values])
    if values and isinstance(values[0], float):
        return pb.AttrValue.ListValue(f=values)
    return pb.AttrValue.ListValue(i=values)


def node(op: str, name: str, inputs: str = "", **attrs: Any) -> pb.NodeDef:
    """Return a node; ``inputs`` are separated by blanks."""
    attributes = {key: attr_value(value) for key, value in attrs.items()}
    return pb.NodeDef(op=op, name=name, input=inputs.split(), attr=attributes)


def const(name: str, value: Any) -> pb.NodeDef:
    """Return a Const."""
    array = np.asarray(value)
    return node("Const", name, dtype=type_of(array), value=array)


def placeholder(name: str, dims: Sequence[int] | None, dtype: Any = np.float32) -> pb.NodeDef:
    """Return a Placeholder."""
    return node("Placeholder", name, dtype=type_of(np.empty(0, dtype)), shape=shape_proto(dims))


def graph(*nodes: pb.NodeDef, **functions: pb.FunctionDef) -> pb.GraphDef:
    """Return a GraphDef as TensorFlow 2 writes it."""
    library = pb.FunctionDefLibrary(function=functions.values())
    return pb.GraphDef(node=nodes, library=library, versions=pb.VersionDef(producer=1882))


def parsed(model: pb.GraphDef | bytes, **options: Any) -> Graph:
    """Parse a model, given as bytes so that the whole reader is in use."""
    content = model.SerializeToString(deterministic=True) if isinstance(model, pb.GraphDef) else model
    return parse(content, session(framework=Framework.TENSORFLOW, **options))


def run(model: pb.GraphDef, feeds: Mapping[str, Array] | None = None, **options: Any) -> list[Array]:
    """Return the outputs by the reference semantics; the feeds are by the names of the inputs."""
    found = parsed(model, **options)
    given = {} if feeds is None else feeds
    return evaluate(found, [given[data.name] for data in found.data_nodes()])


def run_compiled(model: pb.GraphDef, feeds: Mapping[str, Array], **options: Any) -> list[Array]:
    """Return the outputs of the compiled model; the feeds are by the names of the inputs."""
    settings = {"framework": 3, "soc_version": "Ascend310P3", "precision_mode_v2": "origin", **options}
    simulated = InferSession(0, atc.compile_model(model.SerializeToString(), **settings))
    return list(simulated.infer([feeds[port.name] for port in simulated.get_inputs()]))


def op_model(
    op: str, inputs: Sequence[Any], constant: Sequence[int] = (), **attrs: Any
) -> tuple[pb.GraphDef, dict[str, Array]]:
    """Return a model of one node ``y``, and what to feed; the inputs in ``constant`` are Const."""
    arrays = [np.asarray(value) for value in inputs]
    names = [f"x{i}" for i in range(len(arrays))]
    sources = [
        const(name, array) if i in constant else placeholder(name, array.shape, array.dtype)
        for i, (name, array) in enumerate(zip(names, arrays, strict=True))
    ]
    model = graph(*sources, node(op, "y", " ".join(names), **attrs))
    return model, {name: array for i, (name, array) in enumerate(zip(names, arrays, strict=True)) if i not in constant}


def run_op(op: str, inputs: Sequence[Any], constant: Sequence[int] = (), **attrs: Any) -> list[Array]:
    """Return the outputs of one node ``y``; the inputs in ``constant`` are Const, the others are fed."""
    return run(*op_model(op, inputs, constant, **attrs))
