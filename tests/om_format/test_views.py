"""What `atc --mode=6` prints and `atc --mode=1` writes about a model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from ge.errors import ReportedError
from ge.graph import Graph, Tensor, TensorDesc
from ge.proto import ge_ir_pb2 as pb
from om_format import display_block, graph_json, model_json
from om_format.header import ModelFileHeader
from om_format.json_view import message_json
from om_format.partitions import PartitionType, pack_table
from om_format.reader import open_model


def model_file(path: Path, model: str) -> Path:
    """A file of another writer: no more than a MODEL_DEF, given as text, and an empty-handed neighbour."""
    content = text_format.Parse(model, pb.ModelDef()).SerializeToString()
    payload = pack_table([(PartitionType.MODEL_DEF, len(content)), (PartitionType.TASK_INFO, 2)]) + content + b"\x0a\0"
    path.write_bytes(ModelFileHeader(model_length=len(payload)).pack() + payload)
    return path


class TestDisplay:
    def test_a_saved_model(self, classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        block = open_model(path).block
        model_def, task_info = (block.size_of(t) for t in (PartitionType.MODEL_DEF, PartitionType.TASK_INFO))
        assert display_block(path) == [
            "============ Display Model Info start ============",
            "Original Atc command line: atc --soc_version=Ascend310P3",
            "system   info: atc_version[0.1.0], soc_version[Ascend310P3], framework_type[Onnx].",
            "resource info: memory_size[1536 B], weight_size[4096 B], stream_num[1], event_num[0].",
            f"om       info: modeldef_size[{model_def} B], weight_data_size[4096 B], tbe_kernels_size[0 B], "
            f"cust_aicpu_kernel_store_size[0 B], task_info_size[{task_info} B], so_store_size[0 B].",
            "============ Display Model Info end   ============",
        ]

    def test_what_is_missing(self, tmp_path):
        path = model_file(tmp_path / "net.om", 'attr { key: "soc_version" value { s: "Ascend910\\n\\033[31m" } }')
        assert display_block(path)[1:-1] == [
            "Original Atc command line: ",
            "system   info: atc_version[], soc_version[Ascend910??[31m], framework_type[].",
            "resource info: memory_size[-1 B], weight_size[-1 B], stream_num[-1], event_num[-1].",
            "om       info: not available, the model attribute om_info_list must hold 5 integers but has 0.",
        ]

    @pytest.mark.parametrize("view", [display_block, model_json])
    def test_files_that_are_no_models(self, view, tmp_path):
        (tmp_path / "net.om").write_bytes(b"PK\3\4" * 100)
        with pytest.raises(ReportedError, match=r"E10041.*'IMOD'"):
            view(tmp_path / "net.om")


def entries(value: list[dict[str, Any]]) -> dict[str, Any]:
    return {entry["key"]: entry["value"] for entry in value}


class TestJson:
    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ('name: "n" version: 2 graph { name: "g" input: "x:0" output: "y:0" }',
             {"name": "n", "version": 2, "graph": [{"name": "g", "input": ["x:0"]}]}),
            ("graph { op { id: 0 workspace: 1 workspace_bytes: 2 output_i: 512 is_input_const: [true, false] } }",
             {"graph": [{"op": [{"output_i": [512], "is_input_const": [True, False]}]}]}),
            ("graph { op { output_desc { dtype: DT_BF16 size: 8 weight_size: 8 data_offset: 512 shape { } } } }",
             {"graph": [{"op": [{"output_desc": [{"dtype": "DT_BF16", "shape": {}}]}]}]}),
            ("graph { op { output_desc { dtype: 99 } } }", {"graph": [{"op": [{"output_desc": [{"dtype": 99}]}]}]}),
            ('attr { key: "b" value { i: 9007199254740993 } } attr { key: "a" value { bt: "x" } }',
             {"attr": [{"key": "a", "value": {}}, {"key": "b", "value": {"i": 9007199254740993}}]}),
            ('attr { key: "memory_size" value { i: 5 } }', {"attr": [{"key": "memory_size", "value": {"i": 5}}]}),
            ('attr { key: "a" value { list { f: [0.1, 16777217] val_type: VT_LIST_FLOAT } } }',
             {"attr": [{"key": "a", "value": {"list": {"f": [0.1, 16777216.0], "val_type": "VT_LIST_FLOAT"}}}]}),
            ('attr { key: "a" value { s: "gr\\303\\274n\\377" } }',
             {"attr": [{"key": "a", "value": {"s": "grün\\xff"}}]}),
        ],
    )  # fmt: skip
    def test_rules(self, message, expected):
        assert json.loads(message_json(text_format.Parse(message, pb.ModelDef()))) == expected

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_floats_that_json_has_no_words_for(self, value):
        found = json.loads(message_json(pb.AttrDef(f=value)), parse_constant=pytest.fail)
        assert found == {"f": str(value)}

    def test_a_saved_model(self, classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        found = json.loads(model_json(path))
        assert (found["name"], found["version"], found["custom_version"]) == ("digits", 2, "0.1.0")
        attrs = entries(found["attr"])
        assert attrs["atc_cmdline"] == {"s": "atc --soc_version=Ascend310P3"}
        ops = {op["name"]: op for op in found["graph"][0]["op"]}
        assert ops["dense"]["input"] == ["flat:0", "dense/w:0", "bias/1:0"]
        value = entries(ops["dense/w"]["attr"])["value"]["t"]
        assert value["desc"]["shape"] == {"dim": [48, 5]}
        assert value["desc"]["dtype"] == "DT_FLOAT"
        assert set(value) == {"desc"}
        assert not {"size", "weight_size", "data_offset"} & set(value["desc"])

    def test_a_graph_that_was_not_compiled(self):
        graph = Graph("net")
        weight = graph.add_const("w", Tensor.of(np.ones((3, 4), np.float16)))
        graph.add_node("Relu", "r", [weight], output_descs=[TensorDesc([3, 4])])
        (found,) = json.loads(graph_json(graph))["graph"]
        assert [(op["name"], op["type"], op.get("input")) for op in found["op"]] == [
            ("w", "Const", None),
            ("r", "Relu", ["w:0"]),
        ]
        assert entries(found["op"][0]["attr"])["value"]["t"]["desc"]["shape"] == {"dim": [3, 4]}
