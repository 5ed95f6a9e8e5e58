"""What TTIR text says, as data: `Module`, `Function`, `Region`, `Block`, `Operation`, `Value`, `Place`.

Ops are generic: a name, operands, results, attributes and regions, for any dialect. Values are compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kdsl.diagnostics import Location
from kdsl.frontends.triton.types import Type

# Numbers, words and strings as such; arrays and dense constants as (nested) tuples; dictionaries; what is not decoded
# (`#tt.some<attribute>`) as its text. A flag without a value is True.
Attribute = bool | int | float | str | tuple["Attribute", ...] | dict[str, "Attribute"] | Type


@dataclass(frozen=True)
class Place:
    """A place in the author's source, and what is bound there: the names of the results, the last one first."""

    location: Location
    names: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Value:
    """A result of an op, or an argument of a block. `name` is unique among those visible, and starts with "%"."""

    name: str
    type: Type
    title: str | None = None  # the author's name for it

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class Operation:
    """An op. `words` are its unnamed attributes in order: (`slt`,) of a cmpi, (`add`, `relaxed`, `gpu`) of an atomic.

    `successors` are the labels of the blocks that a branch may go to, each with the values that it hands over.
    `line` counts from 1 in the TTIR text; `place` is in the author's source.
    """

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    words: tuple[Attribute, ...]
    attributes: Mapping[str, Attribute]
    regions: tuple[Region, ...]
    successors: tuple[tuple[str, tuple[Value, ...]], ...]
    line: int
    place: Place | None

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def body(self) -> Block:
        """The only block of the only region."""
        ((block,),) = (region.blocks for region in self.regions)
        return block


@dataclass(eq=False, slots=True)
class Block:
    """Ops in order. `label` is empty where none is written; `arguments` of an op's only block may come from the op."""

    label: str
    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]


@dataclass(eq=False, slots=True)
class Region:
    """Blocks; the first is the entry. Their printed order need not be the order of control flow."""

    blocks: tuple[Block, ...]


@dataclass(eq=False, slots=True)
class Function:
    """A `tt.func`. `argument_attributes` says what is known of each argument, such as `tt.divisibility`."""

    name: str
    arguments: tuple[Value, ...]
    argument_attributes: tuple[Mapping[str, Attribute], ...]
    results: tuple[Type, ...]
    public: bool
    attributes: Mapping[str, Attribute]
    body: Region
    line: int
    place: Place | None


@dataclass(eq=False, slots=True)
class Module:
    """A kernel, first, and the functions that it calls."""

    functions: tuple[Function, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def walk(region: Region) -> Iterator[Operation]:
    """Every op of a region, each before those in its own regions."""
    for block in region.blocks:
        for operation in block.operations:
            yield operation
            for inner in operation.regions:
                yield from walk(inner)
