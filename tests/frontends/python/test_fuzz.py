"""Whatever an author writes, the front end gives a valid kernel or a KdslError: nothing else comes out."""

from __future__ import annotations

import ast
import copy
import inspect
import random
from pathlib import Path
from types import ModuleType

import pytest

import kdsl
from kdsl.diagnostics import KdslError
from kdsl.ir.verify import verify
from kdsl.kernels import attention, layernorm, matmul, softmax, vector_add
from tests.frontends.python import sources
from tests.frontends.python.samples import features, places, ragged, rows

MODULES = {attention: 100, layernorm: 100, matmul: 100, softmax: 100, vector_add: 100}  # mutants of each
MODULES |= {features: 25, ragged: 40, places: 40, rows: 40}

# Put in place of any expression: one of each kind of thing, and what Python has beyond them.
INTRUDERS = """
    m | n | k | M | N | K | D | T | x | y | BM | BN | causal | scale | f32 | kdsl.exp | kdsl.grid | kdsl.axis(4) | kdsl
    0 | -1 | 2**70 | 0.5 | True | None | 'text' | b'' | 1j | ... | () | [] | {} | (1, 2) | slice(1)
    m.index | m.start | m.stop | M.tiles(BM) | M.tiles(0) | x[m] | x[m, :] | x[:, :] | x.load(m.index + 1, fill=0)
    kdsl.zeros((m,), f32) | kdsl.sum(m.index, over=m) | kdsl.dot(m.index, m.index) | kdsl.require(M > 0)
    lambda: 0 | [i for i in range(2)] | (yield) | (q := 1) | f'{M}' | m if causal else n | not m | m ** 2 | M @ N
    M // 0 | 1 / 0 | exit() | kdsl.full((m,), 10**400, f32) | m < n < 3 | m is None | m in (1, 2) | M == N
    len([m]) | max(m, n) | kdsl.reshape(x[m, :], (N,), (kdsl.axis(2), kdsl.axis(4))) | kdsl.zeros(m, f32) | -M | ~m
    x.atomic_add(m, value=1) | y.atomic_cas(m, expected=x, value=0) | x.load(m, mask=m, fill=None) | x[x[m]] | y[0.5]
    kdsl.reduce((m.index, m), over=m, combine=kdsl.maximum) | kdsl.cumsum(x[m, :], over=N) | kdsl.sort((), over=m)
    kdsl.topk(x[m, :], K, over=N) | kdsl.range(0, x[m], 2) | M.tiles(BM, start=scale) | kdsl.uniform(m, m.index)
    kdsl.concat([], (), m) | kdsl.split(x[m, :], over=N) | kdsl.program_id(m) | kdsl.bitcast(m.index, f32)
    2 ** m.index | kdsl.gather(x[m, :], m, over=N) | kdsl.dot_scaled(m, m, m, m, over=m, groups=m)
    kdsl.print('x', m) | length
"""
EXPRESSIONS = [
    ast.parse(text.strip(), mode="eval").body for line in INTRUDERS.strip().splitlines() for text in line.split(" | ")
]
STATEMENTS = [
    ast.parse(text).body[0]
    for text in (
        "for m in M: pass", "for q in K.tiles(BK): pass", "return 1", "x = (x, x)", "m = 1", "del x", "x[m] = x[m]",
        "x += 1", "a, b = 1, 2", "while True: pass", "q: int = 3", "global x", "y[0] = 1", "x = y = 0", "pass",
        "if m: pass", "import os", "if x > 0: x = 1",
        "while x > 0: x -= 1", "for q in kdsl.range(0, x): x = q", "if M > 4: return", "y.store(m, value=x, mask=x)",
        "x.atomic_max(0, value=m.index)", "kdsl.check(x > 0, 'positive')", "if M > 1:\n    x = m\nelse:\n    x = 0.5",
        "for q in kdsl.grid(M): pass", "x.y = 1", "[x, y] = [1, 2]", "assert M",
    )
]  # fmt: skip


