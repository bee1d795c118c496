"""Strings: joining, splitting, matching, normalising, counting n-grams.

Elements are str, or bytes in UTF-8 where a model file was their source; results are str. ``XStringSplit`` and
``XTfIdfVectorizer`` are ours.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ge.graph.tensor_desc import Shape
from ge.graph.types import DataType
from ge.ops.inference import broadcast_shapes
from ge.ops.registry import Array, Attributes, InferContext, Misfit, OutputSpec, operator

STRING = DataType.DT_STRING


def text_of(element: Any) -> str:
    """Return an element of a string tensor as str."""
    return element.decode(errors="replace") if isinstance(element, bytes) else str(element)


def _mapped(function: Callable[[str], Any], x: Array, dtype: Any = object) -> Array:
    """Apply ``function`` to every element."""
    result = np.empty(x.shape, dtype)
    result.reshape(-1)[:] = [function(text_of(element)) for element in x.reshape(-1)]
    return result


def _check_strings(ctx: InferContext, *names: str) -> None:
    for name in names:
        if ctx.dtype(name) is not STRING:
            raise ctx.fail(f"input {name} is {ctx.dtype(name).name}, but must hold strings")


# -- element by element ----------------------------------------------------------------------------------------------
def _infer_join(ctx: InferContext) -> Sequence[OutputSpec]:
    descs = ctx.descs("x")
    if not descs or any(desc.data_type is not STRING for desc in descs):
        raise ctx.fail(f"its inputs are {', '.join(d.data_type.name for d in descs)}, but must be strings")
    return [(broadcast_shapes(ctx, [desc.origin_shape for desc in descs]), STRING)]


@operator("StringJoin(x*) [N:i! separator:s=]", infer=_infer_join)
def string_join(op: Any, x: list[Array]) -> Array:
    """Join element by element; shapes are broadcast."""
    parts = np.broadcast_arrays(*[_mapped(str, array) for array in x])
    result = np.empty(parts[0].shape, object)
    result.reshape(-1)[:] = [op.separator.join(row) for row in zip(*(p.reshape(-1) for p in parts), strict=True)]
    return result


def _infer_split(ctx: InferContext) -> Sequence[OutputSpec]:
    _check_strings(ctx, "x")
    shape = ctx.shape("x")
    return [([-2] if shape.is_unknown_rank() else [*shape, -1], STRING), (shape, DataType.DT_INT64)]


@operator("XStringSplit(x) -> y, num_splits [delimiter:s= maxsplit:i=-1]", infer=_infer_split)
def string_split(op: Any, x: Array) -> tuple[Array, Array]:
    """Split at ``delimiter`` (empty: runs of blanks), at most ``maxsplit`` times; rows are filled up with ``""``."""
    rows = [text_of(element).split(op.delimiter or None, op.maxsplit) for element in x.reshape(-1)]
    counts = np.array([len(row) for row in rows], np.int64)
    pieces = np.full((len(rows), counts.max(initial=0)), "", object)
    for i, row in enumerate(rows):
        pieces[i, : len(row)] = row
    return pieces.reshape(*x.shape, pieces.shape[1]), counts.reshape(x.shape)


# -- matching ----------------------------------------------------------------------------------------------------------
_ONLY_PYTHON = re.compile(r"\(\?(?:[=!>(#]|<[=!]|P=)|\\[1-9]")
"""Looking around, references to groups, conditions, comments."""
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def _pattern(text: str) -> re.Pattern[str]:
    """Compile an RE2 pattern. Raises ``Misfit`` for what is none, or what Python cannot express."""
    escaped = re.sub(r"\\Q(.*?)(?:\\E|$)", lambda found: re.escape(found[1]), text, flags=re.S)
    if found := _ONLY_PYTHON.search(re.sub(r"\\[^1-9]|\[(?:\\.|[^\]\\])*\]", "", escaped, flags=re.S)):
        raise Misfit(f"the pattern {text!r} holds {found[0]!r}, which RE2 does not know")
    translated = re.sub(r"\[:(\w+):\]", lambda found: _POSIX.get(found[1], found[0]), escaped)
    translated = translated.replace(r"\z", r"\Z").replace("(?<", "(?P<")
    try:
        # RE2's classes such as \d hold ASCII characters only
        return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError) as fault:
        raise Misfit(f"the pattern {text!r} cannot be used: {fault}") from None


def _infer_match(ctx: InferContext) -> Sequence[OutputSpec]:
    _check_strings(ctx, "x", "pattern")
    if ctx.shape("pattern").elements not in (1, -1):
        raise ctx.fail(f"input pattern of shape {ctx.shape('pattern')} must be one string")
    pattern = ctx.value("pattern")
    if pattern is not None:
        _pattern(text_of(pattern.reshape(-1)[0]))
    return [(ctx.shape("x"), DataType.DT_BOOL)]


@operator("RegexFullMatch(x, pattern)", infer=_infer_match)
def regex_full_match(op: Any, x: Array, pattern: Array) -> Array:
    """Tell which elements match a pattern of RE2 from start to end."""
    compiled = _pattern(text_of(pattern.reshape(-1)[0]))
    return _mapped(lambda text: compiled.fullmatch(text) is not None, x, bool)


# -- normalising -------------------------------------------------------------------------------------------------------
_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def _infer_normalize(ctx: InferContext) -> Sequence[OutputSpec]:
    _check_strings(ctx, "input")
    shape = ctx.shape("input")
    if ctx.op.case_change_action not in _CASES:
        raise ctx.fail(f"case_change_action is {ctx.op.case_change_action}, but must be one of {', '.join(_CASES)}")
    if not shape.is_unknown_rank() and not (len(shape) == 1 or (len(shape) == 2 and shape[0] in (1, -1))):
        raise ctx.fail(f"its input has the shape {shape}, but must be a vector or have the shape [1, C]")
    if shape.is_unknown_rank():
        return [([-2], STRING)]
    is_kept = not ctx.op.stopwords and shape[-1] != 0
    return [(shape if is_kept else Shape([*([1] * (len(shape) - 1)), -1]), STRING)]


@operator(
    "StringNormalizer(input) -> output [stopwords:S=[] is_case_sensitive:b=F case_change_action:s=NONE locale:s=en_US]",
    infer=_infer_normalize,
)
def string_normalizer(op: Any, x: Array) -> Array:
    """Leave out the elements that are stop words, then change case. Nothing left gives one empty string.

    Case is changed by Unicode's rules, whatever ``locale`` says.
    """
    same: Callable[[str], str] = str if op.is_case_sensitive else str.lower
    stops = {same(word) for word in op.stopwords}
    kept = [text for text in map(text_of, x.reshape(-1)) if same(text) not in stops]
    result = np.array([_CASES[op.case_change_action](text) for text in kept] or [""], object)
    return result.reshape([1] * (x.ndim - 1) + [-1])


# -- n-grams -----------------------------------------------------------------------------------------------------------
def _ngrams(op: Attributes) -> dict[tuple[Any, ...], int]:
    """Return the output column of each n-gram of a wanted length. Raises ``Misfit`` for attributes that do not fit."""
    pool: list[Any] = [text_of(word) for word in op.pool_strings] if op.pool_strings else list(op.pool_int64s)
    bounds = [*op.ngram_counts, len(pool)]
    if any(low > high for low, high in itertools.pairwise([0, *bounds])):
        raise Misfit(f"ngram_counts {op.ngram_counts} must rise from 0 to the {len(pool)} items of the pool")
    columns: dict[tuple[Any, ...], int] = {}
    number = 0
    for size, (start, stop) in enumerate(itertools.pairwise(bounds), 1):
        if (stop - start) % size:
            raise Misfit(f"{stop - start} items of the pool, from {start} on, make no whole {size}-grams")
        for at in range(start, stop, size):
            if number >= len(op.ngram_indexes):
                raise Misfit(f"ngram_indexes has {len(op.ngram_indexes)} entries, fewer than the pool has n-grams")
            if op.min_gram_length <= size <= op.max_gram_length:
                columns[tuple(pool[at : at + size])] = op.ngram_indexes[number]
            number += 1
    return columns


def _infer_ngrams(ctx: InferContext) -> Sequence[OutputSpec]:
    op, shape = ctx.op, ctx.shape("x")
    if op.mode not in ("TF", "IDF", "TFIDF"):
        raise ctx.fail(f"mode is {op.mode}, but must be one of TF, IDF, TFIDF")
    if (ctx.dtype("x") is STRING) != bool(op.pool_strings) or bool(op.pool_strings) == bool(op.pool_int64s):
        raise ctx.fail(f"its input is {ctx.dtype('x').name}, which its pool must hold, and nothing else")
    if not op.ngram_indexes or min(op.ngram_indexes) < 0:
        raise ctx.fail("ngram_indexes must name columns of the output, from 0 on")
    if op.weights and len(op.weights) != len(op.ngram_indexes):
        raise ctx.fail(f"it has {len(op.weights)} weights for {len(op.ngram_indexes)} n-grams")
    if op.min_gram_length < 1 or op.max_gram_length < op.min_gram_length or op.max_skip_count < 0:
        raise ctx.fail("min_gram_length must be positive and not above max_gram_length, max_skip_count not negative")
    _ngrams(op)
    if shape.is_unknown_rank():
        return [([-2], DataType.DT_FLOAT)]
    if not 1 <= len(shape) <= 2:
        raise ctx.fail(f"its input has the shape {shape}, but must have one or two axes")
    return [([*shape[:-1], max(op.ngram_indexes) + 1], DataType.DT_FLOAT)]


@operator(
    "XTfIdfVectorizer(x) [max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:I! "
    "ngram_indexes:I! pool_int64s:I=[] pool_strings:S=[] weights:F=[]]",
    infer=_infer_ngrams,
)
def tf_idf_vectorizer(op: Any, x: Array) -> Array:
    """Count the n-grams of each row, up to ``max_skip_count`` items left out between theirs; weights are per n-gram.

    IDF asks whether, not how often. Single items are counted once, skips or not.
    """
    columns = _ngrams(op)
    rows = x.reshape(-1, x.shape[-1]) if x.size else np.empty((x.shape[0] if x.ndim == 2 else 1, 0), x.dtype)
    counts = np.zeros((len(rows), max(op.ngram_indexes) + 1), np.float32)
    for row, count in zip(rows, counts, strict=True):
        items = [text_of(item) for item in row] if op.pool_strings else [int(item) for item in row]
        for size in range(op.min_gram_length, min(op.max_gram_length, len(items)) + 1):
            for step in range(1, 2 if size == 1 else min(op.max_skip_count, len(items)) + 2):
                for start in range(len(items) - (size - 1) * step):
                    column = columns.get(tuple(items[start : start + (size - 1) * step + 1 : step]))
                    if column is not None:
                        count[column] += 1
    if op.mode == "IDF":
        counts = np.minimum(counts, 1)
    if op.mode != "TF" and op.weights:
        weights = np.zeros(counts.shape[1], np.float32)
        weights[op.ngram_indexes] = op.weights
        counts = counts * weights
    return counts.reshape(*x.shape[:-1], -1)
