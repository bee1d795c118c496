"""Lowering: loops of neighbouring operators become one kernel (AscBackend), and every stop of it has a reason."""
