"""Source text that a formatter would leave alone: calls on one line where they fit, else one argument a line."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence

from kdsl.codegen.expressions import print_expr, print_factor
from kdsl.ir.expr import Expr

WIDTH = 120
INDENT = "    "


def call(head: str, arguments: Sequence[str], indent: int, tail: str = "") -> str:
    """`head(arguments)tail` at an indentation of so many levels (which the text itself does not start with)."""
    line = f"{head}({', '.join(arguments)}){tail}"
    if len(INDENT) * indent + len(line) <= WIDTH and "\n" not in line:
        return line
    inner = "".join(f"{INDENT * (indent + 1)}{argument},\n" for argument in arguments)
    return f"{head}(\n{inner}{INDENT * indent}){tail}"


def sequence(items: Sequence[str], indent: int, brackets: str = "[]") -> str:
    """A list or tuple, one item a line unless it has one."""
    opening, closing = brackets[0], brackets[1]
    if not items:
        return brackets
    inner = "".join(f"{INDENT * (indent + 1)}{item},\n" for item in items)
    return f"{opening}\n{inner}{INDENT * indent}{closing}"


def row(items: Sequence[str]) -> str:
    """A tuple on one line."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def condition(parts: Sequence[str], indent: int) -> str:
    """`if a or b:`, one part a line where it is long."""
    line = f"if {' or '.join(parts)}:"
    if len(INDENT) * indent + len(line) <= WIDTH:
        return line
    inner = f"\n{INDENT * (indent + 1)}or ".join(parts)
    return f"if (\n{INDENT * (indent + 1)}{inner}\n{INDENT * indent}):"


def raised(parts: Sequence[str], indent: int) -> str:
    """`raise ValueError(...)` of an f-string given in parts, which are joined where they fit."""
    joined = f'raise ValueError(f"{"".join(parts)}")'
    if len(INDENT) * indent + len(joined) <= WIDTH:
        return joined
    if len(INDENT) * (indent + 1) + len("".join(parts)) + len('f""') <= WIDTH:
        parts = ["".join(parts)]
    inner = "".join(f'{INDENT * (indent + 1)}{"f" if "{" in part else ""}"{part}"\n' for part in parts)
    return f"raise ValueError(\n{inner}{INDENT * indent})"


def listed(names: Sequence[str]) -> str:
    """Names as prose: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# Functions that emitted code may call, and names that linters take for digits.
_AVOIDED = {"min", "max", "float", "sum", "abs", "l", "O", "I"}


class Names:
    """Gives out identifiers, each once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken) | set(keyword.kwlist) | _AVOIDED

    def copy(self) -> Names:
        """Another that gives out the same names from here on."""
        return Names(self.taken)

    def fresh(self, hint: str) -> str:
        base = "".join(character if character.isalnum() else "_" for character in hint)
        base = f"value_{base}" if not base or base[0].isdigit() else base
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


# -- integers ------------------------------------------------------------------------------------------------------


def _infix(sign: str) -> Callable[..., str]:
    def bare(text: str) -> str:
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    return lambda a, b: f"{bare(a)} {sign} {bare(b)}"


_COMMON: dict[str, Callable[..., str]] = {
    "cdiv": lambda a, b: f"pl.cdiv({a}, {b})",
    "floordiv": _infix("//"),
    "mod": _infix("%"),
    "next_pow2": lambda a: f"pl.next_power_of_2({a})",
}
STATIC: dict[str, Callable[..., str]] = _COMMON | {
    "min": lambda *arguments: f"min({', '.join(arguments)})",
    "max": lambda *arguments: f"max({', '.join(arguments)})",
}
"""Integer functions of Python numbers."""


def _nested(name: str) -> Callable[..., str]:
    def write(first: str, *rest: str) -> str:
        return f"{name}({first}, {write(*rest)})" if rest else first

    return write


TRACED: dict[str, Callable[..., str]] = _COMMON | {"min": _nested("jnp.minimum"), "max": _nested("jnp.maximum")}
"""Integer functions of which some argument is known only in the kernel."""


def static(expr: Expr) -> str:
    """An integer expression of sizes and tile sizes."""
    return print_expr(expr, functions=STATIC)


def static_factor(expr: Expr) -> str:
    return print_factor(expr, functions=STATIC)
