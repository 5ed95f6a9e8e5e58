"""reverse for any XLA device: one loop over the programs, in bounded memory.

    reverse(x: f32[N]) -> (y: f32[N], z: f32[2*N])

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
def reverse(x, *, BN=16):
    """Return y: f32[N], z: f32[2*N]."""
    check("x", x, jnp.float32, 1)
    (N,) = x.shape
    if BN < 1:
        raise ValueError("tile sizes are at least 1")
    n_blocks = cdiv(N, BN)
    y = jnp.zeros((N,), jnp.float32)
    z = jnp.zeros((2 * N,), jnp.float32)
    if n_blocks == 0:
        return y, z
    x = pad(x, (0, 1))
    y = pad(y, (0, BN * n_blocks))
    z = pad(z, (0, 1))
    n = jnp.arange(BN)
    u = jnp.arange(2)

    def program(n_block, carried):
        y, z = carried
        x_tile = x.at[-BN * n_block + N - n - 1].get(mode="clip")
        y = jax.lax.dynamic_update_slice(y, x_tile, (BN * n_block,))
        i = jnp.int32(u)
        f = i.astype(jnp.float32)
        p = x_tile[:, None] + f
        place = jnp.where(BN * n_block + n[:, None] < N, 2 * BN * n_block + 2 * n[:, None] + u, z.shape[0])
        z = z.at[place].set(p, mode="drop")
        return y, z

    y, z = jax.lax.fori_loop(0, n_blocks, program, (y, z))
    return y[:N], z[: 2 * N]
