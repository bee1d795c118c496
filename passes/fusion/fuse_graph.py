"""Pass fuse-graph."""

from __future__ import annotations

import logging
from typing import ClassVar

from ge.errors import ReportedError
from ge.graph import Graph
from ge.passes import PassContext
from ge.passes.engine import PassFailure, run_pass
from ge.session import CompileSession
from ge.verify import verify_after
from passes.fusion.drop_idle_dropout import DropIdleDropout
from passes.fusion.drop_idle_node import DropIdleNode
from passes.fusion.drop_neutral_operand import DropNeutralOperand
from passes.fusion.fold_batch_norm import FoldBatchNorm
from passes.fusion.fold_conv_bias import FoldConvBias
from passes.fusion.fold_conv_scale import FoldConvScale
from passes.fusion.fold_matmul_bias import FoldMatMulBias
from passes.fusion.fold_matmul_scale import FoldMatMulScale
from passes.fusion.fold_pad_into_conv import FoldPadIntoConv
from passes.fusion.fold_pad_into_pool import FoldPadIntoPool
from passes.fusion.fuse_gelu import FuseGelu
from passes.fusion.fuse_gelu_tanh import FuseGeluTanh
from passes.fusion.fuse_hard_swish import FuseHardSwish
from passes.fusion.fuse_layer_norm import FuseLayerNorm
from passes.fusion.fuse_matmul_transpose import FuseMatMulTranspose
from passes.fusion.fuse_rms_norm import FuseRmsNorm
from passes.fusion.fuse_softmax import FuseSoftmax
from passes.fusion.fuse_swish import FuseSwish
from passes.fusion.graph_fusion import GraphFusion
from passes.fusion.join_split import JoinSplit
from passes.fusion.merge_reshapes import MergeReshapes
from passes.fusion.merge_scale_and_shift import MergeScaleAndShift
from passes.fusion.merge_transposes import MergeTransposes
from passes.fusion.move_bias_before_reshape import MoveBiasBeforeReshape

logger = logging.getLogger("atc")

BUILTIN_FUSIONS: tuple[type[GraphFusion], ...] = (
    # what exporters write in many operators: before anything takes their numbers apart
    FuseGelu,
    FuseGeluTanh,
    FuseLayerNorm,
    FuseRmsNorm,
    FuseSoftmax,
    FuseSwish,
    FuseHardSwish,
    # what does nothing
    DropNeutralOperand,
    DropIdleNode,
    DropIdleDropout,
    JoinSplit,
    # a Transpose may become a Reshape
    MergeTransposes,
    MergeReshapes,
    # what is left of factors and addends is one factor, then one addend: so are they folded into weights
    MergeScaleAndShift,
    FoldBatchNorm,
    FoldConvScale,
    FoldConvBias,
    FoldPadIntoConv,
    FoldPadIntoPool,
    FuseMatMulTranspose,
    MoveBiasBeforeReshape,
    FoldMatMulScale,
    FoldMatMulBias,
)
"""In the order in which they run."""


class FuseGraph:
    """Before: operators as the model has them. After: the built-in fusions have run, one after the other.

    1. Those that the switches turn off are left out (``ge/fusion_switches.py``).
    2. Those that cannot find anything, for want of operators, are not asked.
    3. New nodes have shapes and types.
    """

    name: ClassVar[str] = "fuse-graph"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        """Run them."""
        is_changed, types = False, _types_of(graph)
        for fusion in BUILTIN_FUSIONS:
            if not types.isdisjoint(fusion.anchor_types()) and run_fusion(fusion, graph, session):
                is_changed, types = True, _types_of(graph)
        session.is_rewritten |= is_changed
        return is_changed


def _types_of(graph: Graph) -> set[str]:
    return {node.type for part in graph.all_graphs() for node in part}


def run_fusion(fusion: type[GraphFusion], graph: Graph, session: CompileSession) -> bool:
    """Run one built-in fusion, if it is on."""
    if not session.options.fusion_switches.allows_builtin(fusion.name, is_closable=fusion.is_closable):
        logger.info("fusion %s is switched off", fusion.name)
        return False
    options, warn = session.options.ge_options, session.warn
    context = PassContext(fusion.name, kind="fusion", options=options, statistics=session.fusion, warn=warn)
    try:
        changed = run_pass(fusion, graph, context)
    except PassFailure as failure:
        raise ReportedError("E19999", reason=f"{context.title} failed: {failure.reason}") from failure
    if changed and session.is_verifying:
        verify_after(f"fusion {fusion.name}", graph)
    return changed
