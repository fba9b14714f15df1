"""Numbers by key: sorted arrays, and an overlay for what is new. 12 bytes an entry, not 100."""

from __future__ import annotations

import numpy as np

from downriver.graph.index.adjacency import (
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


class SortedKeys:
    """Which numbers belong to a 64-bit key."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self._smallest_fold = smallest_fold
        self._keys: Longs = np.empty(0, np.int64)
        self._values: Ints = NO_INTS
        self._new: dict[int, list[int]] = {}
        self._new_by_high: dict[int, list[int]] = {}
        self._new_count = 0
        self._unsorted: list[tuple[Longs, Ints]] = []

    def extend(self, keys: Longs, values: Ints | Longs) -> None:
        """Add numbers; a key may have several."""
        if self._unsorted or too_many_new(
            self._new_count + len(keys), len(self._keys), self._smallest_fold
        ):
            self._unsorted.append((keys, values.astype(np.int32)))
            return
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            self._new.setdefault(key, []).append(value)
            self._new_by_high.setdefault(key >> 32, []).append(value)
        self._new_count += len(keys)

    def find(self, key: int) -> int | None:
        """Return the first number of a key."""
        self._sort()
        at = int(np.searchsorted(self._keys, key))
        if at < len(self._keys) and self._keys[at] == key:
            return int(self._values[at])
        new = self._new.get(key)
        return new[0] if new else None

    def find_each(self, keys: Longs) -> tuple[Ints, Longs]:
        """Return all numbers of these keys, and for each the place in `keys` it belongs to."""
        self._sort()
        starts = np.searchsorted(self._keys, keys, "left")
        counts = np.searchsorted(self._keys, keys, "right") - starts
        found = self._values[ranges(starts, counts)]
        return self._with_new(found, np.repeat(np.arange(len(keys)), counts), keys)

    def having(self, high: int) -> Ints:
        """Return the numbers of every pair whose first id is `high`."""
        self._sort()
        start, end = np.searchsorted(self._keys, [pair(high, 0), pair(high + 1, 0)])
        new = self._new_by_high.get(high, ())
        return np.concatenate([self._values[start:end], np.array(new, np.int32)])

    def _with_new(self, found: Ints, places: Longs, keys: Longs) -> tuple[Ints, Longs]:
        if not self._new:
            return found, places
        new = [(one, at) for at, key in enumerate(keys.tolist()) for one in self._new.get(key, ())]
        if not new:
            return found, places
        more, at = zip(*new, strict=True)
        return (
            np.concatenate([found, np.array(more, np.int32)]),
            np.concatenate([places, np.array(at, np.int64)]),
        )

    def _sort(self) -> None:
        if not self._unsorted:
            return
        waiting = [(key, value) for key, values in self._new.items() for value in values]
        if waiting:
            keys, values = zip(*waiting, strict=True)
            self._unsorted.insert(0, (np.array(keys, np.int64), np.array(values, np.int32)))
        keys_now = np.concatenate([keys for keys, _ in self._unsorted])
        values_now = np.concatenate([values for _, values in self._unsorted])
        self._unsorted.clear()
        order = np.argsort(keys_now, kind="stable")
        keys_now, values_now = keys_now[order], values_now[order]
        if len(self._keys):
            at = np.searchsorted(self._keys, keys_now, "right")
            keys_now = np.insert(self._keys, at, keys_now)
            values_now = np.insert(self._values, at, values_now)
        self._keys, self._values = keys_now, values_now
        self._new, self._new_by_high, self._new_count = {}, {}, 0
