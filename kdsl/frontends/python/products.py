"""Products along an axis: dot and dot of scaled operands."""

from __future__ import annotations

from kdsl.frontends.python.given import Call
from kdsl.frontends.python.lifting import common_dtype
from kdsl.ir.kernel import Value
from kdsl.ir.type_rules import PRECISIONS


def dot(given: Call) -> Value:
    trace, precision = given.trace, given.word("precision", PRECISIONS, "K0201")
    left, right = given.value("x"), given.value("y")
    if not all(value.dtype.is_float and value.dtype.bits == 8 for value in (left, right)):
        dtype = common_dtype([given["x"], given["y"]], trace.builder.location)
        left, right = trace.lift.cast(left, dtype), trace.lift.cast(right, dtype)
    tile_axes = trace.builder.kernel.tile_axes
    shared = [name for name in tile_axes(left) if name in tile_axes(right)]
    if given["over"] is None:
        if len(shared) != 1:
            problem = f"both operands vary over {trace.shown_axes(shared)}" if shared else "they share no tile axis"
            trace.error(given.node, "K0201", operation=given.title, problem=problem)
        axis = shared[0]
    else:
        axis = given.axis("over")
        for name, value in (("x", left), ("y", right)):
            if axis not in tile_axes(value):
                problem = f"{trace.quote(given.where(name))} does not vary over {trace.shown_axes([axis])}"
                trace.error(given.where(name), "K0201", operation=given.title, problem=problem)
    return given.emit("dot", [left, right], {"axis": axis, "precision": precision}, "K0201")


def dot_scaled(given: Call) -> Value:
    operands = [given.value(name) for name in ("x", "x_scale", "y", "y_scale")]
    groups = given.axes("groups")
    if len(groups) != 2:
        thing = f"{given.trace.quote(given.where('groups'))} ({len(groups)} axes, for two scales)"
        given.trace.error(given.where("groups"), "K0213", thing=thing)
    axis, (left, right) = given.axis("over"), groups
    for name, value, own in zip(given.things, operands, (axis, left, axis, right), strict=False):
        given.varies_over(own, value, name)
    return given.emit("dot_scaled", operands, {"axis": axis, "left_group": left, "right_group": right}, "K0201")
