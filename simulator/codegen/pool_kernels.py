"""Pooling of float feature maps in NC1HWC0, bound to compiled code; windows over nothing but padding are numpy's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ge.graph import Format
from ge.ops.window import Window
from simulator.codegen.elementwise_kernels import element_of
from simulator.codegen.emission import LANES
from simulator.codegen.engine import Engine
from simulator.codegen.jobs import Job, address_of, compiled_kernel, job
from simulator.codegen.pool import PoolCode, PoolWord
from simulator.kernels.pool import global_mean, mean_over
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs
from simulator.kernels.storage.pool import image_windows, is_over_images, spatial_sizes

MAXIMA, MEANS, GLOBAL = ("MaxPool", "MaxPoolV3"), ("AvgPool", "AvgPoolV2"), "GlobalAveragePool"
TYPES = (*MAXIMA, *MEANS, GLOBAL)


def build_pool(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind a maximum or mean over windows of images."""
    x, y = request.inputs[0], request.outputs[0]
    if x is None or x.format is not Format.FORMAT_NC1HWC0 or not is_over_images(request) or x.shape[-1] != LANES:
        return None
    element = element_of(x.data_type, engine.host)
    if element is None or y.data_type is not x.data_type or len(request.outputs) != 1:
        return None
    if request.type == GLOBAL:
        what = global_mean(request, spatial_sizes(x))
        windows, divisors = list(what.windows), what.divisors
    else:
        found = image_windows(request)
        if found is None:
            return None
        windows, divisors = found, mean_over(request, found).divisors if request.type in MEANS else None
    tables = [tap_table(window) for window in windows]
    if len(windows) != 2 or any((table[:, 1] < 1).any() for table in tables) or not prod(y.shape):
        return None
    return _bound(request, engine, element, windows, tables, divisors)


def _bound(
    request: KernelRequest,
    engine: Engine,
    element: str,
    windows: Sequence[Window],
    tables: Sequence[Array],
    divisors: Array | None,
) -> Kernel:
    rows, columns = windows
    shape = request.shape()
    planes = shape[0] * shape[1]
    counts = np.ones((rows.count, columns.count), np.float32)
    if divisors is not None:
        counts[:] = divisors.reshape(divisors.shape[-2:])
    address = engine.address(PoolCode(divisors is not None, element))

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        words = {
            PoolWord.SOURCE: address_of(inputs[0]),
            PoolWord.TARGET: address_of(outputs[0]),
            PoolWord.ROWS: rows.count,
            PoolWord.COLUMNS: columns.count,
            PoolWord.HEIGHT: rows.size,
            PoolWord.WIDTH: columns.size,
            PoolWord.ROW_TAPS: address_of(tables[0]),
            PoolWord.COLUMN_TAPS: address_of(tables[1]),
            PoolWord.ROW_STEP: rows.dilation,
            PoolWord.COLUMN_STEP: columns.dilation,
            PoolWord.DIVISORS: address_of(counts),
        }
        work = planes * rows.count * columns.count * rows.kernel * columns.kernel * 2
        return [job(address, [words[word] for word in PoolWord], planes * rows.count, work)]

    return compiled_kernel("mean-pool" if divisors is not None else "max-pool", bind)


def tap_table(window: Window) -> Array:
    """Return [count, 2]: the first element and the number of elements of every window, clipped to the data."""
    starts = np.arange(window.count, dtype=np.int64) * window.stride - window.before
    low = np.maximum(-(starts // window.dilation), 0)
    high = np.minimum(-((starts - window.size) // window.dilation), window.kernel)
    return np.ascontiguousarray(np.stack([starts + low * window.dilation, high - low], axis=1))
