"""Origin view and storage view of descriptors: how one follows from the other, in inference too."""

from __future__ import annotations

import numpy as np
import pytest

from ge.constant_values import ConstantValues
from ge.formats import lay_out, lay_out_as_origin, lies_in_origin, origin_array, storage_fault, stored_array
from ge.graph import Format, Graph, Shape, Tensor, TensorDesc
from ge.graph.tensor_desc import OpenDim, same_dim
from ge.graph.types import FORMAT_BY_TEXT, DataType, data_type_by_short_name
from ge.ops import infer_node
from ge.text import parse_graph


def desc_of(text: str) -> TensorDesc:
    graph = parse_graph(f"graph g(%x: {text}) {{ return %x }}")
    return graph.data_nodes()[0].output_descs[0]


@pytest.mark.parametrize(
    ("origin", "layout", "groups", "shape"),
    [
        ("f16[8,3,224,224]@NCHW", "NC1HWC0", 0, [8, 1, 224, 224, 16]),
        ("i8[8,5,5,33]@NHWC", "NC1HWC0", 0, [8, 2, 5, 5, 32]),
        ("f16[64]@NCHW", "NC1HWC0", 0, [1, 4, 1, 1, 16]),
        ("f16[32,2,3,3]@NCHW", "FRACTAL_Z", 2, [9, 2, 16, 16]),
        ("f16[128,1000]@ND", "FRACTAL_NZ", 0, [63, 8, 16, 16]),
        ("f16[2,3,4,5]@NCHW", "NHWC", 0, [2, 4, 5, 3]),
        ("f16[2,3,4,5]@ND", "NCHW", 0, [2, 3, 4, 5]),
    ],
)
def test_the_storage_view_follows_from_the_origin_view(origin: str, layout: str, groups: int, shape: list[int]) -> None:
    desc = desc_of(origin)
    plain = desc.copy()
    lay_out(desc, FORMAT_BY_TEXT[layout], groups)
    assert (list(desc.shape), desc.sub_format, storage_fault(desc)) == (shape, groups, "")
    assert (desc.origin_shape, desc.origin_format) == (plain.origin_shape, plain.origin_format)
    assert lay_out_as_origin(desc) == plain


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("f16[8,3,4,4]@NCHW | [8,2,4,4,16]@NC1HWC0", "the shape [8,1,4,4,16], not [8,2,4,4,16]"),
        ("f16[8,3,4,4]@NCHW | [8,1,4,4,16]@NC1HWC0:2", "NC1HWC0 does not depend on groups, 2 are given"),
        ("f16[8,3,4,4]@NCHW | [8,4,4,3]@NCHW", "the shape [8,3,4,4], not [8,4,4,3]"),
        ("f16[8,3,4,4,4]@NCDHW | [8,1,4,4,16]@NC1HWC0", "NC1HWC0 is made from N, C, H and W"),
    ],
)
def test_views_that_contradict_each_other(text: str, reason: str) -> None:
    assert reason in storage_fault(desc_of(text))


@pytest.mark.parametrize(
    ("origin", "layout", "groups"),
    [
        ("f32[2,33,3,4]@NCHW", "NC1HWC0", 0),
        ("f32[2,3,4,33]@NHWC", "NC1HWC0", 0),
        ("f32[17]@NCHW", "NC1HWC0", 0),
        ("f32[32,2,3,3]@NCHW", "FRACTAL_Z", 4),
        ("f32[3,3,2,32]@HWCN", "FRACTAL_Z", 4),
        ("f32[3,18,34]@ND", "FRACTAL_NZ", 0),
        ("f32[2,3,4,5]@NCHW", "NHWC", 0),
    ],
)
def test_arrays_come_back_from_storage(origin: str, layout: str, groups: int) -> None:
    desc = lay_out(desc_of(origin), FORMAT_BY_TEXT[layout], groups)
    array = np.random.default_rng(5).standard_normal(desc.origin_shape).astype(np.float32)
    stored = stored_array(array, desc)
    assert stored.shape == tuple(desc.shape)
    assert not lies_in_origin(desc)
    np.testing.assert_array_equal(origin_array(stored, desc), array)


def test_open_dims_keep_their_names() -> None:
    for name in ("batch", "other"):
        desc = desc_of("f16[-1,16,4,4]@NCHW")
        desc.shape = desc.origin_shape = Shape([OpenDim(name), 16, 4, 4])
        lay_out(desc, Format.FORMAT_NC1HWC0)
        assert same_dim(desc.shape[0], OpenDim(name))


def test_a_permuted_array_is_a_transposed_one() -> None:
    desc = lay_out(desc_of("f32[2,3,4,5]@NCHW"), Format.FORMAT_NHWC)
    array = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    np.testing.assert_array_equal(stored_array(array, desc), array.transpose(0, 2, 3, 1))


# -- inference ---------------------------------------------------------------------------------------------------------
def test_inference_works_in_the_origin_view_and_derives_the_storage_shape() -> None:
    graph = parse_graph("""graph g(%x: f16[1,20,8,8]@NCHW | [1,2,8,8,16]@NC1HWC0) {
  %p = MaxPoolV3(%x) {ksize=[1,1,2,2], strides=[1,1,2,2]} -> f16[1,1,1,1]@NCHW | [1,1,1,1,16]@NC1HWC0
  %r = Relu(%p)
  return %p, %r
}""")
    pool, relu = graph.find("p"), graph.find("r")
    assert pool is not None
    assert relu is not None
    assert infer_node(pool)
    assert (list(pool.output_descs[0].origin_shape), list(pool.output_descs[0].shape)) == (
        [1, 20, 4, 4],
        [1, 2, 4, 4, 16],
    )
    assert not infer_node(pool)
    assert infer_node(relu)
    assert list(relu.output_descs[0].shape) == [1, 20, 4, 4]


def constant(values: np.ndarray, layout: str, dtype: str = "i32") -> Graph:
    """A graph whose constant ``%shape`` lies in a private layout; Reshape and Neg read it."""
    graph = Graph("g")
    desc = TensorDesc(values.shape, Format.FORMAT_ND, data_type_by_short_name(dtype))
    lay_out(desc, FORMAT_BY_TEXT[layout])
    tensor = Tensor.of(stored_array(values, desc))
    tensor.desc = desc
    found = graph.add_const("values", tensor)
    graph.add_node("Neg", "negated", [found])
    return graph


def test_values_of_constants_are_seen_in_their_origin_view() -> None:
    values = np.arange(18 * 34, dtype=np.int32).reshape(18, 34)
    graph = constant(values, "FRACTAL_NZ")
    negated = graph.find("negated")
    assert negated is not None
    infer_node(negated)
    known = ConstantValues()
    found = known.of(negated.output())
    assert found is not None
    np.testing.assert_array_equal(found, -values)
    given = known.known_input(negated, 0)
    assert given is not None
    assert given.whole is not None
    np.testing.assert_array_equal(given.whole, values)
    assert negated.output_descs[0].data_type is DataType.DT_INT32
