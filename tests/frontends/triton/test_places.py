from __future__ import annotations

import pytest

from kdsl.diagnostics import Location
from kdsl.frontends.triton.module import Place
from kdsl.frontends.triton.places import Places
from kdsl.frontends.triton.problems import Problem

ALIASES = {
    "#loc": "loc(unknown)",
    "#loc1": 'loc("k.py":3:7)',
    "#loc2": 'loc("acc"(#loc1))',
    "#loc3": 'loc("site-packages/triton/language/standard.py":287:12)',
    "#loc4": "loc(callsite(#loc3 at #loc2))",
    "#loc5": "loc(callsite(#loc3 at #loc4))",
    "#loc6": 'loc("helper.py":9:1)',
    "#loc7": "loc(callsite(#loc6 at #loc2))",
    "#loc8": 'loc("outer"(#loc2))',
}
K = Location("k.py", 3, 7)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("loc(unknown)", None),
        ("loc(#loc)", None),
        ('loc("name")', None),
        ('loc("k.py":3:7)', Place(K)),
        ('loc("k.py":3:7 to :9)', Place(Location("k.py", 3, 7, 9))),
        ('loc("k.py":3:7 to 4:2)', Place(K)),
        ("loc(#loc2)", Place(K, ("acc",))),
        ("loc(#loc8)", Place(K, ("outer", "acc"))),
        ("loc(#loc5)", Place(K, ("acc",))),
        ("loc(#loc7)", Place(Location("helper.py", 9, 1))),
        ("loc(callsite(#loc at #loc2))", Place(K, ("acc",))),
        ('loc(callsite("f"("a.py":1:2) at callsite("g"("b.py":3:4) at #loc1)))', Place(Location("a.py", 1, 2), ("f",))),
        ('loc(fused<"x">[#loc, #loc2])', Place(K, ("acc",))),
        ("loc(#loc3)", Place(Location("site-packages/triton/language/standard.py", 287, 12))),
    ],
)
def test_locations_are_the_authors_place_and_names(text: str, place: Place | None) -> None:
    assert Places(ALIASES).find(text) == place


@pytest.mark.parametrize(
    "text", ["loc()", "loc(#loc99)", 'loc("a":x:1)', "loc(callsite(#loc1))", "loc(#loc) x", "loc(fused[)"]
)
def test_what_is_no_location_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        Places(ALIASES).find(text)
