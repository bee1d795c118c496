"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ge.atomic_file import atomic_file, check_writable, write_atomically
from ge.errors import ReportedError


def test_file_and_missing_folders_appear(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "m.om"
    with atomic_file(target) as file:
        file.write(b"12345678")
        file.seek(2)
        file.write(b"xx")
        assert not target.exists()
    assert target.read_bytes() == b"12xx5678"
    assert os.listdir(target.parent) == ["m.om"]


def test_fault_leaves_nothing_and_keeps_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "m.om"
    old.write_bytes(b"old")
    for target in (old, tmp_path / "new" / "folder" / "m.om"):
        with pytest.raises(ZeroDivisionError), atomic_file(target) as file:
            file.write(bytes(100 // (file.write(b"half") - 4)))
    assert old.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.om"]


def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "m.om"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_full_disk_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReportedError) as error, atomic_file(tmp_path / "m.om", code="R1040"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert error.value.code == "R1040"
    assert "No space left" in error.value.message
    assert os.listdir(tmp_path) == []


def test_fault_of_another_file_passes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "m.om"):
        (tmp_path / "weights.bin").read_bytes()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["file/m.om", "folder", "a" * 300, "file/below/m.om"])
def test_unwritable_paths(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for attempt in (check_writable, lambda target: write_atomically(target, b"x")):
        with pytest.raises(ReportedError) as error:
            attempt(tmp_path / path)
        assert error.value.code == "E13004"
        assert path in error.value.message
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.skipif(os.name == "nt", reason="there a working directory cannot be removed")
def test_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ReportedError) as error:
        write_atomically("m.om", b"x")
    assert error.value.code == "E13004"
    assert "working directory" in error.value.message


def test_device_is_not_replaced() -> None:
    with pytest.raises(ReportedError) as error:
        write_atomically(os.devnull, b"x")
    assert "not a regular file" in error.value.message
    assert not os.path.isfile(os.devnull)


def test_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real" / "m.om", tmp_path / "link.om")
    write_atomically(tmp_path / "link.om", "text ü")
    assert (tmp_path / "link.om").is_symlink()
    assert (tmp_path / "real" / "m.om").read_text(encoding="utf-8") == "text ü"


def test_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "m.om", b"x")
    assert (tmp_path / "m.om").stat().st_mode == (tmp_path / "plain").stat().st_mode
