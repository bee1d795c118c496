"""Writing functions in LLVM's IR: words of a parameter block, loops that carry values, vectors of lanes.

Every function that is emitted here has the same form, ``void f(i64* block, i64 begin, i64 end)``: it does the tasks
``begin`` to ``end`` of some number of independent ones. ``block`` holds addresses and numbers in words of 64 bits, so
one function serves all tensors, whatever their sizes are. Offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from simulator.codegen.host import Host

LANES = 16
"""Elements of a vector: the channels of a block. What the host's registers cannot hold at once, LLVM divides."""
POINTER = ir.PointerType()
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, SINGLE = ir.HalfType(), ir.FloatType()
ELEMENTS: dict[str, tuple[ir.Type, int]] = {
    "f32": (SINGLE, 4),
    "f16": (HALF, 2),
    "bf16": (I16, 2),
    "b2": (I16, 2),
    "b4": (I32, 4),
}
"""Element types of tensors by name, with their bytes; ``b2`` and ``b4`` are elements that are only moved."""
WORD = 8

Value = Any
Carried = Sequence[Value]


def vector(element: ir.Type, lanes: int = LANES) -> ir.VectorType:
    """Return the type of a vector."""
    return ir.VectorType(element, lanes)


F32V, I32V = vector(SINGLE), vector(I32)


