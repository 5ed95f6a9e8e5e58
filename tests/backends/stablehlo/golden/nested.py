"""nested for any XLA device: one loop over the programs, in bounded memory.

    nested(x: f32[M, N]) -> y: f32[M]

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


@functools.partial(jax.jit, static_argnames=("BN",))
def nested(x, *, BN=8):
    """Return y: f32[M]."""
    check("x", x, jnp.float32, 2)
    M, N = x.shape
    if BN < 1:
        raise ValueError("tile sizes are at least 1")
    n_blocks = cdiv(N, BN)
    y = jnp.zeros((M,), jnp.float32)
    if M == 0:
        return y
    x = pad(x, (0, max(1, M)), (0, BN * max(1, n_blocks)))

    def program(m, y):
        def step(i, outer):
            def step_1(n_block, acc):
                x_tile = jax.lax.dynamic_slice(x, (i, BN * n_block), (1, BN))[0]
                s = jnp.sum(x_tile, axis=0)
                next = acc + s
                return next

            inner = jax.lax.fori_loop(0, n_blocks, step_1, outer)
            return inner

        all = jax.lax.fori_loop(0, m + 1, step, jnp.float32(0.0))
        y = jax.lax.dynamic_update_slice(y, jnp.full((1,), all, jnp.float32), (m,))
        return y

    y = jax.lax.fori_loop(0, M, program, y)
    return y
