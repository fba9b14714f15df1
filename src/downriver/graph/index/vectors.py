"""Arrays for snapshots: growing or changing one returns a new array, and readers keep the old one.

The new array shares memory with the old one where it can, so that a refresh with a few new edges
costs little and memory does not double.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)

SMALLEST_FOLD = 4096
NO_INTS: Ints = np.empty(0, np.int32)
_NO_LONGS: Longs = np.empty(0, np.int64)


def too_many_new(new: int, compressed: int, smallest_fold: int) -> bool:
    """Return whether an overlay is larger than a hundredth of the array below it."""
    return new > max(smallest_fold, compressed // 100)


def ranges(starts: Longs | Ints, counts: Longs | Ints) -> Longs:
    """Return `start, start + 1, …` of every range, one after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


class _Buffer(Generic[T]):
    """Memory that several vectors share; `used` is the length of the longest one."""

    def __init__(self, data: npt.NDArray[T], used: int) -> None:
        self.data = data
        self.used = used


class Vector(Generic[T]):
    """An append-only array. `values` are its elements; treat them as read-only.

    Only the longest vector of a buffer appends in place. Extending a shorter vector copies it.
    """

    __slots__ = ("_buffer", "values")

    def __init__(self, buffer: _Buffer[T], size: int) -> None:
        self._buffer = buffer
        self.values = buffer.data[:size]

    @classmethod
    def empty(cls, dtype: type[T]) -> Vector[T]:
        """Return a vector without elements."""
        return cls(_Buffer(np.zeros(16, dtype), 0), 0)

    @classmethod
    def of(cls, values: npt.NDArray[T]) -> Vector[T]:
        """Return a vector of an array that nothing else writes to."""
        return cls(_Buffer(values, len(values)), len(values))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def extended(self, values: npt.ArrayLike) -> Vector[T]:
        """Return a vector with more values at the end."""
        added = np.asarray(values, self.values.dtype)
        longer = self.grown(len(self) + len(added))
        longer.values[len(self) :] = added
        return longer

    def grown(self, size: int) -> Vector[T]:
        """Return a vector of at least `size` elements; the new ones are zero."""
        if size <= len(self):
            return self
        if self._buffer.used == len(self) and size <= len(self._buffer.data):
            self._buffer.used = size
            return Vector(self._buffer, size)
        # Use zeros, not empty: unwritten pages take no memory.
        data = np.zeros(max(size, len(self) * 3 // 2, 16), self.values.dtype)
        data[: len(self)] = self.values
        return Vector(_Buffer(data, size), size)

    def with_new(self, indexes: npt.ArrayLike, values: npt.ArrayLike) -> Vector[T]:
        """Return a vector with values at indexes that are all past the end of this one."""
        places = np.asarray(indexes)
        if not len(places):
            return self
        longer = self.grown(int(places.max()) + 1)
        longer.values[places] = values
        return longer


class Times:
    """Times by number, each of which may change: a shared vector, and an overlay of changes.

    A load replaces and appends times, then calls `settled` before readers see the result. Elements
    past the settled ones have no readers yet and are written in place.
    """

    __slots__ = ("_base", "_changed", "_settled", "_values")

    def __init__(
        self,
        base: Vector[np.int64],
        settled: int = 0,
        changed: Ints = NO_INTS,
        values: Longs = _NO_LONGS,
    ) -> None:
        self._base = base
        self._settled = settled
        self._changed = changed  # sorted
        self._values = values

    @classmethod
    def empty(cls) -> Times:
        """Return no times."""
        return cls(Vector.empty(np.int64))

    def __len__(self) -> int:
        return len(self._base)

    @property
    def values(self) -> Longs:
        """Every time, by number."""
        return self.of(np.arange(len(self))) if len(self._changed) else self._base.values

    def of(self, numbers: npt.NDArray[Any]) -> Longs:
        """Return the time of each number."""
        times: Longs = self._base.values[numbers]
        if len(self._changed):
            places = np.searchsorted(self._changed, numbers)
            places[places == len(self._changed)] = 0
            changed = self._changed[places] == numbers
            times[changed] = self._values[places[changed]]
        return times

    def at(self, number: int) -> int:
        """Return the time of one number."""
        return int(self.of(np.array([number], np.int32))[0])

    def grown(self, size: int) -> Times:
        """Return times for at least `size` numbers; the new ones are zero."""
        return Times(self._base.grown(size), self._settled, self._changed, self._values)

    def extended(self, times: npt.ArrayLike) -> Times:
        """Return these times with more at the end."""
        return Times(self._base.extended(times), self._settled, self._changed, self._values)

    def replaced(self, numbers: npt.NDArray[Any], times: npt.NDArray[Any]) -> Times:
        """Return these times with some replaced; no number may be given twice."""
        unread = numbers >= self._settled
        self._base.values[numbers[unread]] = times[unread]
        if unread.all():
            return self
        numbers, times = numbers[~unread].astype(np.int32), times[~unread]
        both = np.concatenate([numbers, self._changed])
        changed, places = np.unique(both, return_index=True)  # the first of equals is the new one
        values: Longs = np.concatenate([times, self._values])[places]
        if not too_many_new(len(changed), len(self._base), SMALLEST_FOLD):
            return Times(self._base, self._settled, changed, values)
        base = self._base.values.copy()
        base[changed] = values
        return Times(Vector.of(base))

    def settled(self) -> Times:
        """Return these times for readers: from now on every change goes to an overlay."""
        return Times(self._base, len(self._base), self._changed, self._values)
