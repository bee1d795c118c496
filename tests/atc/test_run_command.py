"""``om-run`` around a session: arguments, files, order of runs, summary, errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atc import run_command
from atc.lexer import lex
from atc.run_command import main, run
from atc.run_options import RUN_OPTIONS, run_options
from ge.errors import ReportedError
from simulator import Overflow


@dataclass(frozen=True)
class Tensor:
    """An input or output as a session describes it."""

    name: str
    shape: list[int]
    datatype: np.dtype[Any]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) * self.datatype.itemsize


@dataclass
class Times:
    exec_time_list: list[float] = field(default_factory=list)


class SumSession:
    """Adds its inputs; run k takes k milliseconds."""

    is_dynamic = False
    dump_folder = None

    def __init__(self, inputs: int, shape: list[int]) -> None:
        self.inputs = [Tensor(f"in{i}", shape, np.dtype(np.float32)) for i in range(inputs)]
        self.times = Times()
        self.feeds: list[list[np.ndarray]] = []
        self.found: list[Overflow] = []

    def get_inputs(self) -> list[Tensor]:
        return self.inputs

    def get_outputs(self) -> list[Tensor]:
        return [Tensor("sum", self.inputs[0].shape, np.dtype(np.float32))]

    def kernels(self) -> list[tuple[str, str, str]]:
        return [("add", "Add", "numpy"), ("odd", "Odd", "reference")]

    def summary(self) -> Times:
        return self.times

    def overflows(self) -> list[Overflow]:
        return self.found

    def infer(self, feeds: Sequence[np.ndarray], /) -> list[np.ndarray]:
        self.feeds.append([np.array(feed) for feed in feeds])
        self.times.exec_time_list.append(float(len(self.feeds)))
        return [np.sum(feeds, axis=0)]

    def without_dump(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check_dump_space(self, runs: int) -> None:
        pass


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.om").touch()
    return tmp_path


def om_run(session: SumSession, *arguments: str) -> None:
    values = lex(["--model=m.om", *arguments], RUN_OPTIONS)
    run(run_options(values), values, lambda options: session)


def save(*numbers: float, shape: tuple[int, ...] = (1, 2)) -> list[str]:
    """Save constant arrays under their numbers and return the file names."""
    for number in numbers:
        np.save(f"{number}.npy", np.full(shape, number, np.float32))
    return [f"{number}.npy" for number in numbers]


def summary_of(name: str) -> dict[str, Any]:
    return json.loads(Path("out", f"{name}_summary.json").read_text())


def test_overflows_are_shown_and_kept_in_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    session = SumSession(1, [1, 2])
    session.found = [Overflow("mul", "Mul", infinite=3), Overflow("round", "Cast", saturated=2)]
    session.found += [Overflow(f"more{k}", "Add", infinite=1) for k in range(10)]
    om_run(session, "--output=out", "--output_dirname=o")
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("overflow")]
    assert shown[0] == "overflow in mul (Mul): 3 finite elements became infinite"
    assert shown[1] == "overflow in round (Cast): 2 elements had no place among the integers"
    assert len(shown) == 11
    assert shown[-1] == "overflow in 2 more nodes"
    kept = summary_of("o")["overflow"]
    assert kept["mul"] == {"type": "Mul", "infinite": 3, "saturated": 0}
    assert len(kept) == 12


def test_one_input_gives_one_file_with_equal_bytes_on_every_run() -> None:
    save(3)
    contents = []
    for name in ("a", "b"):
        om_run(SumSession(1, [1, 2]), "--input=3.npy", "--output=out", f"--output_dirname={name}")
        contents.append(Path("out", name, "3_0.bin").read_bytes())
    assert contents == [np.full((1, 2), 3, np.float32).tobytes()] * 2


def test_files_are_paired_by_chunks() -> None:
    session = SumSession(2, [1, 2])
    om_run(session, f"--input={','.join(save(1, 2, 10, 20))}", "--output=out", "--output_dirname=r", "--outfmt=NPY")
    assert np.load("out/r/1_0.npy")[0, 0] == 11
    assert np.load("out/r/2_0.npy")[0, 0] == 22
    assert [info["infiles"] for info in summary_of("r")["filesinfo"].values()] == [
        ["1.npy", "10.npy"],
        ["2.npy", "20.npy"],
    ]


def test_six_samples_in_batches_of_four_are_two_runs_and_six_results() -> None:
    session = SumSession(1, [4, 2])
    files = save(*range(6))
    om_run(
        session, f"--input={','.join(files)}", "--output=out", "--output_dirname=r", "--outfmt=TXT", "--warmup_count=0"
    )
    assert len(session.feeds) == 2
    assert sorted(path.name for path in Path("out/r").iterdir()) == [f"{i}_0.txt" for i in range(6)]
    assert [Path(f"out/r/{i}_0.txt").read_text() for i in range(6)] == [f"{i} {i}\n" for i in range(6)]
    assert len(summary_of("r")["filesinfo"]) == 6


def test_directory_input_runs_nine_before_ten() -> None:
    Path("d").mkdir()
    for number in (10, 9):
        np.full(2, number, np.float32).tofile(f"d/{number}.bin")
    session = SumSession(1, [1, 2])
    om_run(session, "--input=d", "--warmup_count=0")
    assert [feeds[0][0, 0] for feeds in session.feeds] == [9, 10]


def test_loop_and_warmup(capsys: pytest.CaptureFixture[str]) -> None:
    session = SumSession(1, [2, 2])
    om_run(session, "--loop=5", "--warmup_count=2", "--output=out", "--output_dirname=r")
    content = summary_of("r")
    assert len(session.feeds) == 7
    # runs 3 to 7 are measured, and run k takes k milliseconds
    assert content["npu_compute_time_list"] == [3, 4, 5, 6, 7]
    assert content["NPU_compute_time"]["count"] == 5
    assert content["throughput"] == 1000 * 2 / 5
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("throughput"))
    assert float(row.split()[-1]) == 400


def test_batchsize_changes_the_throughput_only() -> None:
    om_run(SumSession(1, [2, 2]), "--batchsize=10", "--warmup_count=0", "--output=out", "--output_dirname=r")
    assert summary_of("r")["throughput"] == 10_000


def test_every_sample_is_looped_but_warmed_up_once() -> None:
    session = SumSession(1, [1, 2])
    om_run(session, f"--input={','.join(save(1, 2))}", "--loop=2", "--warmup_count=1")
    assert [feeds[0][0, 0] for feeds in session.feeds] == [1, 1, 1, 2, 2]


def test_random_inputs_are_repeatable_and_their_seed_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sessions = [SumSession(2, [3, 4]), SumSession(2, [3, 4])]
    for session in sessions:
        om_run(session, "--pure_data_type=random")
    for one, other in zip(sessions[0].feeds, sessions[1].feeds, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.isfinite(one).all()
        assert np.std(one) > 0.1
    assert "seed" in capsys.readouterr().out


def test_made_up_zeros_and_their_result_file(capsys: pytest.CaptureFixture[str]) -> None:
    session = SumSession(1, [1, 2])
    om_run(session, "--output=out")
    assert not np.any(session.feeds)
    (result,) = Path("out").glob("*/pure_infer_data_0.bin")
    assert result.parent.name[4] == result.parent.name[7] == "_"
    assert (result.parent.parent / f"{result.parent.name}_summary.json").exists()
    assert str(result.parent) in capsys.readouterr().out


def test_nothing_is_saved_without_output() -> None:
    om_run(SumSession(1, [1, 2]))
    assert sorted(path.name for path in Path().iterdir()) == ["m.om"]


def test_debug_shows_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    om_run(SumSession(1, [1, 2]), "--debug")
    text = capsys.readouterr().out
    assert "input 0: in0 float32 [1, 2], 8 bytes" in text
    assert "output 0: sum float32 [1, 2], 8 bytes" in text
    assert "1 of them with the slow reference kernel" in text
    assert "odd (Odd)" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--input=half.bin"], "R1024"),
        (["--input=wide.npy"], "R1025"),
        (["--input=1.npy,d"], "R1028"),
        (["--input=1.npy,d/1.npy", "--output=out"], "R1041"),
        (["--output=m.om"], "R1040"),
        (["--input=missing.npy"], "R1023"),
        (["--input=1.npy,"], "R1001"),
        (["--loop=0"], "R1001"),
        (["--loop=-1"], "R1001"),
        (["--warmup_count=x"], "R1001"),
        (["--batchsize=0"], "R1001"),
        (["--threads=0"], "R1001"),
        (["--device=256"], "R1001"),
        (["--device=0,1"], "R1005"),
        (["--output_dirname=r"], "R1004"),
        (["--output=out", "--output_dirname=../r"], "R1001"),
        (["--output=out", "--output_dirname=/r"], "R1001"),
        (["--output=out", "--output_dirname=."], "R1001"),
        (["--output=out", "--output_dirname=a\0b"], "R1001"),
        (["--output=" + "x" * 300], "R1040"),
        (["--output=x\0"], "R1040"),
        (["--batchsize=99999999999"], "R1001"),
        (["--input=1.npy", "--pure_data_type=random"], "R1006"),
        (["--dump=true"], "R1004"),
        (["--dump", "--output="], "R1004"),
        (["--dump_layer=conv1", "--output=out"], "R1004"),
        (["--dump_mode=input", "--dump=0", "--output=out"], "R1004"),
        (["--dump_extra=1", "--output=out"], "R1004"),
        (["--dump", "--dump_mode=both", "--output=out"], "R1001"),
        (["--dump", "--dump_layer=a,,b", "--output=out"], "R1001"),
        (["--dump=1", "--profiler=1", "--output=out"], "R1006"),
        (["--profiler=1", "--output=out"], "R1005"),
        (["--dymBatch=4"], "R1005"),
        (["--run_mode=files"], "R1005"),
    ],
)
def test_faults(arguments: list[str], code: str) -> None:
    save(1)
    Path("d").mkdir()
    np.save("d/1.npy", np.zeros((1, 2), np.float32))
    np.zeros(1, np.float32).tofile("half.bin")
    np.save("wide.npy", np.zeros((1, 1), np.int64))
    session = SumSession(1, [1, 2])
    with pytest.raises(ReportedError) as error:
        om_run(session, *arguments)
    assert error.value.code == code
    assert session.feeds == [], "faults are found before the model runs"
    assert not Path("out").exists()


def test_directories_and_inputs_must_match_in_number() -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
    session = SumSession(3, [1, 2])
    with pytest.raises(ReportedError) as error:
        om_run(session, "--input=a,b")
    assert error.value.code == "R1021"
    assert session.feeds == []


def test_output_that_cannot_be_divided() -> None:
    class Mean(SumSession):
        def get_outputs(self) -> list[Tensor]:
            return [Tensor("mean", [1, 2], np.dtype(np.float32))]

    session = Mean(1, [4, 2])
    with pytest.raises(ReportedError) as error:
        om_run(session, f"--input={','.join(save(1, 2))}", "--output=out")
    assert error.value.code == "R1042"
    assert session.feeds == []


# -- the whole command -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--nope"], "R1003"),
        ([], "R1002"),
        (["--model=missing.om"], "R1010"),
        (["--model=."], "R1010"),
        (["--model=net.onnx"], "compiled with atc first"),
        (["--model=m.om"], "m.om"),
        (["stray"], "R1003"),
    ],
)
def test_command_reports_on_stderr_and_returns_1(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert part in output.err
    assert "Solution: " in output.err
    assert "Traceback" not in output.err


def test_fault_of_the_program_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(run_command, "open_session", broken)
    assert main(["--model=m.om"]) == 1
    text = capsys.readouterr().err
    assert "R1999: Internal Error!" in text
    assert "ZeroDivisionError in broken: by nothing" in text
    assert "Traceback" not in text
    assert main(["--model=m.om", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "open_session", interrupted)
    assert main(["--model=m.om"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "--warmup_count" in text
    assert "-wcount" in text


def test_withdrawn_option_is_ignored_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--infer_queue_count=3"])
    assert "WARNING: --infer_queue_count" in capsys.readouterr().err
