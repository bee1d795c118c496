"""Building graphs by calling operators (CANN's import path ``ge.es``).

    builder = GraphBuilder("net")
    a, b, c = builder.create_inputs(3)
    graph = builder.build_and_reset([MatMul(a, b) + c])

Operators are functions of the plugin modules: ``from ge.es.math import MatMul``. ``all``, ``math`` and ``nn`` offer all
registered operators; ``custom`` those that were registered with the plugin ``custom``.
"""

from ge.es.graph_builder import GraphBuilder
from ge.es.plugins import get_plugin, list_plugins
from ge.es.tensor_holder import TensorHolder

__all__ = ["GraphBuilder", "TensorHolder", "get_plugin", "list_plugins"]
