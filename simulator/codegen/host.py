"""The machine that code is made for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from llvmlite import binding


@dataclass(frozen=True)
class Host:
    """A processor as LLVM calls it. ``registers`` and ``width`` are its vector registers and their bytes."""

    triple: str
    cpu: str
    features: str

    @property
    def _enabled(self) -> frozenset[str]:
        return frozenset(name[1:] for name in self.features.split(",") if name.startswith("+"))

    @property
    def is_x86(self) -> bool:
        """Tell whether it is an x86 of 64 bits."""
        return self.triple.startswith(("x86_64", "amd64"))

    @property
    def registers(self) -> int:
        """Vector registers."""
        return 16 if self.is_x86 and "avx512f" not in self._enabled else 32

    @property
    def width(self) -> int:
        """Bytes of a vector register."""
        if not self.is_x86 or "avx" not in self._enabled:
            return 16
        return 64 if "avx512f" in self._enabled else 32

    @property
    def converts_halves(self) -> bool:
        """Tell whether float16 is converted by instructions; without them LLVM calls functions nobody provides."""
        return self.triple.startswith(("aarch64", "arm64")) or bool({"f16c", "avx512f"} & self._enabled)


@cache
def this_host() -> Host:
    """Return the machine that this process runs on."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    return Host(binding.get_process_triple(), binding.get_host_cpu_name(), features)


AVX2_FEATURES = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+sse4.2"


def restricted(level: str) -> Host:
    """Return this machine with fewer features, an x86 of 64 bits: ``avx2``, or ``plain`` for what all of them have."""
    host = this_host()
    return Host(host.triple, "x86-64", AVX2_FEATURES if level == "avx2" else "")
