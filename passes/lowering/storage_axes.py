"""What the dims of a stored tensor mean: which of them divide an axis into blocks, and where padding begins."""

from __future__ import annotations

from dataclasses import dataclass

from ge.formats import LayoutError, expand_dims, is_private, lies_in_origin
from ge.formats.pattern import Part, Pattern
from ge.formats.storage_shape import BY_AXES, BY_MATRIX, Blocking, axis_extents
from ge.graph.tensor_desc import TensorDesc
from passes.lowering.refusal import Refusal, Rule

Guard = tuple[int, ...]


@dataclass(frozen=True)
class DividedAxis:
    """An axis of the model that two dims of the storage hold: ``outer`` counts blocks of ``length``."""

    extent: int
    length: int
    outer: int
    inner: int

    @property
    def is_padded(self) -> bool:
        """Whether the last block is not full."""
        return self.extent % self.length != 0


def divided_axes(desc: TensorDesc) -> list[DividedAxis]:
    """Return the axes that the layout of a tensor divides; none for one that lies as its origin view says.

    Raises :class:`Refusal` for layouts whose dims are more than that.
    """
    if not is_private(desc.format) or lies_in_origin(desc):
        return []
    pattern, extents, lead = _pattern_of(desc)
    if any(len(dim) != 1 for dim in pattern.dims):
        raise Refusal(Rule.LAYOUT, f"dims of {desc.format.name} are products of axes")
    blocking = Blocking.of(desc.format, desc.data_type, desc.sub_format)
    places = {dim[0]: lead + place for place, dim in enumerate(pattern.dims)}
    found = []
    for axis, length in pattern.lengths(blocking.c0, blocking.m0).items():
        outer, inner = places.get(Part(axis, "1")), places.get(Part(axis, "0"))
        if outer is None or inner is None or axis not in extents:
            raise Refusal(Rule.LAYOUT, f"axis {axis} of {desc.format.name} is not divided into blocks and lanes")
        found.append(DividedAxis(extents[axis], length, outer, inner))
    return found


def _pattern_of(desc: TensorDesc) -> tuple[Pattern, dict[str, int], int]:
    try:
        shape = expand_dims(desc.origin_shape, desc.origin_format, desc.format)
        if desc.format in BY_MATRIX and len(shape) >= 2:
            *batch, rows, columns = shape
            return BY_MATRIX[desc.format], {"I": rows, "J": columns}, len(batch)
        extents = axis_extents(shape, desc.origin_format, desc.format) if desc.format in BY_AXES else None
    except LayoutError as fault:
        raise Refusal(Rule.LAYOUT, str(fault)) from fault
    if extents is None:
        raise Refusal(Rule.LAYOUT, f"loops over {desc.format.name} are not known")
    return BY_AXES[desc.format], extents, 0


def guards(desc: TensorDesc) -> tuple[Guard, ...]:
    """Return what holds for the elements of a stored tensor and not for its padding, over its dims."""
    found = []
    for axis in divided_axes(desc):
        if axis.is_padded:
            guard = [0] * (len(desc.shape) + 1)
            guard[axis.outer], guard[axis.inner], guard[-1] = axis.length, 1, axis.extent
            found.append(tuple(guard))
    return tuple(found)


def check_same_layout(source: TensorDesc, target: TensorDesc) -> None:
    """Check that elements of ``source`` go with those of ``target`` at the same place, repeated along dims of 1.

    Raises :class:`Refusal`: in blocks, an axis can be repeated only where it is not divided.
    """
    if not is_private(source.format) and not is_private(target.format):
        return
    if source.shape.elements == 1 and not is_private(source.format):
        return
    if source.format != target.format or len(source.shape) != len(target.shape):
        raise Refusal(Rule.LAYOUT, f"{source.format.name} {source.shape} beside {target.format.name} {target.shape}")
    if source.shape == target.shape and source.origin_shape == target.origin_shape:
        return
    # padding of a tensor whose dims are products is repeated as it is only where the tensors are the same
    pairs = zip(divided_axes(source), divided_axes(target), strict=True)
    if any((a.extent, a.length) != (b.extent, b.length) for a, b in pairs):
        raise Refusal(Rule.LAYOUT, f"{target.format.name} divides an axis into blocks that is repeated")
