"""Compilers for this machine and for lesser ones, which this machine can be, too."""

from __future__ import annotations

from functools import cache

import pytest

from simulator.codegen.compiler import Compiler
from simulator.codegen.engine import Engine
from simulator.codegen.host import restricted, this_host

LEVELS = ("native", "avx2", "plain")


@cache
def compiler(level: str = "native") -> Compiler:
    """Return a compiler that keeps nothing on the disk; skips the test where this machine cannot run its code."""
    host = this_host()
    if level != "native":
        if not host.is_x86 or (level == "avx2" and host.width < 32):
            pytest.skip(f"this machine is no {level} x86")
        host = restricted(level)
    return Compiler(Engine(host))
