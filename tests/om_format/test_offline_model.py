"""Saving and loading: what is in the file, that it comes back, that equal models give equal bytes, hostile files."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ge.errors import ReportedError
from ge.graph import Graph, Tensor, TensorDesc
from ge.plan import Block, GraphPlan, Plan, Task
from ge.proto import ge_ir_pb2 as pb
from ge.proto import task_pb2 as tasks
from om_format import ModelIO, OfflineModel, load, weights
from om_format.header import HEADER_BYTES, ModelFileHeader
from om_format.offline_model import describe_io
from om_format.partitions import Block as FileBlock
from om_format.partitions import PartitionType, pack_table, read_blocks
from om_format.reader import open_model
from om_format.weights import WeightsPool
from tests.om_format.test_graph_def import description

P = PartitionType
Classifier = Callable[..., OfflineModel]


def reason_of(path: Path) -> str:
    """The reason of the E10041 that loading raises; it names the file."""
    with pytest.raises(ReportedError) as caught:
        load(path)
    assert caught.value.code == "E10041"
    assert str(path) in caught.value.message
    return str(caught.value.fields["reason"])


def parts(path: Path) -> tuple[ModelFileHeader, FileBlock, bytes]:
    data = path.read_bytes()
    header = ModelFileHeader.unpack(data, len(data), str(path))
    return header, read_blocks(data, header, str(path))[0], data


def assemble_file(contents: dict[PartitionType, bytes], **fields: int) -> bytes:
    """A file of these partitions, empty ones left out."""
    contents = {kind: data for kind, data in contents.items() if data}
    payload = pack_table([(kind, len(data)) for kind, data in contents.items()]) + b"".join(contents.values())
    return ModelFileHeader(**({"model_length": len(payload)} | fields)).pack() + payload


def test_a_model_is_shown_by_its_inputs_and_outputs(classifier: Classifier):
    model = classifier()
    n_nodes = len(list(model.graph))
    shown = f"<OfflineModel digits: (image float[1, 2, 4, 4]) -> (probability:0 float[1, 5]), {n_nodes} nodes>"
    assert repr(model) == shown


class TestFile:
    def test_partitions_and_header(self, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        header, block, data = parts(path)
        assert (header.name, header.platform_version, header.model_num, header.is_unknow_model) == (
            "digits",
            "0.1.0",
            1,
            0,
        )
        assert [p.type for p in block.partitions] == [P.MODEL_INOUT_INFO, P.MODEL_DEF, P.WEIGHTS_DATA, P.TASK_INFO]
        assert header.model_length == len(data) - HEADER_BYTES

    def test_weights_lie_in_the_pool(self, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        model = classifier()
        model.save(path)
        _, block, data = parts(path)
        weights = block.find(P.WEIGHTS_DATA)
        assert weights.start % 512 == 0
        pool = data[weights.start : weights.end]
        # conv/w 216 bytes, shape 16, dense/w 960, bias/1 = bias/2 20, packed 2
        offsets = {"conv/w": 512, "shape": 1024, "dense/w": 1536, "bias/1": 2560, "bias/2": 2560, "packed": 3072}
        assert len(pool) == 4096  # 3072 + 2 -> 3584, + 32 -> 4096
        definition = open_model(path).model_def()
        for op in definition.graph[0].op:
            if op.type != "Const":
                continue
            stored = op.attr["value"].t
            array = model.graph.find(op.name).attrs["value"].array
            expected = b"\xe1\x03" if op.name == "packed" else array.tobytes()
            assert not stored.data
            assert stored.desc.data_offset == offsets[op.name]
            assert pool[stored.desc.data_offset :][: stored.desc.weight_size] == expected

    def test_memory_offsets_and_tasks(self, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        file = open_model(path)
        ops = {op.name: op for op in file.model_def().graph[0].op}
        assert (list(ops["image"].output_i), list(ops["image"].input_i)) == ([0], [])
        assert (list(ops["conv"].output_i), list(ops["conv"].input_i)) == ([512], [0, -1])
        assert list(ops["conv/w"].output_i) == []
        assert (list(ops["dense"].workspace), list(ops["dense"].workspace_bytes)) == ([1024], [100])
        assert ops["relu"].output_desc[0].size == 192
        listed = file.task_list()
        assert [t.kernel.context.op_index for t in listed.task] == [
            ops[name].id for name in ("conv", "relu", "dense", "add", "softmax")
        ]
        assert [t.kernel.kernel_name for t in listed.task] == ["Conv2D", "Relu", "MatMulV2", "Add", "SoftmaxV2"]
        assert (listed.memory_size, listed.weight_size, listed.stream_num) == (1536, 4096, 1)

    def test_model_attributes(self, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        attr = open_model(path).model_def().attr
        integers = {"memory_size": 1536, "weight_size": 4096, "stream_num": 1, "event_num": 0, "label_num": 0}
        integers["zero_copy_memory_size"] = 148
        assert {name: attr[name].i for name in integers} == integers
        assert attr["soc_version"].s == b"Ascend310P3"
        assert list(attr["attr_model_out_nodes_name"].list.s) == [b"probability"]
        _, block, _ = parts(path)
        assert list(attr["om_info_list"].list.i) == [4096, 0, 0, block.size_of(P.TASK_INFO), 0]

    def test_a_dynamic_model_says_so(self, classifier: Classifier, tmp_path):
        model = classifier()
        graph_plan = model.plan.graphs["classifier"]
        model.plan = Plan({"classifier": GraphPlan(tasks=graph_plan.tasks)}, is_static=False)
        model.save(tmp_path / "net.om")
        assert parts(tmp_path / "net.om")[0].is_unknow_model == 1
        assert load(tmp_path / "net.om").plan == model.plan

    def test_ranges_of_inputs_come_back(self, tmp_path):
        graph = Graph("ranged")
        desc = TensorDesc([-1, 3])
        desc.shape_range = [(1, 8), (3, 3)]
        x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[desc])
        graph.add_node("NetOutput", "out", [x.output()], n_outputs=0)
        plan = Plan({"ranged": GraphPlan()}, is_static=False)
        OfflineModel(graph, {}, plan, describe_io(graph)).save(tmp_path / "net.om")
        again = load(tmp_path / "net.om")
        assert again.io.inputs[0].ranges == ((1, 8), (3, 3))
        assert again.graph.data_nodes()[0].output_descs[0].shape_range == [(1, 8), (3, 3)]

    @pytest.mark.parametrize(
        ("is_static", "stem", "path"),
        [
            (False, "o/net", "o/net_minios_arm.om"),
            (False, "o.om/net.om", "o.om/net_minios_arm.om.om"),
            (False, "net", "net_minios_arm.om"),
            (True, "o/net", "o/net.om"),
        ],
    )
    def test_the_name_of_a_dynamic_model_tells_its_machine(self, is_static: bool, stem: str, path: str):
        attrs = {"host_env_os": "minios", "host_env_cpu": "arm"}
        model = OfflineModel(Graph("g"), attrs, Plan(is_static=is_static), ModelIO())
        assert model.file_path(stem) == path

    def test_a_dynamic_model_is_for_its_machine_alone(self, classifier: Classifier, tmp_path):
        model = classifier()
        tasks = model.plan.graphs["classifier"].tasks
        model.plan = Plan({"classifier": GraphPlan(tasks=tasks)}, is_static=False)
        model.attrs |= {"host_env_os": "minios", "host_env_cpu": "arm"}
        model.save(tmp_path / "net.om")
        with pytest.raises(ReportedError, match=r"E19999(.|\n)*net\.om.*minios on arm"):
            load(tmp_path / "net.om")

    def test_a_model_without_weights_has_no_such_partition(self, tmp_path):
        graph = Graph("empty")
        x = graph.add_node("Data", "x", attrs={"index": 0}, output_descs=[TensorDesc([0])])
        graph.add_node("NetOutput", "out", [x.output()], n_outputs=0)
        plan = Plan({"empty": GraphPlan(blocks={("x", 0): Block(0, 0)})})
        OfflineModel(graph, {}, plan, describe_io(graph)).save(tmp_path / "net.om")
        assert [p.type for p in parts(tmp_path / "net.om")[1].partitions] == [
            P.MODEL_INOUT_INFO,
            P.MODEL_DEF,
            P.TASK_INFO,
        ]
        assert description(load(tmp_path / "net.om").graph) == description(graph)


class TestRoundTrip:
    def test_everything_comes_back(self, classifier: Classifier, tmp_path):
        model = classifier()
        model.save(tmp_path / "net.om")
        again = load(tmp_path / "net.om")
        assert description(again.graph) == description(model.graph)
        assert again.plan == model.plan
        assert again.io == model.io
        assert again.name == "digits"
        assert {k: v for k, v in again.attrs.items() if k in model.attrs} == model.attrs
        again.save(tmp_path / "again.om")
        assert (tmp_path / "again.om").read_bytes() == (tmp_path / "net.om").read_bytes()

    def test_constants_are_aligned_read_only_views_of_the_file(self, classifier: Classifier, tmp_path):
        classifier().save(tmp_path / "net.om")
        array = load(tmp_path / "net.om").graph.find("dense/w").attrs["value"].array
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous

    def test_bodies_and_their_plans(self, tmp_path):
        graph = Graph("root")
        cond = graph.add_node("Data", "cond", attrs={"index": 0}, output_descs=[TensorDesc([4])])
        call = graph.add_node("CallForTest", "call", [cond.output()], output_descs=[TensorDesc([4])])
        call.subgraphs = [("then_branch", "a"), ("else_branch", "b")]
        graph.add_node("NetOutput", "out", [call.output()], n_outputs=0)
        plan = Plan(
            {
                "root": GraphPlan(
                    [Task("call")],
                    {("cond", 0): Block(0, 16), ("call", 0): Block(512, 16)},
                    {"call": [Block(1024, 1024)]},
                    2048,
                    2048,
                    2048,
                )
            }
        )
        for name in "ab":
            body = Graph(name)
            x = body.add_node("Data", f"{name}/x", attrs={"index": 0}, output_descs=[TensorDesc([4])])
            k = body.add_const(f"{name}/k", Tensor.of(np.full(4, ord(name), np.float32)))
            y = body.add_node("Sub", f"{name}/y", [x.output(), k], output_descs=[TensorDesc([4])])
            body.add_node("NetOutput", f"{name}/out", [y.output()], n_outputs=0)
            graph.add_subgraph(body)
            plan.graphs[name] = GraphPlan(
                [Task(f"{name}/y")],
                {(f"{name}/y", 0): Block(512, 16)},
                arena_size=1024,
                bound=1024,
                naive_size=1024,
            )
        OfflineModel(graph, {}, plan, describe_io(graph)).save(tmp_path / "net.om")
        again = load(tmp_path / "net.om")
        assert description(again.graph) == description(graph)
        assert again.plan == plan

    def test_equal_models_give_equal_bytes_in_any_process(self, classifier: Classifier, tmp_path):
        script = (
            "import sys; from tests.om_format.conftest import build_classifier; build_classifier().save(sys.argv[1])"
        )
        root = Path(__file__).resolve().parents[2]
        for seed in ("0", "1", "77"):
            subprocess.run(
                [sys.executable, "-c", script, str(tmp_path / f"{seed}.om")],
                check=True,
                cwd=root,
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            )
        classifier().save(tmp_path / "here.om")
        contents = {path.read_bytes() for path in tmp_path.glob("*.om")}
        assert len(contents) == 1
        classifier(seed=1).save(tmp_path / "other.om")
        assert (tmp_path / "other.om").read_bytes() not in contents


class TestWeightsPool:
    def test_equal_bytes_share_an_offset(self):
        pool = WeightsPool()
        zeros = np.zeros(300, np.float32)
        assert pool.place(Tensor.of(zeros)) == 512
        assert pool.place(Tensor.of(zeros.view(np.int32).copy())) == 512
        assert pool.place(Tensor.of(zeros.reshape(3, 100).T)) == 512
        assert pool.place(Tensor.of(zeros.astype(np.float64))) == 2048
        assert pool.size == 512 + 1536 + 2560 + 512

    @pytest.mark.parametrize("place", [0, 3, 70_000, 149_999, -1])
    def test_one_differing_element_keeps_constants_apart(self, place, rng):
        array = rng.normal(size=300_000).astype(np.float32)
        other = array.copy()
        other[place] += 1
        pool = WeightsPool()
        assert pool.place(Tensor.of(array)) == 512
        assert pool.place(Tensor.of(other)) != 512
        assert pool.place(Tensor.of(other.copy())) == pool.place(Tensor.of(other))

    def test_nan_and_minus_zero_are_compared_by_their_bytes(self):
        pool = WeightsPool()
        nan = np.array([np.nan, 1], np.float32)
        assert pool.place(Tensor.of(nan)) == pool.place(Tensor.of(nan.copy()))
        assert pool.place(Tensor.of(np.array([0.0]))) != pool.place(Tensor.of(np.array([-0.0])))

    def test_many_that_look_alike_are_not_compared_with_each_other(self, monkeypatch):
        """They are zero wherever a look is cast. Equal ones are found before and behind the change of means."""
        compared = []
        monkeypatch.setattr(weights, "_equal", lambda a, b: compared.append(a) or np.array_equal(a.array, b.array))
        pool, offsets = WeightsPool(), []
        for i in [*range(1, 101), *range(1, 101, 7)]:
            array = np.zeros(2000, np.int32)
            array[600] = i
            offsets.append(pool.place(Tensor.of(array)))
        assert len(set(offsets)) == 100
        assert offsets[100:] == offsets[0:100:7]
        assert len(compared) < weights.MAX_COMPARED**2

    def test_what_stays_in_the_message(self):
        pool = WeightsPool()
        assert pool.place(Tensor.of(np.zeros((0, 3), np.float32))) is None
        assert pool.place(Tensor.of(np.array(["text"], object))) is None
        assert pool.size == 0

    def test_memory_does_not_grow_with_the_weights(self, tmp_path):
        """Saves 64 MB out of memory maps, some of them transposed, with a few MB of memory."""
        source = np.lib.format.open_memmap(tmp_path / "w.npy", "w+", np.float32, (16, 1024, 1024))
        source[:] = np.arange(16, dtype=np.float32)[:, None, None]
        source.flush()
        mapped = np.load(tmp_path / "w.npy", mmap_mode="r")
        graph = Graph("big")
        for i, matrix in enumerate(mapped):
            matrix = matrix.T if i % 2 else matrix
            graph.add_const(f"w{i}", Tensor.of(matrix))
        model = OfflineModel(graph, {}, Plan({"big": GraphPlan()}), ModelIO())
        model.save(tmp_path / "warm.om")
        tracemalloc.start()
        model.save(tmp_path / "big.om")
        again = load(tmp_path / "big.om")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20
        for i in range(16):
            assert np.array_equal(again.graph.find(f"w{i}").attrs["value"].array, np.full((1024, 1024), i, np.float32))


class TestRefusals:
    """Files that are whole but wrong; each change is made on the messages and written back."""

    def rewritten(self, model: OfflineModel, path: Path, change: Callable[..., None], **fields: int) -> Path:
        model.save(path)
        _, block, data = parts(path)
        contents = {p.type: data[p.start : p.end] for p in block.partitions}
        definition = pb.ModelDef.FromString(contents[P.MODEL_DEF])
        listed = tasks.ModelTaskDef.FromString(contents[P.TASK_INFO])
        ops = {op.name: op for op in definition.graph[0].op}
        change(definition, ops, listed, contents)
        contents[P.MODEL_DEF] = contents[P.MODEL_DEF] and definition.SerializeToString()
        contents[P.TASK_INFO] = listed.SerializeToString()
        path.write_bytes(assemble_file(contents, **fields))
        return path

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda m, o, t, c: c.update({P.MODEL_DEF: b""}), "no partition MODEL_DEF"),
            (lambda m, o, t, c: c.update({P.WEIGHTS_DATA: b""}), "of the weights, which have 0"),
            (lambda m, o, t, c: c.update({P.WEIGHTS_DATA: c[P.WEIGHTS_DATA][:1600]}), "takes the bytes 1536 to 2496"),
            (
                lambda m, o, t, c: c.update({P.MODEL_INOUT_INFO: b"\2\0\0\0"}),
                "8 bytes expected at offset 0, 4 are left",
            ),
            (lambda m, o, t, c: c.update({P.MODEL_INOUT_INFO: b""}), "describes 0 inputs, the graph has 1"),
            (lambda m, o, t, c: setattr(o["conv/w"].attr["value"].t.desc, "weight_size", 215), "takes 216 bytes, 215"),
            (lambda m, o, t, c: setattr(o["conv/w"].attr["value"].t.desc, "data_offset", -512), "-512"),
            (lambda m, o, t, c: setattr(o["conv/w"].attr["value"].t.desc, "weight_size", 1 << 62), "of the weights"),
            (lambda m, o, t, c: o["conv/w"].attr["value"].t.desc.shape.dim.insert(0, 1), "do not describe"),
            (lambda m, o, t, c: setattr(o["relu"], "type", "Conv2D"), "relu (Conv2D): attribute strides must be"),
            (lambda m, o, t, c: setattr(o["conv"].attr["strides"], "s", b"a"), "kind 'I', it is str 'a'"),
            (lambda m, o, t, c: setattr(o["image"].attr["index"], "s", b"a"), "kind 'i', it is str 'a'"),
            (lambda m, o, t, c: o["add"].input.__setitem__(0, ""), "required input x1 is not connected"),
            (lambda m, o, t, c: o["relu"].input.__setitem__(0, "relu:0"), "cycle"),
            (lambda m, o, t, c: o["relu"].output_desc[0].shape.dim.__setitem__(0, 7), "input 0 is"),
            (lambda m, o, t, c: setattr(o["relu"], "id", 7), "relu must have id 3, has 7"),
            (lambda m, o, t, c: o["conv"].output_i.append(0), "has 2 memory offsets of outputs, 1 are expected"),
            (lambda m, o, t, c: o["dense"].workspace.append(0), "has 2 workspaces, 1 are expected"),
            (lambda m, o, t, c: o["conv"].output_i.__setitem__(0, -2), "impossible place -2"),
            (lambda m, o, t, c: o["conv"].output_i.__setitem__(0, 1 << 40), "the arena has 1536"),
            (lambda m, o, t, c: setattr(o["conv"].output_desc[0], "size", 100), "100 bytes"),
            (lambda m, o, t, c: o["softmax"].output_i.__setitem__(0, 0), "overlap"),
            (lambda m, o, t, c: setattr(m.graph[0].attr["_arena_size"], "i", -5), "_arena_size must be a size"),
            (lambda m, o, t, c: setattr(t.task[0].kernel.context, "op_index", 99), "task 0 is for node 99"),
            (lambda m, o, t, c: setattr(t.task[0], "type", 6), "task 0 is of the kind 6"),
            (lambda m, o, t, c: setattr(t.task[0], "stream_id", 4), "task 0 runs on stream 4"),
            (lambda m, o, t, c: t.task.pop(), "softmax"),
            (lambda m, o, t, c: t.task.add().CopyFrom(t.task[0]), "conv"),
            (lambda m, o, t, c: t.task.reverse(), "before"),
        ],
    )
    def test_faults_are_named(self, change, reason, classifier: Classifier, tmp_path):
        path = self.rewritten(classifier(), tmp_path / "net.om", change)
        assert reason in reason_of(path)

    def test_rewriting_alone_changes_nothing(self, classifier: Classifier, tmp_path):
        path = self.rewritten(classifier(), tmp_path / "net.om", lambda *_: None)
        assert description(load(path).graph) == description(classifier().graph)

    def test_an_unknown_operator_is_left_to_the_simulator(self, classifier: Classifier, tmp_path):
        path = self.rewritten(
            classifier(), tmp_path / "net.om", lambda m, o, t, c: setattr(o["softmax"], "type", "FromTheFuture")
        )
        assert load(path).graph.find("softmax").type == "FromTheFuture"

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [({"modeltype": 3}, "a flow of models"), ({"model_num": 2}, "partition table 1 should start")],
    )
    def test_other_kinds_of_files(self, fields, reason, classifier: Classifier, tmp_path):
        path = self.rewritten(classifier(), tmp_path / "net.om", lambda *_: None, **fields)
        assert reason in reason_of(path)

    @pytest.mark.parametrize("kind", [P.MODEL_DEF, P.TASK_INFO])
    def test_a_message_that_cannot_be_parsed(self, kind, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        classifier().save(path)
        _, block, data = parts(path)
        contents = {p.type: data[p.start : p.end] for p in block.partitions} | {kind: b"\xff" * 40}
        path.write_bytes(assemble_file(contents))
        assert f"the partition {kind.name} is not a" in reason_of(path)

    def test_files_that_cannot_be_opened(self, tmp_path):
        assert "No such file" in reason_of(tmp_path / "missing.om")
        assert "regular file" in reason_of(Path("/dev/null"))
        (tmp_path / "empty.om").touch()
        assert "is empty" in reason_of(tmp_path / "empty.om")
        assert "cannot be read" in reason_of(tmp_path)

    def test_an_old_file_survives_a_failed_save(self, classifier: Classifier, tmp_path):
        path = tmp_path / "net.om"
        path.write_bytes(b"old")
        model = classifier()
        model.graph.find("dense/w").attrs["value"].array = None
        with pytest.raises(AttributeError):
            model.save(path)
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["net.om"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    from tests.om_format.conftest import build_classifier

    path = tmp_path_factory.mktemp("saved") / "net.om"
    build_classifier().save(path)
    return path.read_bytes()


def load_or_refuse(data: bytes, path: Path) -> None:
    """Load the bytes as a file; E10041 is the only fault that may come out."""
    path.write_bytes(data)
    try:
        load(path)
    except ReportedError as error:
        if error.code != "E10041":
            raise


class TestHostileFiles:
    @given(data=st.data())
    def test_cut_files(self, data, saved, tmp_path_factory):
        length = data.draw(st.integers(0, len(saved)))
        load_or_refuse(saved[:length], tmp_path_factory.getbasetemp() / "cut.om")

    @given(data=st.data())
    def test_overwritten_bytes(self, data, saved, tmp_path_factory):
        content = bytearray(saved)
        for _ in range(data.draw(st.integers(1, 8))):
            at = data.draw(st.integers(0, len(content) - 1))
            new = data.draw(st.binary(min_size=1, max_size=6))
            content[at : at + len(new)] = new[: len(content) - at]
        load_or_refuse(bytes(content), tmp_path_factory.getbasetemp() / "changed.om")

    @given(data=st.data())
    def test_random_messages_in_a_sound_container(self, data, saved, tmp_path_factory):
        header = ModelFileHeader.unpack(saved, len(saved), "net.om")
        (block,) = read_blocks(saved, header, "net.om")
        contents = {p.type: bytearray(saved[p.start : p.end]) for p in block.partitions}
        for kind in data.draw(st.lists(st.sampled_from(list(contents)), min_size=1, max_size=3)):
            part = contents[kind]
            at = data.draw(st.integers(0, len(part) - 1))
            cut = data.draw(st.integers(0, 12))
            part[at : at + cut] = data.draw(st.binary(max_size=12))
        file = assemble_file({kind: bytes(part) for kind, part in contents.items()})
        load_or_refuse(file, tmp_path_factory.getbasetemp() / "random.om")

    @given(data=st.binary(max_size=300))
    def test_random_bytes(self, data, tmp_path_factory):
        load_or_refuse(data, tmp_path_factory.getbasetemp() / "bytes.om")
