"""What operators say of the meaning of axes: which of their tensors have named axes, and how formats pass through them.

Anchors are ports whose format follows from the operator and its ``data_format`` (or ``_x_data_format``), whatever is
around it: from them formats spread through the graph. A rule of inference tells what an operator does with a format
that reaches it; most do with all their tensors what one of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ge.formats import AXES
from ge.graph.node import Node
from ge.graph.tensor_desc import TensorDesc
from ge.graph.types import FORMAT_BY_TEXT, Format
from ge.ops.conv import filter_format
from ge.ops.layout import channel_axis
from ge.ops.registry import lookup


@dataclass
class NodeFormats:
    """Origin formats of one node's tensors by slot, ND where nothing is known. Rules fill in what follows.

    A format is given to a tensor only if it has an axis for each dim; tensors of fewer dims may have any.
    """

    node: Node
    inputs: list[Format]
    outputs: list[Format]

    @property
    def is_known(self) -> bool:
        """True when a tensor has a format."""
        return any(f != Format.FORMAT_ND for f in self.inputs) or any(f != Format.FORMAT_ND for f in self.outputs)

    def give_all(self, format: Format) -> None:
        """Give ``format`` to every tensor that has none and may have it."""
        for slot, source in enumerate(self.node.inputs):
            if self.inputs[slot] == Format.FORMAT_ND and source is not None and has_axes_for(format, source.desc):
                self.inputs[slot] = format
        for index, desc in enumerate(self.node.output_descs):
            if self.outputs[index] == Format.FORMAT_ND and has_axes_for(format, desc):
                self.outputs[index] = format


FormatRule = Callable[[NodeFormats], None]


def has_axes_for(format: Format, desc: TensorDesc) -> bool:
    """Tell whether a tensor has no more dims than ``format`` has axes."""
    return format not in AXES or len(desc.origin_shape) <= len(AXES[format])


def share_format(formats: NodeFormats) -> None:
    """Give every tensor without a format that of the first output that has one, else of the first input."""
    known = [f for f in (*formats.outputs, *formats.inputs) if f != Format.FORMAT_ND]
    if known:
        formats.give_all(known[0])


def keep_apart(formats: NodeFormats) -> None:
    """Leave all tensors as they are: the axes of one say nothing about those of another."""


_APART = (
    *("Reshape", "Flatten", "Transpose", "TransposeD"),
    *("MatMul", "MatMulV2", "MatMulV3", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "FullyConnection"),
    *("GEMM", "XMatMulInteger", "XQLinearMatMul"),
    # their bodies say what becomes of each input
    *("If", "StatelessIf", "Case", "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall"),
)
RULES: dict[str, FormatRule] = dict.fromkeys(_APART, keep_apart)


def format_rule(type: str) -> FormatRule:
    """Return how formats pass through an operator: its own rule, or :func:`share_format`."""
    return RULES.get(type, share_format)


@dataclass(frozen=True)
class NamedPorts:
    """Ports with named axes: images in and out, and the filter."""

    inputs: tuple[str, ...] = ("x",)
    outputs: tuple[str, ...] = ("y",)
    filter: str = ""


_IMAGE = NamedPorts()
_CONV = NamedPorts(filter="filter")
ANCHORS: dict[str, NamedPorts] = {
    **dict.fromkeys(("Conv2D", "Conv2DV2", "Conv3D", "DepthwiseConv2D", "Conv2DTranspose", "Conv3DTranspose"), _CONV),
    "Conv2DBackpropInput": NamedPorts(("out_backprop",), filter="filter"),
    "DeformableConv2D": NamedPorts(("x", "offsets"), filter="filter"),
    "XDeformConv": NamedPorts(("x", "offset", "mask"), filter="filter"),
    **dict.fromkeys(("XConvInteger", "XQLinearConv"), NamedPorts(filter="w")),
    **dict.fromkeys(("MaxPool", "MaxPoolV3", "MaxPool3D", "AvgPool", "AvgPoolV2", "AvgPool3D"), _IMAGE),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "AdaptiveAvgPool2d"), _IMAGE),
    "MaxPoolWithArgmax": NamedPorts(outputs=("y", "argmax")),
    "XMaxPoolWithIndices": NamedPorts(outputs=("y", "indices")),
    **dict.fromkeys(("BatchNorm", "BNInfer", "InstanceNorm", "GroupNorm", "LRN", "BiasAdd"), _IMAGE),
    **dict.fromkeys(("Resize", "ResizeBilinearV2", "ResizeNearestNeighborV2", "DepthToSpace", "SpaceToDepth"), _IMAGE),
    "ResizeBicubic": NamedPorts(("images",)),
    **dict.fromkeys(("ROIPooling", "CropAndResize"), _IMAGE),
    "ROIAlign": NamedPorts(("features",)),
}


def anchors(node: Node) -> Iterator[tuple[bool, int, Format]]:
    """Yield the tensors of ``node`` whose axes the operator names: (is an output, slot, format).

    Tensors of other than 4 or 5 dims have no format with named axes.
    """
    named, definition = ANCHORS.get(node.type), lookup(node.type)
    if named is None or definition is None:
        return
    op, signature = definition.attributes(node.attrs), definition.signature
    data_format = str(op.data_format if "data_format" in signature.attrs else op.get("_x_data_format", "NCHW"))
    slots = signature.input_slices(len(node.inputs))
    for port, slot in slots.items():
        source = node.input(slot.start)
        if source is None:
            continue
        rank = len(source.desc.origin_shape)
        if port in named.inputs:
            yield from ((False, slot.start, f) for f in _image_format(data_format, rank))
        elif port == named.filter:
            yield from ((False, slot.start, f) for f in _known_format(filter_format(op, data_format), rank))
    for index, out in enumerate(signature.outputs[: len(node.output_descs)]):
        if out.name in named.outputs:
            found = _image_format(data_format, len(node.output_descs[index].origin_shape))
            yield from ((True, index, f) for f in found)


def _image_format(data_format: str, rank: int) -> Iterator[Format]:
    """Yield the format of ``rank`` axes with the channels where ``data_format`` has them."""
    is_last = channel_axis(data_format, rank) != 1
    if rank == 4:
        yield Format.FORMAT_NHWC if is_last else Format.FORMAT_NCHW
    elif rank == 5:
        yield Format.FORMAT_NDHWC if is_last else Format.FORMAT_NCDHW


def _known_format(axes: str, rank: int) -> Iterator[Format]:
    found = FORMAT_BY_TEXT.get(axes)
    if found is not None and rank == len(axes) in (4, 5):
        yield found