class Emitter:
    """Writes one function of a module. ``build`` is llvmlite's builder, for what has no method here."""

    def __init__(self, name: str, host: Host) -> None:
        self.host = host
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER, I64, I64]), name)
        self.block, self.begin, self.end = self.function.args
        self.block.add_attribute("noalias")
        self.build = ir.IRBuilder(self.function.append_basic_block("entry"))

    def finish(self) -> str:
        """End the function and return the text of the module."""
        self.build.ret_void()
        return str(self.module)

    # -- constants and parameters ----------------------------------------------------------------------------------
    def constant(self, value: int, kind: ir.Type = I64) -> Value:
        """Return a constant of an integer type."""
        return ir.Constant(kind, value)

    def splat(self, value: float, kind: ir.VectorType = F32V) -> Value:
        """Return a vector of equal constants."""
        return ir.Constant(kind, [value] * kind.count)

    def word(self, index: int) -> Value:
        """Return a number of the parameter block."""
        return self.build.load(self.at(self.block, self.constant(index * WORD)), align=WORD, typ=I64)

    def pointer(self, index: int) -> Value:
        """Return an address of the parameter block."""
        return self.build.load(self.at(self.block, self.constant(index * WORD)), align=WORD, typ=POINTER)

    # -- arithmetic of offsets -------------------------------------------------------------------------------------
    def at(self, pointer: Value, *offsets: Value) -> Value:
        """Return an address so many bytes further on."""
        total = self.sum(*offsets)
        return self.build.gep(pointer, [total], source_etype=I8)

    def sum(self, *values: Value | int) -> Value:
        """Add numbers; constants may be plain."""
        total = self._number(values[0])
        for value in values[1:]:
            total = self.build.add(total, self._number(value))
        return total

    def times(self, value: Value, factor: Value | int) -> Value:
        """Multiply two numbers."""
        return self.build.mul(self._number(value), self._number(factor))

    def least(self, a: Value, b: Value | int) -> Value:
        """Return the smaller number."""
        other = self._number(b)
        return self.build.select(self.build.icmp_signed("<", a, other), a, other)

    def most(self, a: Value, b: Value | int) -> Value:
        """Return the larger number."""
        other = self._number(b)
        return self.build.select(self.build.icmp_signed(">", a, other), a, other)

    def divide(self, value: Value, divisor: Value | int) -> tuple[Value, Value]:
        """Return quotient and remainder of numbers that are not negative."""
        other = self._number(divisor)
        quotient = self.build.udiv(value, other)
        return quotient, self.build.sub(value, self.build.mul(quotient, other))

    def _number(self, value: Value | int) -> Value:
        return self.constant(value) if isinstance(value, int) else value

    # -- control ---------------------------------------------------------------------------------------------------
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        body: Callable[[Value, list[Value]], Carried | None],
        carried: Carried = (),
        *,
        step: int = 1,
    ) -> list[Value]:
        """Emit ``for i in range(start, stop, step)``; ``body`` gets carried values and returns those of the next turn.

        Returns the values behind the loop.
        """
        build = self.build
        first, last, given = self._number(start), self._number(stop), list(carried)
        inside, behind = build.append_basic_block("turn"), build.append_basic_block("behind")
        before = build.block
        build.cbranch(build.icmp_signed("<", first, last), inside, behind)
        build.position_at_end(inside)
        index = build.phi(I64)
        index.add_incoming(first, before)
        values = [build.phi(value.type) for value in given]
        for value, initial in zip(values, given, strict=True):
            value.add_incoming(initial, before)
        made = list(body(index, list(values)) or ())
        following = build.add(index, self.constant(step))
        end = build.block
        index.add_incoming(following, end)
        for value, new in zip(values, made, strict=True):
            value.add_incoming(new, end)
        build.cbranch(build.icmp_signed("<", following, last), inside, behind)
        build.position_at_end(behind)
        results = []
        for initial, new in zip(given, made, strict=True):
            result = build.phi(initial.type)
            result.add_incoming(initial, before)
            result.add_incoming(new, end)
            results.append(result)
        return results

    def tasks(self, body: Callable[[Value], None]) -> None:
        """Emit the loop over the tasks of the function."""
        self.loop(self.begin, self.end, lambda task, _: body(task))

    # -- memory ----------------------------------------------------------------------------------------------------
    def load(self, pointer: Value, element: str = "f32", *, lanes: int = LANES) -> Value:
        """Load a vector as it lies."""
        kind, size = ELEMENTS[element]
        return self.build.load(pointer, align=size, typ=vector(kind, lanes))

    def store(self, value: Value, pointer: Value, element: str = "f32") -> None:
        """Store a vector as it is."""
        self.build.store(value, pointer, align=ELEMENTS[element][1])

    def load_wide(self, pointer: Value, element: str) -> Value:
        """Load a vector of floats of any width as float32."""
        return self.widened(self.load(pointer, element), element)

    def store_narrow(self, value: Value, pointer: Value, element: str) -> None:
        """Store float32 lanes, rounded once to the width of ``element``."""
        self.store(self.narrowed(value, element), pointer, element)

    def load_some(self, pointer: Value, mask: Value, element: str) -> Value:
        """Load the lanes of a mask, zeros for the others; memory of those is not touched."""
        kind, size = ELEMENTS[element]
        whole = vector(kind, mask.type.count)
        load = self.declare("llvm.masked.load", whole, [POINTER, I32, mask.type, whole], f"{_name(whole)}.p0")
        return self.build.call(load, [pointer, self.constant(size, I32), mask, ir.Constant(whole, None)])

    def store_some(self, value: Value, pointer: Value, mask: Value, element: str) -> None:
        """Store the lanes of a mask."""
        size = ELEMENTS[element][1]
        types = [value.type, POINTER, I32, mask.type]
        store = self.declare("llvm.masked.store", ir.VoidType(), types, f"{_name(value.type)}.p0")
        self.build.call(store, [value, pointer, self.constant(size, I32), mask])

    def first_lanes(self, count: Value, lanes: int = LANES) -> Value:
        """Return the mask of the first ``count`` lanes; all of them when there are more."""
        kind = vector(I32, lanes)
        short = self.build.trunc(self.least(count, lanes), I32)
        return self.build.icmp_signed("<", ir.Constant(kind, list(range(lanes))), self.spread(short, lanes))

    def broadcast(self, pointer: Value) -> Value:
        """Load one float32 into all lanes."""
        return self.spread(self.build.load(pointer, align=4, typ=SINGLE), LANES)

    def spread(self, scalar: Value, lanes: int) -> Value:
        """Return a vector with the same value in all lanes."""
        kind = vector(scalar.type, lanes)
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.build.insert_element(undefined, scalar, self.constant(0, I32))
        return self.build.shuffle_vector(first, undefined, ir.Constant(vector(I32, lanes), [0] * lanes))

    def moved(self, value: Value, lanes: Sequence[int]) -> Value:
        """Return the lanes of a vector in another order."""
        return self.build.shuffle_vector(value, value, ir.Constant(vector(I32, len(lanes)), list(lanes)))

    # -- floats ----------------------------------------------------------------------------------------------------
    def widened(self, value: Value, element: str) -> Value:
        """Return lanes as float32."""
        if element == "f16":
            return self.build.fpext(value, vector(SINGLE, value.type.count))
        if element == "bf16":
            bits = self.build.zext(value, vector(I32, value.type.count))
            return self.bits_to_floats(self.build.shl(bits, self.splat(16, bits.type)))
        return value

    def narrowed(self, value: Value, element: str) -> Value:
        """Return float32 lanes rounded to ``element``, halves to even."""
        if element == "f16":
            return self.build.fptrunc(value, vector(HALF, value.type.count))
        return self._as_bfloat(value) if element == "bf16" else value

    def _as_bfloat(self, value: Value) -> Value:
        build, bits = self.build, self.floats_to_bits(value)
        kind = bits.type
        upper = build.lshr(bits, self.splat(16, kind))
        is_odd = build.and_(upper, self.splat(1, kind))
        rounded = build.lshr(build.add(bits, build.add(is_odd, self.splat(0x7FFF, kind))), self.splat(16, kind))
        is_nan = build.fcmp_unordered("uno", value, value)
        kept = build.select(is_nan, build.or_(upper, self.splat(0x40, kind)), rounded)
        return build.trunc(kept, vector(I16, kind.count))

    def bits_to_floats(self, bits: Value) -> Value:
        """Return the float32 lanes that integers of 32 bits are the bits of."""
        return self.build.bitcast(bits, vector(SINGLE, bits.type.count))

    def floats_to_bits(self, value: Value) -> Value:
        """Return the bits of float32 lanes."""
        return self.build.bitcast(value, vector(I32, value.type.count))

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Return ``a * b + c``, rounded once where the host has an instruction for that."""
        return self.intrinsic("llvm.fmuladd", a, b, c)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call an intrinsic whose result is of the operands' type."""
        kind = operands[0].type
        found = self.declare(name, kind, [value.type for value in operands], _name(kind))
        return self.build.call(found, list(operands))

    def call_function(self, address: Value, block: Value, begin: Value, end: Value) -> None:
        """Call another emitted function by its address."""
        self.build.call(_Callee(address), [block, begin, end])

    def declare(self, name: str, result: ir.Type, types: Sequence[ir.Type], suffix: str = "") -> ir.Function:
        """Return an external function, declared once per module."""
        full = f"{name}.{suffix}" if suffix else name
        found = self.module.globals.get(full)
        return ir.Function(self.module, ir.FunctionType(result, types), full) if found is None else found


class _Callee:
    """An address that is called: llvmlite wants to know the type of the function, which a pointer does not tell."""

    function_type = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])

    def __init__(self, address: Value) -> None:
        self.get_reference = address.get_reference


def _name(type: ir.Type) -> str:
    """Return how intrinsics call a type."""
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{_name(type.element)}"
    if isinstance(type, ir.IntType):
        return f"i{type.width}"
    return {HALF: "f16", SINGLE: "f32"}[type]
