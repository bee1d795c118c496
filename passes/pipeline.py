"""The compile pipeline: which passes run, in which order. Read it from top to bottom."""

from __future__ import annotations

from passes.build.memory_plan import PlanMemory
from passes.build.output_copies import CopyIntoOutputs
from passes.build.task_list import BuildTasks
from passes.build.topological_order import SortTopologically
from passes.custom.settle_rewrites import SettleRewrites
from passes.custom.stage import AfterBuiltinFusion, AfterInferShape, AfterOriginGraphOptimize, BeforeInferShape
from passes.driver import Step
from passes.format.apply_user_formats import ApplyUserFormats
from passes.format.choose_formats import ChooseFormats
from passes.format.count_trans_data import CountTransData
from passes.format.fold_trans_data import FoldTransData
from passes.format.infer_origin_format import InferOriginFormat
from passes.format.insert_trans_data import InsertTransData
from passes.format.settle_formats import SettleFormats
from passes.format.spare_trans_data import SpareTransData
from passes.format.spread_heavy_formats import SpreadHeavyFormats
from passes.format.trans_ops.stage_one import stage_one
from passes.fusion.fuse_graph import FuseGraph
from passes.infer.fold_constants import FoldConstants
from passes.infer.infer_shapes import InferShapes
from passes.infer.take_known_branches import TakeKnownBranches
from passes.precision.choose_precision import ChoosePrecision
from passes.precision.insert_casts import InsertCasts
from passes.precision.remove_casts import RemoveCasts
from passes.prepare.add_net_output import AddNetOutput
from passes.prepare.remove_dead_captures import RemoveDeadCaptures
from passes.prepare.remove_dead_nodes import RemoveDeadNodes
from passes.prepare.remove_identity import RemoveIdentity
from passes.prepare.set_output_type import SetOutputType
from passes.prepare.sink_constants import SinkConstants


def prepare() -> list[Step]:
    """A parsed graph becomes a graph with one NetOutput and nothing that no result needs."""
    return [
        "PreRunBegin",
        # before the custom passes: they follow results through NetOutput
        AddNetOutput(),
        BeforeInferShape(),
        "RunCustomPassBeforeInfershape",
        RemoveDeadNodes(),
        SinkConstants(),
        RemoveDeadCaptures(),
        "PreRunAfterNormalizeGraph",
    ]


def infer() -> list[Step]:
    """Shapes and types everywhere, and what axes mean; constants folded."""
    return [
        InferOriginFormat(),
        "AfterFirstInferformat",
        InferShapes(),
        TakeKnownBranches(),
        # before folding: an Identity between constants must not become a copy of one
        RemoveIdentity(),
        FoldConstants(),
        "AfterInfershape",
        AfterInferShape(),
        "RunCustomPass_AfterInferShape",
        SettleRewrites(),
        # now that all ranks are known; what still has no format gets that of --input_format
        InferOriginFormat(),
        "AfterSecondInferformat",
        SetOutputType(),
        RemoveDeadCaptures(),
        RemoveDeadNodes(),
        "PreRunAfterPrepare",
    ]


def optimize() -> list[Step]:
    """Built-in fusions, and the custom passes around them."""
    return [
        FuseGraph(),
        SettleRewrites(),
        "OptimizeOriginalGraph_FeGraphFusionAfter",
        AfterBuiltinFusion(),
        "RunCustomPassAfterBuiltinFusionPass",
        SettleRewrites(),
        # what fusions and passes of users have made
        InferOriginFormat(),
        "PreRunAfterOptimizeOriginalGraph",
        ApplyUserFormats(),
        "PrepareAfterUpdateInputOutputByUserOptions",
    ]


def refine_precision() -> list[Step]:
    """Element types by the precision mode; Casts where the two ends of an edge differ."""
    return [
        ChoosePrecision(),
        "OptimizeOriginalGraph_FeOpDtypeJudgeAfter",
        InsertCasts(),
        RemoveCasts(),
        "PreRunAfterRefineRunningPrecision",
    ]


def refine_formats() -> list[Step]:
    """Layouts of the chip, first node by node, then spread; TransData where the two ends of an edge differ."""
    return [
        ChooseFormats(),
        "OptimizeOriginalGraph_FeOpFormatJudgeAfter",
        SpreadHeavyFormats(),
        SpareTransData(),
        "OptimizeOriginalGraph_FeDistHeavyFormatAfter",
        InsertTransData(),
        "OptimizeOriginalGraph_FeInsertTransNodeAfter",
        "PreRunAfterRefineRunningFormat",
        FoldTransData(),
        *stage_one(),
    ]


def finish() -> list[Step]:
    """Custom passes on the graph as it will be built."""
    return [
        AfterOriginGraphOptimize(),
        "RunCustomPassAfterOriginGraphOptimize",
        # what they have put among nodes that work in layouts of the chip
        SettleFormats(),
        InsertTransData(),
        SettleRewrites(),
        FoldTransData(),
        CountTransData(),
    ]


def build() -> list[Step]:
    """Results get memory of their own; execution order, tasks, places in memory."""
    return [
        CopyIntoOutputs(),
        SortTopologically(),
        "PreRunAfterOptimizeGraphBeforeBuild",
        BuildTasks(),
        PlanMemory(),
        "AfterAssignResource",
        "Build",
    ]


def compile_passes() -> list[Step]:
    """Return the whole pipeline; a text is the name of a stage, at which the graph may be dumped."""
    return [*prepare(), *infer(), *optimize(), *refine_precision(), *refine_formats(), *finish(), *build()]


def named_passes() -> dict[str, type]:
    """Return all passes by name, for the developer tool."""
    return {type(step).name: type(step) for step in compile_passes() if not isinstance(step, str)}
