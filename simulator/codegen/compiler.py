"""The choice of compiled kernels, and what stands around them: falling back to numpy, comparing with it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ge.errors import ReportedError
from simulator.codegen import conv_kernels, elementwise_kernels, join_kernels, pool_kernels, trans_data_kernels
from simulator.codegen.crew import Crew
from simulator.codegen.engine import Engine
from simulator.codegen.jobs import address_of, run_jobs
from simulator.kernels.registry import Array, Inputs, Kernel, KernelRequest, Outputs, choose

logger = logging.getLogger("simulator")

Builder = Callable[[KernelRequest, Engine], Kernel | None]
BUILDERS: dict[str, tuple[Builder, ...]] = {
    **dict.fromkeys(conv_kernels.TYPES, (conv_kernels.build_conv,)),
    **dict.fromkeys(elementwise_kernels.TYPES, (elementwise_kernels.build_elementwise,)),
    **dict.fromkeys(elementwise_kernels.CHANNEL_TYPES, (elementwise_kernels.build_by_channel,)),
    "Cast": (elementwise_kernels.build_cast,),
    **dict.fromkeys(join_kernels.JOINING, (join_kernels.build_concat,)),
    **dict.fromkeys(join_kernels.SPLITTING, (join_kernels.build_split,)),
    **dict.fromkeys(pool_kernels.TYPES, (pool_kernels.build_pool,)),
    **dict.fromkeys(trans_data_kernels.TYPES, (trans_data_kernels.build_trans_data,)),
}
"""By operator type, those that are asked in turn."""


_FAULTS = (ArithmeticError, AssertionError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a builder may stumble over; numpy's kernel then says what is wrong with the node, or runs it."""


class Compiler:
    """Makes compiled kernels for requests. ``is_verifying`` lets the numpy kernel run as well and compares."""

    def __init__(self, engine: Engine, *, is_verifying: bool = False) -> None:
        self.engine, self.is_verifying = engine, is_verifying
        self._failed: set[str] = set()

    def build(self, request: KernelRequest) -> Kernel | None:
        """Return a compiled kernel for a node; ``None`` where numpy has to do it."""
        for builder in BUILDERS.get(request.type, ()):
            try:
                found = builder(request, self.engine)
            except _FAULTS as fault:
                self._note(request, fault)
                continue
            if found is not None:
                return self._verified(found, request) if self.is_verifying else found
        return None

    def crew(self, threads: int) -> Crew | None:
        """Return threads that run jobs; ``None`` when they cannot be had."""
        try:
            return Crew(self.engine, threads)
        except RuntimeError as fault:
            logger.warning("compiled kernels run on one thread: %s", fault)
            return None

    def _note(self, request: KernelRequest, fault: Exception) -> None:
        if request.type not in self._failed:
            self._failed.add(request.type)
            logger.warning("%s runs on numpy: no kernel could be compiled (%s)", request.type, fault)

    def _verified(self, compiled: Kernel, request: KernelRequest) -> Kernel:
        other = choose(replace(request, compiler=None))
        if other is None or compiled.bind is None:
            return compiled
        bind, trusted = compiled.bind, other

        def run(inputs: Inputs, outputs: Outputs, scratch: Array) -> None:
            copies = [None if x is None else x.copy() for x in inputs]
            expected = [None if y is None else np.empty_like(y) for y in outputs]
            space = np.empty(trusted.scratch_bytes + 64, np.uint8)
            start = -address_of(space) % 64
            trusted.run(copies, expected, space[start : start + trusted.scratch_bytes])
            run_jobs(bind(inputs, outputs, scratch))
            for index, (made, wanted) in enumerate(zip(outputs, expected, strict=True)):
                if made is not None and wanted is not None:
                    _compare(request, compiled, index, made, wanted)

        return compiled.within(run, name=f"{compiled.name}+verify")


def _compare(request: KernelRequest, compiled: Kernel, index: int, made: Array, wanted: Array) -> None:
    """Raise R1054 when two results are further apart than roundings explain."""
    if made.dtype.kind not in "fV":
        is_equal = np.array_equal(made, wanted)
        worst = "numbers differ"
    else:
        single, other = made.astype(np.float64), wanted.astype(np.float64)
        finite = np.isfinite(other)
        scale = float(np.abs(other[finite]).max(initial=0.0))
        precision = 2.0**-10 if made.dtype.itemsize == 2 else 2.0**-18
        with np.errstate(invalid="ignore"):
            apart = np.abs(single - other)[finite].max(initial=0.0)
        is_same_kind = np.array_equal(single[~finite], other[~finite], equal_nan=True)
        is_equal = is_same_kind and bool(apart <= scale * precision)
        worst = f"the largest difference is {apart:.3g} among numbers up to {scale:.3g}"
    if not is_equal:
        raise ReportedError(
            "R1054", node=request.node, optype=request.type, kernel=compiled.name, output=index, reason=worst
        )
