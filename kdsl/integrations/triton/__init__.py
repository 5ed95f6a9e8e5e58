"""Triton.

capture   TTIR text of `@triton.jit` functions, by Triton's own front end, without a GPU
"""
