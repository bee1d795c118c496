"""The CPU simulator: runs offline models."""

from simulator.dump_settings import DumpMode, DumpSettings
from simulator.overflow import Overflow
from simulator.session import InferSession, IoDesc

__all__ = ["DumpMode", "DumpSettings", "InferSession", "IoDesc", "Overflow"]
