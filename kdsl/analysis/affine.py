"""Index forms as affine forms: what multiplies each coordinate, and which shapes of access that makes.

A coordinate is an axis, or a named part of one: where a form divides an axis p by a uniform c, its quotient `p//c` and
remainder `p%c` are coordinates in p's place, p = c*(p//c) + p%c. Coefficients are uniform: they hold no coordinates.
What a `let` names counts as uniform, as it is within one iteration. Works on bound and unbound kernels alike. Nothing
is approximated: what is not affine has no affine form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kdsl.analysis.ranges import never_negative
from kdsl.ir.expr import Atom, Expr, Function, Symbol, cdiv, function, symbol, wrap
from kdsl.ir.kernel import Axis, Bound, Kernel, Op
from kdsl.ir.type_rules import form_axes


@dataclass(frozen=True)
class Split:
    """An axis as two coordinates: axis = divisor * quotient + remainder, where 0 <= remainder < divisor."""

    axis: Axis
    divisor: Expr

    @property
    def quotient(self) -> Axis:
        return Axis(f"{self.axis.name}//{self.divisor}", self.axis.kind, cdiv(self.axis.extent, self.divisor))

    @property
    def remainder(self) -> Axis:
        return Axis(f"{self.axis.name}%{self.divisor}", self.axis.kind, self.divisor)

    @property
    def whole(self) -> Expr:
        """The axis in the two coordinates. Points at or past the axis's extent are none of the axis."""
        return self.divisor * symbol(self.quotient.name) + symbol(self.remainder.name)

    def apply(self, form: Expr) -> Expr:
        """The form in the two coordinates."""

        def change(atom: Atom) -> Expr:
            if isinstance(atom, Symbol):
                return self.whole if atom.name == self.axis.name else Expr((((atom,), 1),))
            if atom.name in ("floordiv", "mod") and atom.arguments == (symbol(self.axis.name), self.divisor):
                return symbol((self.quotient if atom.name == "floordiv" else self.remainder).name)
            return function(atom.name, *map(self.apply, atom.arguments))

        return _map_atoms(form, change)


@dataclass(frozen=True)
class Affine:
    """constant + the sum of coefficient * coordinate. `splits` say what coordinates that are no axes are parts of."""

    coefficients: dict[str, Expr]
    constant: Expr
    splits: tuple[Split, ...] = ()

    @property
    def form(self) -> Expr:
        """The sum as one form over the coordinates."""
        return sum((factor * symbol(name) for name, factor in self.coefficients.items()), self.constant)


def affine(kernel: Kernel, form: Expr) -> Affine | None:
    """The affine form equal to a form at every point; None for products of axes, two divisors of one axis, others."""
    form = distribute(kernel, form)
    found = splits(kernel, [form])
    coordinates = {axis.name for axis in kernel.axes}
    for split in found:
        form = split.apply(form)
        coordinates |= {split.quotient.name, split.remainder.name}
    coefficients: dict[str, Expr] = {}
    for name in sorted(form.symbols & coordinates):
        coefficient = form.coefficient(name)
        if coefficient is None or coefficient.symbols & coordinates:
            return None
        coefficients[name] = coefficient
    return Affine(coefficients, form.without(coefficients), found)


def distribute(kernel: Kernel, form: Expr) -> Expr:
    """The same form with multiples of the divisor taken out of divisions: (c*a + b)//c is a + b//c, its rest b's."""

    def change(atom: Atom) -> Expr:
        if isinstance(atom, Symbol):
            return Expr((((atom,), 1),))
        arguments = [distribute(kernel, argument) for argument in atom.arguments]
        if atom.name not in ("floordiv", "mod") or not _divides(kernel, arguments[1]):
            return function(atom.name, *arguments)
        numerator, divisor = arguments
        multiples = [Expr((term,)) for term in numerator.terms]
        multiples = [term for term in multiples if function("mod", term, divisor) == wrap(0)]
        whole: Expr = sum(multiples, wrap(0))
        rest = function(atom.name, numerator - whole, divisor)
        return rest if atom.name == "mod" else function("floordiv", whole, divisor) + rest

    return _map_atoms(form, change)


