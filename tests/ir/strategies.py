"""Random kernels that mean something: verified, bound to small sizes, with arguments.

Every load of a valid lane is in bounds or filled, and no two programs write one element; so the result depends neither
on what poison is nor on the order of the programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kdsl.diagnostics import Location
from kdsl.ir.builder import Builder
from kdsl.ir.dtypes import BOOL, DTYPES, F32, I32, I64, DType
from kdsl.ir.expr import Expr, cdiv, function, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Buffer, Kernel, Op, Region, Scalar, Size, TileParameter, Value, whole
from kdsl.ir.meaning import COMBINES
from kdsl.ir.ops import OPS
from kdsl.ir.type_rules import PRECISIONS, OpTypeError
from kdsl.ir.verify import verify
from tests.ir import random_ops

POINTWISE = [name for name, spec in OPS.items() if spec.pointwise is not None and name != "select"]
LOCATIONS = [None, Location("a.py", 3, 5, 9), Location("a.py", 3, 5), Location('b "c".py', 7, 1, 2)]
M, N, K, BM, BN, BK = (symbol(name) for name in ("M", "N", "K", "BM", "BN", "BK"))
ROW, COLUMN = BM * symbol("m_block") + symbol("m"), BN * symbol("n_block") + symbol("n")
DEPTH = BK * symbol("k_step") + symbol("k")


@dataclass(frozen=True)
class Case:
    """A kernel, the sizes to bind it with, and arguments for a run."""

    kernel: Kernel
    sizes: dict[str, int]
    arguments: dict[str, Any]


def random_array(rng: np.random.Generator, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Small numbers that every dtype holds, so that few results overflow."""
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        return np.asarray(rng.normal(0, 2, shape)).astype(dtype.numpy)
    return rng.integers(0 if dtype.kind == "uint" else -9, 10, shape).astype(dtype.numpy)


@functools.cache
def dtypes_of(name: str) -> tuple[DType, ...]:
    """The dtypes that all operands of a pointwise op may have."""
    return tuple(dtype for dtype in DTYPES.values() if _accepts(name, dtype))


def _accepts(name: str, dtype: DType) -> bool:
    kernel = Kernel("none", (), (), (), (), (), Region())
    operands = tuple(Value(operand, dtype) for operand in OPS[name].operands)
    try:
        OPS[name].infer(kernel, Op(name, operands))
    except OpTypeError:
        return False
    return True


