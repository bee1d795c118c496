"""Operators at the border of a graph: Data, Const, NetOutput; and those that only pass values on.

RefData, AippData, AnyData and Variable stand where a pass API lets a graph begin with them; no model file makes any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ge.graph.tensor import Tensor
from ge.ops.inference import same_as
from ge.ops.registry import InferContext, OpDef, OutputSpec, operator, register
from ge.ops.signature import parse_signature


def _declared(ctx: InferContext) -> Sequence[OutputSpec]:
    desc = ctx.node.output_descs[0]
    return [(desc.origin_shape, desc.data_type)]


def _const(ctx: InferContext) -> Sequence[OutputSpec]:
    value = ctx.node.attrs.get("value")
    if not isinstance(value, Tensor):
        raise ctx.fail("attribute value holds no tensor")
    return [(value.array.shape, value.data_type)]


def _nothing(ctx: InferContext) -> Sequence[OutputSpec]:
    return []


def _each_input(ctx: InferContext) -> Sequence[OutputSpec]:
    return [(desc.origin_shape, desc.data_type) for desc in ctx.descs("x")]


# Data has no input here: an .om lists it as a source, and GE's formal input x is never connected.
for _type in ("Data", "RefData", "AippData", "AnyData", "Variable"):
    register(OpDef(parse_signature(f"{_type}() [index:i=0]"), _declared, None))
register(OpDef(parse_signature("Const() [value:tensor=]"), _const, None))
register(OpDef(parse_signature("NetOutput(x*) ->"), _nothing, None, is_stateful=True))
register(OpDef(parse_signature("NoOp() ->"), _nothing, None, is_stateful=True))


@operator("Identity(x)", infer=same_as("x"), exact_types=True)
def identity(op: Any, x: Any) -> Any:
    return x


@operator("IdentityN(x*) -> y*", infer=_each_input, exact_types=True)
def identity_n(op: Any, x: list[Any]) -> Any:
    return tuple(np.asarray(v) for v in x)
