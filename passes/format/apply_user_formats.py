"""Pass apply-user-formats."""

from __future__ import annotations

from typing import ClassVar

from ge.errors import ReportedError
from ge.formats import (
    AXES,
    FRACTAL_NZ_FORMATS,
    GROUPED_FORMATS,
    ORIGIN_FORMATS,
    CubeSizes,
    LayoutError,
    PackedFormat,
    can_transfer,
    cube_sizes,
    is_origin_layout,
    is_private,
    lay_out,
    lies_in_origin,
    storage_fault,
)
from ge.graph import DataType, Format, Graph, Node, Shape, TensorDesc
from ge.graph.types import FLOATING, FORMAT_TEXT
from ge.layout_check import STORAGE_FORMAT
from ge.session import CompileSession
from ge.tensor_memory import first_without_size
from ge.verify import UNSETTLED

STORAGE_SHAPE = "storage_shape"
"""Attribute of a descriptor beside ``storage_format``: the dims in that layout; empty where they are to be derived."""
SPREADS = "_enable_storage_format_spread"
"""Attribute of a node: whether a layout whose dims are derived spreads from it (true unless it says otherwise)."""
IS_HEAVY = "_is_heavy_op"

_BLOCKS, _HALF = Format.FORMAT_NC1HWC0, DataType.DT_FLOAT16
_RECURRENT = (Format.FORMAT_FRACTAL_ZN_RNN, Format.FORMAT_ND_RNN_BIAS)
_IMAGES = (Format.FORMAT_NCHW, Format.FORMAT_NHWC)


