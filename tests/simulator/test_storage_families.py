"""Pools, resampling, normalisation, reductions, joins, softmax and matrix products on storage layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.storage_model import NCDHW, NCHW, ND, NDC1HWC0, NHWC, NZ, check_stored, uniform

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
CHANNELS = [1, 15, 16, 17, 33]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# -- pools -------------------------------------------------------------------------------------------------------------
def window(k: Any, stride: Any = 1, pads: Any = (0, 0, 0, 0), form: str = "NCHW", **extra: Any) -> dict[str, Any]:
    sizes = {"ksize": k, "strides": stride}
    n = len(form) - 2
    spread = {name: iter(np.broadcast_to(value, n).tolist()) for name, value in sizes.items()}
    lists = {name: [next(values) if axis in "DHW" else 1 for axis in form] for name, values in spread.items()}
    return {**lists, "pads": list(pads), "data_format": form, **extra}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize(
    ("k", "stride", "pads"),
    [
        (2, 2, (0, 0, 0, 0)),
        (3, 2, (1, 1, 1, 1)),
        (3, 1, (1, 1, 1, 1)),
        ((2, 3), (1, 3), (0, 1, 2, 0)),
        (9, 1, (0, 0, 0, 0)),
    ],
)
def test_pools(k: Any, stride: Any, pads: Any, c: int, dtype: Any) -> None:
    """All numbers are below 0, so that a maximum over padding would show."""
    x = uniform(2, c, 9, 11, dtype=dtype, low=-3, high=-1)
    check_stored("MaxPoolV3", [x], window(k, stride, pads))
    check_stored("AvgPoolV2", [x], window(k, stride, pads, exclusive=False))
    check_stored("AvgPoolV2", [x], window(k, stride, pads, exclusive=True, ceil_mode=True))


def test_pools_of_other_kinds() -> None:
    x = uniform(2, 7, 9, 17, low=-3, high=-1)
    for op_type in ("MaxPool", "AvgPool"):
        check_stored(op_type, [x], window(3, 2, form="NHWC", padding="SAME"), origins=[NHWC])
    check_stored("MaxPoolV3", [(x.transpose(0, 3, 1, 2) * 9).astype(np.int8)], window(3, 2, (1, 1, 1, 1)))
    check_stored("AvgPoolV2", [uniform(1, 17, 8, 8)], window(2, 2, divisor_override=1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", [1, 16, 17])
def test_pools_of_volumes(c: int, dtype: Any) -> None:
    x = uniform(2, c, 4, 5, 6, dtype=dtype, low=-3, high=-1)
    for k, stride, pads in ((2, 2, [0] * 6), (3, 1, [1] * 6), ((1, 2, 3), (1, 2, 1), [0, 0, 1, 0, 1, 1])):
        how = window(k, stride, pads, form="NCDHW")
        check_stored("MaxPool3D", [x], how | {"padding": "EXPLICIT"}, layout=NDC1HWC0)
        check_stored("AvgPool3D", [x], how, layout=NDC1HWC0)
    check_stored("GlobalAveragePool", [x], layout=NDC1HWC0, origins=[NCDHW])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", CHANNELS)
def test_global_average(c: int, dtype: Any) -> None:
    check_stored("GlobalAveragePool", [uniform(2, c, 7, 5, dtype=dtype)])


# -- resampling --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [(10, 14), (7, 5), (3, 4), (5, 14)])
@pytest.mark.parametrize("type", ["ResizeBilinearV2", "ResizeNearestNeighborV2"])
def test_images(type: str, size: tuple[int, int], dtype: Any) -> None:
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        how = attrs | ({"dtype": 0} if type == "ResizeBilinearV2" and dtype == np.float16 else {})
        check_stored(type, [uniform(2, 17, 5, 7, dtype=dtype), ints(*size)], how, constant=[1])
    check_stored(
        type,
        [uniform(2, 5, 7, 17, dtype=dtype), ints(*size)],
        {"_x_data_format": "NHWC"},
        constant=[1],
        origins=[NHWC, ND],
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(2, 2), (1.5, 0.6), (1, 3)])
def test_resize(mode: str, scales: tuple[float, float]) -> None:
    x, factors = uniform(2, 33, 5, 7), np.array([1, 1, *scales], np.float32)
    for coordinates in ("half_pixel", "align_corners", "asymmetric"):
        how = {"mode": mode, "coordinate_transformation_mode": coordinates}
        check_stored("Resize", [x, None, factors], how, constant=[2])
    check_stored("Resize", [x, None, factors], {"mode": "linear", "_x_antialias": 1}, constant=[2])
    check_stored("Resize", [(x * 60).astype(np.int8), None, factors], {"mode": "nearest"}, constant=[2])


# -- one number per channel --------------------------------------------------------------------------------------------
def statistics(c: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [uniform(c, dtype=dtype, low=0.5, seed=seed) for seed in range(1, 5)]


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", CHANNELS)
def test_batch_norm(c: int, dtype: Any, is_constant: bool) -> None:
    constant = [1, 2, 3, 4] if is_constant else []
    inputs = [uniform(2, c, 3, 5, dtype=dtype), *statistics(c)]
    how = {"is_training": False, "epsilon": 1e-3, "data_format": "NCHW"}
    check_stored("BatchNorm", inputs, how, constant=constant)
    check_stored("BNInfer", inputs, {"epsilon": 1e-3}, constant=constant)
    volume = [uniform(1, c, 2, 3, 4, dtype=dtype), *statistics(c)]
    check_stored("BNInfer", volume, {"epsilon": 1e-3}, constant=constant, layout=NDC1HWC0)
    last = [uniform(2, 3, 5, c, dtype=dtype), *statistics(c)]
    check_stored("BatchNorm", last, how | {"data_format": "NHWC"}, constant=constant, origins=[NHWC, ND, ND, ND, ND])


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_vectors(c: int, dtype: Any, is_constant: bool) -> None:
    x, vector = uniform(2, c, 3, 5, dtype=dtype), uniform(c, dtype=dtype, seed=1)
    constant = [1] if is_constant else []
    check_stored("BiasAdd", [x, vector], {"data_format": "NCHW"}, constant=constant)
    check_stored("PRelu", [x, vector], constant=constant)
    check_stored("PRelu", [x, vector.reshape(-1, 1, 1)], constant=constant)
    check_stored("PRelu", [x, vector[:1]], constant=constant)
    volume = uniform(1, c, 2, 3, 4, dtype=dtype)
    check_stored("BiasAdd", [volume, vector], {"data_format": "NCDHW"}, constant=constant, layout=NDC1HWC0)
    check_stored("PRelu", [volume, vector], constant=constant, layout=NDC1HWC0)


def test_slopes_that_are_not_finite() -> None:
    """A constant slope of infinity is not multiplied with zeros in the place of what is positive."""
    x, slopes = uniform(1, 17, 3, 5), uniform(17, seed=1)
    slopes[3] = np.inf
    check_stored("PRelu", [x, slopes], constant=[1], may_be_reference=True)


# -- reductions --------------------------------------------------------------------------------------------------------
REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("axes", [(2,), (3,), (2, 3), (0,), (0, 3), (-1, -2, 0)])
def test_reductions_beside_the_channels(axes: tuple[int, ...], c: int, dtype: Any) -> None:
    x = uniform(2, c, 3, 5, dtype=dtype, low=-2, high=-0.5)
    for op_type in REDUCTIONS:
        check_stored(op_type, [x, ints(*axes)], {"keep_dims": True}, constant=[1])


@pytest.mark.parametrize("c", CHANNELS)
@pytest.mark.parametrize("axes", [(1,), (1, 2, 3), (0, 1), (1, 3)])
@pytest.mark.parametrize("origin", [NCHW, NHWC])
def test_reductions_over_channels(origin: Any, axes: tuple[int, ...], c: int) -> None:
    """Maxima of negative numbers and means: the padding must not count."""
    sizes = {"N": 2, "C": c, "H": 3, "W": 5}
    letters = {NCHW: "NCHW", NHWC: "NHWC"}[origin]
    x = uniform(*(sizes[axis] for axis in letters), dtype=np.float16, low=-2, high=-0.5)
    own = [letters.index("NCHW"[axis]) for axis in axes]
    for op_type in REDUCTIONS:
        for keeps in (True, False):
            check_stored(op_type, [x, ints(*own)], {"keep_dims": keeps}, constant=[1], origins=[origin, ND])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("keeps", [True, False])
def test_reductions_of_matrices(keeps: bool, dtype: Any) -> None:
    x, whole = uniform(2, 3, 17, 19, dtype=dtype, high=-0.5), uniform(2, 32, 48, dtype=dtype, high=-0.5)
    for op_type in REDUCTIONS:
        for axes in ((0,), (1,), (0, 1)):
            check_stored(op_type, [x, ints(*axes)], {"keep_dims": keeps}, constant=[1], layout=NZ, origins=[ND, ND])
        for axes in ((1,), (2,), (1, 2), (0, 2), (0, 1, 2)):
            check_stored(op_type, [whole, ints(*axes)], {"keep_dims": keeps}, constant=[1], layout=NZ)


def test_other_reductions() -> None:
    x = uniform(2, 17, 3, 5)
    for op_type in ("ReduceAll", "ReduceAny"):
        check_stored(op_type, [x > 0, ints(2)], {"keep_dims": True}, constant=[1])
    check_stored("ReduceSumD", [x], {"axes": [2], "keep_dims": True})
    check_stored("ReduceMeanD", [x], {"axes": [2, 3], "keep_dims": True})
    check_stored("SquareSumV1", [x], {"axis": [3], "keep_dims": True})
    check_stored("ReduceSum", [(x * 50).astype(np.int32), ints(3)], {"keep_dims": True}, constant=[1])
    check_stored("ReduceMean", [(x * 50).astype(np.int32), ints(3)], {"keep_dims": True}, constant=[1])
    check_stored("ReduceMean", [uniform(1, 17, 40, 50), ints(2, 3)], {"keep_dims": True}, constant=[1])
    check_stored("ReduceMax", [uniform(1, 17, 3, 4, 5), ints(2)], {"keep_dims": True}, constant=[1], layout=NDC1HWC0)


# -- joining and splitting ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [*TYPES, np.int8, np.int32])
def test_joins(dtype: Any) -> None:
    a, b = uniform(2, 32, 3, 5, high=9, dtype=dtype), uniform(2, 64, 3, 5, high=9, dtype=dtype)
    check_stored("ConcatD", [a, b, a], {"concat_dim": 1, "N": 3})
    check_stored("ConcatV2", [a, b, ints(-3)], {"N": 2}, constant=[2])
    odd, tall = uniform(2, 17, 3, 5, high=9, dtype=dtype), uniform(2, 17, 4, 5, high=9, dtype=dtype)
    check_stored(
        "Concat", [ints(2), odd, tall], {"N": 2}, constant=[0], origins=[ND, NCHW, NCHW], output_origins=[NCHW]
    )
    check_stored("ConcatD", [odd, odd], {"concat_dim": 0, "N": 2})
    check_stored("ConcatD", [a.transpose(0, 2, 3, 1).copy()] * 2, {"concat_dim": 3, "N": 2}, origins=[NHWC, NHWC])
    volume = uniform(1, 17, 2, 3, 4, high=9, dtype=dtype)
    check_stored("ConcatD", [volume, volume], {"concat_dim": 2, "N": 2}, layout=NDC1HWC0)


@pytest.mark.parametrize("dtype", TYPES)
def test_joins_of_matrices(dtype: Any) -> None:
    x, y = uniform(2, 32, 48, dtype=dtype), uniform(2, 32, 16, dtype=dtype)
    check_stored("ConcatD", [x, y], {"concat_dim": 2, "N": 2}, layout=NZ)
    check_stored("ConcatD", [x, x], {"concat_dim": -2, "N": 2}, layout=NZ)
    odd = uniform(2, 17, 19, dtype=dtype)
    check_stored("ConcatD", [odd, odd], {"concat_dim": 0, "N": 2}, layout=NZ)
    check_stored("Pack", [odd, odd, odd], {"axis": 1, "N": 3}, layout=NZ, origins=[ND] * 3, output_origins=[ND])


@pytest.mark.parametrize("dtype", [*TYPES, np.int32])
def test_splits(dtype: Any) -> None:
    x = uniform(2, 96, 4, 5, high=9, dtype=dtype)
    check_stored("SplitD", [x], {"split_dim": 1, "num_split": 3}, n_outputs=3)
    check_stored("SplitVD", [x], {"split_dim": 1, "size_splits": [16, 48, 32], "num_split": 3}, n_outputs=3)
    check_stored("SplitV", [x, ints(3, 1), ints(2)], {"num_split": 2}, constant=[1, 2], n_outputs=2)
    check_stored(
        "Split",
        [ints(3), uniform(2, 17, 4, 6, high=9, dtype=dtype)],
        {"num_split": 2},
        constant=[0],
        n_outputs=2,
        origins=[ND, NCHW],
        output_origins=[NCHW, NCHW],
    )
    check_stored(
        "SplitD", [uniform(2, 32, 32, high=9, dtype=dtype)], {"split_dim": 2, "num_split": 2}, n_outputs=2, layout=NZ
    )


# -- rows --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("type", ["SoftmaxV2", "LogSoftmaxV2"])
def test_softmax(type: str, dtype: Any) -> None:
    for c in (15, 32):
        x = uniform(2, c, 3, 5, dtype=dtype)
        for axes in ([2], [3], [2, 3], [0]):
            check_stored(type, [x], {"axes": axes})
    for axes in ([1], [1, 2], [1, 2, 3], [0, 1]):
        check_stored(type, [x], {"axes": axes})
    check_stored(type, [x.transpose(0, 2, 3, 1).copy()], {"axes": [-1]}, origins=[NHWC])
    whole = uniform(3, 32, 48, dtype=dtype)
    for axes in ([-1], [-2], [1, 2], [0], [0, 2]):
        check_stored(type, [whole], {"axes": axes}, layout=NZ)
    check_stored(type, [uniform(3, 17, 19, dtype=dtype)], {"axes": [0]}, layout=NZ)
    check_stored(type, [uniform(1, 32, 2, 3, 4, dtype=dtype)], {"axes": [1]}, layout=NDC1HWC0)


def test_softmax_of_many_rows() -> None:
    check_stored("SoftmaxV2", [uniform(1, 512, 400)], {"axes": [-1]}, layout=NZ)
    check_stored("SoftmaxV2", [uniform(1, 1024, 7, 9)], {"axes": [1]})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(32, 48), (2, 16, 32), (2, 3, 16, 160), (512, 256)])
def test_layer_norm(shape: tuple[int, ...], dtype: Any) -> None:
    x, gamma, beta = (
        uniform(*shape, dtype=dtype),
        uniform(shape[-1], dtype=dtype, seed=1),
        uniform(shape[-1], dtype=dtype, seed=2),
    )
    how = {"begin_norm_axis": -1, "begin_params_axis": -1}
    origins = [ND] * 5
    options: dict[str, Any] = {"layout": NZ, "origins": origins, "constant": [1, 2]}
    check_stored("LayerNorm", [x, gamma, beta], how, n_outputs=3, **options)
    check_stored("LayerNormV3", [x, gamma, beta], how, n_outputs=3, **options)
    check_stored("LayerNormV4", [x, ints(shape[-1]), gamma, beta], n_outputs=3, **options)
    check_stored("RmsNorm", [x, gamma], n_outputs=2, **options)
    options["constant"] = []
    check_stored("AddLayerNorm", [x, x[..., ::-1].copy(), gamma, beta], n_outputs=4, **options)
    for bias in (gamma, x[::-1].copy()):
        check_stored("AddLayerNorm", [x, x[..., ::-1].copy(), gamma, beta, bias], n_outputs=4, **options)


# -- matrix products ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (15, 17, 16), (16, 32, 48), (33, 20, 17), (70, 100, 3)])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("swaps", [(False, False), (True, False), (False, True), (True, True)])
def test_products(swaps: tuple[bool, bool], is_constant: bool, sizes: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = sizes
    x1, x2, bias = uniform(m, k, dtype=dtype), uniform(k, n, dtype=dtype, seed=1), uniform(n, dtype=dtype, seed=2)
    x1, x2 = (x.T.copy() if is_turned else x for x, is_turned in zip((x1, x2), swaps, strict=True))
    how = dict(zip(("transpose_x1", "transpose_x2"), swaps, strict=True))
    constant = [1] if is_constant else []
    check_stored("MatMulV2", [x1, x2, bias], how, layout=NZ, constant=constant)
    check_stored("MatMul", [x1, x2], how, layout=NZ, constant=constant)
    batched = {"adj_x1": swaps[0], "adj_x2": swaps[1]}
    check_stored(
        "BatchMatMulV2",
        [np.stack([x1, x1 + 1, -x1]), x2, bias],
        batched,
        layout=NZ,
        constant=constant,
        origins=[ND] * 3,
    )
    check_stored(
        "BatchMatMul",
        [x1.reshape(1, 1, *x1.shape), np.stack([x2, -x2])],
        batched,
        layout=NZ,
        constant=constant,
        origins=[ND] * 2,
        output_origins=[ND],
    )


def test_products_of_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    x1, x2 = rng.integers(-128, 128, (20, 70), np.int8), rng.integers(-128, 128, (70, 40), np.int8)
    check_stored("MatMulV2", [x1, x2, rng.integers(-9, 9, 40, np.int32)], {"offset_x": 2}, layout=NZ)
    check_stored("MatMulV2", [x1.astype(np.int32), x2.astype(np.int32)], layout=NZ)


def test_products_of_many_rows() -> None:
    check_stored("MatMulV2", [uniform(900, 700), uniform(700, 80, seed=1)], {}, layout=NZ, constant=[1])
    check_stored("MatMulV2", [uniform(700, 900), uniform(700, 80, seed=1)], {"transpose_x1": True}, layout=NZ)


# -- transposed convolution --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("c", "n", "groups"), [(3, 5, 1), (16, 16, 1), (17, 20, 1), (8, 4, 4), (32, 16, 2)])
@pytest.mark.parametrize(("stride", "pad", "dilation"), [(1, 0, 1), (2, 1, 1), (3, 0, 2), (2, 0, 1)])
def test_transposed_convolution(stride: int, pad: int, dilation: int, c: int, n: int, groups: int, dtype: Any) -> None:
    x, weights = uniform(2, c, 5, 6, dtype=dtype), uniform(c, n, 3, 2, dtype=dtype, seed=1)
    bias = uniform(n * groups, dtype=dtype, seed=2)
    how = {
        "strides": [1, 1, stride, stride],
        "pads": [pad] * 4,
        "dilations": [1, 1, dilation, dilation],
        "groups": groups,
    }
    how |= {"data_format": "NCHW"}
    size = np.zeros(4, np.int32)
    for constant in ([0, 2, 3], [0]):
        check_stored(
            "Conv2DTranspose",
            [size, x, weights, bias],
            how,
            constant=constant,
            origins=[ND, NCHW, NCHW, ND],
            output_origins=[NCHW],
            tolerance=None if dtype == np.float32 else 1.5e-2,
        )
    check_stored(
        "Conv2DBackpropInput",
        [size, weights, x],
        how,
        constant=[0, 1],
        origins=[ND, NCHW, NCHW],
        output_origins=[NCHW],
        tolerance=None if dtype == np.float32 else 1.5e-2,
    )
