"""Mapped files: who knows them, what is refused, and when a change is noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ge import mapped_file
from ge.errors import ReportedError
from ge.mapped_file import MappedFile, NotMappableError

VALUES = np.arange(1024, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "weights.bin"
    found.write_bytes(VALUES.tobytes())
    return found


def opened(path: Path, needed_by: str = "tensor [w]") -> MappedFile:
    found = MappedFile.open(path, needed_by)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda a: a, id="whole"),
        pytest.param(lambda a: a[8:16], id="part"),
        pytest.param(lambda a: a.view(np.float32).reshape(32, 32).T, id="transposed"),
        pytest.param(lambda a: a[3:-1].view("<f4").astype(np.float32, copy=False), id="not aligned"),
    ],
)
def test_views_know_their_file(path: Path, view: Callable[[np.ndarray], np.ndarray]) -> None:
    mapped = opened(path)
    for whole in (np.frombuffer(mapped, np.uint8), np.frombuffer(memoryview(mapped)[:], np.uint8)):
        assert MappedFile.behind(view(whole)) is mapped


def test_memory_of_another_kind_has_no_file(path: Path) -> None:
    copy = np.frombuffer(opened(path), np.float32) + 1
    for array in (copy, copy[2:], np.frombuffer(bytes(8), np.uint8), np.memmap(path, np.float32, "r")):
        assert MappedFile.behind(array) is None


def test_what_is_mapped_outlives_the_name(path: Path) -> None:
    array = np.frombuffer(opened(path), np.float32)
    path.unlink()
    np.testing.assert_array_equal(array, VALUES)


def test_an_empty_file_is_no_map(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert MappedFile.open(tmp_path / "empty") is None


def test_folders_and_pipes_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(NotMappableError, match="not a regular file"):
            MappedFile.open(path)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _write_over(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"else")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))  # clocks of file systems may tick too seldom for a test


@pytest.mark.parametrize("change", [_append, _write_over, lambda path: os.truncate(path, 4)])
def test_changed_content_is_reported_with_file_and_tensor(path: Path, change: Callable[[Path], None]) -> None:
    mapped = opened(path)
    mapped.check_unchanged()
    change(path)
    with pytest.raises(ReportedError) as caught:
        mapped.check_unchanged()
    assert caught.value.code == "E13026"
    assert str(path) in caught.value.message
    assert "tensor [w]" in caught.value.message


@pytest.mark.parametrize("is_replaced", [True, False], ids=["another file under the name", "no file under the name"])
def test_other_files_under_the_name_do_no_harm(path: Path, is_replaced: bool) -> None:
    mapped = opened(path)
    path.unlink()
    if is_replaced:
        path.write_bytes(b"another")
    mapped.check_unchanged()
    np.testing.assert_array_equal(np.frombuffer(mapped, np.float32), VALUES)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the system for resident pages as Linux does")
def test_pages_that_were_read_go_back_to_the_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 32 << 20
    path.write_bytes(np.ones(size, np.uint8).tobytes())
    monkeypatch.setattr(mapped_file, "RELEASE_BYTES", size)
    mapped = opened(path)
    array = np.frombuffer(mapped, np.uint8)

    def resident() -> int:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
        return 1024 * int(line.split()[1])

    before = resident()
    assert array.sum() == size
    assert resident() > before + size // 2
    mapped.note_read(size // 2)
    assert resident() > before + size // 2
    mapped.note_read(size // 2)
    assert resident() < before + size // 2
    assert array.sum() == size
