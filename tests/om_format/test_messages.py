"""The committed message code is that of the committed .proto files, and old enough for every protobuf admitted."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FileDescriptor

from ge.proto import dump_data_pb2, ge_ir_pb2, task_pb2

ROOT = Path(__file__).resolve().parents[2]
MODULES = [dump_data_pb2, ge_ir_pb2, task_pb2]
LINE = re.compile(r"(?:(?P<open>message|enum|oneof) (?P<name>\w+) \{)|(?P<close>\})|(?P<field>\w+) = (?P<number>\d+);")

Entry = tuple[str, str, int]


def written(path: Path) -> Iterator[Entry]:
    """(scope, name, number) of the fields and enum values in a .proto file."""
    scope: list[tuple[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        found = LINE.search(line.split("//")[0])
        if found is None:
            continue
        if found["open"]:
            scope.append((found["open"], found["name"]))
        elif found["close"]:
            scope.pop()
        else:
            yield ".".join(name for kind, name in scope if kind != "oneof"), found["field"], int(found["number"])


def generated(file: FileDescriptor) -> Iterator[Entry]:
    for enum in file.enum_types_by_name.values():
        yield from ((enum.name, value.name, value.number) for value in enum.values)
    for message in file.message_types_by_name.values():
        yield from _of_message(message, message.name)


def _of_message(message: Descriptor, scope: str) -> Iterator[Entry]:
    yield from ((scope, field.name, field.number) for field in message.fields)
    for enum in message.enum_types:
        yield from ((f"{scope}.{enum.name}", value.name, value.number) for value in enum.values)
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            yield from _of_message(nested, f"{scope}.{nested.name}")


@pytest.mark.parametrize("module", MODULES, ids=["dump_data", "ge_ir", "task"])
def test_generated_code_is_up_to_date(module):
    path = ROOT / module.DESCRIPTOR.name
    assert sorted(written(path)) == sorted(generated(module.DESCRIPTOR))
    assert len(list(written(path))) > 45


@pytest.mark.parametrize("module", MODULES, ids=["dump_data", "ge_ir", "task"])
def test_generated_code_loads_with_the_oldest_protobuf_admitted(module):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (d for d in project["dependencies"] if d.startswith("protobuf"))
    oldest, beyond = re.fullmatch(r"protobuf>=([\d.]+),<(\d+)", bound).groups()
    text = Path(module.__file__).read_text(encoding="utf-8")
    version = [int(v) for v in re.search(r"Protobuf Python Version: ([\d.]+)", text)[1].split(".")]
    assert version <= [int(v) for v in oldest.split(".")] + [0] * 2
    # a runtime takes the code of its own and of the previous major version
    assert version[0] >= int(beyond) - 2
