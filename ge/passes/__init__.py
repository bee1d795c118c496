"""Custom fusion passes (CANN's import path ``ge.passes``).

    from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

    @register_fusion_pass(name="DropReluOfRelu", stage=PassStage.BEFORE_INFER_SHAPE)
    class DropReluOfRelu(PatternFusionPass):
        @pattern
        def twice(self, inputs):
            return Relu(Relu(inputs[0]))

        def replacement(self, inputs):
            return Relu(inputs[0])

Names are imported when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# the decorator and the module have one name: whoever imports the module first must not hide the decorator
from ge.passes.pattern import pattern

if TYPE_CHECKING:
    from ge.passes.base import DecomposePass, FusionBasePass, PassStage, PatternFusionPass
    from ge.passes.context import PassContext
    from ge.passes.fuse_inspector import FuseCheckResult, can_fuse, report_fuse
    from ge.passes.match_result import MatchResult
    from ge.passes.pattern import (
        NodeIo,
        Pattern,
        PatternMatcherConfig,
        PatternMatcherConfigBuilder,
        create_pattern,
    )
    from ge.passes.registry import (
        clear_registered_passes,
        get_registered_pass_by_descriptor_key,
        get_registered_pass_dicts,
        get_registered_passes,
        register_decompose_pass,
        register_fusion_pass,
    )
    from ge.passes.replacement import (
        SubgraphBoundary,
        SubgraphInput,
        SubgraphOutput,
        SubgraphRewriter,
        create_replacement,
        infer_shape,
    )

__all__ = [
    "DecomposePass",
    "FuseCheckResult",
    "FusionBasePass",
    "MatchResult",
    "NodeIo",
    "PassContext",
    "PassStage",
    "Pattern",
    "PatternFusionPass",
    "PatternMatcherConfig",
    "PatternMatcherConfigBuilder",
    "SubgraphBoundary",
    "SubgraphInput",
    "SubgraphOutput",
    "SubgraphRewriter",
    "can_fuse",
    "clear_registered_passes",
    "create_pattern",
    "create_replacement",
    "get_registered_pass_by_descriptor_key",
    "get_registered_pass_dicts",
    "get_registered_passes",
    "infer_shape",
    "pattern",
    "register_decompose_pass",
    "register_fusion_pass",
    "report_fuse",
]

_MODULES = {
    "base": "DecomposePass FusionBasePass PassStage PatternFusionPass",
    "context": "PassContext",
    "fuse_inspector": "FuseCheckResult can_fuse report_fuse",
    "match_result": "MatchResult",
    "pattern": "NodeIo Pattern PatternMatcherConfig PatternMatcherConfigBuilder create_pattern",
    "registry": "clear_registered_passes get_registered_pass_by_descriptor_key get_registered_pass_dicts "
    "get_registered_passes register_decompose_pass register_fusion_pass",
    "replacement": "SubgraphBoundary SubgraphInput SubgraphOutput SubgraphRewriter create_replacement infer_shape",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ge.passes.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
