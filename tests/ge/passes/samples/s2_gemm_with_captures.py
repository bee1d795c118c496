"""MatMul + Add of float tensors becomes GEMM; the transpositions are taken over."""

from ge.es.graph_builder import GraphBuilder
from ge.graph.types import DataType
from ge.passes import PassStage, PatternFusionPass, create_pattern, create_replacement, register_fusion_pass

try:
    from ge.es.math import GEMM, Add, MatMul
except ImportError:
    from ge.es.all import GEMM, Add, MatMul
try:
    from ge.es.nn import BatchMatMulV2
except ImportError:
    from ge.es.all import BatchMatMulV2

PRODUCT, SUM = 0, 1


def sum_of(name, operator):
    builder = GraphBuilder(name)
    a, b, c = builder.create_inputs(3)
    product = operator(a, b)
    total = Add(product, c)
    found = create_pattern(builder.build_and_reset([total]))
    return found.capture_tensor(product).capture_tensor(total)


@register_fusion_pass(name="SampleGemmWithCaptures", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleGemmWithCaptures(PatternFusionPass):
    def patterns(self):
        return [sum_of("matrices", MatMul), sum_of("batches", BatchMatMulV2)]

    def meet_requirements(self, match_result):
        total = match_result.get_captured_tensor(SUM).node
        types = [total.get_input_desc(index).get_data_type() for index in range(2)]
        return all(found.name == DataType.DT_FLOAT.name for found in types)

    def replacement(self, match_result):
        product = match_result.get_captured_tensor(PRODUCT).node
        # BatchMatMulV2 says adj_x1 and adj_x2 instead
        flags = [
            bool(product.get_attr(name)) if product.has_attr(name) else False
            for name in ("transpose_x1", "transpose_x2")
        ]
        builder = GraphBuilder("gemm")
        a, b, c = builder.create_inputs(3)
        one, other = builder.create_scalar_float(1.0), builder.create_scalar_float(1.0)
        result = GEMM(a, b, c, one, other, transpose_a=flags[0], transpose_b=flags[1])
        return create_replacement(builder.build_and_reset([result]))
