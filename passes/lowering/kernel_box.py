"""Boxes: one per tensor, with the expression that computes it, and whether fusion ends there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from ge.graph import Node, NodeOut
from passes.lowering.loop_ir import LoopOp


class FuseType(IntEnum):
    """What a kernel is for the fusion of kernels; the values are CANN's."""

    DEFAULT = 0
    POINTWISE = 1
    REDUCE = 2
    CONCAT = 3
    SPLIT = 4
    SLICE = 5
    GATHER = 6
    TRANSPOSE = 7
    CUBE = 8
    RESHAPE = 9
    EXTERN = 10


class Realization(Enum):
    """Whether a box becomes a kernel.

    ``MARKED`` boxes do, and readers still hold their expression; ``PERSISTENT`` ones do, and readers load the tensor.
    """

    NO = 0
    MARKED = 1
    PERSISTENT = 2


_BY_ROOT = {
    "StoreReshape": FuseType.RESHAPE,
    "StoreReduction": FuseType.REDUCE,
    "StoreConcat": FuseType.CONCAT,
    "StorePack": FuseType.CONCAT,
    "StoreSplit": FuseType.SPLIT,
    "StoreMatMul": FuseType.CUBE,
    "StoreConv2D": FuseType.CUBE,
}
_BY_CONTENT = {
    "StoreStridedSlice": FuseType.SLICE,
    "StoreReduction": FuseType.REDUCE,
    "ReduceThenBroadcast": FuseType.REDUCE,
    "LoadGather": FuseType.GATHER,
}


@dataclass
class KernelBox:
    """The box of one tensor. Without an expression it is extern: the operator of the model makes the tensor."""

    anchor: NodeOut
    root: LoopOp | None = None
    realization: Realization = Realization.NO
    disables_lifting: bool = False
    _origins: list[Node] | None = field(default=None, repr=False)
    _unused: list[NodeOut] | None = field(default=None, repr=False)

    @property
    def is_extern(self) -> bool:
        """Whether the operator of the model makes the tensor."""
        return self.root is None

    @property
    def is_realized(self) -> bool:
        """Whether the box becomes a kernel."""
        return self.realization is not Realization.NO

    def realize(self, *, persistent: bool = True) -> bool:
        """End fusion here, or with ``persistent=False`` only ask for a kernel. Return whether that is new."""
        wanted = Realization.PERSISTENT if persistent else Realization.MARKED
        if self.is_extern or self.realization.value >= wanted.value:
            return False
        self.realization = wanted
        return True

    def expression(self) -> LoopOp | None:
        """Return what readers hold of this box; ``None``: they load the tensor."""
        return None if self.realization is Realization.PERSISTENT else self.root

    @property
    def fuse_type(self) -> FuseType:
        """What kind of kernel this makes."""
        if self.root is None:
            return FuseType.EXTERN
        by_root = _BY_ROOT.get(self.root.type)
        if by_root is not None:
            return by_root
        parts = list(self.root.walk())
        kinds = {_BY_CONTENT[op.type] for op in parts if op.type in _BY_CONTENT}
        for kind in (FuseType.SLICE, FuseType.REDUCE, FuseType.GATHER):
            if kind in kinds:
                return kind
        is_reshape = any(op.type == "StoreReshape" for op in parts)
        if is_reshape and all(op.type in ("StoreReshape", "Store", "Load") for op in parts):
            return FuseType.RESHAPE
        return FuseType.POINTWISE

    @property
    def loads(self) -> int:
        """Loads, along all paths."""
        return 0 if self.root is None else self.root.loads

    @property
    def ops(self) -> int:
        """Operators other than loads and plain stores, along all paths."""
        return 0 if self.root is None else self.root.ops

    @property
    def slices(self) -> int:
        """Slices, along all paths."""
        return 0 if self.root is None else self.root.slices

    @property
    def is_slice_alone(self) -> bool:
        """Whether nothing is computed but a slice."""
        alone = ("Load", "Store", "StoreStridedSlice")
        return self.slices > 0 and self.root is not None and all(op.type in alone for op in self.root.walk())

    @property
    def origins(self) -> list[Node]:
        """The operators of the model that are inside, in the order of the expression."""
        if self._origins is None:
            found = {} if self.root is None else dict.fromkeys(self._stored_nodes())
            self._origins = list(found)
        return self._origins

    def _stored_nodes(self) -> list[Node]:
        assert self.root is not None
        return [op.anchor.node for op in self.root.walk() if op.anchor is not None and op.type not in ("Load",)]

    @property
    def inputs(self) -> list[NodeOut]:
        """The tensors that are loaded, each once, in the order of the expression."""
        if self.root is None:
            return []
        found: dict[NodeOut, None] = {}
        for op in self.root.walk():
            if op.type == "Load" and op.anchor is not None:
                found[op.anchor] = None
            found.update(dict.fromkeys(op.sources))
        return list(found)

    @property
    def unused_inputs(self) -> list[NodeOut]:
        """Inputs of inner operators that the expression never loads nor makes, as the graph was when first asked."""
        if self._unused is None:
            self._unused = self._find_unused()
        return self._unused

    def _find_unused(self) -> list[NodeOut]:
        if self.root is None:
            return []
        known = set(self.inputs) | {op.anchor for op in self.root.walk() if op.anchor is not None}
        read = (source for node in self.origins for source in node.inputs if source is not None)
        return [source for source in dict.fromkeys(read) if source not in known]

    @property
    def stream_label(self) -> tuple[str, str]:
        """Label and priority of the stream that the first labelled operator inside wants; empty: none."""
        for node in self.origins:
            label = str(node.attrs.get("_user_stream_label", ""))
            if label:
                return label, str(node.attrs.get("_user_stream_priority", ""))
        return "", ""
