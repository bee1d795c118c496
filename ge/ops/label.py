"""Labels: looking up what stands for each element. GE has no such operator; this is ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.ops.registry import Array, InferContext, Misfit, OutputSpec, operator
from ge.ops.strings import text_of


def _infer(ctx: InferContext) -> Sequence[OutputSpec]:
    for left, right in (("x", "keys"), ("values", "default")):
        if ctx.dtype(left) is not ctx.dtype(right):
            raise ctx.fail(f"{left} is {ctx.dtype(left).name}, but {right} {ctx.dtype(right).name}")
    keys, values = ctx.shape("keys").elements, ctx.shape("values").elements
    if -1 not in (keys, values) and keys != values:
        raise ctx.fail(f"it has {keys} keys, but {values} values")
    if ctx.shape("default").elements not in (1, -1):
        raise ctx.fail(f"its default of shape {ctx.shape('default')} must be one element")
    return [(ctx.shape("x"), ctx.dtype("values"))]


@operator("XLabelEncoder(x, keys, values, default)", infer=_infer, exact_types=True)
def label_encoder(op: Any, x: Array, keys: Array, values: Array, default: Array) -> Array:
    """Take the value of the key that equals the element, else ``default``. NaN is a key, the last of equals counts."""
    if keys.size != values.size:
        raise Misfit(f"there are {keys.size} keys, but {values.size} values")
    is_text = values.dtype == np.object_
    *found, other = [text_of(v) if is_text else v for v in (*values.reshape(-1), *default.reshape(-1))]
    table = dict(zip(map(_key, keys.reshape(-1).tolist()), found, strict=True))
    result = np.empty(x.shape, values.dtype)
    result.reshape(-1)[:] = [table.get(_key(element), other) for element in x.reshape(-1).tolist()]
    return result


def _key(element: Any) -> Any:
    if isinstance(element, str | bytes):
        return text_of(element)
    return "nan" if element != element else element
