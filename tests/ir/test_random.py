"""Philox, against the test vectors that its authors publish with Random123, and in plain integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.running import run_text

KERNEL = """kernel philox(c: in u32[4, N], k: in u32[2, N], y: out u32[4, N]) {
  size N
  axis n < N
  %c0: u32[n] = load c[0, n]
  %c1: u32[n] = load c[1, n]
  %c2: u32[n] = load c[2, n]
  %c3: u32[n] = load c[3, n]
  %k0: u32[n] = load k[0, n]
  %k1: u32[n] = load k[1, n]
  %y0: u32[n], %y1: u32[n], %y2: u32[n], %y3: u32[n] = philox %c0, %c1, %c2, %c3, %k0, %k1 {rounds = ROUNDS}
  store y[0, n] = %y0
  store y[1, n] = %y1
  store y[2, n] = %y2
  store y[3, n] = %y3
}
"""

# Random123's kat_vectors, philox4x32: rounds, counter, key, words.
VECTORS = [
    (7, "00000000 00000000 00000000 00000000", "00000000 00000000", "5f6fb709 0d893f64 4f121f81 4f730a48"),
    (10, "00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (10, "ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (10, "243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], np.uint32)[:, np.newaxis]


@pytest.mark.parametrize(("rounds", "counter", "key", "expected"), VECTORS)
def test_philox_gives_the_published_words(rounds: int, counter: str, key: str, expected: str) -> None:
    text = KERNEL.replace("ROUNDS", str(rounds))
    got = run_text(text, {"N": 1}, c=words(counter), k=words(key))["y"]
    np.testing.assert_array_equal(got, words(expected))


def test_philox_agrees_with_plain_integers_on_many_counters() -> None:
    rng = np.random.default_rng(0)
    counters, keys = rng.integers(0, 2**32, (4, 50), np.uint32), rng.integers(0, 2**32, (2, 50), np.uint32)
    expected = []
    for column in range(50):
        a, b, c, d = (int(word) for word in counters[:, column])
        k, l = (int(word) for word in keys[:, column])
        for _ in range(10):
            low, high = a * 0xD2511F53, c * 0xCD9E8D57
            a, b, c, d = (high >> 32) ^ b ^ k, high % 2**32, (low >> 32) ^ d ^ l, low % 2**32
            k, l = (k + 0x9E3779B9) % 2**32, (l + 0xBB67AE85) % 2**32
        expected.append([a, b, c, d])
    got = run_text(KERNEL.replace("ROUNDS", "10"), {"N": 50}, c=counters, k=keys)["y"]
    np.testing.assert_array_equal(got.T, expected)
