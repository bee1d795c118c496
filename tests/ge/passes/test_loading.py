"""Loading pass files: cases 34 and 36 of the reference."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from ge.passes import get_registered_passes
from ge.passes.bootstrap import (
    MODULE_PREFIX,
    LoadFault,
    PassFiles,
    load_pass_plugins,
    load_path_list,
    vendor_files,
)
from ge.passes.registry import PassRegistry, registering_in


def source(name: str, extra: str = "") -> str:
    """A pass file that registers one pass which does nothing."""
    return f"""{extra}
from ge.passes import FusionBasePass, PassStage, register_fusion_pass

@register_fusion_pass(name="{name}", stage=PassStage.BEFORE_INFER_SHAPE)
class Idle(FusionBasePass):
    def run(self, graph, context):
        return True
"""


@pytest.fixture
def registry() -> PassRegistry:
    return PassRegistry()


@pytest.fixture
def files(registry) -> PassFiles:
    return PassFiles(registry)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(registry: PassRegistry) -> list[str]:
    return [d.pass_name for d in registry]


# -- single files ----------------------------------------------------------------------------------------------------
def test_a_file_registers_its_passes_in_the_registry_that_loads_it(tmp_path, files, registry) -> None:
    before = get_registered_passes()
    loaded = files.load(write(tmp_path / "mine.py", source("A") + source("B").replace("Idle", "Other")))
    assert loaded is not None
    assert loaded.passes == ("A", "B")
    assert names(registry) == ["A", "B"]
    assert get_registered_passes() == before


def test_modules_have_names_of_their_own(tmp_path, files, registry) -> None:
    files.load(write(tmp_path / "json.py", source("A")))
    [descriptor] = registry
    assert descriptor.module_name.startswith(f"{MODULE_PREFIX}json_")
    assert sys.modules[descriptor.module_name].__file__ == str(tmp_path / "json.py")
    import json

    assert json.dumps([1]) == "[1]"
    assert str(tmp_path) not in sys.path


def test_dataclasses_work_in_pass_files(tmp_path, files) -> None:
    """They look their module up while it is being executed."""
    lines = ["from __future__ import annotations", "from dataclasses import dataclass", "@dataclass"]
    lines += ["class A:", "    x: int", "assert A(1).x"]
    files.load(write(tmp_path / "mine.py", "\n".join(lines)))


def test_neighbours_can_be_imported_and_are_forgotten(tmp_path, files, registry) -> None:
    write(tmp_path / "_shared_names.py", "NAME = 'Shared'")
    files.load(write(tmp_path / "mine.py", source("A", "import _shared_names\nassert _shared_names.NAME == 'Shared'")))
    assert names(registry) == ["A"]
    assert "_shared_names" not in sys.modules


def test_nothing_is_written_into_the_folder(tmp_path, files) -> None:
    files.load(write(tmp_path / "mine.py", source("A")))
    assert [p.name for p in tmp_path.iterdir()] == ["mine.py"]


def test_a_changed_file_is_read_anew(tmp_path) -> None:
    path = tmp_path / "mine.py"
    for name in ("A", "B"):
        registry = PassRegistry()
        PassFiles(registry).load(write(path, source(name)))
        assert names(registry) == [name]


def test_something_is_put_around_each_file(tmp_path, registry) -> None:
    seen = []

    def around(path: str):
        seen.append(path)
        return nullcontext()

    path = write(tmp_path / "mine.py", source("A"))
    PassFiles(registry, around).load(path)
    assert seen == [str(path)]


BROKEN = [
    ("x = 1\ndef f(:\n    pass\n", "line 2: SyntaxError: invalid syntax"),
    ("x = 1\n\nraise ValueError('boom')\n", "line 3: ValueError: boom"),
    ("def f():\n    return missing\nf()\n", "line 2: NameError: name 'missing' is not defined"),
    ("import no_such_module_here\n", "line 1: ModuleNotFoundError: No module named 'no_such_module_here'"),
    ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
    ("from ge.es.math import NoSuchOperator\n", "line 1: ImportError: cannot import name 'NoSuchOperator'"),
    (
        "from ge.passes import PatternFusionPass\nclass P(PatternFusionPass):\n    def run(self): ...\n",
        "line 2: TypeError: P overrides run()",
    ),
]


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_a_broken_file_is_named_with_the_line(tmp_path, files, text, reason) -> None:
    path = write(tmp_path / "broken.py", text)
    with pytest.raises(LoadFault) as fault:
        files.load(path)
    assert fault.value.file == path
    assert fault.value.reason.startswith(reason)
    assert not fault.value.pass_name
    assert not [name for name in sys.modules if name.startswith(f"{MODULE_PREFIX}broken")]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = '\x00'", b"# -*- coding: no-such -*-\n"])
def test_a_file_that_is_no_text(tmp_path, files, content) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(content)
    with pytest.raises(LoadFault):
        files.load(path)


def test_a_file_that_cannot_be_read(tmp_path, files) -> None:
    path = tmp_path / "dangling.py"
    path.symlink_to(tmp_path / "nowhere.py")
    with pytest.raises(LoadFault, match="No such file"):
        files.load(path)


def test_an_invalid_registration_names_the_pass(tmp_path, files) -> None:
    text = "from ge.passes import register_fusion_pass\nregister_fusion_pass(name='Mine', stage='Sometime')\n"
    with pytest.raises(LoadFault) as fault:
        files.load(write(tmp_path / "mine.py", text))
    assert fault.value.pass_name == "Mine"
    assert fault.value.reason.startswith("line 2: RegistrationValueError: stage must be one of BeforeInferShape")


# -- ASCEND_GE_PY_PASS_PATH: case 34 -----------------------------------------------------------------------------------
def test_case_34_each_file_is_loaded_once(tmp_path, files, registry) -> None:
    path = write(tmp_path / "mine.py", source("A"))
    (tmp_path / "link.py").symlink_to(path)
    text = os.pathsep.join([str(path), f" {path} ", str(tmp_path / "link.py"), "", str(tmp_path)])
    assert [f.path for f in load_path_list(text, files)] == [path]
    assert names(registry) == ["A"]


def test_case_34_folders_are_listed_by_name(tmp_path, files, registry) -> None:
    for name in ("b", "a", "_hidden"):
        write(tmp_path / f"{name}.py", source(name))
    write(tmp_path / "notes.txt", "no pass")
    write(tmp_path / "package" / "__init__.py", "from .inner import *\n")
    write(tmp_path / "package" / "inner.py", source("inner"))
    write(tmp_path / "plain" / "deep.py", source("deep"))
    assert [f.path.name for f in load_path_list(str(tmp_path), files)] == ["a.py", "b.py", "__init__.py"]
    assert names(registry) == ["a", "b", "inner"]
    assert "package" not in sys.modules


def test_case_34_paths_that_are_no_pass_files(tmp_path, files) -> None:
    text = write(tmp_path / "a.txt", "")
    with pytest.raises(ValueError, match=rf"^python pass file must end with \.py: {text}$"):
        load_path_list(str(text), files)
    with pytest.raises(FileNotFoundError, match=r"^python pass path does not exist: /no/such/path$"):
        load_path_list("/no/such/path", files)
    assert load_path_list(" ", files) == []


def test_case_34_names_are_taken_once(tmp_path, files) -> None:
    write(tmp_path / "a.py", source("Same"))
    write(tmp_path / "b.py", source("Same"))
    with pytest.raises(LoadFault, match="python pass name already exists: Same") as fault:
        load_path_list(str(tmp_path), files)
    assert (fault.value.file.name, fault.value.pass_name) == ("b.py", "Same")


def test_a_module_that_registers_nothing_is_fine(tmp_path, files, registry) -> None:
    [loaded] = load_path_list(str(write(tmp_path / "mine.py", "x = 1")), files)
    assert loaded.passes == ()
    assert len(registry) == 0


def test_plugins_of_the_environment(tmp_path, registry, monkeypatch) -> None:
    monkeypatch.setenv("ASCEND_GE_PY_PASS_PATH", str(write(tmp_path / "mine.py", source("A"))))
    with registering_in(registry):
        assert [d.pass_name for d in load_pass_plugins()] == ["A"]


# -- vendors: case 36 ------------------------------------------------------------------------------------------------
def test_case_36_vendors_and_files_by_name(tmp_path, files, registry) -> None:
    for vendor in ("b", "a"):
        for stem in ("z", "m"):
            write(tmp_path / "vendors" / vendor / "custom_fusion_passes" / f"{stem}.py", source(f"{vendor}/{stem}"))
    for path in vendor_files(tmp_path).python:
        files.load(path)
    assert names(registry) == ["a/m", "a/z", "b/m", "b/z"]


def test_case_36_a_broken_file_fails(tmp_path, files) -> None:
    write(tmp_path / "vendors" / "a" / "custom_fusion_passes" / "m.py", "1 +")
    [path] = vendor_files(tmp_path).python
    with pytest.raises(LoadFault, match="line 1: SyntaxError"):
        files.load(path)


def test_what_is_left_out(tmp_path) -> None:
    folder = tmp_path / "vendors" / "me" / "custom_fusion_passes"
    for name in ("a.py", "_b.py", "c.txt", ".py", ".so", "native.so", "deep/d.py", "e.py/f.py"):
        write(folder / name, "")
    write(tmp_path / "vendors" / "me" / "other" / "g.py", "")
    write(tmp_path / "vendors" / "team" / "me" / "custom_fusion_passes" / "h.py", "")
    write(tmp_path / "vendors" / "file.py", "")
    found = vendor_files(tmp_path)
    assert [p.name for p in found.python] == ["a.py"]
    assert [p.name for p in found.native] == ["native.so"]
    assert found.unreadable == ()


def test_links_are_followed(tmp_path) -> None:
    real = write(tmp_path / "elsewhere" / "p.py", "")
    folder = tmp_path / "opp" / "vendors" / "me" / "custom_fusion_passes"
    folder.mkdir(parents=True)
    (folder / "linked.py").symlink_to(real)
    (tmp_path / "opp" / "vendors" / "other").symlink_to(tmp_path / "opp" / "vendors" / "me")
    assert [p.parent.parent.name for p in vendor_files(tmp_path / "opp").python] == ["me", "other"]


def test_no_folder_no_files(tmp_path) -> None:
    assert vendor_files(tmp_path / "none").python == ()
