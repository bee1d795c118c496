"""TransData: the same tensor in another storage format. ReFormat: the same bytes under another name of their axes."""

from __future__ import annotations

from collections.abc import Sequence

from ge.formats import in_axis_order
from ge.ops.inference import same_as
from ge.ops.registry import Array, InferContext, OpDef, OutputSpec, operator, register
from ge.ops.signature import parse_signature


def _same_tensor(ctx: InferContext) -> Sequence[OutputSpec]:
    """The source's origin shape, its axes in the order in which the result names them."""
    source, result = ctx.desc("src"), ctx.node.output_descs[0]
    dims = in_axis_order(source.origin_shape, source.origin_format, result.origin_format)
    return [(dims, source.data_type)]


# The tensor stays what it is; what lies in memory differs by format, so plain arrays cannot say what it means.
register(
    OpDef(
        parse_signature(
            "TransData(src) -> dst [src_format:s! dst_format:s! src_subformat:i=0 dst_subformat:i=0 groups:i=1]"
        ),
        _same_tensor,
        None,
    )
)


@operator("ReFormat(x)", infer=same_as("x"), exact_types=True)
def re_format(op: object, x: Array) -> Array:
    return x
