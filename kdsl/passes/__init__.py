"""Passes: IR to IR, one file each. A pass changes how a kernel says what it does, never what it computes."""

from kdsl.passes.pipeline import PASSES, calls, find_pass, run_passes

__all__ = ["PASSES", "calls", "find_pass", "run_passes"]
