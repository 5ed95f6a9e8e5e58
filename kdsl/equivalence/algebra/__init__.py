"""Kernels compared by algebra: that passes, and rewrites such as online softmax, preserve what a kernel means.

Floats stand for residues modulo a prime, drawn at random, and both kernels are evaluated on the same ones. What is
equal by the laws below is equal bit for bit, in whatever order it is summed; what is not is different in nearly all
draws. The laws, and the numbers that obey them:

    + - * /     a field: the integers mod P, where a float's fraction m * 2**e has its place, too
    exp         exp(a) * exp(b) = exp(a + b): a power of an element of order Q, which divides P - 1, so the exponent
                is kept mod Q beside the number mod P. What an exp gives has no exponent: exp of that is undefined
    max, <      a total order, drawn at random: any selector that is associative, commutative and idempotent
    abs, sign   signs multiply, and every exp is positive: whether a number is a square mod P
    infinities  symbols with IEEE's rules: exp(-inf) = 0, max(-inf, x) = x, -inf - x = -inf
    rounding    a cast to a narrower float: a random map onto numbers that it keeps, so moving or dropping it shows
    the rest    sqrt, tanh, ...: a random function of its operands
    constants   what the op table says, where all operands are numbers of the kernel's text, as passes fold them

Integers, indices, masks and memory are ordinary. A comparison of numbers that are undefined is decided by a coin, and
an output element that changes with the coins is undecided, never equal. One that hangs on poison is different, unless
it did so before.

What it cannot see: laws that real numbers have and these do not (log of a product, exp2(x * log2(e)) = exp(x),
x <= x + 1) make equal kernels different here; the sign of zero, and rounding in single ops, are not there at all. A law
that a random order lacks (max over sums) is likewise a difference, never a wrong pass.

How sure "equal" is: without exp, an element that differs as a quotient of polynomials of degree d is missed with
probability d / P < d * 5e-10 a draw (Schwartz 1980, Zippel 1979); with exp a bound of that kind is conjectured and a
weaker one proven (J. Li and M. Wu, "Identity testing for circuits with exponentiation gates", ITCS 2026,
arXiv:2506.04529). The scheme of two primes is that of Mirage (M. Wu et al., "Mirage: a multi-level superoptimizer for
tensor programs", OSDI 2025, arXiv:2405.05751). What hangs on an order, a sign or a rounding shows in about every second
element, so it needs more than one.
"""

from kdsl.equivalence.algebra.equal import Answer, compare_in_field, equal_in_field
from kdsl.equivalence.algebra.passes import check_passes, small_case

__all__ = ["Answer", "check_passes", "compare_in_field", "equal_in_field", "small_case"]
