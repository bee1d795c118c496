"""Arrays that passes make and a graph keeps until it is written: folded and scaled weights.

Some stay in memory. What comes on top goes to temporary files that have no name: the system can take their pages out of
memory, and nothing is left behind however the process ends.
"""

from __future__ import annotations

import logging
import weakref

import numpy as np

from ge.mapped_file import Array, MappedFile

MAX_IN_MEMORY = 64 << 20
"""Bytes of all such arrays that stay in memory."""
SMALL = 64 << 10
"""Bytes up to which an array does not count."""

logger = logging.getLogger("atc")

_in_memory: dict[int, int] = {}


def kept(array: Array) -> Array:
    """Return ``array`` itself, or an equal one in a file. What is a view of a file already stays as it is."""
    if array.nbytes <= SMALL or array.dtype.hasobject:
        return array
    owner = _owner(array)
    if not owner.flags.owndata or owner.nbytes < array.nbytes or id(owner) in _in_memory:
        return array  # memory of a file, or less than it looks, or counted already
    if sum(_in_memory.values()) + owner.nbytes <= MAX_IN_MEMORY:
        _in_memory[id(owner)] = owner.nbytes
        weakref.finalize(owner, _in_memory.pop, id(owner), None).atexit = False
        return array
    try:
        # transposed arrays keep their order of elements in memory
        return MappedFile.holding(array.T).T if array.T.flags.c_contiguous else MappedFile.holding(array)
    except OSError as fault:
        logger.warning("a weight of %d bytes stays in memory: %s", array.nbytes, fault.strerror or fault)
        return array


def _owner(array: Array) -> Array:
    """Return the array whose memory ``array`` shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
