"""Elementwise functions: each gives a tile over all axes of its operands, which promote to a common dtype as in JAX.

Python numbers are weak and take the tile's dtype. Functions of floats convert integers to f32.
"""

from __future__ import annotations

from kdsl.lang.dtypes import DType
from kdsl.lang.tiles import Operand, OutsideKernelError, TileValue


def maximum(x: Operand, y: Operand) -> TileValue:
    """The larger of two; NaN if either is NaN."""
    raise OutsideKernelError("kdsl.maximum")


def minimum(x: Operand, y: Operand) -> TileValue:
    """The smaller of two; NaN if either is NaN."""
    raise OutsideKernelError("kdsl.minimum")


def fmax(x: Operand, y: Operand) -> TileValue:
    """The larger of two floats; the other one where one is NaN."""
    raise OutsideKernelError("kdsl.fmax")


def fmin(x: Operand, y: Operand) -> TileValue:
    """The smaller of two floats; the other one where one is NaN."""
    raise OutsideKernelError("kdsl.fmin")


def clamp(x: Operand, low: Operand, high: Operand) -> TileValue:
    """x, but at least `low` and at most `high`; NaN if x is NaN."""
    raise OutsideKernelError("kdsl.clamp")


def fma(x: Operand, y: Operand, z: Operand) -> TileValue:
    """x * y + z of floats, rounded once."""
    raise OutsideKernelError("kdsl.fma")


def truncdiv(x: Operand, y: Operand) -> TileValue:
    """x / y of integers, rounded towards zero as in C; 0 where y is 0. (`//` rounds downwards.)"""
    raise OutsideKernelError("kdsl.truncdiv")


def truncmod(x: Operand, y: Operand) -> TileValue:
    """x - y * truncdiv(x, y), with the sign of x; 0 where y is 0."""
    raise OutsideKernelError("kdsl.truncmod")


def mulhi(x: Operand, y: Operand) -> TileValue:
    """The upper half of the double-width product of integers."""
    raise OutsideKernelError("kdsl.mulhi")


def pow(x: Operand, y: Operand) -> TileValue:
    """x ** y of floats."""
    raise OutsideKernelError("kdsl.pow")


def fmod(x: Operand, y: Operand) -> TileValue:
    """x - y * trunc(x / y) of floats, exact, with the sign of x."""
    raise OutsideKernelError("kdsl.fmod")


def atan2(y: Operand, x: Operand) -> TileValue:
    """The angle of the point (x, y) in radians, from -pi to pi."""
    raise OutsideKernelError("kdsl.atan2")


def copysign(x: Operand, y: Operand) -> TileValue:
    """The size of x with the sign of y, of floats."""
    raise OutsideKernelError("kdsl.copysign")


def precise_div(x: Operand, y: Operand) -> TileValue:
    """x / y of floats, correctly rounded on every target."""
    raise OutsideKernelError("kdsl.precise_div")


def precise_sqrt(x: Operand) -> TileValue:
    """Square root of floats, correctly rounded on every target."""
    raise OutsideKernelError("kdsl.precise_sqrt")


def exp(x: Operand) -> TileValue:
    """e ** x, of floats."""
    raise OutsideKernelError("kdsl.exp")


def exp2(x: Operand) -> TileValue:
    """2 ** x, of floats."""
    raise OutsideKernelError("kdsl.exp2")


def expm1(x: Operand) -> TileValue:
    """exp(x) - 1, accurate near 0."""
    raise OutsideKernelError("kdsl.expm1")


def log(x: Operand) -> TileValue:
    """Natural logarithm, of floats."""
    raise OutsideKernelError("kdsl.log")


def log2(x: Operand) -> TileValue:
    """Logarithm to base 2, of floats."""
    raise OutsideKernelError("kdsl.log2")


def log10(x: Operand) -> TileValue:
    """Logarithm to base 10, of floats."""
    raise OutsideKernelError("kdsl.log10")


def log1p(x: Operand) -> TileValue:
    """log(1 + x), accurate near 0."""
    raise OutsideKernelError("kdsl.log1p")


