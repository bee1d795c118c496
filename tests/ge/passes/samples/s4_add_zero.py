"""Adding a constant that is zero, or nearly, is left out."""

from ge.graph.types import DataType
from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

TOLERANCES = {DataType.DT_FLOAT: 1e-6, DataType.DT_DOUBLE: 1e-15, DataType.DT_INT32: 0.5}


def only_number(value):
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return None if isinstance(value, list) else value


@register_fusion_pass(name="SampleAddZero", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleAddZero(PatternFusionPass):
    @pattern
    def zero(self, inputs):
        return inputs[0] + 0

    def meet_requirements(self, match_result):
        kept = match_result.get_captured_tensor(0)
        for node in match_result.get_matched_nodes():
            if node.type == "Const":
                tensor = node.get_attr("value")
                number, tolerance = only_number(tensor.data), TOLERANCES.get(tensor.data_type)
                print(
                    f"{match_result.get_pattern_graph_name()}: {kept.node.name}:{kept.index} "
                    f"+ {tensor.data_type.name} {number}"
                )
                return number is not None and tolerance is not None and abs(number) < tolerance
        return True

    def replacement(self, inputs):
        return inputs[0]
