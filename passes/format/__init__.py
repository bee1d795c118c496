"""Formats: what the axes of tensors mean, and how they lie in memory."""
