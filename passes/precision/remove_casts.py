"""Pass remove-casts."""

from __future__ import annotations

from typing import ClassVar

from ge.graph import DataType, Graph, Node, NodeOut
from ge.session import CompileSession
from ge.tensor_memory import LOAD_TIME_CONST
from passes.format.trans_ops.trans_op import remove
from passes.precision.casts import is_made

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

    What a Cast of the model loses stays lost, and so does what any Cast to integers or bool loses. What stands
    between two Casts is left to ``passes/format/trans_ops/cast_remove.py``: layouts may depend on the type. Control
    edges of what goes are handed on.
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
    if first.type != "Cast" or _may_clip(first):
        return False
    start = first.input(0)
    assert start is not None
    origin, between = start.desc.data_type, source.desc.data_type
    is_undone = origin is target and (_holds(between, origin) or _undoes(first, origin))
    if not is_undone and not _is_one_step(origin, between, target):
        return False
    for before in first.control_inputs:
        graph.add_control(before, cast)
    if is_undone:
        _replace(graph, cast, start)
    else:
        _read(graph, cast, start)
    if not graph.is_read(first):
        remove(graph, first, start, [])
    return True


def _read(graph: Graph, cast: Node, source: NodeOut) -> None:
    """Let a Cast read ``source``, of another type."""
    desc = cast.input_descs[0]
    graph.set_input(cast, 0, source)
    if desc is not None:
        desc.data_type = source.desc.data_type
        cast.input_descs[0] = desc


def _may_clip(cast: Node) -> bool:
    """Casts over load-time constants are evaluated at load: nothing is gained."""
    return bool(cast.attrs.get(LOAD_TIME_CONST))


def _undoes(first: Node, origin: DataType) -> bool:
    """Tell whether leaving ``first`` out gives back what the model meant: it is ours, and only rounds."""
    return is_made(first) and origin in _FLOATS and first.output_descs[0].data_type in _FLOATS


def _replace(graph: Graph, cast: Node, source: NodeOut) -> bool:
    """Let the readers of ``cast`` read ``source``, which has its type. What else they want of it stays."""
    wanted = [(reader, reader.node.input_descs[reader.index]) for reader in cast.consumers()]
    graph.replace_uses(cast.output(), source)
    for reader, desc in wanted:
        reader.node.input_descs[reader.index] = desc
    remove(graph, cast, source, [reader.node for reader, _ in wanted])
    return True


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