class ApplyUserFormats:
    """Before: inputs and results of the model in its own types and layouts. After: in those that the user asks for.

    1. ``storage_format`` and ``storage_shape`` on the descriptor of an input's Data or of an input of NetOutput, which
       a custom pass may have put there. Both are needed. Without dims the layout spreads from the node.
    2. --input_fp16_nodes: the input is float16, and NC1HWC0 where --is_input_adjust_hw_layout says it.
    3. --is_output_adjust_hw_layout: the output of --out_nodes is float16 and NC1HWC0, unless --output_type is for it.

    Origin views stay. Readers and producers inside the model are left as they are, so both ends of an edge may differ:
    ``_descs_unsettled``; insert-casts and insert-trans-data put them together again.

    Raises E14002 for attributes that are wrong, E10055 for layouts that a model cannot have at its ends, E10001 for
    options that do not fit the tensor.
    """

    name: ClassVar[str] = "apply-user-formats"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Apply them; return whether there were any."""
        applying = _Applying(graph, session)
        for part in graph.subgraphs.values():
            _refuse_in_body(part)
        for data in graph.data_nodes():
            applying.to_input(data)
        net_output = graph.net_output()
        if net_output is not None:
            for slot in range(len(net_output.inputs)):
                applying.to_result(net_output, slot)
        if applying.is_changed:
            graph.attrs[UNSETTLED] = True
            _refuse_dynamic(graph)
        return applying.is_changed


class _Applying:
    def __init__(self, graph: Graph, session: CompileSession) -> None:
        self._options = session.options
        self._cubes = cube_sizes(session.options.soc_version)
        self.is_changed = False

    def to_input(self, data: Node) -> None:
        """Give an input of the model its type and layout."""
        desc = data.output_descs[0]
        before = desc.layout
        is_derived = apply_attributes(desc, f"input {data.name}", self._cubes)
        if data.name in self._options.half_inputs:
            parameter = "--input_fp16_nodes"
            _make_half(desc, data.name, parameter)
            if self._options.half_inputs[data.name]:
                _make_blocks(desc, data.name, "--is_input_adjust_hw_layout", self._cubes)
            data.attrs["_user_defined_data_type"] = "DT_FLOAT16"
            data.attrs["_user_defined_format"] = FORMAT_TEXT[desc.format]
        if desc.layout != before:
            data.attrs["data_type"] = int(desc.data_type)
            self.is_changed = True
        if is_derived:
            data.attrs[IS_HEAVY] = data.attrs.get(SPREADS) is not False

    def to_result(self, net_output: Node, slot: int) -> None:
        """Give a result of the model its type and layout."""
        desc = net_output.input_descs[slot]
        if desc is None:
            return
        before, name = desc.layout, self._result_name(net_output, slot)
        is_derived = apply_attributes(desc, f"result {name}", self._cubes)
        if self._is_adjusted(slot):
            parameter = "--is_output_adjust_hw_layout"
            _make_half(desc, name, parameter)
            _make_blocks(desc, name, parameter, self._cubes)
            for key, value in (("_user_defined_data_type", "DT_FLOAT16"), ("_user_defined_format", "NC1HWC0")):
                net_output.attrs.setdefault(key, []).append(f"{slot}:{value}")
        self.is_changed |= desc.layout != before
        if is_derived:
            net_output.attrs[IS_HEAVY] = net_output.attrs.get(SPREADS) is not False

    def _is_adjusted(self, slot: int) -> bool:
        options = self._options
        if slot >= len(options.half_outputs) or not options.half_outputs[slot]:
            return False
        chosen = options.out_nodes[slot]
        types = options.output_type
        return types.whole is None and (chosen.name, chosen.index or 0) not in types.per_output

    @staticmethod
    def _result_name(net_output: Node, slot: int) -> str:
        names = net_output.graph.output_names
        return names[slot] if slot < len(names) else f"{net_output.input(slot)}"


# -- options -----------------------------------------------------------------------------------------------------------
def _make_half(desc: TensorDesc, name: str, parameter: str) -> None:
    if desc.data_type not in FLOATING:
        reason = f"{name} is {desc.data_type.name}; only floating point tensors can be given as float16"
        raise ReportedError("E10001", value=name, parameter=parameter, reason=reason)
    desc.data_type = _HALF


def _make_blocks(desc: TensorDesc, name: str, parameter: str, cubes: CubeSizes) -> None:
    """Lay a tensor out as NC1HWC0, of which its descriptor then holds a note."""
    if desc.origin_format not in _IMAGES or len(desc.origin_shape) != 4:
        reason = (
            f"{name} is {desc.origin_shape} in {FORMAT_TEXT[desc.origin_format]}; NC1HWC0 is for tensors whose "
            "four axes are known to be N, C, H and W"
        )
        solution = "Leave it out here, or say with --input_format=NCHW what the axes of inputs are."
        raise ReportedError("E10001", value=name, parameter=parameter, reason=reason, solution=solution)
    _refuse_unknown(desc, name)
    lay_out(desc, _BLOCKS, cubes=cubes)
    desc.attrs[STORAGE_FORMAT] = int(_BLOCKS)
    desc.attrs[STORAGE_SHAPE] = list(desc.shape)


# -- attributes --------------------------------------------------------------------------------------------------------
def apply_attributes(desc: TensorDesc, owner: str, cubes: CubeSizes) -> bool:
    """Lay a tensor out as its attributes say, if it has any; return whether the dims had to be derived.

    ``owner`` names the tensor in errors.
    """
    given = [name for name in (STORAGE_FORMAT, STORAGE_SHAPE) if name in desc.attrs]
    if not given:
        return False
    if len(given) == 1:
        [missing] = {STORAGE_FORMAT, STORAGE_SHAPE} - set(given)
        raise _invalid(missing, owner, f"it is missing; {given[0]} needs it")
    packed, dims = _storage_format(desc.attrs[STORAGE_FORMAT], owner), _storage_shape(desc.attrs[STORAGE_SHAPE], owner)
    if packed.primary in _RECURRENT:
        reason = f"{owner}: {FORMAT_TEXT[packed.primary]} depends on sizes of an operator, no input or result has them"
        raise ReportedError("E10055", reason=reason)
    is_same = (packed.primary, packed.groups if packed.is_grouped else 0) == (desc.format, desc.sub_format)
    if is_same and Shape(dims) == desc.shape:
        return False
    if is_private(packed.primary):
        _refuse_unknown(desc, owner)
    wanted = desc.copy()
    try:
        lay_out(wanted, packed.primary, packed.groups, cubes=cubes)
        reason = _contradiction(wanted, packed, dims, cubes)
    except LayoutError as fault:
        reason = str(fault)
    if reason:
        raise _invalid(STORAGE_FORMAT if not dims else STORAGE_SHAPE, owner, reason)
    desc.shape, desc.format, desc.sub_format = wanted.shape, wanted.format, wanted.sub_format
    return not dims


def _contradiction(wanted: TensorDesc, packed: PackedFormat, dims: list[int], cubes: CubeSizes) -> str:
    origin = f"{wanted.origin_shape} in {FORMAT_TEXT[wanted.origin_format]}"
    if is_private(packed.primary) and wanted.origin_format not in AXES and packed.primary not in _MATRIX_LAYOUTS:
        return f"{FORMAT_TEXT[packed.primary]} is made from named axes, and nobody says what those of {origin} are"
    if not _is_known(packed.primary, wanted.origin_format):
        return f"no layout {FORMAT_TEXT[packed.primary]} is known of {origin}"
    if packed.primary in FRACTAL_NZ_FORMATS and len(wanted.origin_shape) < 2:
        return f"{FORMAT_TEXT[packed.primary]} holds matrices, and {origin} is none"
    if packed.is_grouped and packed.primary not in GROUPED_FORMATS:
        return f"{FORMAT_TEXT[packed.primary]} does not depend on groups, {packed.groups} are given"
    if packed.c0 and packed.c0 != cubes.block_length(packed.primary, wanted.data_type):
        found = cubes.block_length(packed.primary, wanted.data_type)
        return (
            f"a block of {FORMAT_TEXT[packed.primary]} in {wanted.data_type.name} has {found} elements, not {packed.c0}"
        )
    if dims and Shape(dims) != wanted.shape:
        return f"{origin} has the dims {wanted.shape} in {packed}, not {Shape(dims)}"
    return storage_fault(wanted, cubes)


_MATRIX_LAYOUTS = frozenset({*FRACTAL_NZ_FORMATS, Format.FORMAT_FRACTAL_ZZ})


def _is_known(layout: Format, origin_format: Format) -> bool:
    """Tell whether elements of tensors in an origin format have places in a layout."""
    is_origin = layout in ORIGIN_FORMATS and is_origin_layout(layout, origin_format)
    return is_origin or can_transfer(origin_format, layout)


def _storage_format(value: object, owner: str) -> PackedFormat:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _invalid(STORAGE_FORMAT, owner, f"it must be the number of a format, not {value!r}")
    try:
        return PackedFormat.unpack(value)
    except LayoutError as fault:
        raise _invalid(STORAGE_FORMAT, owner, str(fault)) from fault


def _storage_shape(value: object, owner: str) -> list[int]:
    if not isinstance(value, list) or not all(type(dim) is int for dim in value):
        raise _invalid(STORAGE_SHAPE, owner, f"it must be a list of whole numbers, not {value!r}")
    return value


def _refuse_unknown(desc: TensorDesc, owner: str) -> None:
    if desc.origin_shape.is_unknown_shape():
        reason = (
            f"{owner} has dims that only a run knows, {desc.origin_shape}; layouts of the hardware need all of them"
        )
        raise ReportedError("E10055", reason=reason)


def _refuse_in_body(body: Graph) -> None:
    """Refuse attributes where tensors go into and out of a body: they lie in their origin format there."""
    ends = [(node.name, desc) for node in body.data_nodes() for desc in node.output_descs]
    net_output = body.net_output()
    if net_output is not None:
        ends += [(f"{net_output.name}, result {i}", d) for i, d in enumerate(net_output.input_descs) if d is not None]
    for name, desc in ends:
        if STORAGE_FORMAT in desc.attrs or STORAGE_SHAPE in desc.attrs:
            reason = f"{name} of graph {body.name} has {STORAGE_FORMAT}; only inputs and results of the model can"
            raise ReportedError("E10055", reason=reason)


def _refuse_dynamic(graph: Graph) -> None:
    """Refuse layouts of the hardware at the ends of a dynamic model: inside, it has none."""
    descs = [data.output_descs[0] for data in graph.data_nodes()]
    net_output = graph.net_output()
    descs += [] if net_output is None else [desc for desc in net_output.input_descs if desc is not None]
    if all(lies_in_origin(desc) for desc in descs):
        return
    for part in graph.all_graphs():
        found = first_without_size(part)
        if found is not None:
            reason = (
                f"inputs and results in layouts of the hardware need a static model, but {found} is of no fixed size"
            )
            raise ReportedError("E10055", reason=reason)


def _invalid(attribute: str, owner: str, reason: str) -> ReportedError:
    return ReportedError("E14002", attribute=attribute, reason=f"{owner}: {reason}")
