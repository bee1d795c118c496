"""TransData: the same tensor in another storage format. ReFormat: the same bytes under another name of their axes."""

from __future__ import annotations

from ge.ops.inference import same_as
from ge.ops.registry import Array, OpDef, operator, register
from ge.ops.signature import parse_signature

# The origin view stays as it is; what lies in memory differs by format, so plain arrays cannot say what it means.
register(
    OpDef(
        parse_signature(
            "TransData(src) -> dst [src_format:s! dst_format:s! src_subformat:i=0 dst_subformat:i=0 groups:i=1]"
        ),
        same_as("src"),
        None,
    )
)


@operator("ReFormat(x)", infer=same_as("x"), exact_types=True)
def re_format(op: object, x: Array) -> Array:
    return x
