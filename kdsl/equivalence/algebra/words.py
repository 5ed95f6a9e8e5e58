"""Words: how a number of the finite-field interpreter is stored, 64 bits in a NumPy array.

The upper half is the residue mod P, or says that there is none: an infinity, NaN, or undefined. The lower half is the
residue mod Q, or says that it is not known, which is so after an exp.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from kdsl.ir.dtypes import DTYPES, DType
from kdsl.ir.meaning import Array

# The largest safe prime below 2**31, so that products fit 64 bits, and Q with P = 2*Q + 1.
P, Q = 2147483579, 1073741789

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
UNKNOWN = _LOW  # in place of a residue mod Q
MINUS, PLUS, NAN, UNDEFINED = (np.uint64(upper << 32) for upper in range(0xFFFFFFFC, 0x100000000))
ZERO, ONE = np.uint64(0), np.uint64(1 << 32 | 1)


class Word(DType):
    """A float type whose elements are stored as words."""

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(np.uint64)

    @property
    def plain(self) -> DType:
        """The float type itself."""
        return DTYPES[self.name]


@lru_cache
def word(dtype: DType) -> DType:
    """The type with floats stored as words."""
    return Word(dtype.name, "float", 64, dtype.mantissa) if dtype.is_float else dtype


def pack(upper: Array, lower: Array, known: Array | None = None) -> Array:
    """Words of residues mod P and mod Q; UNKNOWN where the second is not `known`."""
    lower = lower if known is None else np.where(known, lower, UNKNOWN)
    return np.asarray((upper << _HALF) | lower)


def mod_p(words: Array) -> Array:
    return np.asarray(words >> _HALF)


def mod_q(words: Array) -> Array:
    """The residues mod Q; something where there is none."""
    return np.asarray(words & _LOW)


def has_q(words: Array) -> Array:
    return np.asarray((words & _LOW) != UNKNOWN)


def is_special(words: Array) -> Array:
    """Where there is an infinity, NaN or undefined in place of a residue."""
    return np.asarray(words >= MINUS)


def powers(base: Array, exponent: int, prime: int) -> Array:
    """base ** exponent mod a prime below 2**32."""
    modulus, result = np.uint64(prime), np.ones_like(base)
    for bit in bin(exponent)[2:]:
        result = result * result % modulus
        if bit == "1":
            result = result * base % modulus
    return np.asarray(result)


# Residues of the powers of two that a float is a multiple of, and a few to spare.
_LEAST = -1140
_TWOS = {prime: np.array([pow(2, e % (prime - 1), prime) for e in range(_LEAST, 1040)], np.uint64) for prime in (P, Q)}


def encode(numbers: Array) -> Array:
    """Floats, exactly, as words: a float is a fraction m * 2**e."""
    floats = np.asarray(numbers).astype(np.float64)
    finite = np.isfinite(floats)
    mantissa, exponent = np.frexp(np.where(finite, floats, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    residues = [
        np.mod(whole, prime).astype(np.uint64) * _TWOS[prime][exponent - 53 - _LEAST] % np.uint64(prime)
        for prime in (P, Q)
    ]
    other = np.where(np.isnan(floats), NAN, np.where(floats > 0, PLUS, MINUS))
    return np.asarray(np.where(finite, pack(*residues), other))
