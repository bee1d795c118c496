"""Compiled functions on the disk: kept, verified, made again; never taken from folders of others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from simulator.codegen.elementwise import ElementwiseCode, Operand
from simulator.codegen.elementwise_kernels import Loops
from simulator.codegen.engine import Engine
from simulator.codegen.host import restricted, this_host
from simulator.codegen.jobs import address_of, run_jobs
from simulator.codegen.object_cache import ObjectCache

CODE = ElementwiseCode("relu", (Operand("f32", False),), "f32")
KEY = "ab" * 32


def works(engine: Engine) -> bool:
    """Compile the code and look at what it computes."""
    x = np.linspace(-1, 1, 37, dtype=np.float32)
    y = np.full_like(x, np.nan)
    loops = Loops.of(x.shape, [x.shape])
    assert loops is not None
    run_jobs([loops.job(engine.address(CODE), [address_of(x), address_of(y)], [4, 4], ())])
    return np.array_equal(y, np.maximum(x, 0))


def engine(folder: Path) -> Engine:
    return Engine(this_host(), ObjectCache(folder))


def test_what_was_compiled_is_not_compiled_again(tmp_path: Path) -> None:
    first = engine(tmp_path / "kernels")
    assert works(first)
    assert works(first)
    assert first.n_compiled == 1
    second = engine(tmp_path / "kernels")
    assert works(second)
    assert second.n_compiled == 0


def test_folder_and_files_are_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kernels"
    assert works(engine(folder))
    [file] = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: b"garbage" * 100,
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    ],
)
def test_damaged_files_are_made_again(tmp_path: Path, damage: object) -> None:
    assert works(engine(tmp_path / "kernels"))
    [file] = (tmp_path / "kernels").iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    again = engine(tmp_path / "kernels")
    assert works(again)
    assert again.n_compiled == 1
    assert file.read_bytes() == whole


def test_a_file_under_the_name_of_another_is_not_taken(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "kernels")
    cache.put(KEY, b"one")
    os.rename(cache.folder / KEY, cache.folder / ("cd" * 32))
    assert cache.get("cd" * 32) is None


def test_links_are_not_followed(tmp_path: Path) -> None:
    other, cache = ObjectCache(tmp_path / "other"), ObjectCache(tmp_path / "kernels")
    other.put(KEY, b"one")
    (cache.folder / KEY).symlink_to(other.folder / KEY)
    assert cache.get(KEY) is None


def test_files_that_others_can_write_are_not_taken(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "kernels")
    cache.put(KEY, b"one")
    (cache.folder / KEY).chmod(0o622)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_is_open_to_others_is_left_alone(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    used = engine(folder)
    assert works(used)
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    assert works(engine(folder))
    assert list(folder.iterdir()) == []


def test_without_a_folder_functions_are_compiled_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "kernels", Path("/proc/nowhere/kernels")):
        used = engine(folder)
        assert used.cache is not None
        assert not used.cache.is_usable
        assert works(used)
    (tmp_path / "link").symlink_to(tmp_path)
    assert not ObjectCache(tmp_path / "link").is_usable


def test_a_disk_that_fills_up_costs_nothing_but_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = engine(tmp_path / "kernels")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert works(used)
    assert list((tmp_path / "kernels").iterdir()) == []


def test_machines_do_not_share_functions(tmp_path: Path) -> None:
    assert works(engine(tmp_path / "kernels"))
    if not this_host().is_x86:
        pytest.skip("there are no lesser machines to be")
    other = Engine(restricted("plain"), ObjectCache(tmp_path / "kernels"))
    assert works(other)
    assert other.n_compiled == 1
    assert len(list((tmp_path / "kernels").iterdir())) == 2