class _Generator:
    """Appends random ops to a builder; `pool` is what later ops may use."""

    def __init__(self, draw: Callable[[Any], Any], builder: Builder) -> None:
        self.draw, self.builder = draw, builder
        self.pool: list[Value] = []
        self.atomic = self.choose(["add", "maximum", "minimum", "and", "or", "xor"])
        self.named = False

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def emit(self, name: str, operands: Sequence[Value] = (), dtype: DType | None = None, **attributes: Any) -> Value:
        self.builder.location = self.choose(LOCATIONS)
        value = self.builder.emit(name, operands, attributes, dtype=dtype, hint=self.choose(["", "x", "out"]))
        self.pool.append(value)
        return value

    def value(self, dtype: DType) -> Value:
        """A value of a dtype: one of the pool, or one that is cast or made for it."""
        fitting = [value for value in self.pool if value.dtype == dtype]
        if fitting and self.choose([True, True, False]):
            return self.choose(fitting)
        return self.emit("cast", [self.choose(self.pool)], dtype) if self.pool else self.constant(dtype)

    def number(self, dtype: DType) -> bool | int | float:
        if dtype == BOOL:
            return self.draw(st.booleans())
        if dtype.is_float:
            return self.draw(st.floats())
        half = 1 << min(dtype.bits, 8) - 1
        return self.draw(st.integers(0 if dtype.kind == "uint" else -half, half - 1))

    def constant(self, dtype: DType | None = None) -> Value:
        dtype = dtype or self.choose(DTYPES.values())
        return self.emit("constant", dtype=dtype, value=self.number(dtype))

    # One method an op that is not pointwise, and one for all that are.

    def pointwise(self) -> Value:
        name = self.choose(POINTWISE)
        dtype = self.choose(dtypes_of(name))
        return self.emit(name, [self.value(dtype) for _ in OPS[name].operands])

    def select(self) -> Value:
        dtype = self.choose(self.pool).dtype
        return self.emit("select", [self.value(BOOL), self.value(dtype), self.value(dtype)])

    def cast(self) -> Value:
        source, dtype = self.choose(self.pool), self.choose(DTYPES.values())
        more: dict[str, Any] = {}
        if dtype.is_float:
            more |= self.choose([{}, {"saturate": True}])
            more |= self.choose([{}, {"rounding": "zero"}]) if source.dtype.is_float else {}
        return self.emit("cast", [source], dtype, **more)

    def argument(self) -> Value:
        return self.emit("argument", scalar="s")

    def index(self) -> Value:
        return self.emit("index", dtype=self.choose([I32, I64]), form=self.form())

    def form(self) -> Expr:
        simple = self.choose([ROW, COLUMN, symbol("m"), symbol("d"), M * 2 - N, wrap(3)])
        other = self.choose([ROW, COLUMN, wrap(2)])
        return self.choose([simple, simple - 2 * other, simple % 3, cdiv(simple, 2), function("min", simple, other)])

    def in_bounds(self) -> Value:
        lower, upper = self.choose([(None, N), (wrap(1), None), (wrap(0), M - 1)])
        return self.emit("in_bounds", bounds=(Bound(self.form(), lower, upper), Bound(ROW, None, M)))

    def broadcast(self) -> Value:
        return self.emit(
            "broadcast", [self.choose(self.pool)], axes=self.choose([("m",), ("m", "n"), ("n_block", "d")])
        )

    def reduce(self) -> Value:
        tiles = [value for value in self.pool if self.builder.kernel.tile_axes(value)]
        source = self.choose(tiles) if tiles else self.load()
        return self.reduce_along(source, self.choose(self.builder.kernel.tile_axes(source)))

    def reduce_along(self, source: Value, axis: str) -> Value:
        if source.dtype.is_storage:
            source = self.emit("cast", [source], F32 if source.dtype.is_float else I32)
        combines = [name for name, combine in COMBINES.items() if source.dtype.kind in combine.kinds]
        return self.emit("reduce", [source], axis=axis, combine=self.choose(combines))

    def dot(self) -> Value:
        kernel = self.builder.kernel
        self.read("p", (ROW, symbol("d")))
        self.read("q", (symbol("d"), COLUMN))
        pairs = [
            (left, right, axis)
            for left in self.pool
            for right in self.pool
            for axis in kernel.tile_axes(left)
            if axis in right.axes
            and not any(kernel.axis(name).kind == "tile" for name in kernel.with_validity([axis]) if name != axis)
        ]
        if not pairs:  # with causal columns, every tile may vary over the rows
            return self.pointwise()
        left, right, axis = self.choose(pairs)
        dtype = self.choose([each for each in DTYPES.values() if each.kind in ("float", "int")])
        operands = [self.emit("cast", [value], dtype) for value in (left, right)]
        return self.emit("dot", operands, axis=axis, precision=self.choose(PRECISIONS))

    def reshape(self) -> Value:
        flat = [value for value in self.pool if "d" in value.axes and not {"r", "c"} & set(value.axes)]
        source = self.choose(flat) if flat else self.read("p", (ROW, symbol("d")))
        return self.emit("reshape", [source], source=("d",), target=("r", "c"))

    def read(self, buffer: str, index: tuple[Expr, ...], **attributes: Any) -> Value:
        return self.emit("load", buffer=buffer, index=index, **attributes)

    def load(self) -> Value:
        if self.choose([True, False]):
            return self.read("x", (ROW, COLUMN))
        shifted = COLUMN * self.choose([1, -1]) + self.choose([-2, 1])
        bounds = (Bound(shifted, wrap(0), N),)
        return self.read("x", (ROW, shifted), bounds=bounds, fill=self.number(self.builder.kernel.buffer("x").dtype))

    def step(self) -> None:
        rows = [self.pointwise] * 12 + [self.select, self.cast, self.constant, self.argument, self.index]
        rows += [self.in_bounds, self.broadcast, self.reduce, self.reduce, self.dot, self.reshape, self.load, self.load]
        more = [functools.partial(add, self) for add in random_ops.ANYWHERE]
        self.choose([*rows, *more])()

    def loop(self) -> None:
        """A loop over k_step that carries one or two values over the rows and columns."""
        kernel, outer = self.builder.kernel, list(self.pool)
        axes = kernel.order(["m_block", "n_block", "k_step", "m", "n"])
        dtypes = self.draw(st.lists(st.sampled_from([F32, I32, self.choose(DTYPES.values())]), min_size=1, max_size=2))
        initial = [self.constant(dtype) for dtype in dtypes]
        arguments = [Value(self.builder.fresh("carried"), dtype, axes) for dtype in dtypes]
        with self.builder.region() as ops:
            self.pool = outer + arguments
            self.read("a", (ROW, DEPTH))
            self.read("b", (DEPTH, COLUMN))
            for _ in range(self.draw(st.integers(1, 4))):
                self.step()
            final = [self.settled(self.choose([*self.pool[-3:], argument]), argument.dtype) for argument in arguments]
            ops.append(Op("yield", tuple(final)))
        self.pool = outer + initial + list(self.builder.loop("k_step", initial, arguments, ops, ["x"] * len(dtypes)))

    def settled(self, value: Value, dtype: DType) -> Value:
        """The value as one of a dtype over rows and columns alone."""
        for axis in self.builder.kernel.tile_axes(value):
            if axis not in ("m", "n"):
                value = self.reduce_along(value, axis)
        return value if value.dtype == dtype else self.emit("cast", [value], dtype)

    def store(self) -> None:
        value = self.settled(self.pool[-1], self.builder.kernel.buffer("y").dtype)
        self.builder.effect("store", [value], {"buffer": "y", "index": (ROW, COLUMN)})
        value = self.settled(self.choose(self.pool), F32)
        if "n" in value.axes:
            value = self.reduce_along(value, "n")
            value = value if value.dtype == F32 else self.emit("cast", [value], F32)
        bounds = self.choose([{}, {"bounds": (Bound(ROW, wrap(1), M),)}])
        self.builder.effect("store", [value], {"buffer": "z", "index": (ROW, symbol("n_block")), **bounds})


