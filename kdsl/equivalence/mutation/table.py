"""The mutators by name. To add one: a function that yields its changes, as those around it do, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.equivalence.mutation import arithmetic, control, edges, places
from kdsl.equivalence.mutation.changes import Mutator

MUTATORS: Mapping[str, Mutator] = {
    # masks, fills and bounds
    "bound dropped": edges.bound_dropped,
    "bound flipped": edges.bound_flipped,
    "bound off by one": edges.bound_off_by_one,
    "select dropped": edges.select_dropped,
    "select flipped": edges.select_flipped,
    "mask dropped": edges.mask_dropped,
    "fill dropped": edges.fill_dropped,
    "fill wrong": edges.fill_wrong,
    # places
    "index off by one": places.index_off_by_one,
    "index transposed": places.index_transposed,
    "stride wrong": places.stride_wrong,
    "wrong tensor": places.wrong_tensor,
    "wrong axis": places.wrong_axis,
    "race planted": places.race_planted,
    "atomic torn": places.atomic_torn,
    # arithmetic
    "neighbour": arithmetic.neighbour,
    "operands swapped": arithmetic.operands_swapped,
    "op dropped": arithmetic.op_dropped,
    "combine wrong": arithmetic.combine_wrong,
    "constant wrong": arithmetic.constant_wrong,
    "result narrowed": arithmetic.result_narrowed,
    "precision lowered": arithmetic.precision_lowered,
    "rounding wrong": arithmetic.rounding_wrong,
    # control
    "last skipped": control.last_skipped,
    "first skipped": control.first_skipped,
    "one too many": control.one_too_many,
    "update lost": control.update_lost,
    "accumulator narrowed": control.accumulator_narrowed,
    "branches swapped": control.branches_swapped,
}

# Those that find something new once edges are explicit, as masks and fills that targets are given.
OF_EDGES = ("bound dropped", "bound flipped", "bound off by one", "select dropped", "fill dropped", "fill wrong")
