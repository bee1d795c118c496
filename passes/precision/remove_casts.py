"""Pass remove-casts."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import DataType, Graph, Node, NodeOut
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST
from passes.precision.casts import is_made

_MOVING = (
    "TransData Transpose TransposeD Reshape ReFormat Squeeze SqueezeV2 SqueezeV3 Unsqueeze UnsqueezeV2 UnsqueezeV3 "
    "ExpandDims"
)
_FORM_ONLY = frozenset(_MOVING.split())
"""Operators that move elements and change none."""

# type: (bits of a significand, exponent of the least and of the greatest number)
_FLOATS = {
    DataType.DT_FLOAT16: (11, -24, 15),
    DataType.DT_BF16: (8, -133, 127),
    DataType.DT_FLOAT: (24, -149, 127),
    DataType.DT_DOUBLE: (53, -1074, 1023),
}
_INTEGERS = {
    DataType.DT_BOOL: (0, 1),
    **{DataType[f"DT_INT{bits}"]: (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{DataType[f"DT_UINT{bits}"]: (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}


class RemoveCasts:
    """Before: Casts behind Casts. After: as few as give the same numbers.

    1. Cast(x) of the type that x has: nothing.
    2. Cast(Cast(x)): one Cast, if the type between holds every value of x, or if rounding to it cannot show.
    3. Cast(Cast(x)) back to a float, when the first one is the compiler's: nothing. The model asked for no rounding.
    4. The same with operators between that only move elements and are read by one node: they get the type of x.

    What a Cast of the model loses stays lost, and so does what any Cast to integers or bool loses.
    """

    name: ClassVar[str] = "remove-casts"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Remove Casts from all graphs of the model."""
        changed = False
        for part in graph.all_graphs():
            for node in part.topological_order():
                if node.type == "Cast" and not node.is_removed:
                    changed |= _simplify(part, node)
        return changed


def _simplify(graph: Graph, cast: Node) -> bool:
    source = cast.input(0)
    assert source is not None
    target = cast.output_descs[0].data_type
    if source.desc.data_type is target:
        return _replace(graph, cast, source)
    first = source.node
    if first.type == "Cast" and _may_clip(first):
        return False
    if first.type == "Cast":
        start = first.input(0)
        assert start is not None
        origin, between = start.desc.data_type, source.desc.data_type
        if origin is target and (_holds(between, origin) or _undoes(first, origin)):
            return _replace(graph, cast, start)
        if _is_one_step(origin, between, target):
            desc = cast.input_descs[0]
            graph.set_input(cast, 0, start)
            if desc is not None:
                desc.data_type = origin
                cast.input_descs[0] = desc
            _sweep(graph, first)
            return True
        return False
    return _widen_chain(graph, cast)


def _may_clip(cast: Node) -> bool:
    """Casts over load-time constants are evaluated at load: nothing is gained."""
    return bool(cast.attrs.get(LOAD_TIME_CONST))


def _undoes(first: Node, origin: DataType) -> bool:
    """Tell whether leaving ``first`` out gives back what the model meant: it is ours, and only rounds."""
    return is_made(first) and origin in _FLOATS and first.output_descs[0].data_type in _FLOATS


def _widen_chain(graph: Graph, cast: Node) -> bool:
    """Case 4: follow the producers of ``cast`` to a Cast of ours."""
    chain: list[Node] = []
    source = cast.input(0)
    while source is not None and source.node.type in _FORM_ONLY and _is_single(source):
        chain.append(source.node)
        source = source.node.input(0)
    if source is None or not chain or source.node.type != "Cast" or _may_clip(source.node):
        return False
    first, start, target = source.node, source.node.input(0), cast.output_descs[0].data_type
    assert start is not None
    origin = start.desc.data_type
    is_lossless = _holds(source.desc.data_type, origin)
    if origin is not target or not _is_single(source) or not (is_lossless or _undoes(first, origin)):
        return False
    graph.set_input(chain[-1], 0, start)
    for node in reversed(chain):
        node.output_descs[0].data_type = origin
        for reader in node.consumers(0):
            reader.node.take_desc(reader.index)
    _sweep(graph, first)
    last = cast.input(0)
    assert last is not None
    return _replace(graph, cast, last)


def _is_single(out: NodeOut) -> bool:
    return len(out.node.output_descs) == 1 and out.node.n_consumers() == 1 and not out.node.control_outputs


def _replace(graph: Graph, cast: Node, source: NodeOut) -> bool:
    """Let the readers of ``cast`` read ``source``, which has its type. What else they want of it stays."""
    first = cast.input(0)
    wanted = [(reader, reader.node.input_descs[reader.index]) for reader in cast.consumers()]
    graph.replace_uses(cast.output(), source)
    for reader, desc in wanted:
        reader.node.input_descs[reader.index] = desc
    graph.remove_unread(cast)
    if first is not None:
        _sweep(graph, first.node)
    return True


def _sweep(graph: Graph, node: Node) -> None:
    """Remove a Cast that nobody reads any more."""
    if node.type == "Cast" and not node.is_removed and not graph.is_read(node):
        graph.remove_unread(node)


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Tell whether every value of ``narrow`` is one of ``wide``."""
    if wide is narrow:
        return True
    if narrow in _FLOATS:
        if wide not in _FLOATS:
            return False
        (bits, least, most), (own_bits, own_least, own_most) = _FLOATS[wide], _FLOATS[narrow]
        return bits >= own_bits and least <= own_least and most >= own_most
    if narrow not in _INTEGERS:
        return False
    low, high = _INTEGERS[narrow]
    if wide in _FLOATS:
        bits, _, most = _FLOATS[wide]
        return max(-low, high).bit_length() <= min(bits, most + 1)
    least, greatest = _INTEGERS.get(wide, (0, 0))
    return least <= low and high <= greatest


def _is_one_step(origin: DataType, between: DataType, target: DataType) -> bool:
    """Tell whether ``origin`` -> ``between`` -> ``target`` is ``origin`` -> ``target``, for every value."""
    if origin not in _FLOATS and origin not in _INTEGERS:
        return False
    if target not in _FLOATS and target not in _INTEGERS:
        return False
    if origin in _INTEGERS and between in _FLOATS and target in _INTEGERS:  # floats saturate, integers wrap
        return _holds(between, origin) and (_holds(target, origin) or target is DataType.DT_BOOL)
    if _holds(between, origin):
        return True
    # whole numbers that fp32 has to round are beyond fp16 in either way
    return origin in _INTEGERS and between is DataType.DT_FLOAT and target is DataType.DT_FLOAT16
