"""What all passes over trans-ops ask: which operators those are, what a Cast loses, how one is taken out."""

from __future__ import annotations

from ge.formats import is_private
from ge.graph import DataType, Format, Graph, Node, NodeOut, Shape, Tensor, TensorDesc, same_dim
from ge.ops.registry import definition
from ge.tensor_memory import LOAD_TIME_CONST

RESHAPES = frozenset({"ExpandDims", "ReFormat", "Reshape", "Squeeze", "SqueezeV3", "Unsqueeze", "UnsqueezeV3"})
"""Operators that give other dims or names to the same elements in the same order: views, which cost nothing here."""
TRANSPOSES = frozenset({"Transpose", "TransposeD"})
TRANS_OPS = RESHAPES | TRANSPOSES | {"Cast", "TransData"}
"""Operators whose result is input 0 in another form; further inputs say how."""

ORIGINS = "_datadump_original_op_names"

_WHOLE_BITS = {
    DataType.DT_BOOL: (0, 1),
    DataType.DT_INT8: (7, 7),
    DataType.DT_INT16: (15, 15),
    DataType.DT_INT32: (31, 31),
    DataType.DT_INT64: (63, 63),
    DataType.DT_UINT8: (0, 8),
    DataType.DT_UINT16: (0, 16),
    DataType.DT_UINT32: (0, 32),
    DataType.DT_UINT64: (0, 64),
}
"""Bits that negative and positive whole numbers may have."""
_DIGITS = {DataType.DT_FLOAT16: 11, DataType.DT_BF16: 8, DataType.DT_FLOAT: 24, DataType.DT_DOUBLE: 53}
"""Bits of the numbers up to which a float holds all whole numbers."""
_EXACT_FLOATS = {
    (DataType.DT_FLOAT16, DataType.DT_FLOAT),
    (DataType.DT_BF16, DataType.DT_FLOAT),
    (DataType.DT_FLOAT16, DataType.DT_DOUBLE),
    (DataType.DT_BF16, DataType.DT_DOUBLE),
    (DataType.DT_FLOAT, DataType.DT_DOUBLE),
}


def is_trans_op(node: Node) -> bool:
    """Tell whether a node only changes the form of its input 0, in each run anew."""
    return node.type in TRANS_OPS and node.input(0) is not None and not node.attrs.get(LOAD_TIME_CONST)


def input_desc(node: Node) -> TensorDesc:
    """Return what a trans-op reads."""
    desc = node.input_descs[0]
    assert desc is not None
    return desc


def is_exact(source: DataType, target: DataType) -> bool:
    """Tell whether ``target`` holds every value that ``source`` can have."""
    if source == target or (source, target) in _EXACT_FLOATS:
        return True
    whole, digits = _WHOLE_BITS.get(source), _DIGITS.get(target)
    if whole is None:
        return False
    if digits is not None:
        return max(whole) <= digits
    low, high = _WHOLE_BITS.get(target, (0, 0))
    return target is not DataType.DT_BOOL and whole[0] <= low and whole[1] <= high


def is_lossy(node: Node) -> bool:
    """Tell whether a Cast changes values in a way that a Cast back must not undo.

    Between floats only a Cast that stands in the user's model counts: it asks for the rounding. One that the compiler
    put there (its list of origins is empty) may go together with its opposite. From floats to integers, to bool, and to
    narrower integers all count; GE knows the first two only.
    """
    if node.type != "Cast":
        return False
    source, target = input_desc(node).data_type, node.output_descs[0].data_type
    if is_exact(source, target):
        return False
    return not (source in _DIGITS and target in _DIGITS) or node.attrs.get(ORIGINS) != []


def origins_of(*nodes: Node) -> list[str]:
    """Return the names of the operators of the model that nodes stand for; one without a note stands for itself."""
    notes = [node.attrs.get(ORIGINS, [node.name]) for node in nodes]
    return list(dict.fromkeys(name for note in notes for name in note))


def is_static(desc: TensorDesc) -> bool:
    """Tell whether all dims of both views are known."""
    return not (desc.shape.is_unknown_shape() or desc.origin_shape.is_unknown_shape())


def same_shape(one: Shape, other: Shape) -> bool:
    """Tell whether two shapes are certainly equal."""
    return len(one) == len(other) and not one.is_unknown_rank() and all(map(same_dim, one, other))


