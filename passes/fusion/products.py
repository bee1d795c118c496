"""Matrix products as fusions see them: all operators that multiply matrices, by one set of names."""

from __future__ import annotations

from dataclasses import dataclass

from ge.graph import Node, NodeOut
from passes.fusion.affine import Affine
from passes.fusion.constant_arithmetic import Constant
from passes.fusion.constants import attributes, is_fixed
from passes.fusion.sketch import Sketch
from passes.fusion.weights import scaled, weight_obstacle

PRODUCTS = {
    "MatMul": (2, 3),
    "MatMulV2": (2, 3),
    "MatMulV3": (2, 3),
    "BatchMatMul": (2,),
    "BatchMatMulV2": (2, 3),
    "BatchMatMulV3": (2, 3),
    "GEMM": (5,),
}
"""Types of matrix products with the numbers of inputs that they may have connected."""


@dataclass(frozen=True)
class Product:
    """A matrix product of a graph: ``x1 @ x2``, either of them transposed, plus a bias.

    GEMM is ``alpha * a @ b + beta * c``: its operands are a and b, its bias is c.
    """

    node: Node

    @property
    def swap_names(self) -> tuple[str, str]:
        """The attributes that transpose the operands."""
        if self.node.type == "GEMM":
            return "transpose_a", "transpose_b"
        prefix = "adj" if self.node.type.startswith("Batch") else "transpose"
        return f"{prefix}_x1", f"{prefix}_x2"

    @property
    def swaps(self) -> tuple[bool, bool]:
        """Whether the operands are transposed."""
        op = attributes(self.node)
        first, second = (bool(getattr(op, name)) for name in self.swap_names)
        return first, second

    def operand(self, slot: int) -> NodeOut:
        """Return x1 or x2."""
        source = self.node.input(slot)
        assert source is not None
        return source

    @property
    def bias(self) -> NodeOut | None:
        """What is added, if there is something."""
        return self.node.input(2)

    @property
    def columns(self) -> int:
        """Columns of the result; -1 when it is not known."""
        return self.node.output_descs[0].origin_shape[-1]

    @property
    def is_of_matrices(self) -> bool:
        """True when both operands are known to have at least two axes."""
        shapes = [self.operand(slot).desc.origin_shape for slot in (0, 1)]
        return all(len(shape) > 1 for shape in shapes)

    def is_per_column(self, dims: tuple[int, ...]) -> bool:
        """Tell whether a constant of shape ``dims`` has one number per column of the result."""
        return bool(dims) and self.columns > 0 and dims[-1] == self.columns and set(dims[:-1]) <= {1}

    def obstacle(self) -> str:
        """Return why constants cannot be folded into it; empty if they can."""
        if not self.is_of_matrices or self.columns < 1:
            return "its operands are not known to be matrices"
        if self.bias is not None:
            if not is_fixed(self.bias):
                return f"{self.bias.node.name} is no constant"
            dims = tuple(self.bias.desc.origin_shape)
            if set(dims) > {1} and not self.is_per_column(dims):
                return f"its bias has not one number for each of {self.columns} columns"
        if self.node.type == "GEMM" and not all(is_fixed(source) for source in self.node.inputs[3:]):
            return "its alpha or beta is no constant"
        return ""

    def weight_slot(self, factor: Constant) -> int | None:
        """Return the operand into which ``factor`` can be folded: one number per column only into x2."""
        if is_fixed(self.operand(1)):
            return 1
        return 0 if set(factor.shape) <= {1} and is_fixed(self.operand(0)) else None

    def obstacle_to_scaling(self, factor: Constant) -> str:
        """Return why its result cannot be multiplied by another weight; empty if it can."""
        if not (set(factor.shape) <= {1} or self.is_per_column(factor.shape)):
            return f"the factor is neither one number nor one for each of {self.columns} columns"
        slot = self.weight_slot(factor)
        return (
            "neither operand is a constant" if slot is None else weight_obstacle(self.node, self.operand(slot), factor)
        )


def own_bias(product: Product, sketch: Sketch) -> Affine:
    """Return what the product's own bias does."""
    if product.bias is None:
        return Affine(sketch)
    bias = Constant.of(sketch, product.bias)
    if product.node.type == "GEMM":
        bias = bias * _beta(product, sketch)
    return Affine(sketch, None, bias)


def _beta(product: Product, sketch: Sketch) -> Constant:
    beta = product.node.input(4)
    assert beta is not None
    return Constant.of(sketch, beta).reshape(())


def absorb(product: Product, affine: Affine) -> NodeOut:
    """Draw the product with another weight and bias: what ``affine`` does to its result is done by these."""
    sketch, node = affine.sketch, product.node
    dtype = node.output_descs[0].data_type
    inputs = [sketch.input_of(product.operand(slot)) for slot in (0, 1)]
    if affine.scale is not None:
        slot = product.weight_slot(affine.scale)
        assert slot is not None
        inputs[slot] = scaled(sketch, product.operand(slot), _over_weight(product, slot, affine.scale))
    kind = "BatchMatMulV2" if node.type == "BatchMatMul" and affine.shift is not None else node.type
    if affine.shift is not None:
        vector = affine.shift.reshape((-1,)) + Constant.filled(sketch, (product.columns,), 0.0)
        inputs.append(vector.stored(dtype))
    if node.type == "GEMM":
        alpha = node.input(3)
        assert alpha is not None
        inputs += [sketch.input_of(alpha), Constant.number(sketch, 1.0).stored(dtype)]
    return sketch.add(kind, *inputs, like=node)


def _over_weight(product: Product, slot: int, factor: Constant) -> Constant:
    """Lay one number, or one per column of the result, over an operand."""
    vector = factor.reshape((-1,))
    return vector.reshape((-1, 1)) if slot == 1 and product.swaps[1] else vector
