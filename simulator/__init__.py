"""The CPU simulator: runs offline models."""

from simulator.session import InferSession, IoDesc

__all__ = ["InferSession", "IoDesc"]
