"""`import_kernel`: a TTIR function as a kernel of the IR, for kernels without branches.

    %o = tt.make_range {end = 64, start = 0}          axis offsets < 64
    %p = tt.splat %x                                  %offsets: i32[offsets] = index {form = offsets}
    %q = tt.addptr %p, %o                      ->     %value: f32[offsets] = load_at %offsets {buffer = x}
    %v = tt.load %q

Splat, broadcast, expand_dims and trans vanish: values have axes (`axes.py`). A pointer is a buffer and an offset, also
where a loop carries it. Buffers are flat; `x_elements` is the size of buffer x, `grid_0` that of the grid's first axis.
A masked load without `other` gives zero, as Triton's compiler does.
"""

from __future__ import annotations

from collections.abc import Callable

from kdsl.frontends.triton import loops, memory, pointwise, tiles
from kdsl.frontends.triton.axes import shape
from kdsl.frontends.triton.forms import check_forms
from kdsl.frontends.triton.module import Block, Module, Operation
from kdsl.frontends.triton.scope import Pointer, Scope
from kdsl.frontends.triton.signature import GRID, refusal
from kdsl.ir.expr import symbol, wrap
from kdsl.ir.kernel import Kernel
from kdsl.ir.type_rules import OpTypeError
from kdsl.ir.verify import verify


def import_kernel(module: Module) -> Kernel:
    """The kernel of a module, verified. Raises KdslError K0913 for what is not read, with the author's line."""
    function = module.functions[0]
    if len(function.body.blocks) != 1:
        raise refusal("a return in the middle", function.body.blocks[0].operations[-1])
    check_forms(function)
    scope = Scope(function, _read_block)
    scope.read(scope, function.body.blocks[0])
    return verify(scope.builder.finish())


def _read_block(scope: Scope, block: Block) -> None:
    for operation in block.operations:
        if operation.place is not None:
            scope.builder.location = operation.place.location
        try:
            _read(scope, operation)
        except OpTypeError as error:
            raise refusal(f"{operation.name} ({error})", operation) from None


def _read(scope: Scope, operation: Operation) -> None:
    emit = pointwise.emitter(operation.name)
    if emit is not None:
        _read_pointwise(scope, operation, emit)
    elif operation.name in OPERATIONS:
        OPERATIONS[operation.name](scope, operation)
    else:
        raise refusal(operation.name, operation)


def _read_pointwise(scope: Scope, operation: Operation, emit: pointwise.Emit) -> None:
    dtype = pointwise.dtype_of(operation.result.type)
    if dtype is None or any(isinstance(scope.meanings[name], Pointer) for name in operation.operands):
        raise refusal(f"{operation.name} of {operation.result.type}", operation)
    operands = [scope.operand(name, operation.result) for name in operation.operands]
    result = emit(scope.builder, operation, operands, dtype)
    if result is None:
        words = " ".join(map(str, operation.words))
        raise refusal(f"{operation.name} {words} of {operation.operands[0].type}", operation)
    scope.define(operation.result, result)


def _vanish(scope: Scope, operation: Operation) -> None:
    (source,), result = operation.operands, operation.result
    meaning = scope.meanings[source]
    if not shape(source):
        scope.meanings[result] = meaning
        return
    match operation.name:
        case "tt.expand_dims":
            kept = [each for each in range(len(shape(result))) if each != operation.attributes["axis"]]
            order = list(range(len(kept)))
        case "tt.trans":
            kept, order = list(range(len(shape(result)))), list(operation.attributes["order"])  # type: ignore[arg-type]
        case _:
            kept = order = [d for d, size in enumerate(shape(result)) if shape(source)[d] == size]
    sources = [scope.axis(source, each) for each in order]
    targets = [scope.axis(result, each) for each in kept]
    if isinstance(meaning, Pointer):
        offset = None if meaning.offset is None else scope.align(meaning.offset, sources, targets)
        scope.meanings[result] = Pointer(meaning.buffer, offset)
    else:
        scope.meanings[result] = scope.align(meaning, sources, targets)
    if source in scope.numbers:
        scope.numbers[result] = scope.numbers[source]


def _constant(scope: Scope, operation: Operation) -> None:
    value = operation.words[0]
    dtype = pointwise.dtype_of(operation.result.type)
    if dtype is None or isinstance(value, tuple):
        raise refusal(f"a constant of type {operation.result.type}", operation)
    scope.numbers[operation.result] = value
    scope.define(operation.result, scope.builder.emit("constant", attributes={"value": value}, dtype=dtype))


def _make_range(scope: Scope, operation: Operation) -> None:
    start = operation.attributes["start"]
    axis = scope.axis(operation.result, 0)
    assert isinstance(start, int)
    scope.define(operation.result, scope.index(wrap(start) + (symbol(axis) if axis is not None else 0)))


def _program_id(scope: Scope, operation: Operation) -> None:
    place = GRID.index(str(operation.words[0]))
    scope.define(operation.result, scope.index(symbol(f"program_{place}")))


def _num_programs(scope: Scope, operation: Operation) -> None:
    place = GRID.index(str(operation.words[0]))
    scope.define(operation.result, scope.index(symbol(f"grid_{place}")))


def _nothing(scope: Scope, operation: Operation) -> None:
    """The end of the function, or a promise about values that are computed anyway."""


OPERATIONS: dict[str, Callable[[Scope, Operation], None]] = {
    "arith.constant": _constant,
    "tt.splat": _vanish,
    "tt.broadcast": _vanish,
    "tt.expand_dims": _vanish,
    "tt.trans": _vanish,
    "tt.make_range": _make_range,
    "tt.get_program_id": _program_id,
    "tt.get_num_programs": _num_programs,
    "tt.addptr": memory.addptr,
    "tt.load": memory.load,
    "tt.store": memory.store,
    "tt.reduce": tiles.reduce,
    "tt.dot": tiles.dot,
    "scf.for": loops.loop,
    "tt.return": _nothing,
    "llvm.intr.assume": _nothing,
}
