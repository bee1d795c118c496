"""The modules whose import fills the table of mappings."""

from parsers.tensorflow import (
    activation,
    boundary,
    conv,
    image,
    math,
    matmul,
    norm,
    pool,
    random_numbers,
    rearrange,
    reduce,
    reshape,
    selection,
)

FAMILIES = (
    activation,
    boundary,
    conv,
    image,
    math,
    matmul,
    norm,
    pool,
    random_numbers,
    rearrange,
    reduce,
    reshape,
    selection,
)
