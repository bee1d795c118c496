"""AddCustom(AddCustom(x, zero), y) becomes AddCustom(x, y), where zero comes through Identity or TensorMove."""

from ge.es.graph_builder import GraphBuilder
from ge.graph import Tensor
from ge.passes import PassStage, PatternFusionPass, create_pattern, create_replacement, register_fusion_pass

try:
    from ge.es.custom import AddCustom
except ImportError:
    AddCustom = None
try:
    from ge.es.math import Identity, TensorMove
except ImportError:
    from ge.es.all import Identity, TensorMove

TOLERANCES = {"DT_FLOAT": 1e-6, "DT_FLOAT16": 1e-3, "DT_DOUBLE": 1e-15, "DT_INT32": 0.5}


def is_zero(tensor: Tensor) -> bool:
    value = tensor.data
    while isinstance(value, list):
        if not value:
            return False
        value = value[0]
    return abs(value) < TOLERANCES.get(tensor.data_type.name, 0.0)


def pattern_of(name, carried):
    builder = GraphBuilder(name)
    x, y = builder.create_input(0), builder.create_input(1)
    zero = carried(x.get_owner_builder().create_const_float(0.0))
    builder.set_graph_output(AddCustom(AddCustom(x, zero), y), 0)
    return create_pattern(builder.build_and_reset())


@register_fusion_pass(name="SampleAddCustomZero", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleAddCustomZero(PatternFusionPass):
    def patterns(self):
        if AddCustom is None:
            raise RuntimeError("there is no operator AddCustom")
        return [
            pattern_of("through_identity", Identity),
            pattern_of("through_move", lambda zero: TensorMove(Identity(zero))),
        ]

    def meet_requirements(self, match_result):
        constants = [node for node in match_result.get_matched_nodes() if node.type == "Const"]
        return all(is_zero(node.get_attr("value")) for node in constants)

    def replacement(self, match_result):
        builder = GraphBuilder("one_addition")
        x, y = builder.create_inputs(2)
        return create_replacement(builder.build_and_reset([AddCustom(x, y)]))
