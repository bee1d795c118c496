"""Passes over operators that only change how a tensor is shown: its element type, its shape, its layout in memory.

One small pass each, named as GE's. They begin and end with a settled graph: both ends of an edge say the same.
"""
