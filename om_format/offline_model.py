"""The compiled model as one object, between the compiler, the file and the simulator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ge
from ge.graph import Graph
from ge.graph.node import AttrValue
from ge.host import Host, host_for
from ge.ops import OperatorSet, using
from ge.options import CompileOptions, Framework
from ge.plan import Plan
from ge.session import CompileSession
from om_format.model_io import ModelIO, TensorInfo

FRAMEWORK_TEXT: Mapping[Framework, str] = {
    Framework.CAFFE: "Caffe",
    Framework.MINDSPORE: "MindSpore",
    Framework.TENSORFLOW: "TensorFlow",
    Framework.ONNX: "Onnx",
}


@dataclass(repr=False)
class OfflineModel:
    """A graph whose constants hold their data, its execution plan, and what is known about it.

    ``attrs`` are the attributes of the model (``soc_version``, ``atc_cmdline``, ...); those that follow from graph,
    plan and weights (``memory_size``, ``om_info_list``, ...) are made anew when the model is saved. ``io`` describes
    inputs and outputs in the order in which the model takes and gives them. ``operators`` are the custom operators
    that it was compiled with. A file has none: one that is loaded gets those in use.
    """

    graph: Graph
    attrs: dict[str, AttrValue]
    plan: Plan
    io: ModelIO
    name: str = field(default="")
    """Name of the model; by default that of the graph."""
    operators: OperatorSet = field(default_factory=OperatorSet, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            self.name = self.graph.name

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(_described, infos)) for infos in (self.io.inputs, self.io.outputs))
        return f"<OfflineModel {self.name}: ({inputs}) -> ({outputs}), {len(self.graph)} nodes>"

    @property
    def host(self) -> Host | None:
        """The machine that a dynamic model is for; ``None`` for static models, which run everywhere."""
        names = [self.attrs.get(name) for name in ("host_env_os", "host_env_cpu")]
        os_name, cpu = (name if isinstance(name, str) else "" for name in names)
        return Host(os_name, cpu) if os_name and cpu and not self.plan.is_static else None

    def file_path(self, stem: str) -> str:
        """Return the path of the .om for an output ``stem``: the name for a dynamic model tells what machine it is for.

        The machine stands in front of the first ``.om`` of the name.
        """
        folder, name = os.path.split(f"{stem}.om")
        return os.path.join(folder, name if self.host is None else name.replace(".om", f"{self.host.suffix}.om", 1))

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``, whole or not at all. Raises E13004 where that cannot be done."""
        from om_format.writer import save

        with using(self.operators):
            save(self, path)


def _described(info: TensorInfo) -> str:
    return f"{info.name} {info.data_type.name.removeprefix('DT_').lower()}{list(info.dims)}"


def assemble(graph: Graph, session: CompileSession) -> OfflineModel:
    """Put the result of a compile together: ``graph`` after all passes, the plan of ``session``, its options."""
    options = session.options
    return OfflineModel(
        graph=graph,
        attrs={**_origin(options), **_host(options, is_needed=not session.plan.is_static), **_transfers(graph)},
        plan=session.plan,
        io=describe_io(graph),
        name=os.path.basename(options.output),
        operators=session.operators,
    )


def _origin(options: CompileOptions) -> dict[str, AttrValue]:
    attrs: dict[str, AttrValue] = {
        "atc_cmdline": options.command_line,
        "atc_version": ge.__version__,
        "framework_type": FRAMEWORK_TEXT[options.framework],
        # the precision that the compiler really used
        "_precision_mode_v2": options.precision,
    }
    if options.soc_version:
        attrs["soc_version"] = options.soc_version
    if options.recorded:
        attrs["_recorded_options"] = [f"--{name}={value}" for name, value in sorted(options.recorded.items())]
    return attrs


def _transfers(graph: Graph) -> dict[str, AttrValue]:
    """Return how many TransData the model executes and what they move, if its formats have been refined."""
    names = ("_trans_data_count", "_trans_data_bytes", "_trans_data_weight_count")
    return {name: graph.attrs[name] for name in names if name in graph.attrs}


def _host(options: CompileOptions, *, is_needed: bool) -> dict[str, AttrValue]:
    """Return the attributes that tell what machine the model is for; static models have them only on demand."""
    if not (is_needed or options.host_env_os or options.host_env_cpu):
        return {}
    host = host_for(options.host_env_os, options.host_env_cpu)
    return {"host_env_os": host.os, "host_env_cpu": host.cpu}


def describe_io(graph: Graph) -> ModelIO:
    """Describe the inputs of ``graph`` by its Data nodes and its results by what they read."""
    inputs = tuple(TensorInfo.of(node.name, node.output_descs[0]) for node in graph.data_nodes())
    outputs = []
    for i, out in enumerate(graph.outputs):
        known = graph.output_names[i] if i < len(graph.output_names) else ""
        name = output_name(known, i, out.node.name, out.index)
        outputs.append(TensorInfo.of(name, out.desc))
    return ModelIO(inputs=inputs, outputs=tuple(outputs))


def output_name(known: str, position: int, producer: str, index: int) -> str:
    """Return the name under which an output is listed; ``known`` is its name in the user's model, if it has one."""
    if not known:
        return f"output_{position}_{producer}_{index}"
    return known if ":" in known else f"{known}:{index}"
