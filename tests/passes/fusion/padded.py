"""Convolutions and pools of padded tensors in tests: how they are written, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from tests.passes.fusion.fused import fused, graph_of, results

Pairs = tuple[tuple[int, int], ...]


# -- what is written ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Reader:
    """A convolution or pool of what is padded. Shapes are channels first, ``pads`` are its own, per spatial axis."""

    type: str
    x: tuple[int, ...] = (2, 4, 5, 6)
    kernel: tuple[int, ...] = (3, 2)
    filter: tuple[int, ...] = ()
    form: str = "NCHW"
    pads: Pairs | None = None
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    groups: int = 1
    mode: str = ""
    attrs: dict[str, str] = field(default_factory=dict)

    @property
    def is_conv(self) -> bool:
        return "Conv" in self.type

    @property
    def is_last(self) -> bool:
        return self.form.endswith("C")

    def values(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        return numbers or (1,) * len(self.kernel)

    def ordered(self, batch, channels, space):
        return [batch, *space, channels] if self.is_last else [batch, channels, *space]

    def given(self, x):
        """An array in the order of the format."""
        return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if self.is_last else x

    def given_filter(self, w):
        return np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))) if self.is_last else w

    def filter_in_order(self):
        outputs, channels, *taps = self.filter
        return [*taps, channels, outputs] if self.is_last else self.filter

    def call(self) -> str:
        attrs = {"strides": dims(self.ordered(1, 1, self.values(self.strides)))}
        if self.is_conv:
            attrs |= {"dilations": dims(self.ordered(1, 1, self.values(self.dilations))), "groups": str(self.groups)}
        elif self.dilations:
            attrs["_x_dilations"] = dims(self.dilations)
        if not self.is_conv:
            attrs["ksize"] = dims(self.ordered(1, 1, self.kernel))
        if self.type not in ("MaxPool", "AvgPool"):
            attrs["pads"] = dims([width for pair in self.pads or ((0, 0),) * len(self.kernel) for width in pair])
        if self.type == "DepthwiseConv2D":
            attrs.pop("groups")
        attrs["data_format"] = f'"{self.form}"'
        attrs |= self.attrs
        text = ", ".join(f"{name}={value}" for name, value in attrs.items() if value)
        return f"{self.type}(%p{', %w' if self.is_conv else ''}) {{{text}{', ' + self.mode if self.mode else ''}}}"


def dims(numbers) -> str:
    return f"[{','.join(map(str, numbers))}]"


STYLES = ["Pad", "PadD", "PadV2", "pairs", "pairs, default", "begins first", "some axes"]


def pad_lines(style: str, widths: Pairs, fill: str = "0.0", dtype: str = "f32", source: str = "%x") -> str:
    """Lines that pad ``source`` and give %p; ``widths`` are for all axes, in the order of the format."""
    rank = len(widths)
    flat = ",".join(f"{before},{after}" for before, after in widths)
    pairs = f"%n = Const {{value=i32[{rank},2]{{{flat}}}}} -> i32[{rank},2]@ND"
    begins = ",".join(str(pair[side]) for side in (0, 1) for pair in widths)
    number = f"%f = Const {{value={dtype}[]{{{fill}}}}} -> {dtype}[]@ND"
    if style == "Pad":
        return f"{pairs}\n  %p = Pad({source}, %n)"
    if style == "PadD":
        return f"%p = PadD({source}) {{paddings=[{','.join(map(str, map(list, widths)))}]}}"
    if style == "PadV2":
        return f"{pairs}\n  {number}\n  %p = PadV2({source}, %n, %f)"
    if style == "pairs":
        return f"{pairs}\n  {number}\n  %p = PadV3({source}, %n, %f) {{paddings_contiguous=true}}"
    if style == "pairs, default":
        return f'{pairs}\n  %p = PadV3({source}, %n) {{mode="constant"}}'
    if style == "begins first":
        many = f"%n = Const {{value=i64[{2 * rank}]{{{begins}}}}} -> i64[{2 * rank}]@ND"
        return f"{many}\n  {number}\n  %p = PadV3({source}, %n, %f) {{paddings_contiguous=false}}"
    axes = [axis for axis, pair in enumerate(widths) if any(pair)][::-1]
    some = ",".join(str(widths[axis][side]) for side in (0, 1) for axis in axes)
    few = f"%n = Const {{value=i64[{2 * len(axes)}]{{{some}}}}} -> i64[{2 * len(axes)}]@ND"
    axes = [axis - rank if place == 0 else axis for place, axis in enumerate(axes)]
    return f"{few}\n  %p = PadV3({source}, %n) {{paddings_contiguous=false, _x_axes={dims(axes)}}}"


def text(reader: Reader, lines: str, *, dtype: str = "f32", result: str = "%y", x: str = "", more: str = "") -> str:
    shape = x or dims(reader.ordered(reader.x[0], reader.x[1], reader.x[2:]))
    inputs = f"%x: {dtype}{shape}@{reader.form if len(reader.form) == 4 else 'ND'}"
    if reader.is_conv:
        inputs += f", %w: {dtype}{dims(reader.filter_in_order())}@ND"
    return f"graph g({inputs}{more}) {{\n  {lines}\n  %y = {reader.call()}\n  return {result}\n}}"


def in_space(reader: Reader, space: Pairs) -> Pairs:
    return tuple(reader.ordered((0, 0), (0, 0), space))


# -- what is meant, in float64 -----------------------------------------------------------------------------------------
def meaning(reader: Reader, x, w, space: Pairs, fill: float):
    """Channels first. Exclusive averages leave out what is not a number: their own padding."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *space), constant_values=fill)
    own = {"Max": -np.inf, "Avg": 0.0}.get(reader.type[:3], 0.0)
    if reader.attrs.get("exclusive") == "true" or reader.attrs.get("count_include_pad") == "false":
        own = np.nan
    x = np.pad(x, ((0, 0), (0, 0), *(reader.pads or ((0, 0),) * len(reader.kernel))), constant_values=own)
    steps, strides = reader.values(reader.dilations), reader.values(reader.strides)
    extents = [(taps - 1) * step + 1 for taps, step in zip(reader.kernel, steps, strict=True)]
    seen: Any = sliding_window_view(x, extents, axis=tuple(range(2, x.ndim)))
    every_step = tuple(slice(None, None, step) for step in steps)
    seen = seen[(..., *every_step)]
    seen = seen[(slice(None), slice(None), *(slice(None, None, stride) for stride in strides))]
    taps = tuple(range(x.ndim, seen.ndim))
    if reader.type.startswith("Max"):
        return seen.max(axis=taps)
    if reader.type.startswith("Avg"):
        divisor = int(reader.attrs.get("divisor_override", 0))
        return np.nansum(seen, axis=taps) / (divisor if divisor else np.isfinite(seen).sum(axis=taps))
    return correlated(reader, seen, w.astype(np.float64))


