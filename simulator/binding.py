"""What static and dynamic models share when they are made ready to run: memory, constants, the choice of kernels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ge.errors import ReportedError
from ge.formats import is_private
from ge.graph import Graph, Node, Tensor
from ge.graph.types import FORMAT_TEXT, has_numpy_dtype, numpy_dtype
from ge.ops import OpDef, current_operators, lookup
from ge.ops.registry import Misfit
from simulator.kernels import Kernel, KernelRequest, choose, reference_kernel
from simulator.kernels.registry import Array, KernelCompiler

PAGE = 4096


def damaged(graph: Graph, reason: str) -> ReportedError:
    """Return the error for a plan that cannot be executed as it stands."""
    return ReportedError("R1010", path=graph.name, reason=f"its execution plan is damaged: {reason}")


def cannot_run(node: Node, reason: str) -> ReportedError:
    """Return the error for a node that the simulator has no way to run."""
    return ReportedError("R1051", node=node.name, optype=node.type, reason=reason)


def stopped(node: str, fault: Exception) -> ReportedError:
    """Return the error for a kernel that failed; ``node`` says which one."""
    reason = str(fault) if isinstance(fault, Misfit) else f"{type(fault).__name__}: {fault}"
    solution = fault.solution if isinstance(fault, Misfit) else None
    return ReportedError("R1050", node=node, reason=reason, solution=solution)


def allocate(size: int, purpose: str) -> Array:
    """Return ``size`` zeroed bytes that start on a page. Raises R1062 when they cannot be had."""
    available = physical_memory()
    if available is None or size <= available:
        try:
            raw = np.empty(size + PAGE, np.uint8)
        except MemoryError:
            pass
        else:
            start = -raw.ctypes.data % PAGE
            block = raw[start : start + size]
            block.fill(0)
            return block
    raise ReportedError("R1062", needed=size, purpose=purpose, available="too few" if available is None else available)


def physical_memory() -> int | None:
    """Return the bytes of memory that this machine has, ``None`` when it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def constant_array(graph: Graph, node: Node) -> Array:
    """Return the value of a Const, read-only and as its descriptor says. Raises R1010 and R1051."""
    value, desc = node.attrs.get("value"), node.output_descs[0]
    if not isinstance(value, Tensor):
        raise damaged(graph, f"constant {node.name} holds no value")
    if not has_numpy_dtype(desc.data_type):
        raise cannot_run(node, f"its output 0 is of type {desc.data_type.name}")
    shape, dtype = tuple(desc.shape), numpy_dtype(desc.data_type)
    if value.array.shape != shape or value.array.dtype != dtype:
        raise damaged(
            graph,
            f"constant {node.name} is described as {dtype}{list(shape)}, "
            f"its value is {value.array.dtype}{list(value.array.shape)}",
        )
    array = np.ascontiguousarray(value.array).reshape(shape).view()
    if not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return array


def definition_of(node: Node) -> OpDef:
    """Return the definition of a node's operator. Raises R1052 when there is none."""
    definition = lookup(node.type)
    if definition is None:
        raise missing_operator(node)
    return definition


def missing_operator(node: Node) -> ReportedError:
    """Return the error for a node whose operator is neither built in nor a custom operator that was loaded."""
    known = ", ".join(current_operators().types())
    loaded = f"of custom operators only {known} are loaded" if known else "no custom operators are loaded"
    return ReportedError("R1052", node=node.name, optype=node.type, loaded=loaded)


def choose_kernel(node: Node, constants: Mapping[int, Array], compiler: KernelCompiler | None = None) -> Kernel:
    """Return the kernel for a node with the descriptors that it has now.

    ``constants`` are the values, by input slot, that stay the same as long as the kernel is used. ``compiler`` may make
    one for this machine. Raises R1051.
    """
    request = replace(_request(node, constants), compiler=compiler)
    found = choose(request)
    if found is not None:
        return found
    descs = [desc for desc in (*request.inputs, *request.outputs) if desc is not None]
    private = sorted({FORMAT_TEXT[desc.format] for desc in descs if is_private(desc.format)})
    if private:
        raise cannot_run(node, f"there is no kernel for its tensors in {', '.join(private)}")
    return reference_kernel(request, definition_of(node))


def slow_kernel(node: Node) -> Kernel:
    """Return the kernel that is the operator's reference semantics. Raises R1051 when it has none."""
    return reference_kernel(_request(node, {}), definition_of(node))


def _request(node: Node, constants: Mapping[int, Array]) -> KernelRequest:
    return KernelRequest(
        node.name,
        node.type,
        definition_of(node).attributes(node.attrs),
        node.attrs,
        tuple(None if source is None else source.desc for source in node.inputs),
        tuple(node.output_descs),
        constants,
    )
