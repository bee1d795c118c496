"""Every column of an operator has a kernel, and every layout that kernels know stands in a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ge.errors import ReportedError
from ge.formats import is_private
from ge.graph import DataType, Graph, Node, Tensor
from ge.graph.types import Format, has_numpy_dtype, numpy_dtype
from ge.ops import infer_node
from ge.ops.format_columns import COLUMNS, FormatColumn, format_columns
from ge.ops.format_columns_selectors import MATRIX_PRODUCTS, by_agreement, by_broadcast
from simulator.kernels import kernel_types
from simulator.kernels.registry import kernel_formats
from simulator.loader import load
from tests.simulator.planned_model import plan_model
from tests.simulator.storage_model import NCDHW, NCHW, ND, Laid, default_origin

FLOAT_TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
ALL_TYPES = [*FLOAT_TYPES, np.int8, np.uint8, np.int32, np.bool_]


HELD_TYPES = [dtype for dtype in DataType if has_numpy_dtype(dtype) and dtype is not DataType.DT_STRING]


@dataclass
class Sample:
    """A node by its inputs: shapes of tensors, or vectors of numbers that are constants."""

    inputs: Sequence[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    n_outputs: int = 1
    types: Sequence[Any] = tuple(FLOAT_TYPES)
    fixed: dict[int, Any] = field(default_factory=dict)
    """Element types of single inputs."""

    def node(self, op_type: str, dtype: Any) -> Node:
        graph = Graph("sample")
        sources = []
        for slot, given in enumerate(self.inputs):
            if given is None:
                sources.append(None)
            elif isinstance(given, list):
                numbers = np.array(given, np.float32 if any(isinstance(v, float) for v in given) else np.int32)
                sources.append(graph.add_const(f"x{slot}", Tensor.of(numbers)))
            else:
                tensor = Tensor.of(np.ones(given, self.fixed.get(slot, dtype)))
                tensor.desc.format = tensor.desc.origin_format = default_origin(tensor.array)
                sources.append(
                    graph.add_node("Data", f"x{slot}", attrs={"index": slot}, output_descs=[tensor.desc]).output()
                )
        node = graph.add_node(op_type, "node", sources, dict(self.attrs), self.n_outputs)
        infer_node(node)
        for desc in node.output_descs:
            desc.format = desc.origin_format = {4: NCHW, 5: NCDHW}.get(len(desc.origin_shape), ND)
        return node


IMAGE, PADDED, VOLUME, MATRIX = (2, 32, 6, 8), (2, 17, 6, 8), (1, 17, 4, 6, 8), (2, 32, 48)
EVERYWHERE = (IMAGE, PADDED, VOLUME, MATRIX, (2, 17, 19))
WINDOW = {"strides": [1, 1, 1, 1], "pads": [1, 1, 1, 1], "dilations": [1] * 4, "data_format": "NCHW"}
POOL = {"ksize": [1, 1, 3, 3], "strides": [1, 1, 2, 2], "pads": [1] * 4, "data_format": "NCHW", "padding": "SAME"}
POOL_3D = {"ksize": [1, 1, 3, 3, 3], "strides": [1] * 5, "pads": [1] * 6, "data_format": "NCDHW", "padding": "SAME"}
LAST = {"begin_norm_axis": -1, "begin_params_axis": -1}
NUMBERS = [*FLOAT_TYPES, np.int8, np.int32]


def conv(channels: int = 17, groups: int = 1, **attrs: Any) -> Sample:
    per_group = channels // groups
    inputs = [(1, channels, 6, 8), (34, per_group, 3, 3), (34,)]
    return Sample(inputs, {**WINDOW, "groups": groups, **attrs})


def whole_conv() -> Sample:
    return Sample([(1, 17, 6, 8), (34, 17, 3, 3), (34,)], {**WINDOW, "groups": 1}, types=[np.int8], fixed={2: np.int32})


def reductions(axis_name: str | None, types: Sequence[Any]) -> list[Sample]:
    cases = [((2, 17, 6, 8), [2]), ((2, 17, 6, 8), [2, 3]), ((2, 17, 6, 8), [1]), ((1, 17, 4, 6, 8), [2])]
    cases += [(MATRIX, [0]), ((3, 2, 17, 19), [0]), (MATRIX, [-1]), (MATRIX, [-2]), (MATRIX, [-1, -2])]
    found = []
    for shape, axes in cases:
        for keeps in (True, False):
            attrs = {"keep_dims": keeps} | ({axis_name: axes} if axis_name else {})
            found.append(Sample([shape] if axis_name else [shape, axes], attrs, types=types))
    return found


def joins(op_type: str) -> list[Sample]:
    found = []
    for shape, axis in ((IMAGE, 1), (PADDED, 2), (PADDED, 0), (VOLUME, 3), (MATRIX, 2), (MATRIX, 1), ((2, 17, 19), 0)):
        inputs: list[Any] = [shape, shape]
        if op_type != "ConcatD":
            inputs.insert(0 if op_type == "Concat" else 2, [axis])
        attrs = {"concat_dim": axis, "N": 2} if op_type == "ConcatD" else {"N": 2}
        found.append(Sample(inputs, attrs, types=ALL_TYPES))
    return found


def splits(op_type: str) -> list[Sample]:
    found = []
    cases = (
        (IMAGE, 1),
        (PADDED, 2),
        (PADDED, 0),
        ((1, 17, 4, 6, 8), 2),
        ((2, 32, 96), 2),
        (MATRIX, 1),
        ((2, 17, 19), 0),
    )
    for shape, axis in cases:
        half = shape[axis] // 2
        inputs: list[Any] = {"Split": [[axis], shape], "SplitV": [shape, [half, half], [axis]]}.get(op_type, [shape])
        attrs: dict[str, Any] = {"num_split": 2}
        attrs |= {"split_dim": axis} if op_type.endswith("D") else {}
        attrs |= {"size_splits": [half, half]} if op_type == "SplitVD" else {}
        found.append(Sample(inputs, attrs, n_outputs=2, types=ALL_TYPES))
    return found


def each(*shapes: Any, attrs: dict[str, Any] | None = None, types: Sequence[Any] = tuple(FLOAT_TYPES)) -> list[Sample]:
    return [Sample([shape], attrs or {}, types=types) for shape in shapes]


def resizes(op_type: str) -> list[Sample]:
    if op_type == "Resize":
        return [
            Sample([IMAGE, None, [1.0, 1.0, 2.0, 2.0]], {"mode": mode}, types=NUMBERS) for mode in ("nearest", "linear")
        ]
    return [Sample([IMAGE, [12, 16]], types=NUMBERS), Sample([PADDED, [3, 4]], types=NUMBERS)]


def per_channel() -> list[Sample]:
    return [Sample([shape, (17,)], {"data_format": name}) for shape, name in ((PADDED, "NCHW"), (VOLUME, "NCDHW"))]


def statistics(**attrs: Any) -> list[Sample]:
    vectors = dict.fromkeys(range(1, 5), np.float32)
    shapes = ((PADDED, "NCHW"), (VOLUME, "NCDHW"))
    return [Sample([shape, *[(17,)] * 4], {**attrs, "data_format": name}, fixed=vectors) for shape, name in shapes]


def products(op_type: str) -> list[Sample]:
    batch = (3,) if op_type.startswith("Batch") else ()
    bias = [] if op_type in ("BatchMatMul",) else [(20,)]
    found = [Sample([(*batch, 17, 33), (*batch, 33, 20), *bias])]
    return [*found, Sample([(*batch, 17, 33), (*batch, 33, 20)], types=[*FLOAT_TYPES, np.int8, np.int32])]


FAMILIES: dict[str, Callable[[str], list[Sample]]] = {
    "Conv2D": lambda _: [conv(), conv(34, groups=2), conv(3), conv(34, groups=34), whole_conv()],
    "Conv2DV2": lambda _: [conv(), conv(34, groups=2), conv(3)],
    "DepthwiseConv2D": lambda _: [Sample([(1, 17, 6, 8), (2, 17, 3, 3)], WINDOW)],
    "Conv2DTranspose": lambda _: [Sample([[0, 0, 0, 0], (1, 17, 6, 8), (17, 20, 3, 3)], {**WINDOW, "groups": 1})],
    "Conv2DBackpropInput": lambda _: [Sample([[0, 0, 0, 0], (18, 20, 3, 3), (1, 18, 6, 8)], {**WINDOW, "groups": 2})],
    "Conv3D": lambda _: [
        Sample(
            [VOLUME, (18, 17, 3, 3, 3)],
            {"strides": [1] * 5, "pads": [1] * 6, "dilations": [1] * 5, "groups": 1, "data_format": "NCDHW"},
        )
    ],
    **dict.fromkeys(("MaxPool", "AvgPool"), lambda _: each(IMAGE, PADDED, attrs=POOL)),
    "MaxPoolV3": lambda _: each(IMAGE, PADDED, attrs=POOL, types=NUMBERS),
    "AvgPoolV2": lambda _: each(IMAGE, PADDED, attrs=POOL),
    **dict.fromkeys(("MaxPool3D", "AvgPool3D"), lambda _: each(VOLUME, attrs=POOL_3D)),
    "GlobalAveragePool": lambda _: each(IMAGE, PADDED, VOLUME),
    **dict.fromkeys(("Resize", "ResizeBilinearV2", "ResizeNearestNeighborV2"), resizes),
    "BatchNorm": lambda _: [*statistics(is_training=False), *statistics(is_training=True)],
    "BNInfer": lambda _: statistics(epsilon=1e-3),
    "BiasAdd": lambda _: per_channel(),
    "PRelu": lambda _: per_channel(),
    **dict.fromkeys(MATRIX_PRODUCTS, products),
    **dict.fromkeys(("ConcatD", "Concat", "ConcatV2"), joins),
    "Pack": lambda _: [Sample([MATRIX, MATRIX], {"axis": 1, "N": 2}, types=ALL_TYPES)],
    **dict.fromkeys(("SplitD", "Split", "SplitV", "SplitVD"), splits),
    **dict.fromkeys(
        ("SoftmaxV2", "LogSoftmaxV2"),
        lambda _: [
            *each(IMAGE, attrs={"axes": [1]}),
            *each(PADDED, VOLUME, MATRIX, attrs={"axes": [-1]}),
            *each(PADDED, VOLUME, MATRIX, (2, 17, 19), attrs={"axes": [0]}),
            *each(PADDED, IMAGE, attrs={"axes": [2], "_x_flatten": True}),
            *each(PADDED, IMAGE, attrs={"axes": [1], "_x_flatten": True}),
            *each((2, 17, 19), attrs={"axes": [0], "_x_flatten": True}),
        ],
    ),
    **dict.fromkeys(("LayerNorm", "LayerNormV3"), lambda _: [Sample([MATRIX, (48,), (48,)], LAST, n_outputs=3)]),
    "LayerNormV4": lambda _: [Sample([MATRIX, [48], (48,), (48,)], n_outputs=3)],
    "RmsNorm": lambda _: [Sample([MATRIX, (48,)], n_outputs=2)],
    "AddLayerNorm": lambda _: [
        Sample([MATRIX, MATRIX, (48,), (48,), *bias], n_outputs=4) for bias in ([], [(48,)], [MATRIX])
    ],
}
ATTRS: dict[str, dict[str, Any]] = {
    "Adds": {"value": 1.5},
    "Muls": {"value": -0.5},
    "Cast": {"dst_type": 1},
    "Identity": {"_must_copy": True},
    "AddN": {"N": 2},
    "AccumulateNV2": {"N": 2},
}
ONLY = {
    **dict.fromkeys(("LogicalAnd", "LogicalOr", "LogicalNot", "ReduceAll", "ReduceAny"), (np.bool_,)),
    **dict.fromkeys(
        ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift"), (np.int8, np.int32)
    ),
}


def samples(op_type: str) -> list[Sample]:
    """Return nodes that have every column of a type between them."""
    if op_type in FAMILIES:
        return FAMILIES[op_type](op_type)
    if COLUMNS[op_type] is by_agreement:
        return each(*EVERYWHERE, attrs=ATTRS.get(op_type), types=ONLY.get(op_type, NUMBERS))
    if COLUMNS[op_type] is by_broadcast:
        count = 3 if op_type in ("ClipByValue", "Select", "SelectV2") else 2
        fixed = {0: np.bool_} if op_type.startswith("Select") else {}
        types = ONLY.get(op_type, NUMBERS)
        found = [Sample([shape] * count, ATTRS.get(op_type, {}), types=types, fixed=fixed) for shape in EVERYWHERE]
        if op_type in ("ClipByValue", "AddN", "AccumulateNV2", "Select"):
            return found
        other = [(1, 17, 1, 1), (1, 17, 4, 1, 1), (32, 48)]
        pairs = zip((PADDED, VOLUME, MATRIX), other, strict=True)
        return [*found, *(Sample([a] * (count - 1) + [b], types=types, fixed=fixed) for a, b in pairs)]
    axis_name = {"ReduceSumD": "axes", "ReduceMeanD": "axes", "SquareSumV1": "axis"}.get(op_type)
    return reductions(axis_name, ONLY.get(op_type, FLOAT_TYPES))


def private(column: FormatColumn) -> set[Format]:
    return {found for found in (*column.inputs, *column.outputs) if found is not None and is_private(found)}


def bind(node: Node, column: FormatColumn) -> None:
    """Load the node laid out as ``column`` says: constants stay constants."""
    graph = Graph("bound")
    sources = []
    for slot, (source, layout) in enumerate(zip(node.inputs, column.inputs, strict=True)):
        if source is None or layout is None:
            sources.append(None)
            continue
        if source.node.type == "Const":
            sources.append(graph.add_const(f"x{slot}", source.node.attrs["value"].view()))
            continue
        desc = source.desc
        wanted = desc.origin_format if layout is Format.FORMAT_ND else layout
        laid = Laid.of(desc.origin_shape, desc.data_type, desc.origin_format, wanted, column.sub_format(layout))
        sources.append(graph.add_node("Data", f"x{slot}", attrs={"index": slot}, output_descs=[laid.desc]).output())
    new = graph.add_node(node.type, "node", sources, dict(node.attrs), len(node.output_descs))
    for index, (desc, layout) in enumerate(zip(node.output_descs, column.outputs, strict=True)):
        wanted = desc.origin_format if layout is Format.FORMAT_ND else layout
        new.output_descs[index] = Laid.of(desc.origin_shape, desc.data_type, desc.origin_format, wanted).desc
    load(plan_model(graph, list(new.outputs())))


@pytest.mark.parametrize("op_type", COLUMNS)
def test_every_column_has_a_kernel_and_every_kernel_a_column(op_type: str) -> None:
    found: set[Format] = set()
    for sample in samples(op_type):
        for dtype in sample.types:
            node = sample.node(op_type, dtype)
            for column in format_columns(node):
                if not column.is_origin:
                    found |= private(column)
                    bind(node, column)
    assert found == {known for known in kernel_formats(op_type) if is_private(known)}


@pytest.mark.parametrize("op_type", COLUMNS)
def test_whatever_inference_accepts_has_kernels_for_its_columns(op_type: str) -> None:
    """What compiles runs: a column that the operator cannot have for its element types would end in R1051."""
    accepted: set[str] = set()
    for sample in samples(op_type):
        for dtype in map(numpy_dtype, HELD_TYPES):
            try:
                node = sample.node(op_type, dtype)
            except ReportedError:
                continue
            accepted.add(dtype.name)
            for column in format_columns(node):
                if not column.is_origin:
                    bind(node, column)
    assert accepted


def test_kernels_of_other_types_know_no_layouts() -> None:
    others = set(kernel_types()) - set(COLUMNS) - {"TransData"}
    assert {name for name in others if any(map(is_private, kernel_formats(name)))} == set()


def test_numbers_of_all_types_lie_in_layouts() -> None:
    """The table above covers what the columns take."""
    from ge.ops.format_columns import LAID_OUT

    assert {numpy_dtype(dtype) for dtype in LAID_OUT} == {np.dtype(dtype) for dtype in ALL_TYPES}
