"""How far each op of emitted code may be from exact: compiled for NVIDIA or AMD, or under Triton's interpreter; the
worst of the three.

Sources, looked up unless marked. CUDA C++ Programming Guide, "Mathematical Functions": maximum ulp errors of the single
and double precision functions, from extensive but not exhaustive tests, and against the correctly rounded result, so
that half an ulp more counts here; Triton calls these functions for log, log2, sin, cos, erf and rsqrt, and for all of
libdevice. PTX ISA 9.1: `ex2.approx.f32` 2 ulp of the correctly rounded result, `div.full.f32` 2 ulp, `rsqrt.approx.f32`
2**-22.9. OpenCL C, section 7.4 (relative error as ULPs): that AMD's device library keeps to it is an assumption. Fasi,
Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Comput. Sci. 7, 2021: additions in f32 are
cut off, not rounded (V100, T4, A100; assumed for later ones and for AMD's matrix cores). Not looked up, nor covered:
fp8 dots on Hopper are said to keep fewer bits than f32 between additions. NumPy's functions are within 4 ulp where they
are not exact (NumPy's own accuracy tests).
Subnormal operands of f32 log, log2 and rsqrt may count as zero (their .ftz forms).
Pinned and so correctly rounded: add, sub, mul, div (tl.div_rn), sqrt (tl.sqrt_rn), fma, casts. fmod, trunc, round and
copysign are exact (0 ulp in both tables). Scans of f32 and f64 add in another order; a tf32 dot rounds operands to 10
fraction bits, bf16x3 and bf16x6 to 16 and 24 (their parts).
"""

from __future__ import annotations

from kdsl.runtime.target import IEEE_DOT, Accuracy, AccuracyTable

# Subnormal results may be flushed to zero (ex2.approx.ftz, v_exp_f32): at most the smallest normal number.
FLUSHED_F32 = 2.0**-126

_FMA = "fma.rn.f32 for NVIDIA, as the PTX shows; that v_mfma_f32 of f32 operands rounds to nearest is an assumption"
_CUDA = "CUDA C++ Programming Guide, maximum ulp errors; OpenCL C, 7.4"
_EXP = (
    "tl.exp is ex2.approx(x * log2 e): the product's rounding alone is |x| / 2 ulp of the result, at most 44 for "
    "|x| < 88.8, and log2 e rounded to f32 as much again; PTX ISA: ex2.approx 2 ulp"
)


# By name, ulp: libdevice on NVIDIA, ocml on AMD, the larger figure of the two.
_LIBRARY = "pow 16 atan2 6 log10 3 log1p 2 expm1 3 tan 5 asin 4.5 acos 4 atan 5 sinh 4 cosh 4 asinh 4 acosh 4.5 atanh 5"


def _library(figures: str, flushed: float) -> dict[str, Accuracy]:
    """Functions of the device libraries, from `name ulp` pairs: what OpenCL asks for, unless CUDA states more.

    CUDA, f32, half an ulp each not counted: pow 8, atan2 3, log10 2, log1p 1, expm1 1, tan 4, asin 4, acos 3, atan 2,
    sinh 3, cosh 2, asinh 3, acosh 4, atanh 3. f64: none more than 2.
    """
    words = figures.split()
    return {name: Accuracy(float(ulp), flushed, _CUDA) for name, ulp in zip(words[::2], words[1::2], strict=True)}