def mutate(tree: ast.Module, chance: random.Random) -> None:
    """One to three small changes, inside functions or their signatures."""
    for _ in range(chance.randint(1, 3)):
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        function = chance.choice(functions)
        inside = [node for part in (function.args, *function.body) for node in ast.walk(part)]
        chance.choice((_replace, _replace, _swap, _rename, _delete, _insert, _operator))(function, inside, chance)


def _expression_fields(inside: list[ast.AST]) -> list[tuple[ast.AST, str, int | None]]:
    """Every place that holds an expression: a node, a field, and an index if the field is a list."""
    places: list[tuple[ast.AST, str, int | None]] = []
    for node in inside:
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                places.append((node, name, None))
            elif isinstance(value, list):
                places += [(node, name, place) for place, item in enumerate(value) if isinstance(item, ast.expr)]
    return places


def _get(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    node, name, index = place
    value = getattr(node, name)
    found: ast.expr = value if index is None else value[index]
    return found


def _set(place: tuple[ast.AST, str, int | None], new: ast.expr) -> None:
    node, name, index = place
    if index is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[index] = new


def _replace(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    _set(chance.choice(_expression_fields(inside)), copy.deepcopy(chance.choice(EXPRESSIONS)))


def _swap(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    first, second = (chance.choice(_expression_fields(inside)) for _ in range(2))
    one, two = copy.deepcopy(_get(first)), copy.deepcopy(_get(second))
    _set(first, two)
    _set(second, one)


def _rename(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    names = [node for node in inside if isinstance(node, ast.Name)]
    chance.choice(names).id = chance.choice([*(node.id for node in names), "unknown", "sum", "T", "M"])


def _delete(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    lists = [
        value
        for node in inside
        for name, value in ast.iter_fields(node)
        if isinstance(value, list) and value and name in ("elts", "args", "keywords", "body", "kwonlyargs")
    ]
    chosen = chance.choice([*lists, function.body])
    chosen.pop(chance.randrange(len(chosen)))


def _insert(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    bodies = [node.body for node in inside if isinstance(node, ast.For | ast.If)] + [function.body]
    body = chance.choice(bodies)
    body.insert(chance.randint(0, len(body)), copy.deepcopy(chance.choice(STATEMENTS)))


def _operator(function: ast.FunctionDef, inside: list[ast.AST], chance: random.Random) -> None:
    operators = [ast.Add, ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.BitAnd, ast.LShift]
    for node in inside:
        if isinstance(node, ast.BinOp) and chance.random() < 0.3:
            node.op = chance.choice(operators)()


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split(".")[-1])
def test_mutated_kernels_are_valid_or_a_diagnostic(module: ModuleType, tmp_path: Path) -> None:
    original = ast.parse(inspect.getsource(module))
    outcomes = {"valid": 0, "diagnostic": 0, "not Python": 0}
    for seed in range(MODULES[module]):
        tree = copy.deepcopy(original)
        mutate(tree, random.Random(seed))
        try:
            text = ast.unparse(ast.fix_missing_locations(tree))
            loaded = sources.load(tmp_path, text)
        except Exception:  # not a module that Python imports: none of the front end's business
            outcomes["not Python"] += 1
            continue
        for kernel in [thing for thing in vars(loaded).values() if isinstance(thing, kdsl.Kernel)]:
            bindings = dict(T=kdsl.f32)
            try:
                verify(kernel.elaborate(**bindings))
                outcomes["valid"] += 1
            except KdslError as error:
                assert error.render() and (error.location is None or error.location.line > 0)
                outcomes["diagnostic"] += 1
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {kernel.name} raised {error!r} for\n{text}") from error
    assert outcomes["diagnostic"] > 20 and outcomes["valid"] > 0, outcomes


def test_an_expression_nested_too_deep_is_a_diagnostic(tmp_path: Path) -> None:
    body = "    for m, n in kdsl.grid(M, N):\n        c[m, n] = 1" + " + v[n]" * 700 + "\n"
    kernel, _ = sources.kernel_of(tmp_path, body)
    with pytest.raises(KdslError, match=r"K0104.*nested too deep"):
        kernel.elaborate(T=kdsl.f32)
