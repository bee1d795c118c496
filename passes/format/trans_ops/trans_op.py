"""What all passes over trans-ops ask: which operators those are, what a Cast loses, how one is taken out."""

from __future__ import annotations

from ge.graph import DataType, Graph, Node, NodeOut, TensorDesc

TRANS_OPS = frozenset(
    {"Cast", "ExpandDims", "ReFormat", "Reshape", "Squeeze", "SqueezeV2", "SqueezeV3", "TransData", "Transpose"}
    | {"TransposeD", "Unsqueeze", "UnsqueezeV2", "UnsqueezeV3"}
)
"""Operators whose result is input 0 in another form; further inputs are constants that say how."""

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
    """Tell whether a node only changes the form of its input 0."""
    return node.type in TRANS_OPS and node.input(0) is not None and len(node.output_descs) == 1


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
    put there (no names of origin) may go together with its opposite. From floats to integers, to bool, and to narrower
    integers all count; GE knows the first two only.
    """
    if node.type != "Cast":
        return False
    source, target = input_desc(node).data_type, node.output_descs[0].data_type
    if is_exact(source, target):
        return False
    return not (source in _DIGITS and target in _DIGITS) or bool(node.attrs.get(ORIGINS))


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


def bypass(graph: Graph, node: Node, source: NodeOut | None = None) -> None:
    """Take a trans-op out: its readers read ``source``, by default what it reads.

    Control edges are handed on: readers wait for what the node waited for, what waited for it waits for the producer.
    Constants that nobody else reads go too.
    """
    sources = [s for s in node.inputs if s is not None]
    target = sources[0] if source is None else source
    readers = [reader.node for reader in node.consumers(0)]
    graph.replace_uses(node.output(), target)
    move_controls(graph, [node], readers, target)
    graph.remove_unread(node)
    remove_unread_constants(graph, sources)


def move_controls(graph: Graph, removed: list[Node], readers: list[Node], source: NodeOut) -> None:
    """Hand on the control edges of nodes that are about to go, of which ``readers`` read the last and ``source`` fed
    the first: removal of a node passes them from its predecessors to its successors, which is not all."""
    for node in removed:
        for before in node.control_inputs:
            for reader in dict.fromkeys(readers):
                if reader is not before:
                    graph.add_control(before, reader)
        for after in node.control_outputs:
            if source.node.type not in ("Data", "Const") and after is not source.node:
                graph.add_control(source.node, after)


def remove_unread_constants(graph: Graph, sources: list[NodeOut]) -> None:
    """Remove those of ``sources`` that are constants and have no reader any more."""
    for constant in dict.fromkeys(s.node for s in sources):
        if constant.type == "Const" and not constant.is_removed and not graph.is_read(constant):
            graph.remove_unread(constant)
