"""Random graphs for the planner: everything that makes lifetimes differ, nothing that needs numbers."""

from __future__ import annotations

import random

import numpy as np

from ge.graph import DataType, Graph, NodeOut, Tensor, TensorDesc

SHAPES = [[1], [130], [4, 64], [2, 300], [64, 33], [1, 4, 64]]
TYPES = [DataType.DT_FLOAT, DataType.DT_FLOAT16, DataType.DT_INT64]


def random_graph(seed: int, n_nodes: int) -> Graph:
    """Return a graph with in-place candidates, views (of inputs and constants too), unread and repeated results."""
    chance = random.Random(seed)
    graph = Graph(f"random_{seed}")
    tensors: list[NodeOut] = []
    for index in range(chance.randint(1, 3)):
        desc = TensorDesc(chance.choice(SHAPES), data_type=chance.choice(TYPES))
        tensors.append(graph.add_node("Data", f"x{index}", attrs={"index": index}, output_descs=[desc]).output())
    tensors.append(graph.add_const("c", Tensor.of(np.zeros((4, 64), np.float32))))
    for count in range(n_nodes):
        tensors += _add_node(graph, f"n{count}", chance, tensors)
    results = [chance.choice(tensors) for _ in range(chance.randint(1, 4))] + tensors[-1:]
    graph.add_node("NetOutput", "NetOutput", results, output_descs=[])
    return graph


def _add_node(graph: Graph, name: str, chance: random.Random, tensors: list[NodeOut]) -> list[NodeOut]:
    source = chance.choice(tensors[-6:] if chance.random() < 0.7 else tensors)
    desc = source.desc
    kind = chance.choice(["Relu", "Sigmoid", "Add", "Mul", "Reshape", "Concat", "Split", "MatMul", "Square"])
    if kind in ("Relu", "Sigmoid"):
        node = graph.add_node(kind, name, [source], output_descs=[desc.copy()])
    elif kind in ("Add", "Mul"):
        same = [t for t in tensors if t.desc.shape == desc.shape and t.desc.data_type == desc.data_type]
        node = graph.add_node(kind, name, [source, chance.choice(same)], output_descs=[desc.copy()])
    elif kind == "Reshape":
        flat = TensorDesc([desc.shape.elements], data_type=desc.data_type)
        node = graph.add_node(kind, name, [source], output_descs=[flat])
    elif kind == "Concat":
        inputs = [chance.choice(tensors) for _ in range(chance.randint(1, 4))]
        total = sum(t.desc.shape.elements for t in inputs)
        node = graph.add_node("ConcatD", name, inputs, output_descs=[TensorDesc([total % 5000 + 1])])
    else:
        descs = [TensorDesc(chance.choice(SHAPES), data_type=desc.data_type) for _ in range(chance.randint(1, 3))]
        node = graph.add_node("SplitD" if kind == "Split" else "MatMulV2", name, [source], output_descs=descs)
    return list(node.outputs())
