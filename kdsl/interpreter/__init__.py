"""The oracle: a bound kernel evaluated with NumPy, as the op table says. Every claim kdsl makes is measured by it."""

from kdsl.interpreter.stepped import run

__all__ = ["run"]
