"""Arithmetic on words, for one draw of all that is drawn: the base of exp, the order of numbers, what functions give.

See the package's docstring for what is assumed of each.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdsl.equivalence.algebra.words import (
    MINUS,
    NAN,
    PLUS,
    UNDEFINED,
    UNKNOWN,
    ZERO,
    P,
    Q,
    encode,
    has_q,
    is_special,
    mod_p,
    mod_q,
    pack,
    powers,
)
from kdsl.ir.meaning import Array

_P, _Q = np.uint64(P), np.uint64(Q)
_WINDOW = 16  # bits of an exponent that one table serves
_REPRESENTABLE = np.uint64(3)  # one in four numbers is taken to be one of a narrower type


class Field:
    """`rounds`: whether a rounding changes anything. `coins` decide what hangs on an undefined number, `tossed` says
    whether anything did, and `notes` where such a number came from."""

    def __init__(self, seed: Sequence[int], rounds: bool = True) -> None:
        self.rounds = rounds
        self.generator = np.random.default_rng([*seed, 0xF1E1D])
        self.salt = np.uint64(self.generator.integers(1, 2**63))
        self.bases: dict[str, tuple[Array, Array]] = {}
        self.notes: dict[str, None] = {}
        self._names: dict[int, float] = {}
        self._known: tuple[Array, Array] | None = None
        self.toss(0)
        self.name(np.array([0.0, 1.0]))

    def toss(self, number: int) -> None:
        """Start with other coins: an odd number has the opposite ones of the even number before it."""
        self.coins, self.opposite = np.random.default_rng([int(self.salt), number // 2]), bool(number % 2)
        self.tossed = False

    def random(self, shape: Sequence[int]) -> Array:
        return drawn(self.generator.integers(0, 2**64, shape, dtype=np.uint64))

    # -- numbers that have a name ----------------------------------------------------------------------------------

    def name(self, numbers: Array) -> Array:
        """Numbers of a kernel's text as words, which `named` then knows."""
        words = encode(numbers)
        keys, places = np.unique(words, return_index=True)
        for key, number in zip(keys.tolist(), np.asarray(numbers).reshape(-1)[places].tolist(), strict=True):
            if key not in self._names:
                self._names[key], self._known = float(number), None
        return words

    def named(self, words: Array) -> tuple[Array, Array]:
        """Which words stand for a number of the text, an infinity or NaN, and for which."""
        if self._known is None:
            ordered = sorted(self._names)
            self._known = np.array(ordered, np.uint64), np.array([self._names[key] for key in ordered])
        keys, numbers = self._known
        place = np.minimum(np.searchsorted(keys, words), len(keys) - 1)
        given, value = np.asarray(keys[place] == words), numbers[place]
        for special, number in ((MINUS, -np.inf), (PLUS, np.inf), (NAN, np.nan)):
            given, value = given | (words == special), np.where(words == special, number, value)
        return given, value

    # -- the field -------------------------------------------------------------------------------------------------

    def add(self, x: Array, y: Array) -> Array:
        total = pack((mod_p(x) + mod_p(y)) % _P, (mod_q(x) + mod_q(y)) % _Q, has_q(x) & has_q(y))
        return self._settled(total, np.add, x, y)

    def negate(self, x: Array) -> Array:
        minus = pack((_P - mod_p(x)) % _P, (_Q - mod_q(x) % _Q) % _Q, has_q(x))
        minus = np.where(is_special(x), x, minus)
        return np.where(x == PLUS, MINUS, np.where(x == MINUS, PLUS, minus))

    def subtract(self, x: Array, y: Array) -> Array:
        return self.add(x, self.negate(y))

    def multiply(self, x: Array, y: Array) -> Array:
        product = pack(mod_p(x) * mod_p(y) % _P, mod_q(x) * mod_q(y) % _Q, has_q(x) & has_q(y))
        return self._settled(product, np.multiply, x, y)

    def divide(self, x: Array, y: Array) -> Array:
        inverse_p, inverse_q = powers(mod_p(y), P - 2, P), powers(mod_q(y) % _Q, Q - 2, Q)
        known = has_q(x) & has_q(y) & (mod_q(y) != 0)
        ratio = pack(mod_p(x) * inverse_p % _P, mod_q(x) * inverse_q % _Q, known)
        by_zero = (mod_p(y) == 0) & ~is_special(x)
        ratio = np.where(by_zero, np.where(mod_p(x) == 0, NAN, UNDEFINED), ratio)
        return self._settled(ratio, np.divide, x, y)

    def sign(self, x: Array) -> Array:
        """-1.0, 0.0 or 1.0: of a number of the text its own, of others whether they are squares mod P.

        Like a sign it is multiplicative, -1 has it (P is 3 mod 4), and every exp is positive.
        """
        known, number = self.named(x)
        square = powers(mod_p(x) % _P, Q, P)
        signs = np.where(square == 0, 0.0, np.where(square == 1, 1.0, -1.0))
        return np.where(known, np.sign(number), signs)

    def _settled(self, result: Array, function: np.ufunc, x: Array, y: Array) -> Array:
        """Where an operand is no residue, what IEEE 754 says; of a finite operand only the sign matters then."""
        undefined = np.asarray((x == UNDEFINED) | (y == UNDEFINED))
        special = np.asarray((is_special(x) | is_special(y)) & ~undefined)
        result = np.where(undefined, UNDEFINED, result)
        if special.any():
            operands = (np.broadcast_to(operand, special.shape)[special] for operand in (x, y))
            result[special] = encode(function(*(self._stand_in(operand, function) for operand in operands)))
        return result

    def _stand_in(self, x: Array, function: np.ufunc) -> Array:
        finite = np.zeros(x.shape) if function is np.add else self.sign(x)
        return np.where(is_special(x), self.named(x)[1], finite)

    def matmul(self, x: Array, y: Array) -> Array:
        """The product of two stacks of matrices."""
        if is_special(x).any() or is_special(y).any():
            products = self.multiply(x[..., :, :, np.newaxis], y[..., np.newaxis, :, :])
            return fold(self.add, np.moveaxis(products, -2, -1), ZERO)
        rows, columns = np.all(has_q(x), axis=-1, keepdims=True), np.all(has_q(y), axis=-2, keepdims=True)
        known = np.asarray(rows & columns)
        return pack(_matmul(mod_p(x), mod_p(y), P), _matmul(mod_q(x) % _Q, mod_q(y) % _Q, Q), known)

    # -- functions -------------------------------------------------------------------------------------------------

    def exponential(self, name: str, concrete: Callable[[Array], Array], x: Array) -> Array:
        """A power of an element of order Q, which turns sums mod Q into products mod P."""
        low, high = self._tables(name)
        exponent = mod_q(x)
        exact = low[exponent & np.uint64(2**_WINDOW - 1)] * high[(exponent >> np.uint64(_WINDOW)) % len(high)] % _P
        power = np.where(has_q(x), pack(exact, np.asarray(UNKNOWN)), UNDEFINED)
        return self._by_name(power, concrete, x)

    def _tables(self, name: str) -> tuple[Array, Array]:
        """The powers g**i and g**(i * 2**16) mod P for i below 2**16, of a random g of order Q."""
        if name not in self.bases:
            root = int(self.generator.integers(2, P - 1))
            self.bases[name] = _power_table(root * root % P), _power_table(pow(root * root % P, 2**_WINDOW, P))
        return self.bases[name]

    def function(self, name: str, concrete: Callable[..., Array], *operands: Array) -> Array:
        """A random function of residues: equal operands give equal results, and that is all that is known of it."""
        mixed = self.mixed(name, *(mod_p(x) for x in operands))
        return self._by_name(drawn(mixed), concrete, *operands)

    def mixed(self, name: str, *operands: Array) -> Array:
        """64 bits that depend on a name and numbers."""
        state = np.asarray(self.salt ^ np.uint64(zlib.crc32(name.encode())))
        for operand in operands:
            state = _mix(state ^ operand)
        return state

    def _by_name(self, result: Array, concrete: Callable[..., Array], *operands: Array) -> Array:
        """Where all operands are numbers of the text the result is what the op table says; undefined where one is."""
        named = [self.named(np.broadcast_to(x, result.shape)) for x in operands]
        given = np.logical_and.reduce([known for known, _ in named])
        undefined = np.logical_or.reduce(np.broadcast_arrays(*(x == UNDEFINED for x in operands)))
        result = np.where(undefined, UNDEFINED, result)
        if given.any():
            # Not named: what is named must not depend on what ran before.
            result[given] = encode(np.asarray(concrete(*(number[given] for _, number in named))))
        return result

    def rounded(self, name: str, concrete: Callable[[Array], Array], x: Array) -> Array:
        """A rounding: a random function onto some of the numbers, which keeps those as they are."""
        result = np.array(x)
        moving = np.asarray(~is_special(x) & (self.mixed(name, mod_p(result)) & _REPRESENTABLE != 0))
        while moving.any():
            result[moving] = drawn(self.mixed(f"next {name}", mod_p(result[moving])))
            moving &= self.mixed(name, mod_p(result)) & _REPRESENTABLE != 0
        return self._by_name(result, concrete, x)

    # -- order -----------------------------------------------------------------------------------------------------

    def keys(self, x: Array) -> Array:
        """u64 numbers that are ordered as the words are: at random, but infinities at the ends, and NaN after them."""
        residues = mod_p(x) ^ (self.salt & np.uint64(0xFFFFFFFF))
        for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
            residues = (residues ^ (residues >> np.uint64(shift))) * np.uint64(factor) & np.uint64(0xFFFFFFFF)
        keys = residues + np.uint64(2)
        for special, key in ((MINUS, 1), (PLUS, 2**33), (NAN, 2**34)):
            keys = np.where(x == special, np.uint64(key), keys)
        return np.asarray(keys)

    def tossed_keys(self, x: Array) -> Array:
        """Keys, of what is undefined random ones."""
        undefined = np.asarray(x == UNDEFINED)
        return np.where(undefined, self.coin(undefined, 2**32), self.keys(x)) if undefined.any() else self.keys(x)

    def coin(self, undefined: Array, count: int = 2) -> Array:
        """Random numbers below `count`; marks that something hangs on them if there is anything undefined."""
        self.tossed |= bool(undefined.any())
        tossed = self.coins.integers(0, count, undefined.shape, dtype=np.uint64)
        return np.asarray(np.uint64(count - 1) - tossed if self.opposite else tossed)

    def compare(self, function: np.ufunc, x: Array, y: Array) -> Array:
        nan, undefined = (x == NAN) | (y == NAN), (x == UNDEFINED) | (y == UNDEFINED)
        if not np.any(nan | undefined):
            return np.asarray(function(self.keys(x), self.keys(y)))
        holds = np.where(nan, function is np.not_equal, function(self.keys(x), self.keys(y)))
        return np.where(undefined, self.coin(undefined) == 1, holds)

    def extreme(self, function: np.ufunc, x: Array, y: Array, numbers_win: bool = False) -> Array:
        """The larger (np.greater_equal) or the smaller (np.less_equal); NaN of a NaN, or the other if numbers win."""
        chosen = np.where(function(self.keys(x), self.keys(y)), x, y)
        for mine, other in ((x, y), (y, x)):
            chosen = np.where(mine == NAN, other if numbers_win else NAN, chosen)
        return np.where((x == UNDEFINED) | (y == UNDEFINED), UNDEFINED, chosen)


