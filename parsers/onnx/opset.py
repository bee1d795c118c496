"""Operator sets: which version of which domain a model uses, and the schema that rules a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from onnx import OperatorSetIdProto, defs

from ge.errors import ReportedError

DEFAULT_DOMAIN = ""
OLDEST_OPSET = 1
NEWEST_OPSET = defs.onnx_opset_version()
"""Newest version of the default domain that the installed onnx package knows."""


def normal_domain(domain: str) -> str:
    """Return ``domain`` with the default domain spelled one way."""
    return DEFAULT_DOMAIN if domain == "ai.onnx" else domain


class Opsets:
    """The imported version per domain, of a model or of a model-local function."""

    def __init__(
        self, imports: Iterable[OperatorSetIdProto], owner: str, defaults: Mapping[str, int] | None = None
    ) -> None:
        self.versions: dict[str, int] = {} if defaults is None else dict(defaults)
        imported: dict[str, set[int]] = {}
        for entry in imports:
            imported.setdefault(normal_domain(entry.domain), set()).add(entry.version)
        for domain, found_versions in imported.items():
            if len(found_versions) > 1:
                raise ReportedError(
                    "E16005",
                    domain_version_size=len(found_versions),
                    domain=domain or "ai.onnx",
                    versions=sorted(found_versions),
                    owner=owner,
                )
            self.versions[domain] = found_versions.pop()
        version = self.versions.get(DEFAULT_DOMAIN)
        if version is not None and not OLDEST_OPSET <= version <= NEWEST_OPSET:
            found = "newer" if version > NEWEST_OPSET else "older"
            raise ReportedError(
                "E16002",
                optype=f"ai.onnx::{version}::*",
                solution=f"{owner} uses opset {version}, {found} than the supported {OLDEST_OPSET} to {NEWEST_OPSET}. "
                "Export the model with an opset in this range"
                + (", or install a newer onnx package." if version > NEWEST_OPSET else "."),
            )

    def version(self, domain: str, owner: str) -> int:
        """Return the imported version of ``domain``. Raises E19999 that names ``owner`` when there is no import."""
        found = self.versions.get(domain)
        if found is None:
            raise ReportedError(
                "E19999",
                reason=f"{owner} belongs to the domain [{domain or 'ai.onnx'}], which the model does not import",
                solution="Add the domain to the opset_import of the model.",
            )
        return found


def type_string(domain: str, version: int, op_type: str) -> str:
    """Return an operator's type as messages show it: ``ai.onnx::13::Foo``."""
    return f"{domain or 'ai.onnx'}::{version}::{op_type}"


@cache
def schema_of(domain: str, op_type: str, version: int) -> defs.OpSchema | None:
    """Return the schema that rules ``op_type`` in ``version`` of ``domain``, or ``None``.

    For operators that this version deprecates it is the last schema before, if there is one: models that still use
    them are meant so.
    """
    newest = found = _newest_schema(domain, op_type, version)
    while found is not None and found.deprecated:
        found = _newest_schema(domain, op_type, found.since_version - 1)
    return newest if found is None else found


def _newest_schema(domain: str, op_type: str, version: int) -> defs.OpSchema | None:
    try:
        # versions are 64 bits wide in a file and 32 in the library
        return defs.get_schema(op_type, min(version, 2**31 - 1), domain) if version > 0 else None
    except defs.SchemaError:
        return None
