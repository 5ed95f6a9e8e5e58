"""attention for any XLA device: one loop over the programs, in bounded memory.

    attention(q: bf16[B, H, L, D], k: bf16[B, H, S, D], v: bf16[B, H, S, D], scale: f32) -> out: bf16[B, H, L, D]

From attention.py, line 11, written by kdsl. Sizes are read off shapes; tile sizes change speed and rounding only.
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


def divide(x, y):
    """x / y, rounded once: XLA would multiply by the reciprocal of a y that it broadcasts or knows."""
    x, y = jnp.broadcast_arrays(x, jnp.asarray(y, x.dtype))
    return x / jax.lax.optimization_barrier(y)


@functools.partial(jax.jit, static_argnames=("BL", "BS"))
def attention(q, k, v, scale, *, BL=64, BS=32):
    """Return out: bf16[B, H, L, D]."""
    check("q", q, jnp.bfloat16, 4)
    check("k", k, jnp.bfloat16, 4)
    check("v", v, jnp.bfloat16, 4)
    B, H, L, D = q.shape
    S = k.shape[2]
    if k.shape != (B, H, S, D):
        raise ValueError(f"k[B, H, S, D]: expected shape {(B, H, S, D)}, got {k.shape}")
    if v.shape != (B, H, S, D):
        raise ValueError(f"v[B, H, S, D]: expected shape {(B, H, S, D)}, got {v.shape}")
    if min(BL, BS) < 1:
        raise ValueError("tile sizes are at least 1")
    scale = jnp.asarray(scale, jnp.float32)
    l_blocks = cdiv(L, BL)
    out = jnp.zeros((B, H, L, D), jnp.bfloat16)
    if B * H * l_blocks == 0:
        return out
    q = pad(q, (0, B), (0, H), (0, BL * l_blocks), (0, D))
    k = pad(k, (0, B), (0, H), (0, BS * max(1, cdiv(min(L, S), BS))), (0, D))
    v = pad(v, (0, B), (0, H), (0, BS * max(1, cdiv(min(L, S), BS))), (0, D))
    out = pad(out, (0, B), (0, H), (0, BL * l_blocks), (0, D))
    l_lane = jnp.arange(BL)
    n = jnp.arange(BS)

    def program(program_id, out):
        b, h, l_block = jnp.unravel_index(program_id, (B, H, l_blocks))
        # line 13
        row_max = jnp.full((BL,), -jnp.inf, jnp.float32)
        row_sum = jnp.zeros((BL,), jnp.float32)
        # line 14
        acc = jnp.zeros((BL, D), jnp.float32)

        # line 15
        def step(n_block, carried):
            row_max, row_sum, acc = carried
            # line 16
            q_tile = jax.lax.dynamic_slice(q, (b, h, BL * l_block, 0), (1, 1, BL, D))[0, 0]
            k_tile = jax.lax.dynamic_slice(k, (b, h, BS * n_block, 0), (1, 1, BS, D))[0, 0]
            dot = jax.lax.dot_general(q_tile, k_tile, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
            s = dot * scale
            # line 18
            le = jnp.int32(BS * n_block + n) <= jnp.int32(BL * l_block + l_lane)[:, None]
            t = jnp.where(le, s, -jnp.inf)
            # line 19
            inside = BS * n_block + n < jnp.minimum(BL * l_block + BL, min(L, S))
            t_1 = jnp.where(inside, t, -jnp.inf)
            new_max = jnp.maximum(row_max, jnp.max(t_1, axis=1))
            # line 20
            p = jnp.exp(t - new_max[:, None])
            alpha = jnp.exp(row_max - new_max)
            # line 21
            p_1 = jnp.where(inside, p, 0.0)
            row_sum = row_sum * alpha + jnp.sum(p_1, axis=1)
            # line 22
            v_box = jax.lax.dynamic_slice(v, (b, h, BS * n_block, 0), (1, 1, BS, D))[0, 0]
            v_tile = jnp.where(BS * n_block + n[:, None] < jnp.minimum(BL * l_block + BL, min(L, S)), v_box, 0.0)
            cast = jnp.where(inside, p.astype(jnp.bfloat16), 0.0)
            dot = jax.lax.dot_general(cast, v_tile, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
            acc = acc * alpha[:, None] + dot
            return new_max, row_sum, acc

        row_max, row_sum, acc = jax.lax.fori_loop(
            0, cdiv(jnp.minimum(BL * l_block + BL, min(L, S)), BS), step, (row_max, row_sum, acc)
        )
        # line 23
        out = jax.lax.dynamic_update_slice(
            out, divide(acc, row_sum[:, None]).astype(jnp.bfloat16)[None, None], (b, h, BL * l_block, 0)
        )
        return out

    out = jax.lax.fori_loop(0, B * H * l_blocks, program, out)
    return out[:, :, :L]