def same_tensor(one: TensorDesc, other: TensorDesc) -> bool:
    """Tell whether two tensors of equal elements certainly are equal bytes, so that who reads one may read the other.

    ND is no other layout than any with named axes. In a layout of the hardware the origin views must be the same, too:
    from them operators know where the axes are that their attributes name. (GE takes NC1HWC0 of NCHW for that of NHWC.)
    """
    if (one.sub_format, one.data_type) != (other.sub_format, other.data_type):
        return False
    if is_private(one.format) or is_private(other.format):
        return one.format == other.format and same_shape(one.shape, other.shape) and _same_origin(one, other)
    is_nd = Format.FORMAT_ND in (one.format, other.format)
    return (is_nd or one.format == other.format) and same_shape(one.shape, other.shape)


def _same_origin(one: TensorDesc, other: TensorDesc) -> bool:
    return one.origin_format == other.origin_format and same_shape(one.origin_shape, other.origin_shape)


def has_gap(node: Node) -> bool:
    """Tell whether a trans-op does not do what its type says: it takes its input for something else than what the
    producer makes, or changes the element type (a Cast: anything else)."""
    source, before, after = node.input(0), input_desc(node), node.output_descs[0]
    if source is None or before.layout != source.desc.layout:
        return True
    if node.type == "Cast":
        is_moved = (before.shape, before.format, before.sub_format) != (after.shape, after.format, after.sub_format)
        return is_moved or (is_private(after.format) and not _same_origin(source.desc, after))
    return before.data_type != after.data_type


def permutation(node: Node) -> list[int] | None:
    """Return the constant permutation of a Transpose."""
    if node.type == "TransposeD":
        perm = definition(node).attributes(node.attrs).perm
    else:
        source = node.input(1) if node.type == "Transpose" else None
        value = None if source is None or source.node.type != "Const" else source.node.attrs.get("value")
        perm = value.array.ravel().tolist() if isinstance(value, Tensor) else None
    if perm is None:
        return None
    rank = len(perm)
    return [axis % rank for axis in perm] if all(-rank <= axis < rank for axis in perm) else None


def only_reader(out: NodeOut) -> Node | None:
    """Return the node that alone reads a tensor, by one input; ``None`` if there are others, or a result is read."""
    readers = out.node.consumers(out.index)
    graph = out.node.graph
    if len(readers) != 1 or (graph.net_output() is None and out in graph.outputs):
        return None
    return readers[0].node


def following(out: NodeOut) -> Node | None:
    """Return the trans-op that alone reads a tensor and changes its form."""
    reader = only_reader(out)
    return reader if reader is not None and is_trans_op(reader) and reader.input(0) == out else None


def chains(graph: Graph) -> list[list[Node]]:
    """Return the runs of trans-ops, each the only reader of the one before, as long as they go, producers first."""
    inner = {follower for node in graph if is_trans_op(node) and (follower := following(node.output())) is not None}
    found = []
    for head in graph:
        if not is_trans_op(head) or head in inner:
            continue
        chain = [head]
        while (follower := following(chain[-1].output())) is not None:
            chain.append(follower)
        found.append(chain)
    return found


def relink(graph: Graph, old: NodeOut, new: NodeOut) -> None:
    """Let every reader of ``old`` read ``new``; what readers take its axes for stays."""
    for reader in old.node.consumers(old.index):
        meant = reader.node.input_descs[reader.index]
        graph.set_input(reader.node, reader.index, new)
        own = reader.node.input_descs[reader.index]
        if meant is not None and own is not None:
            own.origin_format = meant.origin_format
    graph.replace_uses(old, new)  # results of a graph without NetOutput


def bypass(graph: Graph, node: Node, source: NodeOut | None = None) -> None:
    """Take a trans-op out: its readers read ``source``, by default what it reads.

    Control edges are handed on: readers wait for what the node waited for, what waited for it waits for the producer.
    Constants that nobody else reads go too.
    """
    own = node.input(0) if source is None else source
    assert own is not None
    readers = [reader.node for reader in node.consumers(0)]
    relink(graph, node.output(), own)
    remove(graph, node, own, readers)


def remove(graph: Graph, node: Node, source: NodeOut, readers: list[Node]) -> None:
    """Remove a trans-op that nobody reads any more, and hand on its control edges.

    ``readers`` read its result before; ``source`` is what they read now.
    """
    for before in node.control_inputs:
        for reader in dict.fromkeys(readers):
            if reader is not before and not reader.is_removed:
                graph.add_control(before, reader)
    for after in node.control_outputs:
        if source.node.type not in ("Data", "Const") and after is not source.node:
            graph.add_control(source.node, after)
    constants = [s.node for s in node.inputs if s is not None and s.node.type == "Const"]
    graph.remove_unread(node)
    for constant in dict.fromkeys(constants):
        if not constant.is_removed and not graph.is_read(constant):
            graph.remove_unread(constant)
