"""MatMul + Add and BatchMatMulV2 + Add become GEMM."""

from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

try:
    from ge.es.math import GEMM, MatMul
except ImportError:
    from ge.es.all import GEMM, MatMul
try:
    from ge.es.nn import BatchMatMulV2
except ImportError:
    from ge.es.all import BatchMatMulV2


@register_fusion_pass(name="SampleGemm", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleGemm(PatternFusionPass):
    @pattern
    def matrices(self, inputs):
        a, b, c = inputs[:3]
        return MatMul(a, b) + c

    @pattern
    def batches(self, inputs):
        a, b, c = inputs[:3]
        return BatchMatMulV2(a, b) + c

    def replacement(self, inputs):
        a, b, c = inputs[:3]
        return GEMM(a, b, c, 1.0, 1.0)
