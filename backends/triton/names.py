"""Python names for what an emitted kernel mentions: the author's where they are free, numbered where not."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

# What emitted code itself relies on.
RESERVED = frozenset(
    {"torch", "triton", "tl", "range", "max", "min", "float", "tuple", "sum", "zip", "int", "libdevice"}
)


class Names:
    """A name space of an emitted function. A key is whatever the name stands for."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*RESERVED, *keyword.kwlist, *reserved}
        self._given: dict[object, str] = {}

    def give(self, key: object, wanted: str) -> str:
        """A name for `key`: the one that it has, else the wanted one, with a number if that is taken."""
        if key not in self._given:
            base = re.sub(r"\W", "_", wanted)
            name, count = base, 1
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]

    def share(self, key: object, with_key: object) -> None:
        """Let `key` have the name of another key."""
        self._given[key] = self._given[with_key]

    def __getitem__(self, key: object) -> str:
        return self._given[key]

    def __contains__(self, key: object) -> bool:
        return key in self._given
