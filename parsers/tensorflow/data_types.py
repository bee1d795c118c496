"""Element types: TensorFlow's numbers and ours."""

from __future__ import annotations

from ge.errors import ReportedError
from ge.graph.types import DataType
from parsers.tensorflow import graph_def_pb2 as pb

_REFERENCE = 100
"""What is added to a type for a reference to it."""

DATA_TYPES: dict[int, DataType] = {
    pb.DT_FLOAT: DataType.DT_FLOAT,
    pb.DT_DOUBLE: DataType.DT_DOUBLE,
    pb.DT_HALF: DataType.DT_FLOAT16,
    pb.DT_BFLOAT16: DataType.DT_BF16,
    pb.DT_INT8: DataType.DT_INT8,
    pb.DT_INT16: DataType.DT_INT16,
    pb.DT_INT32: DataType.DT_INT32,
    pb.DT_INT64: DataType.DT_INT64,
    pb.DT_UINT8: DataType.DT_UINT8,
    pb.DT_UINT16: DataType.DT_UINT16,
    pb.DT_UINT32: DataType.DT_UINT32,
    pb.DT_UINT64: DataType.DT_UINT64,
    pb.DT_BOOL: DataType.DT_BOOL,
    pb.DT_STRING: DataType.DT_STRING,
    pb.DT_COMPLEX64: DataType.DT_COMPLEX64,
    pb.DT_COMPLEX128: DataType.DT_COMPLEX128,
    # the quantized types are plain integers; what they stand for is said elsewhere
    pb.DT_QINT8: DataType.DT_INT8,
    pb.DT_QUINT8: DataType.DT_UINT8,
    pb.DT_QINT16: DataType.DT_INT16,
    pb.DT_QUINT16: DataType.DT_UINT16,
    pb.DT_QINT32: DataType.DT_INT32,
    pb.DT_RESOURCE: DataType.DT_RESOURCE,
    pb.DT_VARIANT: DataType.DT_VARIANT,
    pb.DT_FLOAT8_E5M2: DataType.DT_FLOAT8_E5M2,
    pb.DT_FLOAT8_E4M3FN: DataType.DT_FLOAT8_E4M3FN,
    pb.DT_FLOAT8_E4M3FNUZ: DataType.DT_FLOAT8_E4M3FNUZ,
    pb.DT_FLOAT8_E5M2FNUZ: DataType.DT_FLOAT8_E5M2FNUZ,
    pb.DT_INT4: DataType.DT_INT4,
    pb.DT_UINT4: DataType.DT_UINT4,
    pb.DT_INT2: DataType.DT_INT2,
    pb.DT_UINT2: DataType.DT_UINT2,
}


def type_name(number: int) -> str:
    """Return TensorFlow's name of an element type, or its number."""
    return pb.DataType.Name(number) if number in pb.DataType.values() else str(number)


def data_type(number: int, owner: str) -> DataType:
    """Return the GE type of a TensorFlow element type; references count as what they refer to.

    Raises E19999 that names ``owner`` for a type that GE does not have.
    """
    found = DATA_TYPES.get(number - _REFERENCE if number > _REFERENCE else number)
    if found is None:
        raise ReportedError(
            "E19999",
            reason=f"{owner} has the element type {type_name(number)}, which GE does not have",
            solution="Change the type in the model.",
        )
    return found
