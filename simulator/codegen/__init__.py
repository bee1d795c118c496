"""Kernels compiled for this machine with LLVM.

Importing the package costs nothing: :func:`obtain` loads LLVM when a session asks for compiled kernels first.
``modules: host`` the machine, ``emission`` writing functions, ``engine`` compiling them, ``object_cache`` keeping what
was compiled, ``jobs`` and ``crew`` running it, ``compiler`` the choice of kernels; the others are families of kernels.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.codegen.compiler import Compiler

__all__ = ["obtain"]

logger = logging.getLogger("simulator")
_known: dict[tuple[str, str], Compiler | None] = {}
_lock = threading.Lock()


def obtain(mode: str, cache_folder: str) -> Compiler | None:
    """Return the compiler of this process for a mode (``on``, ``off``, ``verify``); ``None`` for numpy kernels alone.

    ``cache_folder`` keeps compiled functions (empty: nothing is kept). When LLVM cannot be used, that is said once.
    """
    if mode == "off":
        return None
    with _lock:
        key = (mode, cache_folder)
        if key not in _known:
            _known[key] = _make(mode, cache_folder)
        return _known[key]


def _make(mode: str, cache_folder: str) -> Compiler | None:
    try:
        from simulator.codegen.compiler import Compiler
        from simulator.codegen.engine import Engine
        from simulator.codegen.host import this_host
        from simulator.codegen.object_cache import ObjectCache

        cache = ObjectCache(cache_folder) if cache_folder else None
        return Compiler(Engine(this_host(), cache), is_verifying=mode == "verify")
    except (ImportError, OSError, RuntimeError) as fault:
        logger.warning("kernels are not compiled, numpy runs instead: LLVM cannot be used (%s)", fault)
        return None
