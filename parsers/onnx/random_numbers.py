"""Random numbers. The seed, a float in ONNX, is kept bit by bit, so that different seeds stay different."""

from __future__ import annotations

from typing import Any

import numpy as np

from ge.graph import DataType
from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder, Source


def seed_of(n: NodeBuilder) -> dict[str, Any]:
    """Return the GE attributes seed and seed2; without a seed both are 0, which means "differs each time"."""
    seed = n.attr("seed")
    if seed is None:
        return {"seed": 0, "seed2": 0}
    return {"seed": int(np.asarray(seed, np.float32).view(np.uint32)), "seed2": 1}


def _dtype(n: NodeBuilder, like: Source = None) -> DataType:
    wanted = n.attr("dtype")
    return n.dtype(like) if wanted is None else n.element_type(wanted, "dtype")


def _shape(n: NodeBuilder) -> Source:
    return n.int64(n.attr("shape"), "Const")


def _shape_like(n: NodeBuilder) -> Source:
    return n.add("Shape", n.need(0), role="Shape", dtype=int(DataType.DT_INT64))


def _normal(n: NodeBuilder, shape: Source, dtype: DataType) -> Mapped:
    drawn = n.add("RandomStandardNormal", shape, role="RandomStandardNormal", dtype=dtype, **seed_of(n))
    scaled = n.add("Muls", drawn, role="Muls", value=n.attr("scale"))
    return n.add("Adds", scaled, value=n.attr("mean"))


def _uniform(n: NodeBuilder, shape: Source, dtype: DataType) -> Mapped:
    drawn = n.add("RandomUniform", shape, role="RandomUniform", dtype=dtype, **seed_of(n))
    scaled = n.add("Muls", drawn, role="Muls", value=n.attr("high") - n.attr("low"))
    return n.add("Adds", scaled, value=n.attr("low"))


@maps("RandomNormal")
def random_normal(n: NodeBuilder) -> Mapped:
    """Before: RandomNormal. After: Const(shape) -> RandomStandardNormal -> Muls(scale) -> Adds(mean)."""
    return _normal(n, _shape(n), _dtype(n))


@maps("RandomNormalLike")
def random_normal_like(n: NodeBuilder) -> Mapped:
    """Before: RandomNormalLike. After: Shape -> RandomStandardNormal -> Muls(scale) -> Adds(mean)."""
    return _normal(n, _shape_like(n), _dtype(n, n.need(0)))


@maps("RandomUniform")
def random_uniform(n: NodeBuilder) -> Mapped:
    """Before: RandomUniform. After: Const(shape) -> RandomUniform -> Muls(high - low) -> Adds(low)."""
    return _uniform(n, _shape(n), _dtype(n))


@maps("RandomUniformLike")
def random_uniform_like(n: NodeBuilder) -> Mapped:
    """Before: RandomUniformLike. After: Shape -> RandomUniform -> Muls(high - low) -> Adds(low)."""
    return _uniform(n, _shape_like(n), _dtype(n, n.need(0)))


@maps("Multinomial")
def multinomial(n: NodeBuilder) -> Mapped:
    """Before: Multinomial. After: Const(sample_size) -> Multinomial."""
    count = n.index("Const", n.attr("sample_size"))
    return n.add("Multinomial", n.need(0), count, dtype=_dtype(n), **seed_of(n))


@maps("Bernoulli")
def bernoulli(n: NodeBuilder) -> Mapped:
    """Before: Bernoulli(p). After: RandomUniform(shape of p) -> Less(p) -> Cast."""
    p = n.need(0)
    drawn = n.add("RandomUniform", _shape_like(n), role="RandomUniform", dtype=n.dtype(p), **seed_of(n))
    is_hit = n.add("Less", drawn, p, role="Less")
    return n.add("Cast", is_hit, dst_type=int(_dtype(n, p)))
