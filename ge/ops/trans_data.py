"""TransData: the same tensor in another storage format."""

from __future__ import annotations

from ge.ops.inference import same_as
from ge.ops.registry import OpDef, register
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
