"""Edges of the catalog in arrays, with the times at which they were seen."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from downriver.graph.index.adjacency import SMALLEST_FOLD, Adjacency, GrowingArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Table = npt.NDArray[np.void]

FOREVER = int(np.iinfo(np.int64).max)
_CHUNK = 50_000

EDGE_COLUMNS = np.dtype(
    [(name, np.int64) for name in ("id", "kind", "source", "target", "via", "first_at", "last_at")]
)


def tables(rows: Iterable[tuple[Any, ...]], columns: np.dtype[np.void]) -> Iterator[Table]:
    """Yield rows as arrays, so many at a time that memory never holds them all as objects."""
    remaining = iter(rows)
    while len(table := np.fromiter(islice(remaining, _CHUNK), columns)):
        yield table


class Edges:
    """Edges by number. The store hands out ids that only grow, so `id` is sorted."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self.ends = Adjacency(smallest_fold)
        self.id: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.kind: GrowingArray[np.uint8] = GrowingArray(np.uint8)
        self.via: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.first_at: GrowingArray[np.int64] = GrowingArray(np.int64)
        self.last_at: GrowingArray[np.int64] = GrowingArray(np.int64)

    def __len__(self) -> int:
        return len(self.ends)

    def put(self, table: Table) -> Table:
        """Add new edges and move the times of known ones; return the rows that were new."""
        # In the type of `id`: searching for another type would convert the whole array first.
        numbers = np.searchsorted(self.id.view, table["id"].astype(np.int32))
        new = numbers == len(self)
        self.first_at.view[numbers[~new]] = table["first_at"][~new]
        self.last_at.view[numbers[~new]] = table["last_at"][~new]
        added: Table = table[new]
        self._add(added)
        return added

    def _add(self, table: Table) -> None:
        self.id.extend(table["id"])
        self.kind.extend(table["kind"])
        self.via.extend(table["via"])
        self.first_at.extend(table["first_at"])
        self.last_at.extend(table["last_at"])
        self.ends.extend(table["source"], table["target"])
