"""Operations of `kdsl/lang/random.py`: Philox words, and the numbers made of them."""

from __future__ import annotations

import math

from kdsl.frontends.python.given import Call
from kdsl.ir.dtypes import F32, I32, U32, U64
from kdsl.ir.kernel import Value

ROUNDS = 10  # of Philox4x32-10, the number its authors recommend


def random_bits(given: Call) -> tuple[Value, ...]:
    trace = given.trace
    key, counter = _halves(given, "seed"), _halves(given, "offset")
    if trace.builder.kernel.tile_axes(key[0]):
        problem = f"{trace.quote(given.where('seed'))} is a tile, and a seed is one integer"
        trace.error(given.where("seed"), "K0206", operation=given.title, problem=problem)
    zero = trace.lift.value(0, U32)
    return given.emit_all("philox", [*counter, zero, zero, *key], {"rounds": ROUNDS}, results=4)


def _halves(given: Call, name: str) -> tuple[Value, Value]:
    """The low and the high 32 bits of an integer; the high ones of a narrower one are zero."""
    lift, thing = given.trace.lift, given[name]
    wide = isinstance(thing, int) and not -(2**31) <= thing < 2**31
    value = given.value(name, U64 if wide else None)
    if not value.dtype.is_integer or value.dtype.is_storage:
        problem = f"{given.trace.quote(given.where(name))} is {value.dtype}, not an integer"
        given.trace.error(given.where(name), "K0206", operation=given.title, problem=problem)
    if value.dtype.bits < 64:
        return lift.cast(value, U32), lift.value(0, U32)
    high = lift.apply("shr", [lift.cast(value, U64), 32], given.title)
    return lift.cast(value, U32), lift.cast(high, U32)


def _fraction(given: Call, bits: Value) -> Value:
    """The upper 24 bits, all of which an f32 holds, as an i32."""
    return given.trace.lift.cast(given.trace.lift.apply("shr", [bits, 8], given.title), I32)


def uniform(given: Call) -> Value:
    first, *_ = random_bits(given)
    return _scaled(given, _fraction(given, first))


def _scaled(given: Call, fraction: Value) -> Value:
    lift = given.trace.lift
    return lift.apply("mul", [lift.cast(fraction, F32), 2.0**-24], given.title)


def normal(given: Call) -> Value:
    """sqrt(-2 log u) cos(2 pi v) of uniform u in (0, 1] and v in [0, 1): Box and Muller, 1958."""
    apply, title = given.trace.lift.apply, given.title
    first, second, *_ = random_bits(given)
    u = _scaled(given, apply("add", [_fraction(given, first), 1], title))
    v = _scaled(given, _fraction(given, second))
    radius = apply("sqrt", [apply("mul", [apply("log", [u], title), -2.0], title)], title)
    return apply("mul", [radius, apply("cos", [apply("mul", [v, 2 * math.pi], title)], title)], title)
