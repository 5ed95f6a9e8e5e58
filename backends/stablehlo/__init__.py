"""The cpu target (any XLA device, x86 first): kernels as JAX source and as StableHLO modules."""

from .target import StableHlo

TARGET = StableHlo()
