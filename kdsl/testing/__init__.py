"""For the tests of those who write kernels: how to draw inputs, hypothesis strategies, and verdicts as assertions.

    integers, distinct, offsets   what `@kdsl.example(..., inputs={"name": ...})` takes
    examples, arguments, arrays   hypothesis strategies (hypothesis is needed only here)
    assert_verified, verified     `kdsl verify` as an assertion and as a decorator of a test
    replay                        runs a counter-example that `kdsl verify --save-failures` kept

With pytest there is a fixture, too: `def test_it(kdsl_verify): kdsl_verify(kernel, targets=["cpu"])`.
"""

from kdsl.equivalence.draws import distinct, integers, offsets
from kdsl.testing.asserting import assert_verified, replay, verified
from kdsl.testing.layouts import LAYOUTS, laid_out
from kdsl.testing.strategies import arguments, arrays, examples

__all__ = [
    "LAYOUTS",
    "arguments",
    "arrays",
    "assert_verified",
    "distinct",
    "examples",
    "integers",
    "laid_out",
    "offsets",
    "replay",
    "verified",
]
