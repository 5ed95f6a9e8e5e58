"""Types of TTIR: `parse_type("tensor<64x!tt.ptr<f32>>")` is `Tensor((64,), Pointer(Scalar("f32")))`."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

from kdsl.frontends.triton.problems import Problem, shown

LARGEST_TENSOR = 1 << 20  # elements: the limit of Triton itself
DEEPEST_TYPE = 8
LONGEST_TYPE = 1000  # characters
_SHAPE = re.compile(r"(?:(\d{1,7})x)")
_SCALAR = re.compile(r"(?:[su]?i|f|bf|tf)\d{1,3}(?:E\w+)?|index|none")


@dataclass(frozen=True)
class Scalar:
    """A number: "f32", "bf16", "f8E4M3FN", "i1", "i64", "si32", "index"."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer:
    """The address of a `pointee`, in an address space: 1 is a GPU's global memory."""

    pointee: Type
    space: int = 1

    def __str__(self) -> str:
        return f"!tt.ptr<{self.pointee}{'' if self.space == 1 else f', {self.space}'}>"


@dataclass(frozen=True)
class Tensor:
    """A tile of numbers or of pointers."""

    shape: tuple[int, ...]
    element: Type

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(frozen=True)
class Descriptor:
    """A tensor in memory that is read and written in blocks of one shape."""

    shape: tuple[int, ...]
    element: Type

    def __str__(self) -> str:
        return f"!tt.tensordesc<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(frozen=True)
class Opaque:
    """A type that only its own dialect knows."""

    text: str

    def __str__(self) -> str:
        return self.text


Type = Scalar | Pointer | Tensor | Descriptor | Opaque
BOOL = Scalar("i1")


@functools.lru_cache(4096)
def parse_type(text: str, depth: int = 0) -> Type:
    """The type that a text names. Raises Problem."""
    if depth > DEEPEST_TYPE or len(text) > LONGEST_TYPE:
        raise Problem(f"a type is too long or nested too deeply: {shown(text)}")
    if text.startswith("tensor<"):
        return Tensor(*_shaped(text[7:-1], depth))
    if text.startswith("!tt.ptr<"):
        pointee, comma, space = text[8:-1].rpartition(",")
        if comma and space.strip().isdecimal() and len(space) < 6:
            return Pointer(parse_type(pointee.strip(), depth + 1), int(space))
        return Pointer(parse_type(text[8:-1], depth + 1))
    if text.startswith("!tt.tensordesc<"):
        return parse_descriptor(text[15:-1], depth)
    if _SCALAR.fullmatch(text):
        return Scalar(text)
    if re.fullmatch(r"!\w+\.\w+(<.*>)?|(?:vector|tuple|complex|memref|ranked)<.*>", text, re.DOTALL):
        return Opaque(text)
    raise Problem(f"expected a type, got {shown(text)}")


def parse_descriptor(text: str, depth: int = 0) -> Descriptor:
    """A descriptor of blocks of a type: `8x32xf32`, or `tensor<8x32xf32>` up to Triton 3.6. Raises Problem."""
    return Descriptor(*_shaped(text[7:-1] if text.startswith("tensor<") else text, depth))


def _shaped(text: str, depth: int) -> tuple[tuple[int, ...], Type]:
    shape = []
    position = 0
    while match := _SHAPE.match(text, position):
        shape.append(int(match[1]))
        position = match.end()
    if math.prod(shape) > LARGEST_TENSOR or len(shape) > 20:
        raise Problem(f"a tensor of more than {LARGEST_TENSOR} elements: {shown(text)}")
    element, _, _ = text[position:].partition(", #")  # a layout, which only later stages have
    return tuple(shape), parse_type(element.strip(), depth + 1)


def like(type: Type, element: Type) -> Type:
    """A number, or a tile of numbers of the same shape."""
    return Tensor(type.shape, element) if isinstance(type, Tensor) else element


def pointed_at(type: Type) -> Type:
    """What a load from a pointer, or from a tile of pointers, gives. Raises Problem for what is neither."""
    element = type.element if isinstance(type, Tensor) else type
    if not isinstance(element, Pointer):
        raise Problem(f"expected a pointer, got {type}")
    return like(type, element.pointee)