def _divides(kernel: Kernel, divisor: Expr) -> bool:
    """Whether a divisor is not 0: sizes are not, where they divide (`bind` refuses it), but data may be."""
    data = {integer.name for integer in kernel.integers}
    return not divisor.symbols & data or never_negative(kernel, divisor - 1)


def splits(kernel: Kernel, forms: Iterable[Expr]) -> tuple[Split, ...]:
    """The axes that the forms divide, each by a single uniform divisor that is above 0."""
    divisors: dict[str, set[Expr]] = {}
    for atom in (atom for form in forms for atom in _divisions(form)):
        numerator, divisor = atom.arguments
        for name in numerator.symbols:
            if numerator == symbol(name):
                divisors.setdefault(name, set()).add(divisor)
    found = []
    for axis in kernel.axes:
        (divisor, *others) = divisors.get(axis.name, {wrap(0)})
        uniform = not form_axes(kernel, [divisor]) and divisor != wrap(0)
        if not others and uniform and never_negative(kernel, divisor) and _divides(kernel, divisor):
            found.append(Split(axis, divisor))
    return tuple(found)


def _divisions(form: Expr) -> Iterable[Function]:
    for monomial, _ in form.terms:
        for atom in monomial:
            if isinstance(atom, Function):
                if atom.name in ("floordiv", "mod"):
                    yield atom
                for argument in atom.arguments:
                    yield from _divisions(argument)


def _map_atoms(form: Expr, change: Callable[[Atom], Expr]) -> Expr:
    total = wrap(0)
    for monomial, coefficient in form.terms:
        product = wrap(coefficient)
        for atom in monomial:
            product = product * change(atom)
        total = total + product
    return total


ONE = wrap(1)

# -- shapes of accesses --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """One dimension of a box: from `start`, a lane of the tile axis every `stride` elements; without axis one element.

    `start` holds program and loop axes only; `stride` is uniform, and may be negative.
    """

    start: Expr
    axis: str | None = None
    stride: Expr = ONE


def range_of(kernel: Kernel, form: Expr) -> Range | None:
    """The form in one dimension of an access as a range; None for two tile axes, or a stride that varies."""
    tiles = [name for name in form_axes(kernel, [form]) if kernel.axis(name).kind == "tile"]
    if not tiles:
        return Range(form)
    stride = form.coefficient(tiles[0])
    if len(tiles) > 1 or stride is None or form_axes(kernel, [stride]):
        return None
    return Range(form.without(tiles), tiles[0], stride)


def separable(kernel: Kernel, op: Op) -> tuple[Range, ...] | None:
    """A load or store as a range a dimension, or None: where one has no range, or an axis lies along two."""
    found = [range_of(kernel, form) for form in op.attributes["index"]]
    ranges = tuple(each for each in found if each is not None)
    axes = [each.axis for each in ranges if each.axis is not None]
    return ranges if len(ranges) == len(found) and len(set(axes)) == len(axes) else None


@dataclass(frozen=True)
class FlatTail:
    """The bound `length*point + lane < limit`, lanes filling their tile: limit // length full rows, then one of
    limit % length lanes, counted by the program or loop axis `point`."""

    point: str
    lane: str
    length: Expr
    limit: Expr


def flat_tail(kernel: Kernel, bounds: Sequence[Bound]) -> FlatTail | None:
    """The bounds as one ragged end of a flat run, if that is all they are."""
    if len(bounds) != 1 or bounds[0].lower is not None or bounds[0].upper is None:
        return None
    limit = bounds[0].upper
    form = affine(kernel, bounds[0].form)
    if form is None or form.splits or form_axes(kernel, [limit]) or form.constant != wrap(0):
        return None
    kinds = {name: kernel.axis(name).kind for name in form.coefficients}
    lanes = [name for name, kind in kinds.items() if kind == "tile" and form.coefficients[name] == wrap(1)]
    points = [name for name, kind in kinds.items() if kind != "tile"]
    if len(kinds) != 2 or len(lanes) != 1 or len(points) != 1:
        return None
    length = form.coefficients[points[0]]
    return FlatTail(points[0], lanes[0], length, limit) if kernel.axis(lanes[0]).extent == length else None
