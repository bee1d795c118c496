"""The graph IR: one class family for the pass API and the compiler."""

from ge.graph.graph import CycleError, DumpFormat, Graph
from ge.graph.node import Node, NodeIn, NodeOut
from ge.graph.operator import Operator
from ge.graph.tensor import Tensor
from ge.graph.tensor_desc import OpenDim, Shape, TensorDesc, same_dim
from ge.graph.types import DataType, Format, Placement

__all__ = [
    "CycleError",
    "DataType",
    "DumpFormat",
    "Format",
    "Graph",
    "Node",
    "NodeIn",
    "NodeOut",
    "OpenDim",
    "Operator",
    "Placement",
    "Shape",
    "Tensor",
    "TensorDesc",
    "same_dim",
]
