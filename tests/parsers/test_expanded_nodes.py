"""Nodes that become several operators: data dumps must know which of these gives the result."""

from __future__ import annotations

import pytest
from onnx import NodeProto

from tests.parsers.evaluation import parse_model
from tests.parsers.onnx_models import model, node

MULTI, NAME, INDEX = "_datadump_is_multiop", "_datadump_origin_name", "_datadump_origin_output_index"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("Relu", "x", name="r")], {"Relu": (None, {})}, id="one operator stands for itself"),
        pytest.param(
            [node("ReduceLogSum", "x", name="r")],
            {"ReduceSum": (True, {}), "Log": (True, {NAME: "r", INDEX: 0})},
            id="the last of several",
        ),
        pytest.param(
            [node("Relu", "x", "a", "first"), node("Mean", "a a", "y", "m")],
            {"Relu": (None, {}), "AccumulateNV2": (True, {}), "Muls": (True, {NAME: "m", INDEX: 0})},
            id="beside other nodes",
        ),
    ],
)
def test_the_parts_of_a_node_say_which_of_their_outputs_is_its_own(
    nodes: list[NodeProto], expected: dict[str, tuple[bool | None, dict[str, object]]]
) -> None:
    found = {}
    for made in parse_model(model(nodes, ["x"], ["y"])):
        if made.type not in ("Data", "Const"):
            attrs = made.output_descs[0].attrs
            found[made.type] = made.attrs.get(MULTI), {key: attrs[key] for key in (NAME, INDEX) if key in attrs}
    assert found == expected
