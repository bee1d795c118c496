"""What tensors occupy in memory, and which outputs may lie where an input lies.

The planner, the checker of plans and the kernels of the simulator share these rules. The kernels' part: a kernel of a
type in :data:`IN_PLACE_SLOTS` gives the same result when its output is the memory of that input.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ge.graph.graph import CycleError, Graph
from ge.graph.node import Node, NodeOut
from ge.graph.tensor_desc import Shape, TensorDesc
from ge.graph.types import DataType, Format, has_numpy_dtype, numpy_dtype

MAX_RANK = 64
"""As many axes as numpy knows."""

MAX_BYTES = 1 << 47
"""More than any address space holds: what is that large comes from a mistyped shape."""

LOAD_TIME_CONST = "_load_time_const"
"""Attribute of a node that the simulator evaluates once at load: its outputs are constants that no file holds."""

MUST_COPY = "_must_copy"
"""Attribute of a node of :data:`VIEW_OPS` whose output needs memory of its own."""

VIEW_OPS = frozenset(
    {
        "Bitcast",
        "ExpandDims",
        "Flatten",
        "FlattenV2",
        "Identity",
        "ReFormat",
        "Reshape",
        "Squeeze",
        "SqueezeV2",
        "SqueezeV3",
        "Unsqueeze",
        "UnsqueezeV2",
        "UnsqueezeV3",
    }
)
"""Operator types whose output is input 0 under another shape or name."""

_UNARY = (
    "Abs Acos Acosh Adds Asin Asinh Atan Atanh Ceil Celu ClipByValue Cos Cosh Elu Erf Exp FastGelu Floor Gelu "
    "GeluV2 HardSigmoid HardSwish Invert LeakyRelu Log LogicalNot Mish Muls Neg Power PRelu Reciprocal Relu Relu6 "
    "Round Rsqrt Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Swish Tan Tanh Threshold BiasAdd "
    "BNInfer AddN AccumulateNV2"
)
_BINARY = (
    "Add Sub Mul RealDiv Div FloorDiv FloorMod Mod Pow Maximum Minimum Equal NotEqual Less LessEqual Greater "
    "GreaterEqual LogicalAnd LogicalOr BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift SquaredDifference"
)

IN_PLACE_SLOTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_UNARY.split(), (0,)),
    **dict.fromkeys(_BINARY.split(), (0, 1)),
    "Select": (1, 2),
    "SelectV2": (1, 2),
}
"""Per elementwise operator type the inputs whose memory its only output may take over."""

_ELEMENT_BYTES: dict[DataType, int] = {
    dtype: numpy_dtype(dtype).itemsize
    for dtype in DataType
    if dtype is not DataType.DT_STRING and has_numpy_dtype(dtype)
}

_PLAIN_FORMATS = frozenset(
    {
        Format.FORMAT_ND,
        Format.FORMAT_NCHW,
        Format.FORMAT_NHWC,
        Format.FORMAT_HWCN,
        Format.FORMAT_CHWN,
        Format.FORMAT_NDHWC,
        Format.FORMAT_NCDHW,
        Format.FORMAT_DHWCN,
        Format.FORMAT_DHWNC,
        Format.FORMAT_CN,
        Format.FORMAT_NC,
        Format.FORMAT_NCL,
    }
)


def memory_size(desc: TensorDesc) -> int | None:
    """Return the bytes of a tensor in memory (sub-byte types: one byte per element), or ``None``.

    ``None`` stands for what cannot lie in an arena: unknown shapes, strings, handles.
    """
    elements = desc.shape.elements
    width = _ELEMENT_BYTES.get(desc.data_type)
    return None if elements < 0 or width is None else elements * width


def shape_fault(dims: Sequence[int]) -> str:
    """Return why no tensor can have that shape, whatever its unknown dims are; empty when one can.

    Dims of 0 count as 1: numpy makes no array without elements either whose other dims are too large.
    """
    if len(dims) > MAX_RANK:
        return f"it has {len(dims)} axes, and tensors have at most {MAX_RANK}"
    return "no memory can hold it" if prod(max(dim, 1) for dim in dims) > MAX_BYTES else ""


def is_constant(node: Node) -> bool:
    """True for nodes whose outputs are fixed when the model is loaded: Const and load-time constants."""
    return node.type == "Const" or bool(node.attrs.get(LOAD_TIME_CONST))


def is_view(node: Node) -> bool:
    """True when the output of ``node`` is the memory of its input 0, so that nothing is left to compute."""
    if node.type not in VIEW_OPS:
        return False
    source = node.input(0)
    if source is None or node.attrs.get(MUST_COPY) or is_constant(node):
        return False
    before, after = source.desc, node.output_descs[0]
    size = memory_size(before)
    if size is None or size != memory_size(after):
        return False
    if before.format in _PLAIN_FORMATS and after.format in _PLAIN_FORMATS:
        return True
    return before.format == after.format and before.shape == after.shape


def view_roots(graph: Graph) -> dict[NodeOut, NodeOut]:
    """Return, for every tensor of ``graph``, the tensor whose memory it shows: itself unless it is a view.

    Raises :class:`CycleError` when views go round in a circle.
    """
    roots: dict[NodeOut, NodeOut] = {}
    for node in graph:
        if not is_view(node):
            roots.update((out, out) for out in node.outputs())
            continue
        for out in node.outputs():
            path = []
            root = out
            while root not in roots and is_view(root.node):
                path.append(root)
                if len(path) > len(graph):
                    raise CycleError([node])
                source = root.node.input(0)
                assert source is not None
                root = source
            root = roots.get(root, root)
            roots.update(dict.fromkeys([*path, root], root))
    return roots


def is_computing(node: Node) -> bool:
    """True for nodes that need a task: neither the border of the graph, nor constants, nor views."""
    return node.type not in ("Data", "Const", "NetOutput", "NoOp") and not is_constant(node) and not is_view(node)


def in_place_slots(node: Node) -> list[int]:
    """Return the inputs whose memory the output of ``node`` may take over when nobody reads them afterwards.

    Element i of the output must come from element i of that input alone: same element type, same storage shape
    (leading ones aside), and the tensor is read through one slot only.
    """
    if len(node.output_descs) != 1:
        return []
    after = node.output_descs[0]
    slots = []
    for slot in IN_PLACE_SLOTS.get(node.type, ()):
        source = node.input(slot)
        if source is None:
            continue
        before = source.desc
        if before.data_type == after.data_type and (
            before.shape == after.shape or _without_leading_ones(before.shape) == _without_leading_ones(after.shape)
        ):
            slots.append(slot)
    return slots


def _without_leading_ones(shape: Shape) -> tuple[int, ...]:
    start = 0
    while start < len(shape) and shape[start] == 1:
        start += 1
    return tuple(shape[start:])


def first_without_size(graph: Graph) -> NodeOut | None:
    """Return the first tensor of ``graph`` that no arena can hold (see ``memory_size``), if there is one."""
    return next((out for node in graph for out in node.outputs() if memory_size(out.desc) is None), None)