_F32: dict[str, Accuracy] = {
    "exp": Accuracy(105, FLUSHED_F32, _EXP),
    "exp2": Accuracy(
        3, FLUSHED_F32, "PTX ISA, ex2.approx: 2 ulp of the correctly rounded result; OpenCL C, 7.4: 3 ulp"
    ),
    "log": Accuracy(
        4, 2.0**-22, f"{_CUDA}: 1 and 3 ulp; not looked up: v_log_f32 (log2 times ln 2) is absolute near 1"
    ),
    "log2": Accuracy(4, 2.0**-22, f"{_CUDA}: 1 and 3 ulp; not looked up: v_log_f32 is absolute near 1"),
    "rsqrt": Accuracy(2.5, FLUSHED_F32, f"{_CUDA}: 2 and 2 ulp"),
    "sin": Accuracy(4, FLUSHED_F32, f"{_CUDA}: 2 and 4 ulp"),
    "cos": Accuracy(4, FLUSHED_F32, f"{_CUDA}: 2 and 4 ulp"),
    "erf": Accuracy(16, FLUSHED_F32, f"{_CUDA}: 2 and 16 ulp"),
    # 1 + exp(-x) has the relative error of exp at worst, the quotient 2 ulp (PTX ISA, div.full), twice in its binade.
    "sigmoid": Accuracy(110, FLUSHED_F32, f"1 / (1 + tl.exp(-x)); {_EXP}; PTX ISA, div.full: 2 ulp"),
    # From 1/8 on: t = exp(-2|x|) is off by 4 ulp of at most 0.78, 1 - t is at least 0.22, then two roundings and a
    # quotient; below, a series of four fused steps.
    "tanh": Accuracy(24, FLUSHED_F32, "the module's own tanh: exp and a quotient, a series below 1/8"),
    **_library(_LIBRARY, FLUSHED_F32),
    # Three Newton roundings, the last of a small correction, and the scaling, which is exact.
    "cbrt": Accuracy(3, 0.0, "the module's own cube_root: Newton's method on exp2(log2(x) / 3)"),
}
_F64: dict[str, Accuracy] = {
    "exp": Accuracy(3, 0.0, f"{_CUDA}: 1 and 3 ulp"),
    "exp2": Accuracy(3, 0.0, f"{_CUDA}: 1 and 3 ulp"),
    "log": Accuracy(3, 0.0, f"{_CUDA}: 1 and 3 ulp"),
    "log2": Accuracy(3, 0.0, f"{_CUDA}: 1 and 3 ulp"),
    "rsqrt": Accuracy(2, 0.0, f"{_CUDA}: 1 and 2 ulp"),
    "sin": Accuracy(4, 0.0, f"{_CUDA}: 2 and 4 ulp"),
    "cos": Accuracy(4, 0.0, f"{_CUDA}: 2 and 4 ulp"),
    "erf": Accuracy(16, 0.0, f"{_CUDA}: 2 and 16 ulp"),
    "sigmoid": Accuracy(8, 0.0, f"1 / (1 + exp(-x)); {_CUDA}"),
    **_library(_LIBRARY, 0.0),
    "cbrt": Accuracy(3, 0.0, "the module's own cube_root: Newton's method on exp2(log2(x) / 3)"),
    "tanh": Accuracy(8, 2.0**-50, "the module's own tanh_f64: 1 - exp(-2|x|) cancels for small x"),
}
_TENSOR_CORES = "Fasi et al. 2021: tensor cores cut sums off at the last bit of the largest addend"
_SOURCE_16 = "computed in f32, rounded once"


def _narrow(of: Accuracy, mantissa: int) -> Accuracy:
    """A 16-bit result: its own rounding, and what the f32 error adds."""
    return Accuracy(0.5 + of.ulp * 2.0 ** (mantissa - 23), of.absolute, f"{_SOURCE_16}; {of.source}")


ACCURACY: AccuracyTable = {
    **{(op, "f32"): accuracy for op, accuracy in _F32.items()},
    **{(op, "f64"): accuracy for op, accuracy in _F64.items()},
    **{(op, "f16"): _narrow(accuracy, 10) for op, accuracy in _F32.items()},
    **{(op, "bf16"): _narrow(accuracy, 7) for op, accuracy in _F32.items()},
    # f16 and bf16 operands are multiplied exactly and summed by matrix units, as tf32 parts are.
    (IEEE_DOT, "f32"): Accuracy(0.5, 0.0, _FMA),
    ("dot", "f32"): Accuracy(0.5, 0.0, _TENSOR_CORES, addition=1.0),
    ("dot_scaled", "f32"): Accuracy(0.5, 0.0, _TENSOR_CORES, addition=1.0),
    # AMD has no bf16 fma: the f32 one is rounded again.
    ("fma", "bf16"): Accuracy(0.5 + 2.0**-16, 0.0, "fma.rn.bf16 (PTX ISA); LLVM widens it for AMD, two roundings"),
}