def _axes(choose: Callable[[Sequence[Any]], Any]) -> tuple[Axis, ...]:
    trips = choose([cdiv(K, BK), function("min", cdiv(K, BK), symbol("m_block") + 1)])
    columns = choose(
        [
            (Bound(COLUMN, None, N),),
            (Bound(COLUMN, wrap(1), N),),
            (Bound(COLUMN, None, N), Bound(COLUMN, None, ROW + 1)),  # causal
        ]
    )
    return (
        Axis("m_block", "program", cdiv(M, BM)),
        Axis("n_block", "program", cdiv(N, BN)),
        Axis("k_step", "loop", trips),
        Axis("m", "tile", BM, (Bound(ROW, None, M),)),
        Axis("n", "tile", BN, columns),
        Axis("k", "tile", BK, (Bound(DEPTH, None, K),)),
        whole("d", 4),
        whole("r", 2),
        whole("c", 2),
        whole("v", 4),
        whole("w", 8),
    )


@st.composite
def kernels(draw: Any) -> Case:
    """A verified kernel, sizes (zero included) and arguments."""

    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(list(options)))

    shapes = {"x": (M, N), "a": (M, K), "b": (K, N), "p": (M, wrap(4)), "q": (wrap(4), N)}
    outputs = {"y": (choose(DTYPES.values()), (M, N)), "z": (F32, (M, cdiv(N, BN)))}
    shared = {"bins": (I32, (wrap(random_ops.BINS),)), "slots": (I32, (cdiv(M, BM), cdiv(N, BN)))}
    parameters: list[Buffer | Scalar] = [Buffer(name, choose(DTYPES.values()), shape) for name, shape in shapes.items()]
    parameters.append(Scalar("s", choose(DTYPES.values())))
    parameters += [Buffer(name, dtype, shape, choose(["out", "inout"])) for name, (dtype, shape) in outputs.items()]
    parameters += [Buffer(name, dtype, shape, "inout") for name, (dtype, shape) in shared.items()]
    tiles = tuple(TileParameter(name, draw(st.integers(1, 5))) for name in ("BM", "BN", "BK"))
    place = choose([None, Location("a.py", 1)])
    sizes = (Size("M"), Size("N"), Size("K"))
    builder = Builder(Kernel("random", tuple(parameters), sizes, tiles, (), _axes(choose), Region(), place))
    generator = _Generator(draw, builder)
    generator.load()
    looped = choose([True, False])
    for step in range(draw(st.integers(2, 9))):
        if looped and step == 0:
            generator.loop()
        if choose([True, False, False, False]):
            choose(random_ops.AT_TOP)(generator)
        generator.step()
    generator.store()
    bound = {name: draw(st.integers(0, 7)) for name in ("M", "N", "K")}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    environment = {**bound, **{tile.name: tile.default for tile in tiles}}
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        shape = [extent.evaluate(environment) for extent in parameter.shape] if isinstance(parameter, Buffer) else []
        array = random_array(rng, parameter.dtype, shape)
        plain = bool if parameter.dtype == BOOL else float if parameter.dtype.is_float else int
        arguments[parameter.name] = array if isinstance(parameter, Buffer) else plain(array)
    return Case(verify(builder.finish()), bound, arguments)
