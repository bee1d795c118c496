"""Strings against onnxruntime, Python's own methods where it has no such operator, and examples written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ge.errors import ReportedError
from tests.ops.one_node import inferred, run_ge, run_onnx


def strings(*texts: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    array = np.array(texts, object)
    return array if shape is None else array.reshape(shape)


def test_join_broadcasts() -> None:
    x, y = strings("a", "bé", "", shape=(3, 1)), strings("x", "Ω")
    [found] = run_ge("StringJoin", [x, y], {"N": 2})
    assert found.tolist() == [["ax", "aΩ"], ["béx", "béΩ"], ["x", "Ω"]]
    assert found.tolist() == run_onnx("StringConcat", [x, y])[0].tolist()
    [found] = run_ge("StringJoin", [strings(b"a\xc3\xa9"), strings("b"), strings("c")], {"N": 3, "separator": "-"})
    assert found.tolist() == ["aé-b-c"]


@pytest.mark.parametrize("delimiter", ["", ",", "ab"])
@pytest.mark.parametrize("maxsplit", [None, 0, 1, 2])
def test_split(delimiter: str, maxsplit: int | None) -> None:
    x = strings("a,b,c d", "", ",,", " lead  and trail ", "ababc", "x", shape=(2, 3))
    attrs: dict[str, Any] = {"delimiter": delimiter} | ({} if maxsplit is None else {"maxsplit": maxsplit})
    pieces, counts = run_ge("XStringSplit", [x], attrs, 2)
    for index in np.ndindex(x.shape):
        expected = x[index].split(delimiter or None, -1 if maxsplit is None else maxsplit)
        assert counts[index] == len(expected)
        assert pieces[index].tolist() == expected + [""] * (pieces.shape[-1] - len(expected))
    assert pieces.shape[-1] == counts.max()


def test_split_of_nothing() -> None:
    pieces, counts = run_ge("XStringSplit", [np.empty((2, 0), object)], {}, 2)
    assert (pieces.shape, counts.shape) == ((2, 0, 0), (2, 0))


@pytest.mark.parametrize(
    "pattern",
    [
        "www.[\\w.-]+.\\w+",
        "(a|b)*c",
        "",
        "[[:digit:]]+x?",
        "\\Qa.b\\E",
        "(?i)abc\\z",
        "a[(?=]b",
        "(?P<n>a+)\\\\1",
        "x{2,3}",
    ],
)
def test_full_match(pattern: str) -> None:
    x = strings("www.google.com", "ababc", "", "12x", "a.b", "axb", "ABC", "a(b", "aa\\1", "xx", "xxxx", "é")
    [found] = run_ge("RegexFullMatch", [x, np.array(pattern, object)])
    np.testing.assert_array_equal(found, run_onnx("RegexFullMatch", [x], {"pattern": pattern})[0])


@pytest.mark.parametrize("pattern", ["(", "(?=a)a", "(a)\\1", "(?<!a)b", "a**"])
def test_pattern_that_is_none(pattern: str) -> None:
    with pytest.raises(ReportedError) as caught:
        inferred("RegexFullMatch", [strings("a"), np.array(pattern, object)], {})
    assert repr(pattern) in caught.value.message


WORDS = strings("Monday", "tuesday", "MONDAY", "Straße", "tuesday")


@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("is_sensitive", [0, 1])
@pytest.mark.parametrize(
    "stopwords", [[], ["monday"], ["Monday", "tuesday"], ["Monday", "MONDAY", "tuesday", "Straße"]]
)
@pytest.mark.parametrize("shape", [(5,), (1, 5)])
def test_normalizer(case: str, is_sensitive: int, stopwords: list[str], shape: tuple[int, ...]) -> None:
    attrs = {"case_change_action": case, "stopwords": stopwords}
    [found] = run_ge(
        "StringNormalizer",
        [WORDS.reshape(shape)],
        {**attrs, "is_case_sensitive": bool(is_sensitive), "locale": "en_US"},
    )
    stops = stopwords if is_sensitive else [word.lower() for word in stopwords]
    kept = [w for w in WORDS if (w if is_sensitive else w.lower()) not in stops]
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case]
    assert (
        found.tolist()
        == np.array([change(w) for w in kept] or [""], object).reshape((1,) * (len(shape) - 1) + (-1,)).tolist()
    )


@pytest.mark.parametrize(
    ("shape", "fits"), [((3,), True), ((1, 3), True), ((2, 3), False), ((1, 1, 3), False), ((), False)]
)
def test_normalizer_takes_vectors(shape: tuple[int, ...], fits: bool) -> None:
    x = np.full(shape, "a", object)
    if fits:
        inferred("StringNormalizer", [x], {})
        return
    with pytest.raises(ReportedError, match="vector"):
        inferred("StringNormalizer", [x], {})


NGRAMS = {
    "ngram_counts": [0, 4, 10],
    "ngram_indexes": [2, 0, 1, 4, 3, 5, 6],
    "min_gram_length": 1,
    "max_gram_length": 2,
}
NUMBERS = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]
ROWS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [5, 5, 2, 6, 7, 8]])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("kind", ["int64", "int32", "string"])
@pytest.mark.parametrize("n_rows", [0, 3])
def test_ngrams(mode: str, skips: int, least: int, kind: str, n_rows: int) -> None:
    attrs: dict[str, Any] = {**NGRAMS, "mode": mode, "max_skip_count": skips, "min_gram_length": least}
    attrs["weights"] = [0.5, 2.0, 3.0, 1.5, 4.0, 0.25, 8.0]
    rows = ROWS if n_rows else ROWS[1]
    if kind == "string":
        attrs["pool_strings"] = [str(v) for v in NUMBERS]
        x = np.array([str(v) for v in rows.reshape(-1)], object).reshape(rows.shape)
    else:
        attrs["pool_int64s"], x = NUMBERS, rows.astype(kind)
    [found] = run_ge("XTfIdfVectorizer", [x], attrs)
    np.testing.assert_array_equal(found, run_onnx("TfIdfVectorizer", [x], attrs)[0])
    assert found.any()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ngram_counts": [0, 4, 9]}, "no whole 2-grams"),
        ({"ngram_counts": [0, 11]}, "must rise"),
        ({"ngram_indexes": [0, 1]}, "2 entries"),
        ({"ngram_indexes": [0, 1, 2, -3, 4, 5, 6]}, "columns"),
        ({"mode": "X"}, "mode is X"),
        ({"weights": [1.0]}, "1 weights for 7 n-grams"),
        ({"pool_int64s": [], "pool_strings": ["a"]}, "pool must hold"),
        ({"min_gram_length": 0}, "min_gram_length"),
    ],
)
def test_ngrams_that_do_not_fit(changes: dict[str, Any], reason: str) -> None:
    attrs = {**NGRAMS, "mode": "TF", "max_skip_count": 0, "pool_int64s": NUMBERS, **changes}
    with pytest.raises(ReportedError) as caught:
        inferred("XTfIdfVectorizer", [ROWS], attrs)
    assert reason in caught.value.message
