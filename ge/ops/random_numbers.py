"""Random numbers.

With a seed (``seed`` or ``seed2`` not 0) every evaluation gives the same numbers; without one they differ each time.
All but StatelessBernoulliV2 are stateful: never folded, never merged. XDropout, which may train, is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.types import DataType
from ge.ops.creation import wanted_shape
from ge.ops.registry import InferContext, Misfit, OutputSpec, operator

_MASK = (1 << 64) - 1
_FRACTION_BITS = {DataType.DT_FLOAT16: 11, DataType.DT_BF16: 8, DataType.DT_FLOAT: 24, DataType.DT_DOUBLE: 53}


def _generator(op: Any) -> np.random.Generator:
    if op.seed == 0 and op.seed2 == 0:
        return np.random.default_rng()
    return np.random.default_rng([op.seed & _MASK, op.seed2 & _MASK])


def _of_dtype(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = DataType(ctx.op.dtype)
    if dtype not in _FRACTION_BITS:
        raise ctx.fail(f"there are no random numbers of type {dtype.name}", value=dtype.name)
    return [(wanted_shape(ctx, "shape"), dtype)]


def _dims(shape: Any) -> list[int]:
    return [int(dim) for dim in np.ravel(shape)]


@operator("RandomUniform(shape) [dtype:t! seed:i=0 seed2:i=0]", infer=_of_dtype, is_stateful=True)
def random_uniform(op: Any, shape: Any) -> Any:
    """Numbers from 0 (included) to 1 (not included, in the wanted type)."""
    steps = 1 << _FRACTION_BITS[op.output_types[0]]
    return _generator(op).integers(0, steps, _dims(shape)) / steps


@operator("RandomStandardNormal(shape) [dtype:t! seed:i=0 seed2:i=0]", infer=_of_dtype, is_stateful=True)
def random_standard_normal(op: Any, shape: Any) -> Any:
    return _generator(op).standard_normal(_dims(shape))


@operator("TruncatedNormal(shape) [dtype:t! seed:i=0 seed2:i=0]", infer=_of_dtype, is_stateful=True)
def truncated_normal(op: Any, shape: Any) -> Any:
    """Normal numbers no further than 2 from 0: those beyond are drawn again."""
    generator = _generator(op)
    result = np.asarray(generator.standard_normal(_dims(shape)))
    while (is_far := np.abs(result) > 2).any():
        result[is_far] = generator.standard_normal(int(is_far.sum()))
    return result


def _whole_numbers(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(wanted_shape(ctx, "shape"), ctx.dtype("min"))]


@operator("RandomUniformInt(shape, min, max) [seed:i=0 seed2:i=0]", infer=_whole_numbers, is_stateful=True)
def random_uniform_int(op: Any, shape: Any, low: Any, high: Any) -> Any:
    """Integers from ``min`` (included) to ``max`` (not included)."""
    if low.item() >= high.item():
        raise Misfit(f"there is no integer from {low.item()} up to, but without, {high.item()}")
    return _generator(op).integers(low.item(), high.item(), _dims(shape), dtype=low.dtype)


def _samples(ctx: InferContext) -> Sequence[OutputSpec]:
    logits, count = ctx.shape("logits"), ctx.ints("num_samples")
    if len(logits) != 2 and not logits.is_unknown_rank():
        raise ctx.fail(f"input logits of shape {logits} is no matrix")
    rows = -1 if logits.is_unknown_rank() else logits[0]
    return [([rows, count[0] if count else -1], DataType(ctx.op.dtype))]


@operator("Multinomial(logits, num_samples) [dtype:t=INT64 seed:i=0 seed2:i=0]", infer=_samples, is_stateful=True)
def multinomial(op: Any, logits: Any, num_samples: Any) -> Any:
    """Class numbers drawn per row with probability softmax(logits)."""
    weights = np.exp(logits.astype(np.float64) - np.max(logits, axis=1, keepdims=True, initial=-np.inf))
    limits = np.cumsum(weights, axis=1)
    drawn = _generator(op).random((len(logits), int(num_samples.item()))) * limits[:, -1:]
    return np.sum(drawn[:, :, None] >= limits[:, None, :-1], axis=2)


def _like_probabilities(ctx: InferContext) -> Sequence[OutputSpec]:
    dtype = DataType(ctx.op.dtype)
    return [(ctx.shape("x"), ctx.dtype("x") if dtype is DataType.DT_UNDEFINED else dtype)]


@operator("StatelessBernoulliV2(x, seed, offset) [dtype:t=UNDEFINED]", infer=_like_probabilities)
def stateless_bernoulli_v2(op: Any, x: Any, seed: Any, offset: Any) -> Any:
    """1 with probability ``x``, else 0; decided by ``seed`` and ``offset`` alone."""
    generator = np.random.default_rng([int(number) & _MASK for number in (*np.ravel(seed), *np.ravel(offset))])
    return generator.random(x.shape) < x


# -- dropout -----------------------------------------------------------------------------------------------------------
def _infer_dropout(ctx: InferContext) -> Sequence[OutputSpec]:
    for name in ("training_mode", "ratio"):
        if ctx.has(name) and ctx.shape(name).elements not in (1, -1):
            raise ctx.fail(f"input {name} of shape {ctx.shape(name)} must hold one element")
    return [(ctx.shape("x"), ctx.dtype("x")), (ctx.shape("x"), DataType.DT_BOOL)]


@operator(
    "XDropout(x, training_mode, ratio?) -> y, mask [seed:i=0 is_seeded:b=F]", infer=_infer_dropout, is_stateful=True
)
def dropout(op: Any, x: Any, training_mode: Any, ratio: Any) -> Any:
    """Drop elements with probability ``ratio`` (0.5) and scale the rest; ``mask`` tells what stays.

    A seed starts numpy's legacy generator, from whose numbers ONNX's test data is made.
    """
    share = 0.5 if ratio is None else float(ratio.item())
    if not 0 <= share < 1:
        raise Misfit(f"the dropout ratio must be at least 0 and below 1, not {share}")
    if not training_mode.item() or share == 0:
        return x, np.ones(x.shape, bool)
    generator = np.random.RandomState(op.seed & 0xFFFF_FFFF if op.is_seeded else None)
    mask = generator.uniform(size=x.shape) >= share
    return np.where(mask, x / (1 - share), 0), mask
