"""The passes over trans-ops in their order, for the pipeline."""

from __future__ import annotations

from passes.driver import Step
from passes.format.trans_ops.breadth_fusion import TransOpBreadthFusion
from passes.format.trans_ops.cast_remove import CastRemove
from passes.format.trans_ops.dim1_transpose_to_squeeze import Dim1TransposeToSqueeze
from passes.format.trans_ops.narrow_trans_data import NarrowTransData
from passes.format.trans_ops.same_transdata_breadth_fusion import SameTransdataBreadthFusion
from passes.format.trans_ops.symmetry_elimination import TransOpSymmetryElimination
from passes.format.trans_ops.transpose_trans_data import TransposeTransData
from passes.format.trans_ops.unchanged_transpose_remove import UnchangedTransposeRemove
from passes.format.trans_ops.without_reshape_fusion import TransOpWithoutReshapeFusion


def stage_one() -> list[Step]:
    """As few TransDatas, Casts and Transposes as the formats that were chosen need.

    They run with --format_refinement=0, too, as they do not look at how formats came about: Casts and Transposes that
    undo each other go in either case, and none of them makes a TransData where there is none.

    Of GE's passes of this stage these have nothing to do here:

    - ReshapeRemove, ReshapeRecovery: a Reshape is a view and costs nothing; where GE takes one away so that the
      TransDatas around it meet, TransOpSymmetryElimination looks through it;
    - NoUseReshapeRemove: the fusion ReshapeFusionPass (``passes/fusion/merge_reshapes.py``) does it;
    - TransOpNearbyAllreduceFusion: a model runs on one device, there are no collectives;
    - VariableOp: an offline model has constants, no variables.
    """
    return [
        SameTransdataBreadthFusion(),
        TransOpWithoutReshapeFusion(),
        TransOpBreadthFusion(),
        "OptimizeStage1_1",
        CastRemove(),
        TransposeTransData(),
        UnchangedTransposeRemove(),
        TransOpSymmetryElimination(),
        Dim1TransposeToSqueeze(),
        # last: the others put TransData where they meet most of their kind
        NarrowTransData(),
        "OptimizeStage1_2",
        "PreRunAfterOptimize1",
    ]
