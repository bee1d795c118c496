"""max(x, slope * x) is a leaky ReLU, as long as the slope is a constant of at most 1."""

from ge.passes import PassStage, PatternFusionPass, pattern, register_fusion_pass

try:
    from ge.es.math import Maximum, Mul
    from ge.es.nn import LeakyRelu
except ImportError:  # other versions of CANN sort their operators into other modules
    from ge.es.all import LeakyRelu, Maximum, Mul


def number(tensor):
    """The value behind a captured tensor if it is a constant of one element, else None."""
    if tensor.node.type != "Const":
        return None
    value = tensor.node.get_attr("value").data
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, float) else None


@register_fusion_pass(name="LeakyFromMax", stage=PassStage.BEFORE_INFER_SHAPE)
class LeakyFromMax(PatternFusionPass):
    """Before: Maximum(x, Mul(x, slope)), in either order. After: LeakyRelu(x)."""

    @pattern
    def scaled_second(self, inputs):
        x, slope = inputs[:2]
        return Maximum(x, Mul(x, slope))

    @pattern
    def scaled_first(self, inputs):
        x, slope = inputs[:2]
        return Maximum(Mul(x, slope), x)

    def meet_requirements(self, match_result):
        slope = number(match_result.get_captured_tensor(1))
        return slope is not None and slope <= 1

    def replacement(self, inputs, match_result):
        x, _ = inputs[:2]
        return LeakyRelu(x, negative_slope=number(match_result.get_captured_tensor(1)))
