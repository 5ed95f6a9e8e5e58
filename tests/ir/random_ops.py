"""Random ops for random kernels: those of the rows for tiles, access and control, one function each.

Where an op may give poison, what follows is guarded, so that no result depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL, DTYPES, F32, I32, U8, U32, DType
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Bound, Op, Region, Text, Value
from kdsl.ir.meaning import COMBINES
from kdsl.ir.ops import OPS

M, N = symbol("M"), symbol("N")
ROW, COLUMN = symbol("BM") * symbol("m_block") + symbol("m"), symbol("BN") * symbol("n_block") + symbol("n")
BINS = 8


class Generator(Protocol):
    """What these functions ask of the generator of kernels."""

    builder: Builder
    pool: list[Value]
    atomic: str
    named: bool

    def choose(self, options: Sequence[Any]) -> Any: ...
    def emit(
        self, name: str, operands: Sequence[Value] = (), dtype: DType | None = None, **attributes: Any
    ) -> Value: ...
    def value(self, dtype: DType) -> Value: ...
    def constant(self, dtype: DType | None = None) -> Value: ...
    def read(self, buffer: str, index: tuple[Any, ...], **attributes: Any) -> Value: ...
    def settled(self, value: Value, dtype: DType) -> Value: ...
    def step(self) -> None: ...


def _emit_all(g: Generator, name: str, operands: Sequence[Value], regions: Any = (), **attributes: Any) -> list[Value]:
    types = OPS[name].infer(g.builder.kernel, Op(name, tuple(operands), (), attributes, tuple(regions)))
    results = g.builder.emit_all(name, operands, attributes, [name] * len(types), regions)
    g.pool += results
    return list(results)


def _source(g: Generator, kinds: str = "bool int uint float") -> tuple[Value, str]:
    """A value that computes, of one of the kinds of dtype, and one of its tile axes."""
    tiles = g.builder.kernel.tile_axes
    fitting = [v for v in g.pool if tiles(v) and v.dtype.kind in kinds.split() and not v.dtype.is_storage]
    value = g.choose(fitting) if fitting else g.emit("cast", [g.read("x", (ROW, COLUMN))], I32)
    return value, g.choose(tiles(value))


def _over(g: Generator, axis: str, without: Sequence[str] = ()) -> Value:
    """A value that varies over an axis without invalid lanes, and over none of some others."""
    fitting = [v for v in g.pool if axis in v.axes and not set(without) & set(v.axes)]
    if fitting:
        return g.choose(fitting)
    lane = g.emit("index", dtype=I32, form=symbol(axis) - 1)
    return lane if axis != "d" else g.read("p", (ROW, symbol("d")))


def _number(g: Generator, value: int, dtype: DType = I32) -> Value:
    return g.emit("constant", dtype=dtype, value=bool(value) if dtype == BOOL else value)


def _place(g: Generator, count: Value) -> Value:
    """A number below the count, 0 where that is 0."""
    return g.emit("floormod", [g.value(I32), count])


def _guarded(g: Generator, there: Value, value: Value) -> Value:
    return g.emit("select", [there, value, g.constant(value.dtype)])


def scan(g: Generator) -> None:
    source, axis = _source(g)
    options = [name for name, each in COMBINES.items() if source.dtype.kind in each.kinds and each.result is None]
    g.emit("scan", [source], axis=axis, combine=g.choose(options), **g.choose([{}, {"reverse": True}]))


def sort(g: Generator) -> None:
    source, axis = _source(g)
    others = g.choose([[], [g.choose(g.pool)]])
    _emit_all(g, "sort", [source, *others], axis=axis, **g.choose([{}, {"descending": True}]))


def topk(g: Generator) -> None:
    source, axis = _source(g)
    if {"r", "w"} & set(source.axes):
        return
    ones = g.emit("broadcast", [_number(g, 1)], axes=source.axes)
    count = g.emit("reduce", [ones], axis=axis, combine="add")
    there = g.emit("lt", [g.emit("index", dtype=I32, form=symbol("r")), count])
    before = list(g.pool)
    values, lanes = _emit_all(g, "topk", [source], axis=axis, target="r")
    g.pool[:] = before
    _guarded(g, there, values)
    _guarded(g, there, lanes)


def gather(g: Generator) -> None:
    source = _over(g, "d")
    g.emit("gather", [source, _place(g, _number(g, 4))], axis="d")


def histogram(g: Generator) -> None:
    source, axis = _source(g, "int uint")
    if "d" not in source.axes:
        g.emit("histogram", [source], axis=axis, target="d")


def rearrange(g: Generator) -> None:
    g.emit("flip", [_over(g, "d")], axis="d")
    g.emit("relabel", [_over(g, "d", ["v"])], source="d", target="v")
    first = _over(g, "d", ["w"])
    second = g.emit("cast", [_over(g, "d", ["w"])], first.dtype)
    g.emit("concat", [first, second], source=("d", "d"), target="w")


def join(g: Generator) -> None:
    flat = [value for value in g.pool if "r" not in value.axes]
    first = g.choose(flat) if flat else _number(g, 3)
    second = g.emit("cast", [g.choose(flat) if flat else first], first.dtype)
    _emit_all(g, "split", [g.emit("join", [first, second], axis="r")], axis="r")


def philox(g: Generator) -> None:
    _emit_all(g, "philox", [g.value(U32) for _ in range(6)], rounds=g.choose([7, 10]))


def dot_scaled(g: Generator) -> None:
    floats = [DTYPES[name] for name in ("f8e4m3", "f8e5m2", "f4e2m1", "bf16")]
    left = g.emit("cast", [g.read("p", (ROW, symbol("d")))], g.choose(floats))
    right = g.emit("cast", [g.read("q", (symbol("d"), COLUMN))], g.choose(floats))
    scale = g.emit("cast", [g.emit("index", dtype=I32, form=symbol("r") + 126)], U8)
    if not set(g.builder.kernel.tile_axes(left)) & set(g.builder.kernel.tile_axes(right)) - {"d"}:
        g.emit("dot_scaled", [left, scale, right, scale], axis="d", left_group="r", right_group="r")


def bitcast(g: Generator) -> None:
    value = g.choose(g.pool)
    fitting = [dtype for dtype in DTYPES.values() if dtype.bits == value.dtype.bits and dtype != BOOL]
    if value.dtype != BOOL:
        g.emit("bitcast", [value], g.choose(fitting))


def load_at(g: Generator) -> None:
    row, columns = g.emit("index", dtype=I32, form=ROW), g.emit("index", dtype=I32, form=N)
    mask = g.emit("in_bounds", bounds=(Bound(ROW, None, M), Bound(wrap(0), None, N)))
    fill = {"fill": 0 if g.builder.kernel.buffer("x").dtype != BOOL else False}
    g.emit("load_at", [row, _place(g, columns), mask], buffer="x", masked=True, **fill)


def store_at(g: Generator) -> None:
    value = g.settled(g.choose(g.pool), g.builder.kernel.buffer("y").dtype)
    row, column = (g.emit("index", dtype=I32, form=form) for form in (ROW, COLUMN))
    mask = g.emit("in_bounds", bounds=(Bound(ROW, None, M), Bound(COLUMN, None, N)))
    g.builder.effect("store_at", [value, row, column, mask], {"buffer": "y", "masked": True})


def atomic(g: Generator) -> None:
    """On shared elements only what commutes; the old value only of an element that no other program has."""
    value, place = g.value(I32), _place(g, _number(g, BINS))
    g.builder.effect("atomic", [value, place], {"buffer": "bins", "combine": g.atomic})
    block = [g.emit("index", dtype=I32, form=symbol(name)) for name in ("m_block", "n_block")]
    own = g.emit("cast", [_number(g, 5)], I32)
    g.emit("atomic", [own, *block], I32, buffer="slots", combine=g.choose(["add", "exchange"]))
    g.emit("atomic_cas", [own, _number(g, 9), *block], I32, buffer="slots")


def combine_by(g: Generator) -> None:
    """A linear recurrence of integers, or the largest of floats: exact in any grouping."""
    source, axis = _source(g, g.choose(["int uint", "float"]))
    kernel, dtype = g.builder.kernel, source.dtype
    axes = kernel.order({*source.axes, *kernel.with_validity(kernel.decided_along(axis, source.axes))})
    names = [g.builder.fresh(name) for name in ("fa", "fb", "sa", "sb")]
    first, second, third, fourth = (Value(name, dtype, axes) for name in names)
    outer = list(g.pool)
    with g.builder.region() as ops:
        if dtype.is_float:
            arguments, operands = (first, second), [source]
            final: tuple[Value, ...] = (g.emit("maximum", [first, second]),)
        else:
            arguments, operands = (first, second, third, fourth), [source, source]
            final = (
                g.emit("mul", [first, third]),
                g.emit("add", [g.emit("mul", [second, third]), fourth]),
            )
        ops.append(Op("yield", final))
    region = Region(arguments, tuple(ops))
    g.pool[:] = outer
    if g.choose([True, False]):
        _emit_all(g, "scan_by", operands, [region], axis=axis, **g.choose([{}, {"reverse": True}]))
        return
    there = g.emit("broadcast", [_number(g, 1, BOOL)], axes=axes)
    there = g.emit("reduce", [there], axis=axis, combine="maximum")
    before = list(g.pool)
    results = _emit_all(g, "reduce_by", operands, [region], axis=axis)
    g.pool[:] = before
    for result in results:
        _guarded(g, there, result)


def branch(g: Generator) -> None:
    limit = g.emit("index", dtype=I32, form=N - 3)
    condition = g.emit("lt", [g.emit("index", dtype=I32, form=symbol("m_block") + symbol("n_block")), limit])
    dtype, outer = g.choose(DTYPES.values()), list(g.pool)
    regions = []
    for _ in range(2):
        g.pool[:] = outer
        with g.builder.region() as ops:
            g.step()
            ops.append(Op("yield", (g.value(dtype),)))
        regions.append(Region((), tuple(ops)))
    g.pool[:] = outer
    _emit_all(g, "if", [condition], regions)


def repeat(g: Generator) -> None:
    """A while that counts to a number of the program's own and carries a tile."""
    kernel, outer = g.builder.kernel, list(g.pool)
    initial = [_number(g, 0), g.constant(F32)]
    axes = [("m_block",), kernel.order(["m_block", "n_block", "m", "n"])]
    tested, carried = (
        [Value(g.builder.fresh("round"), I32, axes[0]), Value(g.builder.fresh("state"), F32, axes[1])] for _ in range(2)
    )
    with g.builder.region() as test:
        limit = g.emit("index", dtype=I32, form=symbol("m_block") % 3)
        test.append(Op("yield", (g.emit("lt", [tested[0], limit]),)))
    g.pool[:] = [*outer, *carried]
    with g.builder.region() as body:
        g.step()
        final = g.settled(g.choose([*g.pool[-2:], carried[1]]), F32)
        body.append(Op("yield", (g.emit("add", [carried[0], _number(g, 1)]), final)))
    g.pool[:] = [*outer, *initial]
    _emit_all(g, "while", initial, [Region(tuple(tested), tuple(test)), Region(tuple(carried), tuple(body))])


