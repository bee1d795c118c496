"""SoftClip: values beyond a limit are bent towards it."""

import numpy as np

from ge.ops import operator
from ge.ops.inference import same_as


@operator(
    "SoftClip(x) -> y [limit:f! sharpness:f=1]",
    infer=same_as("x"),
    onnx={"acme.signal::SoftClip": {"s": "sharpness"}},
)
def soft_clip(op, x):
    return op.limit * np.tanh(op.sharpness * x / op.limit)
