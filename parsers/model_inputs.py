"""The inputs of a model and what options say of them: names, shapes, dimensions that are left open."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ge.errors import ReportedError
from ge.graph import DataType, TensorDesc
from ge.option_grammar import Dim, DimRange, dim_bounds, open_dims


class ModelInput(Protocol):
    """An input that takes a tensor. ``dims`` is ``None`` without a shape, ``-1`` stands for a dim that is not fixed."""

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> list[int] | None: ...
    def describe(self) -> str: ...


def check_input_names(
    asked: Collection[str], parameter: str, inputs: Sequence[ModelInput], inner: Collection[str]
) -> None:
    """Raise E10016 for a name in an option that is none of the model's inputs, E10017 if it is one of ``inner``.

    The inputs are listed.
    """
    names = [value.name for value in inputs]
    hint = f"Inputs of the model are {', '.join(f'{v.name} ({v.describe()})' for v in inputs) or 'none'}."
    for name in asked:
        if name not in names:
            code = "E10017" if name in inner else "E10016"
            raise ReportedError(code, opname=name, parameter=parameter, solution=hint)


def check_given(inputs: Sequence[ModelInput], shapes: Mapping[str, Sequence[Dim]]) -> None:
    """Dims that the model leaves open must be given, if only as open. Raises E10001 that shows how, for all inputs."""
    loose = [v for v in inputs if v.name not in shapes and (v.dims is None or -1 in v.dims)]
    if not loose:
        return
    found = ", ".join(f"{v.name} {'of unknown rank' if v.dims is None else v.dims}" for v in loose)
    fixed = ";".join(f"{v.name}:{','.join(str(max(d, 1)) for d in v.dims or [])}" for v in loose)
    still_open = ";".join(f"{v.name}:{','.join(map(str, v.dims or [-1]))}" for v in loose)
    raise ReportedError(
        "E10001",
        value="NULL",
        parameter="--input_shape",
        reason=f"the model leaves dimensions of its inputs open: {found}",
        solution=f'Fix them, for example with --input_shape="{fixed}", or leave them to run time with -1 or a range '
        f'low~high per dimension: --input_shape="{still_open}".',
    )


def fed_desc(value: ModelInput, asked: tuple[Dim, ...] | None, dtype: DataType) -> TensorDesc:
    """Describe a model input: ``--input_shape`` decides, with ranges for what is known at run time only."""
    if asked is None:
        return TensorDesc([-2] if value.dims is None else value.dims, data_type=dtype)
    _check_asked(value, asked)
    desc = TensorDesc(open_dims(asked), data_type=dtype)
    if desc.shape.is_unknown_shape():
        desc.shape_range = dim_bounds(asked)
    return desc


def _check_asked(value: ModelInput, asked: Sequence[Dim]) -> None:
    known = value.dims
    if known is None:
        return
    if len(known) != len(asked) and -1 in open_dims(asked):
        size = f"{len(known)}: {known}"
        raise ReportedError("E10049", opname=value.name, shape_range_size=len(asked), cur_dim_size=size)
    if known and len(known) != len(asked):
        raise ReportedError(
            "E10001",
            value=f"{value.name}:{','.join(map(str, asked))}",
            parameter="--input_shape",
            reason=f"it has {len(asked)} dimensions, but input [{value.name}] of the model has {len(known)}: {known}",
        )
    for dim, wanted in zip(known, asked, strict=False):
        if dim >= 0 and isinstance(wanted, DimRange) and not wanted.holds(dim):
            low, high = wanted.low, wanted.high
            raise ReportedError("E10050", opname=value.name, cur_dim=dim, shape_range_left=low, shape_range_right=high)


def is_other(value: ModelInput, asked: Sequence[Dim] | None) -> bool:
    """True when a fixed dim of a model input has been given another size."""
    return asked is not None and any(0 < a != b for a, b in zip(value.dims or [], open_dims(asked), strict=False))


def graph_name(name: str) -> str:
    """Return what a graph may be called: ``name`` without the characters that file names and texts do not like."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:200] or "graph"
