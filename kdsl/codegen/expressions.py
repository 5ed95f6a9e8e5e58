"""Integer expressions as Python source: sizes, grids, index forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.ir.expr import Atom, Expr, Symbol
from kdsl.ir.kernel import Constraint


def as_operand(text: str) -> str:
    """The text in parentheses, unless it is a name or a number."""
    return text if text.isalnum() or text.isidentifier() else f"({text})"


# How each integer function is written. `cdiv` is the one that every target's own library names.
PYTHON: Mapping[str, Callable[..., str]] = {
    "cdiv": lambda a, b: f"cdiv({a}, {b})",
    "floordiv": lambda a, b: f"{as_operand(a)} // {as_operand(b)}",
    "mod": lambda a, b: f"{as_operand(a)} % {as_operand(b)}",
    "min": lambda *arguments: f"min({', '.join(arguments)})",
    "max": lambda *arguments: f"max({', '.join(arguments)})",
    "next_pow2": lambda a: f"next_power_of_2({a})",
}


def print_expr(
    expr: Expr,
    names: Mapping[str, str] | None = None,
    functions: Mapping[str, Callable[..., str]] = PYTHON,
    symbol: Callable[[str], str] | None = None,
) -> str:
    """The expression as Python source. `names` (or `symbol`) gives another spelling for symbols, `functions` for calls.

    The text is safe inside any larger expression of `+ - *` only if put in parentheses when it has several terms; see
    `print_factor`.
    """
    spell = symbol or (lambda name: (names or {}).get(name, name))

    def atom(item: Atom) -> str:
        if isinstance(item, Symbol):
            return spell(item.name)
        written = functions[item.name](*(print_expr(argument, names, functions, symbol) for argument in item.arguments))
        return f"({written})" if " // " in written or " % " in written else written

    text = ""
    for monomial, coefficient in expr.terms:
        factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not monomial else []
        factors += [atom(item) for item in monomial]
        sign = " - " if coefficient < 0 else " + "
        text += (sign if text else "-" if coefficient < 0 else "") + " * ".join(factors)
    return text or "0"


def print_factor(
    expr: Expr,
    names: Mapping[str, str] | None = None,
    functions: Mapping[str, Callable[..., str]] = PYTHON,
    symbol: Callable[[str], str] | None = None,
) -> str:
    """The expression in parentheses if it is a sum or starts with a minus."""
    text = print_expr(expr, names, functions, symbol)
    return f"({text})" if len(expr.terms) > 1 or text.startswith("-") else text


def print_constraint(constraint: Constraint) -> str:
    """What a kernel requires, as a Python comparison."""
    return f"{print_expr(constraint.left)} {constraint.comparison} {print_expr(constraint.right)}"
