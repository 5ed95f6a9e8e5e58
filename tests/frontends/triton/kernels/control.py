"""Control flow: early returns, loops, branches that yield, functions that stay functions."""

import triton
import triton.language as tl


@triton.jit
def early_return(x, lengths, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    length = tl.load(lengths + row)
    if length == 0:
        return
    offsets = tl.arange(0, BLOCK)
    if length < 0:
        tl.store(out + row * BLOCK + offsets, offsets.to(tl.float32))
        return
    tl.store(out + row * BLOCK + offsets, tl.load(x + row * BLOCK + offsets, mask=offsets < length, other=0.0))


@triton.jit
def collatz(x, steps, limit):
    program = tl.program_id(0)
    n = tl.load(x + program)
    count = 0
    while (n > 1) & (count < limit):
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        count += 1
    tl.store(steps + program, count)


@triton.jit
def branch(x, y, out, threshold, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    value = tl.load(x + row * BLOCK + offsets)
    if row < threshold:
        scale = tl.sum(value, axis=0)
        shift = value
    else:
        scale = 2.0
        shift = tl.load(y + offsets)
    if threshold > 4:
        tl.store(out + row * BLOCK + offsets, value * scale + shift)


@triton.jit
def walk(a, b, out, count, swap, BLOCK: tl.constexpr):
    """Pointers as loop arguments, scalar and tile, and one chosen between two buffers."""
    offsets = tl.arange(0, BLOCK)
    source = a if swap == 0 else b
    tile = tl.where(offsets < 8, a + offsets, b + offsets)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(count):
        total += tl.load(source) + tl.load(tile)
        source += BLOCK
        tile += BLOCK
    for i in range(count, 0, -1):
        for j in range(i):
            total += j
    tl.store(out + offsets, total)


@triton.jit
def nested(x, out, rows, first, step, N: tl.constexpr):
    """A loop in a loop, a step that is not known, a carried scalar pointer, and a tile plus its own transpose."""
    i = tl.arange(0, N)
    total = tl.zeros([N, N], tl.float32)
    for row in range(first, rows, step):
        tile = x + i[:, None] * N + i[None, :]
        for _ in range(row):
            value = tl.load(tile)
            total += value + tl.trans(value)
            tile += N * N
    end = x
    for _ in range(2):
        end += rows
    tl.store(out + i[:, None] * N + i[None, :], total + tl.load(end))


@triton.jit(noinline=True)
def helper(x, scale):
    return tl.load(x) * scale


@triton.jit
def calls(x, out, scale):
    program = tl.program_id(0)
    tl.store(out + program, helper(x + program, scale) + helper(out + program, 2.0))


@triton.jit
def larger_first(a, b):
    if a > b:
        return a, b
    else:
        return b, a


@triton.jit
def elements(x, y, out, n, BLOCK: tl.constexpr):
    """A function of scalars, applied to each element; and what the author promises."""
    tl.assume(n > 0)
    offsets = tl.arange(0, BLOCK)
    high, low = tl.map_elementwise(larger_first, tl.load(x + offsets), tl.load(y + offsets))
    tl.store(out + offsets, high - low)


@triton.jit
def checks(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.device_assert(value >= 0.0, 'negative {"value"}: %d', mask=offsets < n)
    tl.device_print("value, hex: ", value, offsets)
    tl.debug_barrier()
    tl.store(out + offsets, value / tl.num_programs(0), mask=offsets < n)


EXAMPLES = {
    "early_return": ({"x": "*fp32", "lengths": "*i32", "out": "*fp32"}, {"BLOCK": 64}),
    "collatz": ({"x": "*i64", "steps": "*i32", "limit": "i32"}, {}),
    "branch": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "threshold": "i32"}, {"BLOCK": 64}),
    "walk": ({"a": "*fp32", "b": "*fp32", "out": "*fp32", "count": "i32", "swap": "i32"}, {"BLOCK": 16}),
    "nested": ({"x": "*fp32", "out": "*fp32", "rows": "i32", "first": "i32", "step": "i32"}, {"N": 16}),
    "calls": ({"x": "*fp32", "out": "*fp32", "scale": "fp32"}, {}),
    "elements": ({"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 64}),
    "checks": ({"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 64}),
}
