"""strided_window for any XLA device: one loop over the programs, in bounded memory.

    strided_window(x: f32[L], w: f32[3]) -> y: f32[P]

From IR text, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
"""

import functools

import jax
import jax.numpy as jnp


def cdiv(a, b):
    return -(-a // b)


def check(name, array, dtype, rank):
    """Raise ValueError unless the array has this dtype and number of dimensions."""
    if array.dtype != dtype or array.ndim != rank:
        expected = f"{rank} dimensions of {jnp.dtype(dtype).name}"
        raise ValueError(f"{name}: expected {expected}, got {array.dtype.name}{list(array.shape)}")


def pad(array, *ranges):
    """Zeros around the array, so that each dimension has at least the indices low <= index < high."""
    sides = [(-low, max(0, high - size)) for (low, high), size in zip(ranges, array.shape, strict=True)]
    return jnp.pad(array, sides)


@functools.partial(jax.jit, static_argnames=("BL",))
def strided_window(x, w, *, BL=16):
    """Return y: f32[P]."""
    check("x", x, jnp.float32, 1)
    check("w", w, jnp.float32, 1)
    (L,) = x.shape
    P = (L + 1) // 2
    if w.shape != (3,):
        raise ValueError(f"w[3]: expected shape {(3,)}, got {w.shape}")
    if BL < 1:
        raise ValueError("tile sizes are at least 1")
    l_blocks = cdiv(P, BL)
    y = jnp.zeros((P,), jnp.float32)
    if l_blocks == 0:
        return y
    x = pad(x, (-1, 2 * BL * l_blocks))
    y = pad(y, (0, BL * l_blocks))
    l_lane = jnp.arange(BL)

    def program(l_block, y):
        start = jnp.zeros((BL,), jnp.float32)

        def step(t, a):
            inside = 2 * BL * l_block + 2 * l_lane + t - 1 >= 0
            inside &= 2 * BL * l_block + 2 * l_lane + t - 1 < L
            inside &= BL * l_block + l_lane < P
            x_box = jax.lax.dynamic_slice(x, (2 * BL * l_block + t,), (2 * BL - 1,))[::2]
            x_tile = jnp.where(inside, x_box, 0.0)
            w_tile = jax.lax.dynamic_slice(w, (t,), (1,))[0]
            p = x_tile * w_tile
            b = a + p
            return b

        acc = jax.lax.fori_loop(0, 3, step, start)
        y = jax.lax.dynamic_update_slice(y, acc, (BL * l_block,))
        return y

    y = jax.lax.fori_loop(0, l_blocks, program, y)
    return y[:P]
