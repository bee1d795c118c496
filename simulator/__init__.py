"""The CPU simulator: runs offline models."""

from simulator.dump_settings import DumpMode, DumpSettings
from simulator.session import InferSession, IoDesc

__all__ = ["DumpMode", "DumpSettings", "InferSession", "IoDesc"]
