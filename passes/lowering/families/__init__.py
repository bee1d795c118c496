"""The lowerings, a module per family of operators, as in ``ge/ops``. Importing this package registers them."""

from passes.lowering.families import (
    activation,
    cast,
    concat,
    gather,
    math,
    matmul,
    norm,
    reduce,
    reshape,
    selection,
    slicing,
    softmax,
)

__all__ = [
    "activation",
    "cast",
    "concat",
    "gather",
    "math",
    "matmul",
    "norm",
    "reduce",
    "reshape",
    "selection",
    "slicing",
    "softmax",
]