def report(g: Generator) -> None:
    flag = g.value(BOOL)
    holds = g.emit("or", [flag, g.emit("not", [flag])])
    g.builder.effect("assert", [holds], {"message": Text('it "holds"\\\n')})
    g.builder.effect("print", [_number(g, 1)], {"message": Text("é")})
    g.builder.effect("breakpoint", (), {})


def poison(g: Generator) -> None:
    outer, dtype = list(g.pool), g.choose(DTYPES.values())
    nothing = g.emit("poison", dtype=dtype, axes=g.choose([("m",), ("m", "n"), ()]))
    g.pool[:] = outer
    g.emit("select", [_number(g, 1, BOOL), g.value(dtype), nothing])


def name(g: Generator) -> None:
    """An integer of the program's own, that forms mention from then on."""
    if not g.named:
        g.named = True
        g.builder.name_integer("L", g.emit("index", dtype=I32, form=symbol("m_block") * 2 - 1))
    g.emit("index", dtype=I32, form=symbol("L") + symbol("m"))


# Where a step may stand: anywhere, or in the kernel's body alone.
ANYWHERE: list[Callable[[Generator], None]] = [
    *(scan, scan, sort, topk, gather, histogram, rearrange, join, philox, dot_scaled, bitcast),
    *(load_at, store_at, atomic, combine_by, combine_by, report, poison),
]
AT_TOP: list[Callable[[Generator], None]] = [branch, repeat, name]
