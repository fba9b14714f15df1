"""Numbers by key: sorted arrays, and a sorted overlay for new keys. An entry takes 12 bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downriver.graph.index.vectors import (
    NO_INTS,
    SMALLEST_FOLD,
    Ints,
    Longs,
    ranges,
    too_many_new,
)


def pair(high: int, low: int) -> int:
    """Return two ids as one key. Keys that share the first id are neighbours."""
    return high << 32 | low


def pairs(high: Ints | Longs, low: Ints | Longs) -> Longs:
    """Return many pairs of ids as keys."""
    return high.astype(np.int64) << 32 | low


class _Entries(NamedTuple):
    """Keys in ascending order, with the number of each."""

    keys: Longs
    numbers: Ints

    def of_each(self, keys: Longs) -> tuple[Ints, Longs]:
        starts = np.searchsorted(self.keys, keys, "left")
        counts = np.searchsorted(self.keys, keys, "right") - starts
        return self.numbers[ranges(starts, counts)], np.repeat(np.arange(len(keys)), counts)

    def between(self, first: int, end: int) -> Ints:
        start, stop = np.searchsorted(self.keys, [first, end])
        return self.numbers[start:stop]

    def merged(self, more: _Entries) -> _Entries:
        """Return both in order; of equal keys, those of `more` come last."""
        if not len(self.keys):
            return more
        at = np.searchsorted(self.keys, more.keys, "right")
        return _Entries(
            np.insert(self.keys, at, more.keys), np.insert(self.numbers, at, more.numbers)
        )


_NO_ENTRIES = _Entries(np.empty(0, np.int64), NO_INTS)


class SortedKeys:
    """The numbers that belong to 64-bit keys. Immutable: adding some returns a new object."""

    def __init__(
        self,
        smallest_fold: int = SMALLEST_FOLD,
        main: _Entries = _NO_ENTRIES,
        new: _Entries = _NO_ENTRIES,
        waiting: tuple[_Entries, ...] = (),
    ) -> None:
        self._smallest_fold = smallest_fold
        self._main = main
        self._new = new
        self._waiting = waiting  # not sorted yet

    def appended(self, keys: Longs, numbers: Ints | Longs) -> SortedKeys:
        """Return keys with more numbers, which lookups find once they are `indexed`."""
        if not len(keys):
            return self
        waiting = (*self._waiting, _Entries(keys, numbers.astype(np.int32)))
        return SortedKeys(self._smallest_fold, self._main, self._new, waiting)

    def indexed(self) -> SortedKeys:
        """Return keys whose lookups find every number."""
        if not self._waiting:
            return self
        keys = np.concatenate([waiting.keys for waiting in self._waiting])
        numbers = np.concatenate([waiting.numbers for waiting in self._waiting])
        order = np.argsort(keys, kind="stable")
        new = self._new.merged(_Entries(keys[order], numbers[order]))
        if too_many_new(len(new.keys), len(self._main.keys), self._smallest_fold):
            return SortedKeys(self._smallest_fold, self._main.merged(new))
        return SortedKeys(self._smallest_fold, self._main, new)

    def find(self, key: int) -> int | None:
        """Return the first number of a key."""
        numbers, _ = self.find_each(np.array([key]))
        return int(numbers[0]) if len(numbers) else None

    def find_each(self, keys: Longs) -> tuple[Ints, Longs]:
        """Return all numbers of these keys, and the position in `keys` of the key of each."""
        numbers, places = self._main.of_each(keys)
        if not len(self._new.keys):
            return numbers, places
        more, at = self._new.of_each(keys)
        if not len(more):
            return numbers, places
        return np.concatenate([numbers, more]), np.concatenate([places, at])

    def having(self, high: int) -> Ints:
        """Return the numbers of every pair whose first id is `high`."""
        span = pair(high, 0), pair(high + 1, 0)
        return np.concatenate([self._main.between(*span), self._new.between(*span)])