def drawn(bits: Array) -> Array:
    """The word that 64 random bits choose."""
    return pack(bits % _P, _mix(bits) % _Q)


def fold(combine: Callable[[Array, Array], Array], lanes: Array, neutral: Any) -> Array:
    """Fold the last axis pairwise."""
    if not lanes.shape[-1]:
        return np.full(lanes.shape[:-1], neutral)
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        joined = combine(lanes[..., :half], lanes[..., half : 2 * half])
        lanes = np.concatenate([joined, lanes[..., 2 * half :]], axis=-1)
    return np.asarray(lanes[..., 0])


def accumulate(combine: Callable[[Array, Array], Array], lanes: Array) -> Array:
    """The running fold along the last axis, by doubling."""
    distance = 1
    while distance < lanes.shape[-1]:
        joined = combine(lanes[..., :-distance], lanes[..., distance:])
        lanes, distance = np.concatenate([lanes[..., :distance], joined], axis=-1), 2 * distance
    return lanes


def _mix(x: Array) -> Array:
    """A permutation of 64-bit numbers in which every bit depends on every bit (Vigna's splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def _power_table(base: int) -> Array:
    table = np.ones(1, np.uint64)
    for bit in range(_WINDOW):
        table = np.concatenate([table, table * np.uint64(pow(base, 2**bit, P)) % _P])
    return table


def _matmul(x: Array, y: Array, prime: int) -> Array:
    """Residues below 2**31, by halves of 16 bits whose products f64 sums exactly, up to 2**20 terms."""
    (x_high, x_low), (y_high, y_low) = (((a >> np.uint64(16)), a & np.uint64(0xFFFF)) for a in (x, y))
    modulus, half = np.uint64(prime), np.uint64(2**16)

    def product(a: Array, b: Array) -> Array:
        return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.uint64) % modulus)

    middle = product(x_high, y_low) + product(x_low, y_high)
    return np.asarray(((product(x_high, y_high) * half + middle) % modulus * half + product(x_low, y_low)) % modulus)
