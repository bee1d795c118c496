"""The grammar of --dymShape and --dymShape_range: shapes per input, one set or several."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from math import prod

from ge.errors import ReportedError

Shapes = Mapping[str, tuple[int, ...]]
"""A shape per input name."""

MAX_SETS = 10_000
"""Sets of shapes that one --dymShape_range may stand for."""
MAX_FILE_BYTES = 1 << 20
MAX_DIM = 2**63 - 1


def parse_shapes(text: str) -> Shapes:
    """Read ``a:1,600;b:`` (no dimension: a scalar) of --dymShape. Raises R1001."""
    (shapes,) = _sets(text, "--dymShape", allows_ranges=False)
    return shapes


def parse_shape_ranges(text: str) -> list[Shapes]:
    """Read --dymShape_range: sets of shapes, or a file with one or several on each line. Raises R1001.

    A dimension is a number, ``low~high``, ``low~high~step``, or several of these joined by ``-``; all combinations are
    meant, the last dimension varying first.
    """
    if not os.path.isfile(text):
        return _sets(text, "--dymShape_range", allows_ranges=True)
    try:
        with open(text, encoding="utf-8") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as fault:
        reason = (fault.strerror if isinstance(fault, OSError) else None) or "the file is not UTF-8 text"
        raise _refuse(text, "--dymShape_range", reason) from fault
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    if not lines or len(content) > MAX_FILE_BYTES:
        raise _refuse(text, "--dymShape_range", "the file is empty" if not lines else "the file is too large")
    found: list[Shapes] = []
    for line in lines:
        found += _sets(line, "--dymShape_range", allows_ranges=True)
        if len(found) > MAX_SETS:
            raise _refuse(text, "--dymShape_range", f"it stands for more than {MAX_SETS} sets of shapes")
    return found


def _refuse(value: str, parameter: str, reason: str) -> ReportedError:
    return ReportedError("R1001", value=value, parameter=parameter, reason=reason)


def _sets(text: str, parameter: str, *, allows_ranges: bool) -> list[Shapes]:
    """Return all sets of shapes that ``name:dims;name2:dims`` stands for."""
    names: list[str] = []
    choices: list[list[tuple[int, ...]]] = []
    for item in text.split(";"):
        name, colon, dims = (part.strip() for part in item.rpartition(":"))
        if not colon or not name:
            raise _refuse(text, parameter, f"'{item.strip()}' is not of the form name:d0,d1,...")
        if name in names:
            raise _refuse(text, parameter, f"'{name}' is given twice")
        names.append(name)
        values = [_values(dim.strip(), text, parameter, allows_ranges) for dim in dims.split(",")] if dims else []
        if prod(map(len, values)) * prod(map(len, choices)) > MAX_SETS:
            raise _refuse(text, parameter, f"it stands for more than {MAX_SETS} sets of shapes")
        choices.append(list(itertools.product(*values)))
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*choices)]


def _values(dim: str, whole: str, parameter: str, allows_ranges: bool) -> range | list[int]:
    """Return the numbers that a dimension stands for."""
    if not allows_ranges:
        if not re.fullmatch("[0-9]{1,19}", dim) or int(dim) > MAX_DIM:
            raise _refuse(whole, parameter, f"'{dim}' is no dimension; it must be a number of at least 0")
        return [int(dim)]
    found: list[int] = []
    for part in dim.split("-"):
        if not re.fullmatch("[0-9]{1,19}(~[0-9]{1,19}){0,2}", part.strip()):
            reason = f"'{part}' is neither a number nor low~high nor low~high~step"
            raise _refuse(whole, parameter, reason)
        low, *rest = (int(number) for number in part.split("~"))
        high, step = (rest + [low, 1][len(rest) :])[:2]
        if low > high or step < 1 or high > MAX_DIM:
            raise _refuse(whole, parameter, f"'{part}' holds no number: it must go up, by steps of at least 1")
        if (high - low) // step + 1 + len(found) > MAX_SETS:
            raise _refuse(whole, parameter, f"it stands for more than {MAX_SETS} sets of shapes")
        found += range(low, high + 1, step)
    return found


def as_text(shapes: Shapes) -> str:
    """Return shapes as --dymShape takes them."""
    return ";".join(f"{name}:{','.join(map(str, dims))}" for name, dims in shapes.items())
