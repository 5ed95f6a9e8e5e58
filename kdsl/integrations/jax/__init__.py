"""JAX, XLA and libtpu.

toolchain   what a worker process runs: emitted sources on x86, ahead-of-time TPU compilation, StableHLO
emitted     emitted source text as importable modules, and errors that point into it
private     the calls that JAX does not promise to keep, for the one version they were tried with
"""
