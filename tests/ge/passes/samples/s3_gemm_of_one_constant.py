"""MatMul + [[0.1, 0.1], [0.1, 0.1]] becomes GEMM; constants and attributes must be exactly these."""

from ge.passes import (
    PassStage,
    PatternFusionPass,
    PatternMatcherConfigBuilder,
    pattern,
    register_fusion_pass,
)

try:
    from ge.es.math import GEMM, MatMul
except ImportError:
    from ge.es.all import GEMM, MatMul
try:
    from ge.es.nn import BatchMatMulV2
except ImportError:
    from ge.es.all import BatchMatMulV2

ADDEND = [[0.1, 0.1], [0.1, 0.1]]


@register_fusion_pass(name="SampleGemmOfOneConstant", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleGemmOfOneConstant(PatternFusionPass):
    def __init__(self):
        super().__init__(PatternMatcherConfigBuilder().enable_const_value_match().enable_ir_attr_match().build())

    @pattern
    def matrices(self, inputs):
        x, y = inputs[:2]
        return MatMul(x, y, None, transpose_x1=False, transpose_x2=False) + ADDEND

    @pattern
    def batches(self, inputs):
        x, y = inputs[:2]
        return BatchMatMulV2(x, y, adj_x1=False, adj_x2=False) + ADDEND

    def replacement(self, inputs):
        x, y = inputs[:2]
        return GEMM(x, y, ADDEND, 1.0, 1.0)
