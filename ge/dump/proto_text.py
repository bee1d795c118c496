"""``ge_proto_*.txt``: protobuf text of ``ge.proto.ModelDef``."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import text_format

from ge.dump.settings import Detail
from ge.graph import Graph
from ge.plan import Plan
from ge.proto import ge_ir_pb2 as pb
from ge.proto.graph_def import model_def
from ge.proto.plan_def import write_plan

OPTION_SETS = ("GraphOptions", "SessionOptions", "GlobalOptions")
"""Graph attributes that hold the options of the compile."""

_WEIGHTLESS_OFFSET = 512


def model_message(graph: Graph, detail: Detail, plan: Plan | None = None) -> pb.ModelDef:
    """Return the message of ``graph`` and its bodies; tensor bytes only at full detail, offsets where a plan exists."""
    place = None if detail is Detail.FULL else (lambda tensor: _WEIGHTLESS_OFFSET)
    model = model_def(graph, place)
    model.name = ""
    if plan is not None:
        write_plan(plan, graph, model)
    return model


def proto_text(model: pb.ModelDef, detail: Detail, options: Mapping[str, str] | None = None) -> str:
    """Return the dump of a message of :func:`model_message`.

    ``options`` (GE key to value text) become attributes of the root at details 1 and 2.
    """
    shown = pb.ModelDef()
    shown.CopyFrom(model)
    if detail is not Detail.FULL:
        for stored in shown.graph:
            for op in stored.op:
                if op.type in ("Const", "Constant"):
                    op.attr.pop("value", None)
    if options is not None and detail is not Detail.LINKS_ONLY:
        _write_options(shown.graph[0], options)
    return text_format.MessageToString(shown)


def _write_options(graph: pb.GraphDef, options: Mapping[str, str]) -> None:
    for name, values in zip(OPTION_SETS, (options, {}, {}), strict=True):
        stored = graph.attr[name].func
        stored.name = name
        for key, value in values.items():
            stored.attr[key].s = value.encode()
