"""The modules whose import fills the table of mappings."""

from parsers.tensorflow import (
    activation,
    boundary,
    conv,
    image,
    loss,
    math,
    matmul,
    norm,
    pool,
    quant,
    random_numbers,
    rearrange,
    recurrent,
    reduce,
    reshape,
    selection,
)

FAMILIES = (
    activation,
    boundary,
    conv,
    image,
    loss,
    math,
    matmul,
    norm,
    pool,
    quant,
    random_numbers,
    rearrange,
    recurrent,
    reduce,
    reshape,
    selection,
)
