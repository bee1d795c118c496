"""Adding exactly 0.0 is left out; the matcher compares the constant."""

from ge.passes import PassStage, PatternFusionPass, PatternMatcherConfigBuilder, pattern, register_fusion_pass


@register_fusion_pass(name="SampleAddZeroByValue", stage=PassStage.BEFORE_INFER_SHAPE)
class SampleAddZeroByValue(PatternFusionPass):
    def __init__(self):
        super().__init__(PatternMatcherConfigBuilder().enable_const_value_match().build())

    @pattern
    def zero(self, inputs):
        return inputs[0] + 0.0

    def replacement(self, inputs):
        return inputs[0]
