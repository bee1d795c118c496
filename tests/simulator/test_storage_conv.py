"""Convolutions of feature maps in NC1HWC0 and NDC1HWC0 with filters in fractals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from tests.simulator.storage_model import C04, HWCN, NC1HWC0, ND, NDC1HWC0, NHWC, check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def attrs(
    stride: Any = 1, pad: Any = 0, dilation: Any = 1, groups: int | None = 1, form: str = "NCHW"
) -> dict[str, Any]:
    n = len(form) - 2
    per_axis = {
        name: dict(zip(form.replace("N", "").replace("C", ""), np.broadcast_to(value, n).tolist(), strict=True))
        for name, value in (("strides", stride), ("dilations", dilation))
    }
    found: dict[str, Any] = {name: [values.get(axis, 1) for axis in form] for name, values in per_axis.items()}
    found["pads"] = np.broadcast_to(pad, 2 * n).tolist()
    found["data_format"] = form
    return found if groups is None else found | {"groups": groups}


def oracle(x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, **how: Any) -> np.ndarray:
    """What onnxruntime makes of channels-first operands."""
    names = ["x", "w", *([] if bias is None else ["b"])]
    node = onnx.helper.make_node("Conv", names, ["y"], **how)
    values = [onnx.helper.make_tensor_value_info(name, 1, None) for name in (*names, "y")]
    graph = onnx.helper.make_graph([node], "g", values[:-1], values[-1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": x, "w": weights} | ({} if bias is None else {"b": bias})
    [y] = session.run(None, {name: array.astype(np.float32) for name, array in feeds.items()})
    return y


def check(
    x: np.ndarray,
    weights: np.ndarray,
    has_bias: bool = True,
    *,
    layout: Any = NC1HWC0,
    constant: Any = (1, 2),
    **how: Any,
) -> None:
    """Hold a channels-first convolution to onnxruntime's."""
    rank = x.ndim - 2
    bias = uniform(len(weights), dtype=x.dtype, seed=2) if has_bias else None
    form = "NCHW" if rank == 2 else "NCDHW"
    stride, dilation, groups = how.get("stride", 1), how.get("dilation", 1), how.get("groups", 1)
    pads = np.broadcast_to(how.get("pad", 0), 2 * rank).reshape(rank, 2)
    expected = oracle(
        x,
        weights,
        bias,
        strides=np.broadcast_to(stride, rank).tolist(),
        dilations=np.broadcast_to(dilation, rank).tolist(),
        pads=pads.T.reshape(-1).tolist(),
        group=groups,
    )
    inputs = [x, weights, bias] if has_bias else [x, weights]
    check_stored(
        "Conv2D" if rank == 2 else "Conv3D",
        inputs,
        attrs(form=form, **how),
        layout=layout,
        constant=[slot for slot in constant if slot < len(inputs)],
        expected=[expected],
        tolerance=None if x.dtype == np.float32 else 1.2e-2 if x.dtype != np.float16 else 2e-3,
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [1, 3, 15, 16, 17, 33])
@pytest.mark.parametrize("k", [1, 3])
def test_channels(c: int, k: int, dtype: Any) -> None:
    for n in (1, 16, 20, 33):
        check(uniform(2, c, 9, 11, dtype=dtype), uniform(n, c, k, k, dtype=dtype, seed=1), pad=k // 2)


@pytest.mark.parametrize(
    "how",
    [
        {"stride": 2},
        {"stride": 2, "pad": 1},
        {"stride": [1, 2], "pad": [0, 2, 1, 0]},
        {"stride": [3, 1], "pad": 1},
        {"dilation": 2},
        {"dilation": [1, 2], "pad": 2},
        {"dilation": [2, 1], "stride": [2, 1], "pad": 1},
        {"dilation": [3, 2], "stride": [2, 3], "pad": [3, 2, 0, 1]},
    ],
    ids=str,
)
@pytest.mark.parametrize("c", [3, 16, 20])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (3, 2), (1, 5), (5, 1)])
def test_windows(c: int, kernel: tuple[int, int], how: dict[str, Any]) -> None:
    check(uniform(1, c, 13, 14), uniform(18, c, *kernel, seed=1), **how)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("groups", "c", "n"), [(2, 4, 6), (2, 16, 8), (4, 8, 4), (3, 5, 7), (32, 4, 4), (2, 20, 16), (8, 1, 2)]
)
def test_groups(groups: int, c: int, n: int, dtype: Any) -> None:
    x, weights = uniform(1, groups * c, 7, 6, dtype=dtype), uniform(groups * n, c, 3, 3, dtype=dtype, seed=1)
    check(x, weights, pad=1, groups=groups)
    check(x, weights, has_bias=False, stride=2, groups=groups)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("groups", "c", "n"), [(4, 34, 34), (3, 5, 7), (4, 8, 4), (2, 16, 24), (5, 1, 3)])
def test_groups_of_single_taps(groups: int, c: int, n: int, dtype: Any) -> None:
    x, weights = uniform(2, groups * c, 7, 6, dtype=dtype), uniform(groups * n, c, 1, 1, dtype=dtype, seed=1)
    check(x, weights, groups=groups)
    check(x, weights, has_bias=False, stride=2, groups=groups)
    check(x, weights, pad=[1, 0, 0, 2], groups=groups)
    check(x, uniform(groups * n, c, 3, 1, dtype=dtype, seed=1), pad=[1, 0, 0, 1], groups=groups, constant=(1,))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [2, 15, 16, 17, 40])
