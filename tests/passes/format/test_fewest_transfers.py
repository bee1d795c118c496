"""No choice of columns needs fewer TransData: small random graphs and known networks against a minimum cut."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import onnx
import pytest

from ge.graph import Format, Graph, Node
from ge.ops.format_columns import FormatColumn, format_columns, is_heavy
from ge.options import CompileOptions, Environment
from ge.session import CompileSession
from ge.tensor_memory import is_constant
from ge.text import parse_graph
from models.materialise_light import light_model
from parsers.onnx import parse
from passes.driver import Driver
from passes.format.minimum_cut import ENDLESS, SINK, SOURCE, Network
from passes.pipeline import finish, infer, optimize, prepare, refine_formats, refine_precision
from passes.prepare.remove_dead_nodes import RemoveDeadNodes
from tests.passes.format import fewest_transfers as oracle
from tests.passes.format.fewest_transfers import fewest_transfers
from tests.passes.format.refined import ALL, ALL_CHOOSING, CHOOSING, layouts, refined, run, session, settle, trans_data

CONV = 'strides=[1,1,1,1], pads=[0,0,0,0], data_format="NCHW"'
POOL = "ksize=[1,1,1,1], strides=[1,1,1,1]"
IMAGE = "f16[1,16,8,8]@NCHW"

_OPERATORS = {
    "convolution": f"Conv2D(%{{0}}, %filter) {{{{{CONV}}}}}",
    "activation": "Relu(%{0})",
    "sum": "Add(%{0}, %{1})",
    "sum of three": "AddN(%{0}, %{1}, %{2}) {{N=3}}",
    "factor": "Mul(%{0}, %factor)",
    "pooling": f"MaxPoolV3(%{{0}}) {{{{{POOL}}}}}",
    "softmax": "SoftmaxV2(%{0}) {{axes=[3]}}",
    "origin only": "ReverseV2(%{0}, %axis)",
    "origin only too": "Cumsum(%{0}, %axis)",
    "two results": "SplitVD(%{0}) {{size_splits=[8], split_dim=2, num_split=1}}",
    "mean": "ReduceMeanD(%{0}) {{axes=[0], keep_dims=true}}",
}


def random_graph(random: Random, sizes: range) -> Graph:
    """A graph of operators that keep the shape, some of which are heavy, some of which know the origin view only."""
    made, lines = ["x"], []
    for place in range(random.choice(sizes)):
        operator = _OPERATORS[random.choice(list(_OPERATORS))]
        recent, *others = random.choice(made[-4:]), random.choice(made), random.choice(made)
        lines.append(f"%t{place} = {operator.format(recent, *others)}")
        made.append(f"t{place}")
    results = random.sample(made[1:], min(len(made) - 1, random.randint(1, 2)))
    constants = {"f": np.ones((16, 16, 1, 1), np.float16)}
    graph = parse_graph(
        f"""graph g(%x: {IMAGE}) {{
  %filter = Const {{value=f16[16,16,1,1] sha256:f}} -> f16[16,16,1,1]@ND
  %factor = Const {{value=f16[1,16,1,1]{{{",".join(["2"] * 16)}}}}} -> f16[1,16,1,1]@NCHW
  %axis = Const {{value=i32[1]{{3}}}} -> i32[1]@ND
  {" ".join(lines)}
  return {", ".join("%" + result for result in results)}
}}""",
        constants,
    )
    settle(graph)
    RemoveDeadNodes().run(graph, session())
    return graph


@pytest.mark.parametrize("seed", range(20))
def test_the_oracle_finds_what_trying_everything_finds(seed: int) -> None:
    graph = random_graph(Random(seed), range(2, 7))
    assert fewest_transfers(graph) == min(map(sum, _costs_of_all_choices(graph)))


def _costs_of_all_choices(graph: Graph) -> list[list[bool]]:
    nodes = list(graph)
    ways = []
    for chosen in product(*(_possible(node) for node in nodes)):
        column = dict(zip(nodes, chosen, strict=True))
        ways.append([_is_read_otherwise(node, column) for node in nodes if not is_constant(node) and node.output_descs])
    return ways


def _possible(node: Node) -> list[FormatColumn]:
    columns = [c for c in format_columns(node) if Format.FORMAT_FRACTAL_NZ not in (*c.inputs, *c.outputs)]
    if is_heavy(node):
        return columns[-1:]
    return [c for c in columns if not c.is_origin_only] or columns


def _is_read_otherwise(node: Node, column: dict[Node, FormatColumn]) -> bool:
    wanted = {column[reader.node].inputs[reader.index] for reader in node.consumers(0)}
    return bool(wanted - {column[node].outputs[0]})


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_need_no_more_transfers_than_the_oracle(seed: int) -> None:
    graph = random_graph(Random(1000 + seed), range(3, 25))
    least = fewest_transfers(graph)
    run(graph, ALL)
    assert len(trans_data(graph)) == least


def test_spreading_alone_needs_more() -> None:
    """So the oracle can tell: of these graphs some are better than what the first two passes find."""
    found = []
    for seed in range(40):
        graph = random_graph(Random(1000 + seed), range(3, 25))
        least = fewest_transfers(graph)
        run(graph, [*CHOOSING, *ALL[-2:]])
        found.append(len(trans_data(graph)) - least)
    assert min(found) == 0
    assert max(found) > 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %r = Relu(%c)\n  return %c, %r",
            {"r": "NCHW -> NCHW"},
            id="a-result-and-what-is-made-of-it",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %r = Relu(%c)\n  return %r",
            {"r": "NC1HWC0 -> NC1HWC0"},
            id="no-gain",
        ),
        pytest.param(
            f"%p = MaxPoolV3(%x) {{{POOL}}} %r = Relu(%p) %y = MaxPoolV3(%r) {{{POOL}}}\n  return %y",
            {"r": "NC1HWC0 -> NC1HWC0"},
            id="between-poolings",
        ),
        pytest.param(
            f"%c = Conv2D(%x, %w) {{{CONV}}} %s = Neg(%z) %t = Neg(%v) %a = AddN(%c, %z, %v) {{N=3}} %f = Flatten(%a)"
            "\n  return %f, %s, %t",
            {"a": "NCHW NCHW NCHW -> NCHW", "s": "NCHW -> NCHW"},
            id="one-against-two",
        ),
    ],
)
def test_nodes_change_sides_where_that_saves_a_transfer(body: str, expected: dict[str, str]) -> None:
    inputs = f"%x: {IMAGE}, %w: f16[16,16,1,1]@ND, %z: {IMAGE}, %v: {IMAGE}"
    found = layouts(refined(f"graph g({inputs}) {{\n{body}\n}}", ALL_CHOOSING))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("seed", range(20))
def test_cuts_of_small_networks(seed: int) -> None:
    random = Random(seed)
    size = random.randint(2, 8)
    edges = [
        (random.randrange(size), random.randrange(size), random.choice([1, 1, 2, ENDLESS])) for _ in range(2 * size)
    ]
    edges = [edge for edge in edges if edge[:2] != (SOURCE, SINK)]
    network, other = Network(), oracle.Network()
    for net in (network, other):
        for _ in range(size - 2):
            net.vertex()
        for edge in edges:
            net.join(*edge)
    price = {}
    for others in product((False, True), repeat=size - 2):
        on_sink = dict(enumerate((False, True, *others)))
        price[on_sink_side(on_sink)] = sum(c for a, b, c in edges if not on_sink[a] and on_sink[b])
    least = min(price.values())
    if least < ENDLESS:
        found, side = network.cut()
        assert found == least == other.min_cut()
        assert price[frozenset(side)] == least
        assert len(side) == min(len(where) for where, paid in price.items() if paid == least)


def on_sink_side(where: dict[int, bool]) -> frozenset[int]:
    return frozenset(vertex for vertex, is_there in where.items() if is_there)


# -- known networks ----------------------------------------------------------------------------------------------------
def network_graph(model: onnx.ModelProto) -> tuple[Graph, Driver]:
    """A model in its own precision, before formats are chosen."""
    options = CompileOptions(soc_version="Ascend310P3", precision_mode_v2="origin", format_refinement=True)
    current = CompileSession(options, Environment())
    graph, driver = parse(model, current), Driver(current)
    driver.run(graph, [*prepare(), *infer(), *optimize(), *refine_precision()])
    return graph, driver


@pytest.mark.parametrize(
    "name",
    [
        *("inception_v1", "resnet50", "shufflenet", "squeezenet", "bvlc_alexnet", "vgg19"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("densenet121", "inception_v2")),
    ],
)
def test_networks_need_no_more_transfers_than_the_oracle(name: str) -> None:
    graph, driver = network_graph(light_model(f"light_{name}"))
    least = fewest_transfers(graph)
    driver.run(graph, [*refine_formats(), *finish()])
    assert graph.attrs["_trans_data_count"] <= least
    running = [line for line in trans_data(graph) if "*" not in line]
    assert len(running) == graph.attrs["_trans_data_count"]


def test_light_resnet50_is_in_blocks_from_the_first_convolution_to_the_pooling() -> None:
    graph, driver = network_graph(light_model("light_resnet50"))
    driver.run(graph, [*refine_formats(), *finish()])
    order = [node for node in graph.topological_order() if not is_constant(node)]
    types = [node.type for node in order]
    first, pooling = types.index("Conv2D"), types.index("AvgPoolV2")
    assert {node.output_descs[0].format for node in order[first : pooling + 1]} == {Format.FORMAT_NC1HWC0}
    assert set(types[first : pooling + 1]) == {"Conv2D", "Relu", "AccumulateNV2", "MaxPoolV3", "AvgPoolV2"}
    assert graph.attrs["_trans_data_count"] == 2
    # an image in, padded from 3 to 16 channels, and 2048 averages out
    assert graph.attrs["_trans_data_bytes"] == 4 * (3 + 16) * 224 * 224 + 4 * 2 * 2048
