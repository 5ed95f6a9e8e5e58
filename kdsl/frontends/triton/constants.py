"""Numbers and strings as TTIR writes them: `0xFF800000` of type f32 is -inf, `true` of type i1 is True."""

from __future__ import annotations

import functools
import math
import re

import ml_dtypes
import numpy as np

from kdsl.frontends.triton.problems import Problem, shown
from kdsl.frontends.triton.types import Scalar, Tensor, Type

Number = bool | int | float
# Each float type, and the unsigned integer that holds its bits.
FLOATS: dict[str, tuple[type, type]] = {
    "f64": (np.float64, np.uint64),
    "f32": (np.float32, np.uint32),
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, np.uint8),
    "f8E5M2": (ml_dtypes.float8_e5m2, np.uint8),
    "f8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, np.uint8),
    "f8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, np.uint8),
    "f8E4M3B11FNUZ": (ml_dtypes.float8_e4m3b11fnuz, np.uint8),
}
LONGEST_INTEGER = 40  # characters
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_NAMED_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_ELEMENT = re.compile(r"[^\s,\[\]]+|[\[\]]")


@functools.lru_cache(4096)
def number(text: str, type: Type | None) -> Number:
    """A number of a type, exactly as that type holds it. Raises Problem."""
    name = type.name if isinstance(type, Scalar) else ""
    if name in FLOATS:
        return _float(text, name)
    if text in ("true", "false"):
        return text == "true"
    if len(text) > LONGEST_INTEGER or not re.fullmatch(r"-?(\d+|0x[0-9A-Fa-f]+)", text):
        if type is None and re.fullmatch(r"-?\d+\.\d*([eE][+-]?\d+)?", text):
            return float(text)
        raise Problem(f"expected {f'an {name}' if name else 'a number'}, got {shown(text)}")
    value = int(text, 16 if "x" in text else 10)
    if match := re.fullmatch(r"[su]?i(\d+)", name):
        if not -(1 << int(match[1]) - 1) <= value < 1 << int(match[1]):
            raise Problem(f"{text} does not fit {name}")
        return bool(value) if name == "i1" else value
    return value


def _float(text: str, name: str) -> float:
    kind, bits = FLOATS[name]
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text):
        pattern = int(text, 16)
        if pattern > np.iinfo(bits).max:
            raise Problem(f"{text} has more bits than {name}")
        return float(np.array(pattern, bits).view(kind))
    if not re.fullmatch(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", text):
        raise Problem(f"expected an {name}, got {shown(text)}")
    with np.errstate(over="ignore"):
        value = float(np.array(float(text)).astype(kind))
    # The printer writes what a type holds as decimals, and all else as bits.
    if not math.isfinite(value):
        raise Problem(f"{shown(text)} does not fit {name}")
    return value


def dense(text: str, type: Type) -> Number | tuple[object, ...]:
    """`dense<...>` of a tensor type: one number for a splat, else nested tuples.

    Raises Problem.
    """
    if not isinstance(type, Tensor):
        raise Problem(f"expected a tensor type for {shown(text)}, got {type}")
    inner = text[len("dense<") : -1].strip()
    size = math.prod(type.shape)
    if inner.startswith('"'):
        return _nested(_from_bytes(inner, type, size), type.shape)
    if not inner.startswith("["):
        return number(inner, type.element)
    flat: list[Number] = []
    depth = 0
    for word in _ELEMENT.findall(inner):
        depth += {"[": 1, "]": -1}.get(word, 0)
        if word not in "[]":
            flat.append(number(word, type.element))
        if not 0 <= depth <= len(type.shape):
            raise Problem(f"{shown(text)} is no constant of type {type}")
    if depth != 0 or len(flat) != size:
        raise Problem(f"expected {size} elements of {type}, got {len(flat)}")
    return _nested(flat, type.shape)


def _from_bytes(text: str, type: Tensor, size: int) -> list[Number]:
    """`"0x..."`: the elements' bytes in hexadecimal, the lowest first."""
    name = str(type.element)
    kind = (
        FLOATS[name][0]
        if name in FLOATS
        else {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}.get(name)
    )
    digits = text.strip('"').removeprefix("0x")
    if kind is None or not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", digits):
        raise Problem(f"expected the bytes of {type}, got {shown(text)}")
    array = np.frombuffer(bytes.fromhex(digits), np.dtype("u1"))
    if array.size != size * np.dtype(kind).itemsize:
        raise Problem(f"expected {size} elements of {type}, got {array.size} bytes")
    return [value.item() if isinstance(value, np.integer) else float(value) for value in array.view(kind)]


def _nested(flat: list[Number], shape: tuple[int, ...]) -> tuple[object, ...]:
    result: list[object] = list(flat)
    for size in reversed(shape[1:]):
        result = [tuple(result[start : start + size]) for start in range(0, len(result), size)]
    return tuple(result)


def string(text: str) -> str:
    """A quoted string: `\\0A` is a byte in hexadecimal."""

    def unescaped(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if len(match[1]) == 2 else _NAMED_ESCAPES.get(match[1], match[1])

    return _ESCAPE.sub(unescaped, text[1:-1])
