"""Offline models: the ``.om`` container, written and read."""
