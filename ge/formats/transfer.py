"""Turning arrays from one format into another."""

from __future__ import annotations

from dataclasses import dataclass

from ge.formats.cube_sizes import SERVER_CUBES, CubeSizes
from ge.formats.index_map import Array, IndexMap
from ge.formats.layout_error import LayoutError
from ge.formats.layout_pairs import ORIGINS
from ge.formats.layouts import index_map
from ge.formats.packed_format import primary_format
from ge.formats.storage_shape import Blocking, RnnSizes
from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType, data_type_of


@dataclass(frozen=True)
class Transfer:
    """A transfer between two formats, prepared for one shape: ``run`` does nothing but copy.

    ``to_storage`` tells the direction: elements are written by the map, or read by it.
    """

    map: IndexMap
    to_storage: bool

    @classmethod
    def of(
        cls,
        origin_shape: Shape,
        source: int,
        target: int,
        dtype: DataType,
        groups: int = 1,
        *,
        cubes: CubeSizes = SERVER_CUBES,
        rnn: RnnSizes | None = None,
    ) -> Transfer:
        """Prepare a transfer of tensors with ``origin_shape``, the dims of whichever format has named axes (or ND).

        Between two formats with named axes those of ``source`` count. Formats may be packed with groups and C0; see
        ``storage_shape`` for the rest. Raises :class:`LayoutError` for pairs and shapes that have no transfer.
        """
        is_load = primary_format(source) in ORIGINS
        origin, storage = (target, source) if is_load else (source, target)
        blocking = Blocking.of(storage, dtype, groups, cubes=cubes, rnn=rnn)
        found = index_map(Shape(origin_shape), primary_format(origin), primary_format(storage), blocking)
        return cls(found, not is_load)

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of arrays to read."""
        return self.map.origin_shape if self.to_storage else self.map.storage_shape

    @property
    def target_shape(self) -> tuple[int, ...]:
        """The shape of arrays to write."""
        return self.map.storage_shape if self.to_storage else self.map.origin_shape

    def run(self, source: Array, target: Array) -> None:
        """Write ``source`` into ``target``: C-contiguous, of equal element type, without memory in common.

        Padding of a storage target becomes zero, padding of a storage source is not read.
        """
        _check(source, target, self)
        if self.to_storage:
            self.map.store(_bits(source), _bits(target))
        else:
            self.map.load(_bits(source), _bits(target))


def transfer(
    source: Array,
    target: Array,
    source_format: int,
    target_format: int,
    groups: int = 1,
    *,
    cubes: CubeSizes = SERVER_CUBES,
    rnn: RnnSizes | None = None,
) -> None:
    """Write ``source`` in another format into ``target``; :class:`Transfer` for a single tensor.

    The element type of the arrays gives C0 unless a format does. Raises :class:`LayoutError` for what does not fit.
    """
    dtype = _element_type(source)
    origin = target if primary_format(source_format) in ORIGINS else source
    prepared = Transfer.of(Shape(origin.shape), source_format, target_format, dtype, groups, cubes=cubes, rnn=rnn)
    prepared.run(source, target)


def _element_type(array: Array) -> DataType:
    try:
        found = data_type_of(array.dtype)
    except KeyError:
        found = DataType.DT_UNDEFINED
    if found in (DataType.DT_UNDEFINED, DataType.DT_STRING):
        raise LayoutError(f"arrays of {array.dtype} have no layout")
    return found


def _check(source: Array, target: Array, prepared: Transfer) -> None:
    for name, array, shape in (("source", source, prepared.source_shape), ("target", target, prepared.target_shape)):
        if array.shape != shape:
            raise LayoutError(f"the {name} has shape {list(array.shape)} where {list(shape)} is needed")
        if not array.flags.c_contiguous:
            raise LayoutError(f"the {name} is not contiguous")
    if source.dtype != target.dtype:
        raise LayoutError(f"a transfer keeps the element type: source {source.dtype}, target {target.dtype}")


def _bits(array: Array) -> Array:
    """Return the array as unsigned integers: elements are copied as they are, whatever they mean."""
    return array.view(f"u{array.itemsize}") if array.itemsize in (1, 2, 4, 8) else array
