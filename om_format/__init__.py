"""Offline models: the ``.om`` container, written and read.

``load(path)`` gives an :class:`OfflineModel`, ``OfflineModel.save(path)`` writes one.
"""

from om_format.display import display_block
from om_format.json_view import graph_json, model_json
from om_format.model_io import ModelIO, TensorInfo
from om_format.offline_model import OfflineModel
from om_format.reader import load

__all__ = ["ModelIO", "OfflineModel", "TensorInfo", "display_block", "graph_json", "load", "model_json"]
