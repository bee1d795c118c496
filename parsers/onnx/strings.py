"""Strings and n-grams."""

from __future__ import annotations

import numpy as np

from parsers.onnx.mapping import Mapped, maps
from parsers.onnx.node_builder import NodeBuilder


@maps("StringConcat")
def string_concat(n: NodeBuilder) -> Mapped:
    """Before: StringConcat(x, y). After: StringJoin(x, y)."""
    return n.add("StringJoin", *n.inputs, N=2, separator="")


@maps("StringSplit")
def string_split(n: NodeBuilder) -> Mapped:
    """Before: StringSplit. After: XStringSplit."""
    return n.add("XStringSplit", n.need(0), delimiter=n.attr("delimiter", ""), maxsplit=n.attr("maxsplit", -1))


@maps("RegexFullMatch")
def regex_full_match(n: NodeBuilder) -> Mapped:
    """Before: RegexFullMatch(pattern attribute). After: Const(pattern) -> RegexFullMatch."""
    pattern = n.const("Pattern", np.array(n.attr("pattern", "").encode(), np.object_))
    return n.add("RegexFullMatch", n.need(0), pattern)


@maps("StringNormalizer")
def string_normalizer(n: NodeBuilder) -> Mapped:
    """Before: StringNormalizer. After: StringNormalizer."""
    return n.add(
        "StringNormalizer",
        n.need(0),
        stopwords=n.attr("stopwords", []),
        is_case_sensitive=bool(n.attr("is_case_sensitive")),
        case_change_action=n.choice("case_change_action", "NONE", "LOWER", "UPPER"),
        locale=n.attr("locale", "en_US"),
    )


_LISTS = ("ngram_counts", "ngram_indexes", "pool_int64s", "pool_strings", "weights")
_SCALARS = ("max_gram_length", "max_skip_count", "min_gram_length", "mode")


@maps("TfIdfVectorizer")
def tf_idf_vectorizer(n: NodeBuilder) -> Mapped:
    """Before: TfIdfVectorizer. After: XTfIdfVectorizer."""
    attrs = {name: n.attr(name) for name in _SCALARS} | {name: n.attr(name, []) for name in _LISTS}
    return n.add("XTfIdfVectorizer", n.need(0), **attrs)
