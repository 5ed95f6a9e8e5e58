"""The gpu target: Triton source. Importing it, and emitting, needs neither Triton nor torch."""

from .target import GPU

TARGET = GPU()

__all__ = ["TARGET"]
