"""Adding next to nothing, twice removed: AddCustom(AddCustom(x, Identity(0)), y) is AddCustom(x, y).

0 stands for a constant whose elements are all within 1e-3 (float16) or 1e-6 of it. It may pass a TensorMove too.
"""

from ge.graph import Tensor
from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

try:
    from ge.es.custom import AddCustom
except ImportError:
    from ge.es.all import AddCustom
try:
    from ge.es.math import Identity, TensorMove
except ImportError:
    from ge.es.all import Identity, TensorMove


def elements(data):
    """The numbers in nested lists."""
    return [number for part in data for number in elements(part)] if isinstance(data, list) else [data]


def is_next_to_nothing(tensor: Tensor) -> bool:
    limit = 1e-3 if tensor.data_type.name == "DT_FLOAT16" else 1e-6
    return all(abs(number) <= limit for number in elements(tensor.data))


@register_fusion_pass(name="MergeAddCustomPass", stage=PassStage.BEFORE_INFER_SHAPE)
class MergeAddCustomPass(PatternFusionPass):
    @pattern
    def behind_identity(self, inputs):
        x, y = inputs[:2]
        nothing = x.get_owner_builder().create_const_float(0.0)
        return AddCustom(AddCustom(x, Identity(nothing)), y)

    @pattern
    def behind_identity_and_move(self, inputs):
        x, y = inputs[:2]
        nothing = x.get_owner_builder().create_const_float(0.0)
        return AddCustom(AddCustom(x, TensorMove(Identity(nothing))), y)

    def meet_requirements(self, match_result):
        constants = [node for node in match_result.get_matched_nodes() if node.type == "Const"]
        return all(is_next_to_nothing(node.get_attr("value")) for node in constants)

    def replacement(self, inputs):
        x, y = inputs[:2]
        return AddCustom(x, y)
