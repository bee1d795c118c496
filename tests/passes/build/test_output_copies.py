"""Which results get a copy, and that nothing else does."""

import pytest

from ge.text import parse_graph
from passes.build.output_copies import CopyIntoOutputs
from tests.passes.build.memory_machine import build_session


def results_after(text: str) -> tuple[bool, list[str]]:
    """Return whether the pass changed something, and per result ``name`` or ``copy of name``."""
    graph = parse_graph(text)
    if graph.net_output() is None:
        graph.add_node("NetOutput", "NetOutput", graph.outputs, output_descs=[])
    changed = CopyIntoOutputs().run(graph, build_session())
    found = []
    for out in graph.outputs:
        is_copy = out.node.type == "Identity" and out.node.attrs.get("_must_copy") is True
        if is_copy:
            assert out.desc == out.node.inputs[0].desc
        found.append(f"copy of {out.node.inputs[0].node.name}" if is_copy else out.node.name)
    return changed, found


HEAD = """graph g(%x: f32[8]@ND) {
  %c = Const {value=f32[2]{1.0, 2.0}} -> f32[2]@ND
  %low = Fill(%c) {_load_time_const=true} -> f32[8]@ND
  %vx = Reshape(%x) -> f32[2,4]@ND
  %vlow = Reshape(%low) -> f32[2,4]@ND
  %a = MatMulV2(%x) -> f32[8]@ND
  %va = Reshape(%a) -> f32[2,4]@ND
  %b:2 = TopK(%a) -> f32[8]@ND, i32[8]@ND
"""


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param("%a", ["a"], id="computed"),
        pytest.param("%va", ["va"], id="view of something computed"),
        pytest.param("%b, %b:1", ["b", "b"], id="two results of one node"),
        pytest.param("%x", ["copy of x"], id="model input"),
        pytest.param("%vx", ["copy of vx"], id="view of a model input"),
        pytest.param("%c, %low", ["copy of c", "copy of low"], id="constants"),
        pytest.param("%vlow", ["copy of vlow"], id="view of a constant"),
        pytest.param("%a, %a, %a", ["a", "copy of a", "copy of a"], id="one result three times"),
        pytest.param("%va, %a", ["va", "copy of a"], id="a tensor and a view of it"),
        pytest.param("%x, %x", ["copy of x", "copy of x"], id="model input twice"),
    ],
)
def test_every_result_has_memory_of_its_own(results, expected) -> None:
    changed, found = results_after(f"{HEAD}  return {results}\n}}")
    assert found == expected
    assert changed == any(name.startswith("copy") for name in expected)


def test_bodies_hand_their_inputs_through() -> None:
    graph = parse_graph("""graph g(%p: bool[]@ND, %x: f32[8]@ND) {
  %y = If(%p, %x) {then_branch=@t, else_branch=@e} -> f32[8]@ND
  %out = NetOutput(%y)
  return %y
}
graph t(%x: f32[8]@ND) { return %x }
graph e(%x: f32[8]@ND) { %y = Neg(%x) -> f32[8]@ND return %y }""")
    assert not CopyIntoOutputs().run(graph, build_session())
