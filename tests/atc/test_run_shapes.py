"""``om-run`` on a model with open dimensions: where shapes come from, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atc.lexer import lex
from atc.run_command import run
from atc.run_options import RUN_OPTIONS, run_options
from ge.errors import ReportedError
from simulator import Overflow


@dataclass(frozen=True)
class Tensor:
    """An input or output as a session describes it."""

    name: str
    shape: list[int]
    datatype: np.dtype[Any]
    limits: list[tuple[int, int]]

    @property
    def size(self) -> int:
        return max(prod(self.shape), 0) * self.datatype.itemsize


@dataclass
class Times:
    exec_time_list: list[float] = field(default_factory=list)


class Doubling:
    """Gives back twice its first input [1~4, any], which the second one [2] does not change."""

    is_dynamic = True
    dump_folder = None

    def __init__(self) -> None:
        f32 = np.dtype(np.float32)
        self.inputs = [Tensor("x", [-1, -1], f32, [(1, 4), (0, -1)]), Tensor("k", [2], f32, [(2, 2)])]
        self.times = Times()
        self.shapes: list[tuple[int, ...]] = []

    def get_inputs(self) -> list[Tensor]:
        return self.inputs

    def get_outputs(self) -> list[Tensor]:
        return [Tensor("y", [-1, -1], np.dtype(np.float32), [(0, -1), (0, -1)])]

    def kernels(self) -> list[tuple[str, str, str]]:
        return [("double", "Add", "")]

    def summary(self) -> Times:
        return self.times

    def overflows(self) -> list[Overflow]:
        return []

    def without_dump(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check_dump_space(self, runs: int) -> None:
        pass

    def infer(self, feeds: Sequence[np.ndarray], /) -> list[np.ndarray]:
        self.shapes.append(feeds[0].shape)
        assert feeds[1].shape == (2,)
        self.times.exec_time_list.append(1.0)
        return [feeds[0] * 2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.om").touch()
    np.save("k.npy", np.zeros(2, np.float32))
    return tmp_path


def om_run(*arguments: str, session: Any = None) -> Any:
    session = Doubling() if session is None else session
    values = lex(["--model=m.om", "--warmup_count=0", *arguments], RUN_OPTIONS)
    run(run_options(values), values, lambda options: session)
    return session


def save(name: str, *shape: int) -> str:
    np.save(name, np.arange(prod(shape), dtype=np.float32).reshape(shape))
    return name


def test_given_shapes_are_those_of_made_up_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert om_run("--dymShape=x:3,5;k:2").shapes == [(3, 5)]
    assert "1000*batchsize.mean(3)/" in capsys.readouterr().out


def test_inputs_with_a_fixed_shape_need_not_be_named() -> None:
    assert om_run("--ds=x:2,0").shapes == [(2, 0)]


def test_given_shapes_are_checked_against_files() -> None:
    files = f"--input={save('a.npy', 2, 3)},k.npy"
    assert om_run("--dymShape=x:2,3", files).shapes == [(2, 3)]
    np.arange(6, dtype=np.float32).tofile("a.bin")
    assert om_run("--dymShape=x:2,3", "--input=a.bin,k.npy").shapes == [(2, 3)]
    with pytest.raises(ReportedError, match=r"R1026.*\[3, 2\].*a\.npy.*\[2, 3\]"):
        om_run("--dymShape=x:3,2", files)


def test_several_files_fill_a_batch_of_the_given_shape() -> None:
    files = [save("a.npy", 1, 3), save("b.npy", 1, 3)]
    np.save("k2.npy", np.zeros(1, np.float32))
    session = om_run("--dymShape=x:2,3", f"--input={','.join(files)},k2.npy,k2.npy", "--output=out", "--od=r")
    assert session.shapes == [(2, 3)]
    assert sorted(path.name for path in Path("out/r").iterdir()) == ["a_0.bin", "b_0.bin"]


def test_files_may_bring_their_shapes() -> None:
    files = [save("a.npy", 1, 3), save("b.npy", 4, 2), "k.npy", "k.npy"]
    given = ("--auto_set_dymshape_mode=true", f"--input={','.join(files)}")
    session = om_run(*given, "--output=out", "--od=r", "--outfmt=NPY")
    assert session.shapes == [(1, 3), (4, 2)]
    np.testing.assert_array_equal(np.load("out/r/b_0.npy"), np.load("b.npy") * 2)


def test_ranges_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    session = om_run("--dymShape_range=x:1-4,2~4~2;k:2", "--output=out", "--od=r", "--loop=2")
    assert session.shapes == [shape for shape in [(1, 2), (1, 4), (4, 2), (4, 4)] for _ in range(2)]
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("Shapes: ")] == [
        f"Shapes: x:{a},{b};k:2" for a, b in ((1, 2), (1, 4), (4, 2), (4, 4))
    ]
    assert Path("out/r/dymshape_3/pure_infer_data_0.bin").stat().st_size == 64
    assert json.loads(Path("out/r/dymshape_3_summary.json").read_text())["NPU_compute_time"]["count"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        ([], "R1034", ["[x]", "[1~4,-1]", "--dymShape", "--auto_set_dymshape_mode"]),
        (["--input=a.npy,k.npy"], "R1034", ["[x]"]),
        (["--dymShape=k:2"], "R1034", ["[x]"]),
        (["--dymShape=x:5,1"], "R1035", ["[x]", "[5, 1]", "[1~4,-1]", "dimension 0 is 5, 1 to 4"]),
        (["--dymShape=x:0,1"], "R1035", ["dimension 0 is 0"]),
        (["--dymShape=x:1,9223372036854775807"], "R1035", ["[x]", "[1, 9223372036854775807]", "no memory can hold it"]),
        (["--dymShape=x:4,17592186044416"], "R1062", ["281474976710664 bytes", "x float32[4, 17592186044416]"]),
        (["--dymShape=x:1"], "R1035", ["it has 1 dimensions, 2"]),
        (["--dymShape=x:1,1;k:3"], "R1035", ["[k]", "dimension 0 is 3, 2 is expected"]),
        (["--dymShape=x:1,1;z:3"], "R1032", ["[z]", "x, k"]),
        (["--dymShape=x"], "R1001", ["--dymShape"]),
        (["--dymShape_range=x:4~5,1"], "R1035", ["[5, 1]"]),
        (["--dymShape=x:1,1", "--dymShape_range=x:1,1"], "R1006", ["--dymShape_range"]),
        (["--dymShape=x:1,1", "--asdsm=1", "--input=a.npy,k.npy"], "R1006", ["--auto_set_dymshape_mode"]),
        (["--dymShape_range=x:1,1", "--input=a.npy,k.npy"], "R1006", ["--input"]),
        (["--auto_set_dymshape_mode=true"], "R1004", ["--input"]),
        (["--asdsm=1", "--input=a.bin,k.npy"], "R1023", ["a.bin", "--auto_set_dymshape_mode"]),
        (["--asdsm=1", "--input=long.npy,k.npy"], "R1035", ["long.npy", "[x]", "[5, 1]"]),
        (["--asdsm=1", "--input=wide.npy,k.npy"], "R1025", ["wide.npy"]),
        (["--outputSize=0"], "R1001", ["--outputSize"]),
        (["--outputSize=8,x"], "R1001", ["--outputSize"]),
        (["--dymShape=x:1,1", "--outputSize=8,8"], "R1036", ["1 outputs (y)", "2 sizes"]),
    ],
)
def test_faults(arguments: list[str], code: str, parts: list[str]) -> None:
    save("a.npy", 1, 3), save("long.npy", 5, 1)
    np.zeros(3, np.float32).tofile("a.bin")
    np.save("wide.npy", np.zeros((1, 1)))
    session = Doubling()
    with pytest.raises(ReportedError) as error:
        om_run(*arguments, "--output=out", session=session)
    assert error.value.code == code
    for part in parts:
        assert part in "\n".join(error.value.lines())
    assert session.shapes == [], "faults are found before the model runs"


@pytest.mark.parametrize("option", ["--dymShape=x:1,2", "--dymShape_range=x:1,2", "--auto_set_dymshape_mode=true"])
def test_a_static_model_has_no_such_mode(option: str) -> None:
    class Static(Doubling):
        is_dynamic = False

        def get_inputs(self) -> list[Tensor]:
            return [Tensor("x", [1, 2], np.dtype(np.float32), [(1, 1), (2, 2)])]

    with pytest.raises(ReportedError) as error:
        om_run(option, *(["--input=k.npy"] if "auto" in option else []), session=Static())
    assert error.value.code == "R1061"
    text = "\n".join(error.value.lines())
    assert option.partition("=")[0] in text
    assert "--input_shape" in text


@pytest.mark.parametrize(("size", "fits"), [(47, False), (48, True), (1000, True)])
def test_output_sizes_are_held(size: int, fits: bool) -> None:
    arguments = ("--dymShape=x:3,4", f"--outputSize={size}")
    if fits:
        om_run(*arguments)
        return
    with pytest.raises(ReportedError, match=r"R1037.*\[y\].*48 bytes.*47"):
        om_run(*arguments)


def test_a_result_that_cannot_be_divided_is_seen_when_it_is_there() -> None:
    class Total(Doubling):
        def infer(self, feeds: Sequence[np.ndarray], /) -> list[np.ndarray]:
            super().infer(feeds)
            return [feeds[0].sum(0, keepdims=True)]

    files = [save("a.npy", 1, 3), save("b.npy", 1, 3)]
    np.save("k2.npy", np.zeros(1, np.float32))
    with pytest.raises(ReportedError, match="R1042"):
        om_run("--dymShape=x:2,3", f"--input={','.join(files)},k2.npy,k2.npy", "--output=out", session=Total())


# -- texts -------------------------------------------------------------------------------------------------------------
class Shouting:
    """Gives back its texts in capitals."""

    is_dynamic = True
    dump_folder = None

    def __init__(self) -> None:
        self.times = Times()
        self.feeds: list[list[str]] = []

    def get_inputs(self) -> list[Tensor]:
        return [Tensor("t", [-1], np.dtype(object), [(0, -1)])]

    get_outputs = get_inputs

    def kernels(self) -> list[tuple[str, str, str]]:
        return []

    def summary(self) -> Times:
        return self.times

    def overflows(self) -> list[Overflow]:
        return []

    def without_dump(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check_dump_space(self, runs: int) -> None:
        pass

    def infer(self, feeds: Sequence[np.ndarray], /) -> list[np.ndarray]:
        self.feeds.append(feeds[0].tolist())
        self.times.exec_time_list.append(1.0)
        return [np.array([str(text).upper() for text in feeds[0]], object)]


@pytest.mark.parametrize(("form", "expected"), [("NPY", None), ("TXT", "GRÜN\n\nB\n"), ("BIN", "GRÜN\n\nB\n")])
def test_texts_come_from_npy_files_and_go_to_any_form(form: str, expected: str | None) -> None:
    np.save("t.npy", np.array(["grün", "", "b"]))
    om_run("--asdsm=1", "--input=t.npy", "--output=out", "--od=r", f"--outfmt={form}", session=Shouting())
    path = Path(f"out/r/t_0.{form.lower()}")
    if expected is None:
        assert np.load(path).tolist() == ["GRÜN", "", "B"]
    else:
        assert path.read_text(encoding="utf-8") == expected


def test_made_up_texts() -> None:
    session = om_run("--dymShape=t:2", session=Shouting())
    assert session.feeds == [["", ""]]
    session = om_run("--dymShape=t:2", "--pure_data_type=random", session=Shouting())
    assert all(text.isdecimal() for text in session.feeds[0])