def correlated(reader: Reader, seen, w):
    groups, n = reader.groups, len(reader.kernel)
    if reader.type == "DepthwiseConv2D":
        groups, w = w.shape[1], w.swapaxes(0, 1).reshape(-1, 1, *w.shape[2:])
    pieces = [
        np.tensordot(part, weights, axes=([1, *range(part.ndim - n, part.ndim)], list(range(1, n + 2))))
        for part, weights in zip(np.split(seen, groups, 1), np.split(w, groups), strict=True)
    ]
    return np.moveaxis(np.concatenate(pieces, -1), -1, 1)


def check_numbers(fusion, reader: Reader, lines: str, space: Pairs, rng, fill: float = 0.0, low: float = -3.0) -> None:
    """Fused and not fused, both must give what is meant."""
    x = rng.uniform(low, 3, reader.x).astype(np.float32)
    w = rng.standard_normal(reader.filter).astype(np.float32) if reader.is_conv else None
    inputs = [reader.given(x)] if w is None else [reader.given(x), reader.given_filter(w)]
    expected = reader.given(meaning(reader, x, w, space, fill))
    for which in (fusion, None):
        [found] = results(which, graph_of(text(reader, lines)), inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def other_axes(widths: Pairs) -> list[str]:
    """Why such widths are left alone."""
    return [f"p pads other axes than the spatial ones, or cuts: {list(widths)}"]


# -- at random ---------------------------------------------------------------------------------------------------------
def pairs_up_to(most: int):
    return st.tuples(*[st.tuples(st.integers(0, most), st.integers(0, most))] * 2)


def numbers(low: int, high: int):
    return st.tuples(st.integers(low, high), st.integers(low, high))


@st.composite
def padded_readers(draw, *types: str):
    """A convolution or pool with random windows, and a padding that lets a window fit."""
    kind = draw(st.sampled_from(types))
    size, kernel, steps = draw(numbers(1, 4)), draw(numbers(1, 3)), draw(numbers(1, 3))
    pads, space = draw(pairs_up_to(2)), draw(pairs_up_to(3))
    rows = zip(size, kernel, steps, pads, space, strict=True)
    lacking = [max((k - 1) * d + 1 - n - sum(own) - sum(more), 0) for n, k, d, own, more in rows]
    space = tuple((before, after + more) for (before, after), more in zip(space, lacking, strict=True))
    attrs = {} if kind != "AvgPoolV2" else {"exclusive": draw(st.sampled_from(["false", "true"]))}
    form = draw(st.sampled_from(["NCHW", "NHWC"]))
    taps = (2, 2, *kernel) if kind == "Conv2D" else ()
    made = Reader(kind, (1, 2, *size), kernel, taps, form, pads, draw(numbers(1, 3)), steps, attrs=attrs)
    return made, space


def check_law(fusion, case, style: str, seed: int, is_positive: bool = False) -> None:
    """Whether it is folded or not: the numbers are what is meant."""
    reader, space = case
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, reader.x).astype(np.float32)
    before, source = ("%r = Relu(%x)\n  ", "%r") if is_positive else ("", "%x")
    style = style if any(map(any, space)) else "Pad"
    given = text(reader, before + pad_lines(style, in_space(reader, space), source=source))
    w = rng.standard_normal(reader.filter).astype(np.float32) if reader.is_conv else None
    inputs = [reader.given(x)] if w is None else [reader.given(x), reader.given_filter(w)]
    with np.errstate(all="ignore"):
        expected = reader.given(meaning(reader, np.maximum(x, 0) if is_positive else x, w, space, 0.0))
    is_folded = fused(fusion, given).times[1] > 0
    [found] = results(fusion if is_folded else None, graph_of(given), inputs)
    is_defined = ~np.isnan(expected)  # an average of nothing is not
    np.testing.assert_allclose(found[is_defined], expected[is_defined], rtol=1e-5, atol=1e-5)
