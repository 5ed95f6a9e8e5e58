"""Integer values of a bound kernel: between which ends each lies, given the ends of what the kernel is called with.

Ends are sound where nothing wraps; where they are not known they are those of the dtype. A condition that guards an
access, a branch or an arm of a select narrows the values that it compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.analysis import ranges
from kdsl.analysis.ranges import Interval
from kdsl.equivalence.flow import Definitions
from kdsl.equivalence.interval_rules import NEGATED, RULES, SWAPPED, compared, ends_of, multiply, union
from kdsl.ir.dtypes import DType
from kdsl.ir.expr import Expr
from kdsl.ir.kernel import Op, Value

Guards = tuple[tuple[Value, bool], ...]  # conditions, and whether they hold or fail
_DEEPEST = 60  # nested assumptions; then a value may be anything


class Intervals:
    """The ends of integer values. `given` has those of inputs by parameter name, `assumed` those of some values."""

    def __init__(
        self,
        definitions: Definitions,
        given: Mapping[str, Interval],
        assumed: Mapping[str, Interval] | None = None,
    ) -> None:
        self.definitions, self.kernel, self.given = definitions, definitions.kernel, given
        self.assumed = dict(assumed or {})
        self._found: dict[str, Interval] = {}

    def assuming(self, more: Mapping[str, Interval]) -> Intervals:
        return Intervals(self.definitions, self.given, {**self.assumed, **more})

    def where(self, guards: Guards) -> Intervals | None:
        """The ends where all guards are as they say; None where they never are."""
        narrowed = self
        for condition, holds in guards:
            for value, (low, high) in narrowed._narrowed(condition, holds):
                ends = narrowed.of(value)
                low, high = max(low, ends[0]), min(high, ends[1])
                if low > high:
                    return None
                narrowed = narrowed.assuming({self.definitions.key(value): (low, high)})
        return narrowed

    def _narrowed(self, condition: Value, holds: bool) -> Iterable[tuple[Value, Interval]]:
        op, _ = self.definitions.ops.get(condition.name, (None, 0))
        if op is None:
            return
        if (op.name, holds) in (("and", True), ("or", False)):
            for operand in op.operands:
                yield from self._narrowed(operand, holds)
        elif op.name == "not":
            yield from self._narrowed(op.operands[0], not holds)
        elif op.name in NEGATED and op.operands[0].dtype.is_integer:
            left, right = op.operands
            name = op.name if holds else NEGATED[op.name]
            yield from [(left, compared(name, self.of(right))), (right, compared(SWAPPED[name], self.of(left)))]

    def of(self, value: Value) -> Interval:
        """The ends of a value; those of its dtype where nothing is known, and for floats."""
        key = self.definitions.key(value)
        if key in self.assumed:
            return self.assumed[key]
        if key not in self._found:
            self._found[key] = self._fitting(value.dtype, self._of(value))
        return self._found[key]

    def _of(self, value: Value) -> Interval | None:
        if not (value.dtype.is_integer or value.dtype.kind == "bool") or len(self.assumed) > _DEEPEST:
            return None
        if value.name in self.definitions.carried:
            return self._carried(value)
        if value.name not in self.definitions.ops:
            return None  # an argument of a combine
        op, place = self.definitions.ops[value.name]
        if op.name in RULES:
            return RULES[op.name](*map(self.of, op.operands))
        rule = getattr(self, f"_{op.name}", None)
        ends: Interval | None = rule(op, place) if rule is not None else None
        return ends

    def _fitting(self, dtype: DType, ends: Interval | None) -> Interval:
        low, high = ends_of(dtype)
        return ends if ends is not None and low <= ends[0] and ends[1] <= high else (low, high)

    def _carried(self, value: Value) -> Interval | None:
        initial, final = self.definitions.carried[value.name]
        ends = self.of(initial)
        for _ in range(2):
            after = union(ends, self.assuming({value.name: ends}).of(final))
            if after == ends:
                return ends
            ends = after
        return None

    def integer(self, name: str) -> Interval:
        """The ends of an integer that a `let` names."""
        low, high = self.of(self.definitions.named[name])
        return max(low, 0), max(high, 0)

    def form(self, form: Expr) -> Interval | None:
        """The ends of an integer form, on lanes that are valid."""
        known = self._known(form)
        ends = ranges.interval(self.kernel, form, known)
        for axis in self.kernel.axes:
            for bound in axis.bounds if axis.name in form.symbols else ():
                ours, theirs = form.coefficient(axis.name), bound.form.coefficient(axis.name)
                if ends is None or ours is None or theirs is None or not ours.constant or theirs.constant != 1:
                    continue
                rest = ranges.interval(self.kernel, form - ours * bound.form, known)
                inside = ranges.interval(self.kernel, bound.form, known)
                if rest is None or inside is None:
                    continue
                low = inside[0] if bound.lower is None else max(inside[0], self._end(bound.lower, inside[0], 0))
                high = (
                    inside[1] if bound.upper is None else min(inside[1], self._end(bound.upper, inside[1] + 1, 1) - 1)
                )
                valid = multiply((low, max(low, high)), (ours.constant, ours.constant))
                ends = max(ends[0], valid[0] + rest[0]), min(ends[1], valid[1] + rest[1])
        return ends

    def _end(self, form: Expr, otherwise: int, side: int) -> int:
        ends = ranges.interval(self.kernel, form, self._known(form))
        return otherwise if ends is None else ends[side]

    def _known(self, form: Expr) -> dict[str, Interval]:
        return {name: self.integer(name) for name in self.definitions.integers_in(form)}

    # -- ops that are more than a function of their operands' ends ---------------------------------------------------

    def _load(self, op: Op, place: int) -> Interval | None:
        ends = self.given.get(op.attributes["buffer"])
        fill = op.attributes.get("fill")
        return ends if ends is None or fill is None else union(ends, (int(fill), int(fill)))

    _load_at = _load

    def _argument(self, op: Op, place: int) -> Interval | None:
        return self.given.get(op.attributes["scalar"])

    def _constant(self, op: Op, place: int) -> Interval:
        return int(op.attributes["value"]), int(op.attributes["value"])

    def _index(self, op: Op, place: int) -> Interval | None:
        return self.form(op.attributes["form"])

    def _cast(self, op: Op, place: int) -> Interval | None:
        return self.of(op.operands[0]) if not op.operands[0].dtype.is_float else None

    def _select(self, op: Op, place: int) -> Interval | None:
        condition, *arms = op.operands
        narrowed = [self.where(((condition, holds),)) for holds in (True, False)]
        ends = [there.of(arm) for there, arm in zip(narrowed, arms, strict=True) if there is not None]
        return union(*ends) if ends else None

    def _reduce(self, op: Op, place: int) -> Interval | None:
        combine, ends = op.attributes["combine"], self.of(op.operands[0])
        lanes = self._lanes(op.attributes["axis"])
        if combine in ("argmax", "argmin"):
            return 0, max(0, lanes - 1)
        if combine == "add":
            return min(0, ends[0] * lanes), max(0, ends[1] * lanes)
        return ends if combine in ("maximum", "minimum") else None

    def _scan(self, op: Op, place: int) -> Interval | None:
        low, high = self.of(op.operands[0])
        if op.attributes["combine"] == "add":
            lanes = self._lanes(op.attributes["axis"])
            return min(low, low * lanes), max(high, high * lanes)
        return (low, high) if op.attributes["combine"] in ("maximum", "minimum") else None

    def _sort(self, op: Op, place: int) -> Interval:
        return self.of(op.operands[place])

    def _topk(self, op: Op, place: int) -> Interval:
        return self.of(op.operands[0]) if place == 0 else (0, max(0, self._lanes(op.attributes["axis"]) - 1))

    def _gather(self, op: Op, place: int) -> Interval:
        return self.of(op.operands[0])

    def _histogram(self, op: Op, place: int) -> Interval:
        return 0, self._lanes(op.attributes["axis"])

    def _if(self, op: Op, place: int) -> Interval | None:
        narrowed = [self.where(((op.operands[0], holds),)) for holds in (True, False)]
        ends = [
            there.of(region.ops[-1].operands[place])
            for there, region in zip(narrowed, op.regions, strict=True)
            if there is not None
        ]
        return union(*ends) if ends else None

    def _lanes(self, axis: str) -> int:
        ends = self.form(self.kernel.axis(axis).extent)
        return 0 if ends is None else max(0, ends[1])
