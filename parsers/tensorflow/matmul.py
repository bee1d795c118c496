"""Matrix products."""

from __future__ import annotations

from ge.graph import DataType
from parsers.ge_nodes import Mapped
from parsers.tensorflow.mapping import Row, maps, maps_rows
from parsers.tensorflow.node_builder import NodeBuilder

_TRANSPOSED = {"transpose_a": "transpose_x1", "transpose_b": "transpose_x2"}
_COMPLEX = (DataType.DT_COMPLEX64, DataType.DT_COMPLEX128)

maps_rows({"MatMul": Row("MatMulV2", _TRANSPOSED, transpose_a=False, transpose_b=False)})


def _batched(n: NodeBuilder, type: str) -> Mapped:
    adjoint = {"adj_x1": n.attr("adj_x", False), "adj_x2": n.attr("adj_y", False)}
    if any(adjoint.values()) and n.dtype(n.need(0)) in _COMPLEX:
        raise n.fail("the adjoint of complex matrices is not supported")
    return n.add(type, n.need(0), n.need(1), **adjoint)


@maps("BatchMatMul", inputs=2)
def batch_matmul(n: NodeBuilder) -> Mapped:
    """Before: BatchMatMul. After: BatchMatMul."""
    return _batched(n, "BatchMatMul")


@maps("BatchMatMulV2", inputs=2)
def batch_matmul_v2(n: NodeBuilder) -> Mapped:
    """Before: BatchMatMulV2. After: BatchMatMulV2."""
    return _batched(n, "BatchMatMulV2")


@maps("BatchMatMulV3", inputs=2)
def batch_matmul_v3(n: NodeBuilder) -> Mapped:
    """Before: BatchMatMulV3, whose result may have another type than its operands. After: BatchMatMulV2."""
    wanted = n.attr("Tout", DataType)
    n.inputs = [n.cast(source, wanted, f"Cast_{i}") for i, source in enumerate((n.need(0), n.need(1)))]
    return _batched(n, "BatchMatMulV2")
