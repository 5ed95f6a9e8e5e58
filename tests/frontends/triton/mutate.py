"""Hostile TTIR: texts of real kernels, changed at random by a seed."""

from __future__ import annotations

import random
import re

TOKEN = re.compile(r"\s+|[%#@^!]?[\w.$-]+|.", re.DOTALL)
BRACKETS = ("(", "[", "{", "<", "{\n", "<{a = ", "({\n", "tensor<", "loc(", '"', "dense<[")
NOISE = (
    "-",
    "0x",
    "99999999999999999999",
    "i64",
    "tensor<8x",
    "!tt.ptr<",
    "^bb1",
    "loc(",
    "#loc1",
    ":",
    "->",
    "\0",
    "é",
)


def mutated(text: str, other: str, seed: int) -> str:
    """The text with one to four changes; `other` is a text to take pieces from."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        text = chance.choice((_lines, _lines, _tokens, _tokens, _characters, _cut, _graft, _bomb))(text, other, chance)
    return text


def _lines(text: str, other: str, chance: random.Random) -> str:
    return "\n".join(_changed(text.split("\n"), other.split("\n"), chance))


def _tokens(text: str, other: str, chance: random.Random) -> str:
    return "".join(_changed(TOKEN.findall(text), [*NOISE, *TOKEN.findall(other)], chance))


def _changed(parts: list[str], others: list[str], chance: random.Random) -> list[str]:
    """One part deleted, repeated, swapped with another, or replaced."""
    if not parts:
        return parts
    i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(4):
        case 0:
            del parts[i]
        case 1:
            parts.insert(j, parts[i])
        case 2:
            parts[i], parts[j] = parts[j], parts[i]
        case _:
            parts[i] = chance.choice(others)
    return parts


def _characters(text: str, other: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    noise = "".join(
        chr(chance.choice((chance.randrange(128), chance.randrange(0xD800)))) for _ in range(chance.randint(1, 8))
    )
    return text[:at] + noise + text[at + chance.randrange(4) :]


def _cut(text: str, other: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)] if chance.random() < 0.5 else text[chance.randrange(len(text) + 1) :]


def _graft(text: str, other: str, chance: random.Random) -> str:
    at, start = chance.randrange(len(text) + 1), chance.randrange(len(other) + 1)
    return text[:at] + other[start : start + chance.randrange(400)] + text[at:]


def _bomb(text: str, other: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(BRACKETS) * chance.choice((2, 70, 2000)) + text[at:]
