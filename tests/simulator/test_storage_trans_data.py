"""TransData between every registered pair of layouts, against the index formulas applied element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.formats import AXES, LAYOUT_PAIRS, SERVER_CUBES, LayoutError, is_private, is_shown_as_stored, storage_shape
from ge.graph import Graph, TensorDesc
from ge.graph.types import FORMAT_TEXT, Format, data_type_of
from simulator.loader import load
from tests.ge.formats.index_formulas import lay_out
from tests.simulator.planned_model import plan_model, run_plan

RNN = frozenset({Format.FORMAT_FRACTAL_ZN_RNN, Format.FORMAT_ND_RNN_BIAS})
PRIVATE_PAIRS = sorted((origin, layout) for origin, layout in LAYOUT_PAIRS if is_private(layout) and layout not in RNN)
PERMUTATIONS = sorted(pair for pair in LAYOUT_PAIRS if not any(map(is_private, pair)))
SIZES = {"N": 5, "C": 17, "D": 2, "H": 3, "W": 4}
MATRIX = "FRACTAL_Z of a matrix"


def trans_data(source: np.ndarray, before: TensorDesc, after: TensorDesc, groups: int = 1) -> np.ndarray:
    """Run one TransData on poisoned memory."""
    graph = Graph("trans_data")
    x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[before]).output()
    attrs = {"src_format": FORMAT_TEXT[before.format], "dst_format": FORMAT_TEXT[after.format], "groups": groups}
    node = graph.add_node("TransData", "node", [x], attrs, output_descs=[after])
    plan = load(plan_model(graph, [node.output()]))
    assert not plan.steps[0].kernel.is_reference
    [found] = run_plan(plan, [source])
    return found


def there_and_back(x: np.ndarray, origin: Format, layout: Format, name: str, groups: int = 1) -> None:
    dtype = data_type_of(x.dtype)
    c0 = SERVER_CUBES.block_length(layout, dtype)
    shape = storage_shape(x.shape, origin, layout, dtype, groups)
    plain = TensorDesc(x.shape, origin, dtype)
    stored = TensorDesc(shape, layout, dtype, x.shape, origin)
    stored.sub_format = groups
    expected = lay_out(x, FORMAT_TEXT[origin], name, c0, groups=groups).reshape(shape)
    found = trans_data(x, plain.copy(), stored.copy(), groups)
    assert found.tobytes() == expected.tobytes()
    garbage = np.where(
        lay_out(np.ones(x.shape, bool), FORMAT_TEXT[origin], name, c0, groups=groups).reshape(shape),
        expected,
        np.full((), np.nan if x.dtype.kind == "f" else 99).astype(x.dtype),
    )
    assert trans_data(garbage, stored, plain, groups).tobytes() == x.tobytes()


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(list(shape)).integers(1, 100, shape).astype(dtype)


@pytest.mark.parametrize("c", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("pair", PRIVATE_PAIRS, ids=lambda pair: "-".join(FORMAT_TEXT[f] for f in pair))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_pairs(pair: tuple[Format, Format], c: int, dtype: Any) -> None:
    origin, layout = pair
    is_matrix = origin is Format.FORMAT_ND
    shape = (5, c) if is_matrix else tuple(SIZES[axis] if axis != "C" else c for axis in AXES[origin])
    x = numbers(shape, dtype)
    try:
        if not is_shown_as_stored(shape, origin, layout, data_type_of(x.dtype)):
            pytest.skip("descriptors show another shape than the bytes have")
    except LayoutError:
        pytest.skip("no such layout")
    name = MATRIX if is_matrix and layout is Format.FORMAT_FRACTAL_Z else FORMAT_TEXT[layout]
    there_and_back(x, origin, layout, name)


@pytest.mark.parametrize("groups", [2, 3, 4, 32, 64])
@pytest.mark.parametrize(("filters", "channels"), [(1, 1), (2, 3), (8, 4), (17, 16), (5, 17)])
@pytest.mark.parametrize("origin", [Format.FORMAT_NCHW, Format.FORMAT_HWCN])
def test_groups(origin: Format, filters: int, channels: int, groups: int) -> None:
    sizes = {"N": filters * groups, "C": channels, "H": 2, "W": 3}
    x = numbers(tuple(sizes[axis] for axis in AXES[origin]), np.float32)
    there_and_back(x, origin, Format.FORMAT_FRACTAL_Z, "FRACTAL_Z", groups)


@pytest.mark.parametrize("pair", PERMUTATIONS, ids=lambda pair: "-".join(FORMAT_TEXT[f] for f in pair))
def test_orders_of_axes(pair: tuple[Format, Format]) -> None:
    source, target = pair
    x = numbers(tuple(SIZES[axis] for axis in AXES[source]), np.float32)
    expected = np.transpose(x, [AXES[source].index(axis) for axis in AXES[target]])
    after = TensorDesc(expected.shape, target, data_type_of(x.dtype), x.shape, source)
    assert trans_data(x, TensorDesc(x.shape, source, data_type_of(x.dtype)), after).tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(17,), (3,)])
def test_vectors_are_channels(shape: tuple[int, ...]) -> None:
    """A bias of an NCHW tensor is laid out as [1, C, 1, 1]."""
    x = numbers(shape, np.float32)
    full = x.reshape(1, -1, 1, 1)
    stored_shape = storage_shape(full.shape, Format.FORMAT_NCHW, Format.FORMAT_NC1HWC0, data_type_of(x.dtype))
    plain = TensorDesc(shape, Format.FORMAT_NCHW)
    stored = TensorDesc(stored_shape, Format.FORMAT_NC1HWC0, origin_shape=shape, origin_format=Format.FORMAT_NCHW)
    found = trans_data(x, plain.copy(), stored.copy())
    assert found.tobytes() == lay_out(full, "NCHW", "NC1HWC0", 16).tobytes()
    assert trans_data(found, stored, plain).tobytes() == x.tobytes()
