"""The verifier around passes: who leaves an illegal graph is named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from ge.errors import ReportedError
from ge.graph import DataType, Graph
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.text import parse_graph
from passes.driver import Driver, Step
from passes.fusion import fuse_graph
from passes.fusion.fuse_graph import FuseGraph
from passes.fusion.graph_fusion import WalkingFusion
from passes.fusion.rewriting import Rewriting

TEXT = """graph g(%x: f32[2]@ND) {
  %a = Neg(%x) -> f32[2]@ND
  %b = Relu(%a) -> f32[2]@ND
  return %b
}"""


def lie(graph: Graph) -> None:
    """Let a reader believe in another type than its producer has."""
    graph.find("a").output_descs[0].data_type = DataType.DT_INT64


class Liar:
    name: ClassVar[str] = "tell-lies"

    def run(self, graph: Graph, session: CompileSession) -> bool:
        lie(graph)
        return False


class LyingFusion(WalkingFusion):
    name: ClassVar[str] = "LyingFusionPass"

    @classmethod
    def anchor_types(cls) -> tuple[str, ...]:
        return ("Neg",)

    def walk(self, rewriting: Rewriting) -> None:
        lie(rewriting.graph)
        rewriting.is_changed = True


def session(**fields: bool) -> CompileSession:
    return CompileSession(CompileOptions(), Environment(), **fields)


@pytest.mark.parametrize(
    ("step", "culprit"), [(Liar(), "pass tell-lies"), (FuseGraph(), "fusion LyingFusionPass")], ids=["pass", "fusion"]
)
def test_who_leaves_an_illegal_graph_is_named(step: Step, culprit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_graph, "BUILTIN_FUSIONS", (*fuse_graph.BUILTIN_FUSIONS, LyingFusion))
    with pytest.raises(ReportedError, match="E19999") as fault:
        Driver(session(is_verifying=True)).run(parse_graph(TEXT), [step])
    assert f"{culprit} leaves an illegal graph: graph g, node b (Relu): input 0 is " in fault.value.message
    Driver(session(is_verifying=False)).run(parse_graph(TEXT), [step])


def test_all_tests_verify() -> None:
    """As long as a test does not ask for something else."""
    assert session().is_verifying
    with pytest.raises(ReportedError, match="tell-lies"):
        Driver(session()).run(parse_graph(TEXT), [Liar()])
