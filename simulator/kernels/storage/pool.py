"""Pooling of feature maps whose channels lie in blocks: as if the lanes were channels that come last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ge.formats import AXES
from ge.graph import DataType, Format, TensorDesc
from ge.ops.pool import tap_counts
from ge.ops.window import Window
from simulator.kernels.pool import Pooling, bind_pooling, global_mean, maximum_over, mean_over, windows_of
from simulator.kernels.registry import FLOATS, Kernel, KernelRequest
from simulator.kernels.storage.layout import clearing, is_image, storage_kernel

_5HD, _6HD = (Format.FORMAT_NC1HWC0,), (Format.FORMAT_NDC1HWC0,)
_MAXIMA = FLOATS | {DataType.DT_INT8, DataType.DT_UINT8, DataType.DT_INT32}


def build_max_pool(request: KernelRequest) -> Kernel | None:
    """Bind a maximum over windows."""
    windows = image_windows(request)
    return None if windows is None else _over_blocks(maximum_over(request, windows), request)


def build_average_pool(request: KernelRequest) -> Kernel | None:
    """Bind a mean over windows."""
    windows = image_windows(request)
    return None if windows is None else _over_blocks(mean_over(request, windows), request)


@storage_kernel("GlobalAveragePool", formats=_5HD + _6HD, dtypes=FLOATS)
def build_global_average(request: KernelRequest) -> Kernel | None:
    """Bind the mean over all spatial axes."""
    x = request.inputs[0]
    if not is_over_images(request) or x is None:
        return None
    return _over_blocks(global_mean(request, spatial_sizes(x)), request)


for _rank, _formats in (("", _5HD), ("3D", _6HD)):
    _types = ("MaxPool3D",) if _rank else ("MaxPool", "MaxPoolV3")
    storage_kernel(*_types, formats=_formats, dtypes=_MAXIMA)(build_max_pool)
    _types = ("AvgPool3D",) if _rank else ("AvgPool", "AvgPoolV2")
    storage_kernel(*_types, formats=_formats, dtypes=FLOATS)(build_average_pool)


def spatial_sizes(desc: TensorDesc) -> list[int]:
    """Return depth (of volumes), height and width of a feature map."""
    return [desc.shape[1], *desc.shape[3:5]] if desc.format is Format.FORMAT_NDC1HWC0 else list(desc.shape[2:4])


def is_over_images(request: KernelRequest) -> bool:
    """Tell whether feature maps go in and come out in one layout."""
    x, y = request.inputs[0], request.outputs[0]
    return is_image(x) and is_image(y) and x is not None and x.format is y.format and x.shape[-1] == y.shape[-1]


def image_windows(request: KernelRequest) -> list[Window] | None:
    """Return the windows over the spatial axes; ``None`` when they do not make the result."""
    x = request.inputs[0]
    if not is_over_images(request) or x is None or sorted(request.op.data_format) != sorted(AXES[x.origin_format]):
        return None
    windows = windows_of(request, spatial_sizes(x))
    return windows if [w.count for w in windows] == spatial_sizes(request.outputs[0]) else None


def _over_blocks(what: Pooling, request: KernelRequest) -> Kernel:
    """Take a pool over every block of channels; in volumes the blocks are an axis behind the depth."""
    shape, divisors, windows = request.shape(), what.divisors, list(what.windows)
    has_empty = any((tap_counts(w, counts_padding=False) == 0).any() for w in windows)
    if divisors is not None:
        divisors = divisors[..., np.newaxis]
    planes = shape[0]
    if len(windows) == 3:
        windows.insert(1, Window(shape[2], 1, 1, 1, 0, 0, shape[2]))
        divisors = None if divisors is None else np.expand_dims(divisors, 2)
    else:
        planes *= shape[1]
    found = bind_pooling(replace(what, windows=windows, planes=planes, tail=(shape[-1],), divisors=divisors))
    return clearing(found, request.outputs) if has_empty else found
