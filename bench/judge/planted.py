"""Faults planted in what each target emits: verify has to find every one.

A fault is a piece of emitted text and what stands there instead. To add one: a line in the table of its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kdsl.runtime.target import Source


@dataclass(frozen=True)
class Fault:
    """`old` is in the source that is emitted for the kernel, for at least one of its dtypes and constants."""

    kernel: str
    what: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.kernel}: {self.what}"


@dataclass
class Planting:
    """Plants a fault in sources, and remembers in how many there was a place for it."""

    fault: Fault
    planted: int = field(default=0)

    def __call__(self, source: Source) -> Source:
        changed = source.text.replace(self.fault.old, self.fault.new)
        self.planted += changed != source.text
        return replace(source, text=changed)


GPU = (
    Fault("vector_add", "the last programs are not launched", "programs = triton.cdiv(N, BN)", "programs = N // BN"),
    Fault("vector_add", "an input is read one element further", "x_ptr + offs_n", "x_ptr + 1 + offs_n"),
    Fault("softmax", "fill 0 where a maximum needs -inf", 'other=float("-inf")', "other=0.0"),
    Fault("softmax", "the sum is along the other axis", "0.0), axis=1)[:, None]", "0.0), axis=0)[None, :]"),
    Fault("softmax", "rows step by the stride of columns", "* x_stride_m", "* x_stride_n"),
    Fault("layernorm", "fill 1 where a sum needs 0", "& mask_n[None, :], other=0.0)", "& mask_n[None, :], other=1.0)"),
    Fault(
        "layernorm",
        "lanes beyond the edge take part in a sum",
        "tl.where(mask_n[None, :], centred * centred, 0.0)",
        "centred * centred",
    ),
    Fault("layernorm", "epsilon is left out", "variance + epsilon", "variance"),
    Fault("matmul", "the last tile of k is left out", "range(tl.cdiv(K, BK))", "range(K // BK)"),
    Fault("matmul", "one lane of k too many", "offs_k < K", "offs_k <= K"),
    Fault("matmul", "fill 1 where a dot needs 0", "other=0.0", "other=1.0"),
    Fault("matmul", "no mask on loads", "mask_m[:, None] & mask_k[None, :]", "mask_m[:, None]"),
    Fault(
        "matmul",
        "strides swapped",
        "a_stride_m + offs_k[None, :] * a_stride_k",
        "a_stride_k + offs_k[None, :] * a_stride_m",
    ),
    Fault("matmul", "tf32 in place of ieee", 'input_precision="ieee"', 'input_precision="tf32"'),
    Fault("matmul", "each tile of k starts anew", "b_tile, accumulator", "b_tile, accumulator * 0.0"),
    Fault(
        "matmul",
        "the accumulator is kept in bf16",
        "b_tile, accumulator",
        "b_tile, accumulator.to(tl.bfloat16).to(tl.float32)",
    ),
    Fault("matmul", "no mask on the store", "c, mask=mask_m[:, None] & mask_n[None, :])", "c)"),
    Fault("matmul", "the last row of programs is not launched", "triton.cdiv(M, BM) * triton", "(M // BM) * triton"),
    Fault("attention", "the accumulator is not rescaled", "accumulator * rescale[:, None]", "accumulator"),
    Fault("attention", "the sum is not rescaled", "row_sum * rescale", "row_sum"),
    Fault("attention", "a query does not see its own key", "offs_n[None, :] <= offs_m", "offs_n[None, :] < offs_m"),
    Fault("attention", "later keys weigh as if their score were 0", 'scores, float("-inf"))', "scores, 0.0)"),
    Fault("attention", "keys of all heads are those of the first", "h * k_stride_h", "h * 0"),
)
TPU = (
    Fault("vector_add", "the last block is not run", "grid=(pl.cdiv(N, BN),)", "grid=(N // BN,)"),
    Fault("vector_add", "every block is the first", "lambda n_block: (n_block,)", "lambda n_block: (0,)"),
    Fault("softmax", "the sum is along the other axis", "jnp.sum(numerator, axis=1", "jnp.sum(numerator, axis=0"),
    Fault("layernorm", "the mean is of one element less", "keepdims=True) / N", "keepdims=True) / (N - 1)"),
    Fault("layernorm", "epsilon is left out", "variance + epsilon_ref[0, 0]", "variance"),
    Fault("layernorm", "the variance is not centred", "centred * centred", "x_tile * x_tile"),
    Fault("matmul", "no mask on an operand", "jnp.where(k_index < K, a_ref[...], 0.0)", "a_ref[...]"),
    Fault("matmul", "fill 1 where a dot needs 0", "_ref[...], 0.0),", "_ref[...], 1.0),"),
    Fault("matmul", "one lane of k too many", "k_index_2 < K", "k_index_2 <= K"),
    Fault("matmul", "each tile of k starts anew", "accumulator_ref[...] += dot", "accumulator_ref[...] = dot"),
    Fault("matmul", "the last tile of k is left out", "pl.num_programs(2) - 1", "pl.num_programs(2) - 2"),
    Fault("matmul", "products are accumulated in bf16", "element_type=jnp.float32", "element_type=jnp.bfloat16"),
    Fault(
        "matmul",
        "the accumulator is kept in bf16",
        "accumulator_ref[...] += dot",
        "accumulator_ref[...] = (accumulator_ref[...] + dot).astype(jnp.bfloat16).astype(jnp.float32)",
    ),
    Fault("matmul", "blocks of b are transposed", "(k_block, n_block)", "(n_block, k_block)"),
    Fault("attention", "the accumulator is not rescaled", "accumulator_ref[...] * rescale", "accumulator_ref[...]"),
    Fault("attention", "the sum is not rescaled", "row_sum_ref[...] * rescale", "row_sum_ref[...]"),
    Fault("attention", "a query does not see its own key", "n_index <= m_index", "n_index < m_index"),
    Fault("attention", "keys beyond the edge weigh", "jnp.where(inside, weights, 0.0)", "weights"),
    Fault("attention", "every block of keys is the first", "(b, h, n_block, 0)", "(b, h, 0, 0)"),
)
CPU = (
    Fault("vector_add", "the last program is not run", "fori_loop(0, n_blocks", "fori_loop(0, n_blocks - 1"),
    Fault(
        "vector_add", "an input is read at the first place", "dynamic_slice(y, (BN * n_block,)", "dynamic_slice(y, (0,)"
    ),
    Fault(
        "softmax",
        "the sum is along the other axis",
        "jnp.sum(numerator, axis=1)[:, None]",
        "jnp.sum(numerator, axis=0)",
    ),
    Fault(
        "softmax", "results are not padded apart", "(BM * m_block, 0))\n        return", "(m_block, 0))\n        return"
    ),
    Fault("layernorm", "epsilon is left out", "variance + epsilon", "variance"),
    Fault("layernorm", "the variance is not centred", "centred * centred", "x_tile * x_tile"),
    Fault("layernorm", "the bias is subtracted", "weight + bias", "weight - bias"),
    Fault("matmul", "the last tile of k is left out", "fori_loop(0, k_blocks", "fori_loop(0, k_blocks - 1"),
    Fault("matmul", "the first tile of k is left out", "fori_loop(0, k_blocks", "fori_loop(1, k_blocks"),
    Fault("matmul", "tiles are counted down", "return -(-a // b)", "return a // b"),
    Fault("matmul", "fill 1 where a dot needs 0", "jnp.pad(array, sides)", "jnp.pad(array, sides, constant_values=1)"),
    Fault("matmul", "each tile of k starts anew", "accumulator + dot", "dot"),
    Fault(
        "matmul",
        "the accumulator is kept in bf16",
        "accumulator + dot",
        "(accumulator + dot).astype(jnp.bfloat16).astype(jnp.float32)",
    ),
    Fault("matmul", "products are accumulated in bf16", "element_type=jnp.float32", "element_type=jnp.bfloat16"),
    Fault("matmul", "places of a are swapped", "(BM * m_block, BK * k_block)", "(BK * k_block, BM * m_block)"),
    Fault("attention", "the accumulator is not rescaled", "accumulator * rescale[:, None]", "accumulator"),
    Fault("attention", "the sum is not rescaled", "row_sum * rescale", "row_sum"),
    Fault("attention", "a query does not see its own key", "BS * n_block + n) <= jnp", "BS * n_block + n) < jnp"),
    Fault("attention", "keys beyond the edge weigh", "jnp.where(inside, weights, 0.0)", "weights"),
    Fault(
        "attention",
        "later keys weigh as if their score were 0",
        "where(le, scores, -jnp.inf)",
        "where(le, scores, 0.0)",
    ),
)
FAULTS: Mapping[str, tuple[Fault, ...]] = {"gpu": GPU, "tpu": TPU, "cpu": CPU}