@pytest.mark.parametrize(
    "how",
    [{"pad": 1}, {"stride": 2, "pad": 1}, {"stride": 2, "pad": [0, 1, 1, 0]}, {"dilation": 2}, {"stride": [1, 3]}],
    ids=str,
)
def test_depthwise(c: int, how: dict[str, Any], dtype: Any) -> None:
    x, weights = uniform(2, c, 9, 12, dtype=dtype), uniform(c, 1, 3, 3, dtype=dtype, seed=1)
    check(x, weights, groups=c, **how)
    check(x, weights, has_bias=False, groups=c, constant=(), **how)


@pytest.mark.parametrize(("h", "w", "stride"), [(2, 7, [2, 1]), (5, 2, [1, 2]), (2, 2, 2), (3, 1, 3)])
@pytest.mark.parametrize("c", [3, 16, 20])
def test_single_taps_whose_stride_leads_nowhere(c: int, h: int, w: int, stride: int | list[int]) -> None:
    """There is one position along an axis, but more elements."""
    check(uniform(2, c, h, w), uniform(18, c, 1, 1, seed=1), stride=stride)


def test_depthwise_of_single_taps() -> None:
    check(uniform(1, 20, 8, 9), uniform(20, 1, 1, 1, seed=1), groups=20, stride=2)
    check(uniform(1, 20, 8, 9), uniform(20, 1, 3, 1, seed=1), groups=20, stride=2, pad=1)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("form", ["NCHW", "NHWC"])
def test_depthwise_operator(form: str, multiplier: int) -> None:
    """Output channel c * multiplier + m is channel c under weights [m, c]."""
    x, weights = uniform(1, 17, 6, 7), uniform(multiplier, 17, 3, 3, seed=1)
    expected = oracle(x, weights.swapaxes(0, 1).reshape(-1, 1, 3, 3), None, pads=[1] * 4, group=17)
    how = attrs(pad=1, groups=None, form=form)
    if form == "NCHW":
        check_stored("DepthwiseConv2D", [x, weights], how, constant=[1], expected=[expected])
    else:
        check_stored(
            "DepthwiseConv2D",
            [x.transpose(0, 2, 3, 1).copy(), weights.transpose(2, 3, 1, 0).copy()],
            how,
            origins=[NHWC, HWCN],
            constant=[1],
            expected=[expected.transpose(0, 2, 3, 1)],
        )


@pytest.mark.parametrize("is_constant", [False, True])
def test_channels_last_and_filters_that_are_computed(is_constant: bool) -> None:
    x, weights, bias = uniform(2, 17, 7, 6), uniform(20, 17, 3, 2, seed=1), uniform(20, seed=2)
    expected = oracle(x, weights, bias, strides=[1, 2], pads=[1, 0, 1, 0])
    check_stored(
        "Conv2D",
        [x.transpose(0, 2, 3, 1).copy(), weights.transpose(2, 3, 1, 0).copy(), bias],
        attrs(stride=[1, 2], pad=[1, 1, 0, 0], form="NHWC"),
        origins=[NHWC, HWCN, ND],
        constant=[1, 2] if is_constant else [],
        expected=[expected.transpose(0, 2, 3, 1)],
    )
    check(x, weights, constant=[1] if is_constant else [], pad=1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [1, 3, 4])
def test_few_channels(c: int, dtype: Any) -> None:
    check(uniform(2, c, 14, 15, dtype=dtype), uniform(20, c, 7, 7, dtype=dtype, seed=1), layout=C04, stride=2, pad=3)
    check(uniform(1, c, 9, 9, dtype=dtype), uniform(16, c, 3, 3, dtype=dtype, seed=1), layout=C04, pad=1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("c", "groups"), [(1, 1), (16, 1), (17, 1), (4, 3), (1, 20)])
@pytest.mark.parametrize(
    "how", [{"pad": 1}, {"stride": [2, 1, 2], "pad": [0, 1, 1, 1, 0, 0]}, {"dilation": [2, 1, 1]}], ids=str
)
def test_volumes(c: int, groups: int, how: dict[str, Any], dtype: Any) -> None:
    x, weights = uniform(1, groups * c, 5, 6, 7, dtype=dtype), uniform(groups * 2, c, 3, 2, 3, dtype=dtype, seed=1)
    check(x, weights, layout=NDC1HWC0, groups=groups, **how)


@pytest.mark.parametrize("offset", [0, 3])
def test_whole_numbers(offset: int) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.integers(-128, 128, (1, 40, 6, 7), np.int8), rng.integers(-128, 128, (20, 40, 3, 3), np.int8)
    bias = rng.integers(-999, 999, 20, np.int32)
    check_stored("Conv2D", [x, weights, bias], attrs(pad=1) | {"offset_x": offset}, constant=[1, 2])
    check_stored(
        "Conv2D", [x, weights[:, :1].repeat(2, 0)], attrs(pad=1, groups=40) | {"offset_x": offset}, constant=[1]
    )


def test_blocks_of_rows() -> None:
    """An image that takes several blocks, with and without products per weights row."""
    check(uniform(1, 3, 150, 140), uniform(16, 3, 3, 3, seed=1), pad=1)
    check(uniform(1, 32, 80, 70), uniform(16, 32, 3, 3, seed=1), pad=1)
    check(uniform(1, 64, 120, 100), uniform(16, 64, 1, 1, seed=1))
    check(uniform(1, 32, 150, 140), uniform(32, 1, 3, 3, seed=1), groups=32, pad=1, stride=2)


def test_infinity_stays_out_of_the_padding() -> None:
    x = uniform(1, 17, 5, 6)
    x[0, 4, 2, 3] = np.inf
    check(x, np.abs(uniform(20, 17, 3, 3, seed=1)), pad=1)
    check(x, np.abs(uniform(17, 1, 3, 3, seed=1)), pad=1, groups=17)
