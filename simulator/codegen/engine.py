"""From a code object to the address of a compiled function."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from pathlib import Path
from typing import Protocol

import llvmlite
from llvmlite import binding

import ge
from simulator.codegen.emission import Emitter
from simulator.codegen.host import Host
from simulator.codegen.object_cache import ObjectCache

_LOADED: list[binding.ExecutionEngine] = []
"""Keeps the memory of compiled functions: kernels hold addresses."""
OPTIMISATION = 2
"""Of the code generator. The passes over IR take several times as long and find nothing in what is emitted here."""


class Code(Protocol):
    """What can be compiled: a frozen dataclass, whose ``repr`` tells everything that its function depends on."""

    def emit(self, e: Emitter) -> None:
        """Write the body of the function."""


class Engine:
    """Compiles functions for a host, each once, and keeps them as long as the process runs."""

    def __init__(self, host: Host, cache: ObjectCache | None = None) -> None:
        self.host, self.cache = host, cache
        self.n_compiled = 0
        """Functions that were compiled because no cache had them."""
        self._machine = self._target_machine()
        self._lock = threading.Lock()
        self._addresses: dict[str, int] = {}

    def _target_machine(self) -> binding.TargetMachine:
        target, features = binding.Target.from_triple(self.host.triple), self.host.features
        return target.create_target_machine(
            cpu=self.host.cpu, features=features, opt=OPTIMISATION, reloc="pic", jit=True
        )

    def address(self, code: Code) -> int:
        """Return the address of a code object's function, ``void f(i64* block, i64 begin, i64 end)``.

        Raises RuntimeError when LLVM does not take it.
        """
        key = self._key(code)
        with self._lock:
            found = self._addresses.get(key)
            if found is None:
                found = self._addresses[key] = self._load(key, self._object(key, code))
            return found

    def _key(self, code: Code) -> str:
        parts = (
            type(code).__module__, repr(code), self.host.triple, self.host.cpu, self.host.features,
            llvmlite.__version__, str(OPTIMISATION), ge.__version__, sources_digest(),
        )  # fmt: skip
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _object(self, key: str, code: Code) -> bytes:
        kept = None if self.cache is None else self.cache.get(key)
        if kept is not None:
            return kept
        emitter = Emitter(_symbol(key), self.host)
        code.emit(emitter)
        module = binding.parse_assembly(emitter.finish())
        module.verify()
        made: bytes = self._machine.emit_object(module)
        self.n_compiled += 1
        if self.cache is not None:
            self.cache.put(key, made)
        return made

    def _load(self, key: str, content: bytes) -> int:
        empty = binding.parse_assembly("")
        empty.triple = self.host.triple
        # one per object (what is added to a finished one may crash), each of which owns its target machine
        loaded = binding.create_mcjit_compiler(empty, self._target_machine())
        loaded.add_object_file(binding.ObjectFileRef.from_data(content))
        loaded.finalize_object()
        _LOADED.append(loaded)
        address = int(loaded.get_function_address(_symbol(key)))
        if not address:
            raise RuntimeError("the compiled object holds no function")
        return address


def _symbol(key: str) -> str:
    return f"kernel_{key[:32]}"


@cache
def sources_digest() -> str:
    """Return the digest of this package: what another version of it made is no longer used."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
