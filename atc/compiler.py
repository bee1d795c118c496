"""From a model to an OfflineModel: parse, run the pipeline, put the result together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from atc.plugins import load_operators, load_passes
from ge.collector import collector_at_rest
from ge.dump.dumper import dumper_for
from ge.dump.settings import faults_of
from ge.graph import Graph
from ge.ops import using
from ge.options import PRECISION_KEPT
from ge.passes.base import FusionBasePass
from ge.session import CompileSession
from om_format.offline_model import OfflineModel, assemble
from parsers.front_ends import parse_model
from passes.driver import Driver
from passes.pipeline import compile_passes

if TYPE_CHECKING:
    from onnx import ModelProto

    from parsers.tensorflow.graph_def_pb2 import GraphDef


def compile_source(
    source: str | Path | bytes | ModelProto | GraphDef,
    session: CompileSession,
    passes: Iterable[type[FusionBasePass]] = (),
) -> OfflineModel:
    """Compile ``source`` (path, file content or message) with the options of ``session``.

    Custom operators and passes are loaded from the folders that options and environment name; registered classes in
    ``passes`` join them. Nothing is written. Raises :class:`ge.errors.ReportedError`.
    """
    load_operators(session)
    with using(session.operators):
        load_passes(session, passes)
        for text in faults_of(session.environment):
            session.warn(text)
        session.dumper = dumper_for(session.environment, session.options.ge_options)
        with collector_at_rest():
            graph = parse_model(source, session)
            session.info(f"parsed: {len(graph)} nodes")
            model = compile_graph(graph, session)
    options = session.options
    if options.precision == "origin" and options.is_default_precision:  # not where the compile fails
        session.warn(PRECISION_KEPT)
    return model


def compile_graph(graph: Graph, session: CompileSession) -> OfflineModel:
    """Run the pipeline on a parsed graph (it is consumed) and return the model to be saved or run."""
    Driver(session).run(graph, compile_passes())
    return assemble(graph, session)
