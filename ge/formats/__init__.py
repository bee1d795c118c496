"""Tensor layouts: format integers, block lengths, storage shapes, reshape types, and transfers between layouts.

shape = storage_shape([8, 3, 224, 224], Format.FORMAT_NCHW, Format.FORMAT_NC1HWC0, DataType.DT_FLOAT16)
transfer(nchw, nc1hwc0, Format.FORMAT_NCHW, Format.FORMAT_NC1HWC0)
"""

from ge.formats.cube_sizes import LITE_CUBES, SERVER_CUBES, CubeSizes, cube_sizes
from ge.formats.index_map import IndexMap
from ge.formats.layout_error import LayoutError
from ge.formats.layout_pairs import LAYOUT_PAIRS, can_transfer
from ge.formats.layouts import index_map, is_shown_as_stored
from ge.formats.origin_axes import (
    AXES,
    FRACTAL_NZ_FORMATS,
    GROUPED_FORMATS,
    HEAVY_FORMATS,
    ORIGIN_FORMATS,
    axis_order,
    full_rank,
    in_axis_order,
    is_private,
)
from ge.formats.packed_format import PackedFormat, primary_format
from ge.formats.reshape_type import FORBIDDEN, expand_by_mask, expand_dims, reshape_mask
from ge.formats.storage_shape import Blocking, RnnSizes, storage_shape
from ge.formats.storage_view import (
    is_origin_layout,
    lay_out,
    lay_out_as_origin,
    lies_in_origin,
    origin_array,
    storage_fault,
    stored_array,
    stored_shape,
)
from ge.formats.transfer import Transfer, transfer

__all__ = [
    "AXES",
    "FORBIDDEN",
    "FRACTAL_NZ_FORMATS",
    "GROUPED_FORMATS",
    "HEAVY_FORMATS",
    "LAYOUT_PAIRS",
    "LITE_CUBES",
    "ORIGIN_FORMATS",
    "SERVER_CUBES",
    "Blocking",
    "CubeSizes",
    "IndexMap",
    "LayoutError",
    "PackedFormat",
    "RnnSizes",
    "Transfer",
    "axis_order",
    "can_transfer",
    "cube_sizes",
    "expand_by_mask",
    "expand_dims",
    "full_rank",
    "in_axis_order",
    "index_map",
    "is_origin_layout",
    "is_private",
    "is_shown_as_stored",
    "lay_out",
    "lay_out_as_origin",
    "lies_in_origin",
    "origin_array",
    "primary_format",
    "reshape_mask",
    "storage_fault",
    "storage_shape",
    "stored_array",
    "stored_shape",
    "transfer",
]
