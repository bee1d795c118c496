"""The machine that a dynamic model is for, as --host_env_os and --host_env_cpu name it."""

from __future__ import annotations

import platform
from dataclasses import dataclass

_SAME_CPU = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
"""Other names for one processor."""


@dataclass(frozen=True)
class Host:
    """Operating system and processor in lower case, such as ``linux`` and ``x86_64``."""

    os: str
    cpu: str

    @property
    def suffix(self) -> str:
        """What the name of a file for this host ends with, in front of ``.om``."""
        return f"_{self.os}_{self.cpu}"

    def is_like(self, other: Host) -> bool:
        """Tell whether files for one of the two run on the other."""
        return self.os == other.os and _SAME_CPU.get(self.cpu, self.cpu) == _SAME_CPU.get(other.cpu, other.cpu)

    def __str__(self) -> str:
        return f"{self.os} on {self.cpu}"


def host_for(os: str = "", cpu: str = "") -> Host:
    """Return the machine that a model is for: this one, unless the options say something else."""
    here = this_host()
    return Host(os or here.os, cpu or here.cpu)


def this_host() -> Host:
    """Return the machine that this program runs on."""
    cpu = platform.machine().lower()
    return Host(platform.system().lower(), "x86_64" if cpu == "amd64" else cpu)