def sqrt(x: Operand) -> TileValue:
    """Square root, of floats."""
    raise OutsideKernelError("kdsl.sqrt")


def rsqrt(x: Operand) -> TileValue:
    """1 / sqrt(x), of floats."""
    raise OutsideKernelError("kdsl.rsqrt")


def cbrt(x: Operand) -> TileValue:
    """Cube root, of floats."""
    raise OutsideKernelError("kdsl.cbrt")


def sin(x: Operand) -> TileValue:
    """Sine, x in radians."""
    raise OutsideKernelError("kdsl.sin")


def cos(x: Operand) -> TileValue:
    """Cosine, x in radians."""
    raise OutsideKernelError("kdsl.cos")


def tan(x: Operand) -> TileValue:
    """Tangent, x in radians."""
    raise OutsideKernelError("kdsl.tan")


def asin(x: Operand) -> TileValue:
    """Inverse sine, in radians; NaN outside [-1, 1]."""
    raise OutsideKernelError("kdsl.asin")


def acos(x: Operand) -> TileValue:
    """Inverse cosine, in radians; NaN outside [-1, 1]."""
    raise OutsideKernelError("kdsl.acos")


def atan(x: Operand) -> TileValue:
    """Inverse tangent, in radians."""
    raise OutsideKernelError("kdsl.atan")


def sinh(x: Operand) -> TileValue:
    """Hyperbolic sine, of floats."""
    raise OutsideKernelError("kdsl.sinh")


def cosh(x: Operand) -> TileValue:
    """Hyperbolic cosine, of floats."""
    raise OutsideKernelError("kdsl.cosh")


def tanh(x: Operand) -> TileValue:
    """Hyperbolic tangent, of floats."""
    raise OutsideKernelError("kdsl.tanh")


def asinh(x: Operand) -> TileValue:
    """Inverse hyperbolic sine, of floats."""
    raise OutsideKernelError("kdsl.asinh")


def acosh(x: Operand) -> TileValue:
    """Inverse hyperbolic cosine, of floats; NaN below 1."""
    raise OutsideKernelError("kdsl.acosh")


def atanh(x: Operand) -> TileValue:
    """Inverse hyperbolic tangent, of floats; NaN outside [-1, 1]."""
    raise OutsideKernelError("kdsl.atanh")


def erf(x: Operand) -> TileValue:
    """Error function, of floats."""
    raise OutsideKernelError("kdsl.erf")


def sigmoid(x: Operand) -> TileValue:
    """1 / (1 + exp(-x)), of floats."""
    raise OutsideKernelError("kdsl.sigmoid")


def floor(x: Operand) -> TileValue:
    """The integer at or below x, as a float."""
    raise OutsideKernelError("kdsl.floor")


def ceil(x: Operand) -> TileValue:
    """The integer at or above x, as a float."""
    raise OutsideKernelError("kdsl.ceil")


def trunc(x: Operand) -> TileValue:
    """The integer next to x towards zero, as a float."""
    raise OutsideKernelError("kdsl.trunc")


def round(x: Operand) -> TileValue:
    """The integer nearest to x, ties to even, as a float."""
    raise OutsideKernelError("kdsl.round")


def abs(x: Operand) -> TileValue:
    """|x|."""
    raise OutsideKernelError("kdsl.abs")


def isnan(x: Operand) -> TileValue:
    """Whether x is NaN: a bool tile."""
    raise OutsideKernelError("kdsl.isnan")


def isinf(x: Operand) -> TileValue:
    """Whether x is infinite: a bool tile."""
    raise OutsideKernelError("kdsl.isinf")


def isfinite(x: Operand) -> TileValue:
    """Whether x is neither infinite nor NaN: a bool tile."""
    raise OutsideKernelError("kdsl.isfinite")


def bitcast(x: Operand, dtype: type[DType]) -> TileValue:
    """The bits of x read as another dtype of the same width."""
    raise OutsideKernelError("kdsl.bitcast")
