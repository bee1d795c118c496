"""TransData between NCHW or NHWC and NC1HWC0, bound to compiled code; all other pairs of layouts are numpy's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ge.formats import AXES
from ge.graph import Format, TensorDesc
from ge.graph.types import numpy_dtype
from simulator.codegen.emission import LANES
from simulator.codegen.engine import Engine
from simulator.codegen.jobs import Job, address_of, compiled_kernel, job
from simulator.codegen.trans_data import TransCode, TransWord
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs

TYPES = ("TransData",)
STRIP = 256
"""Positions of a task."""


def build_trans_data(request: KernelRequest, engine: Engine) -> Kernel | None:
    """Bind a transfer of elements of two or four bytes."""
    source, target = request.inputs[0], request.outputs[0]
    if source is None or source.data_type is not target.data_type:
        return None
    is_packing = target.format is Format.FORMAT_NC1HWC0
    packed, plain = (target, source) if is_packing else (source, target)
    if packed.format is not Format.FORMAT_NC1HWC0:
        return None
    dims = _image_dims(plain)
    size = numpy_dtype(source.data_type).itemsize
    if dims is None or size not in (2, 4):
        return None
    samples, channels, height, width, is_last = dims
    blocks = -(-channels // LANES)
    if tuple(packed.shape) != (samples, blocks, height, width, LANES) or not prod(packed.shape):
        return None
    positions = height * width
    address = engine.address(TransCode(f"b{size}", is_packing, is_last))
    zeros = np.zeros(LANES, np.int32)
    strips = -(-positions // STRIP)

    def bind(inputs: Inputs, outputs: Outputs, scratch: Array) -> Sequence[Job]:
        words = {
            TransWord.SOURCE: address_of(inputs[0]),
            TransWord.TARGET: address_of(outputs[0]),
            TransWord.CHANNELS: channels,
            TransWord.BLOCKS: blocks,
            TransWord.POSITIONS: positions,
            TransWord.STRIPS: strips,
            TransWord.STRIP: STRIP,
            TransWord.ZEROS: address_of(zeros),
        }
        tasks = samples * blocks * strips
        return [job(address, [words[word] for word in TransWord], tasks, samples * blocks * positions * 8)]

    return compiled_kernel("trans-data", bind)


def _image_dims(desc: TensorDesc) -> tuple[int, int, int, int, bool] | None:
    """Return samples, channels, height and width of a plain image, and whether channels stand last."""
    shown = desc.origin_format if desc.format is Format.FORMAT_ND else desc.format
    if shown not in (Format.FORMAT_NCHW, Format.FORMAT_NHWC) or len(desc.shape) != 4 or len(AXES[shown]) != 4:
        return None
    if shown is Format.FORMAT_NCHW:
        n, c, h, w = desc.shape
    else:
        n, h, w, c = desc.shape
    return n, c, h, w, shown is Format.FORMAT_NHWC
