"""Edges of the catalog in arrays, with the times at which they were seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from downriver.graph.index.adjacency import Adjacency
from downriver.graph.index.vectors import SMALLEST_FOLD, Times, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Table = npt.NDArray[np.void]

FOREVER = int(np.iinfo(np.int64).max)
_CHUNK = 50_000

RetiredEdges: TypeAlias = frozenset[tuple[int, int]]  # source and target: dataset and job
EDGE_COLUMNS = np.dtype(
    [(name, np.int64) for name in ("id", "kind", "source", "target", "via", "first_at", "last_at")]
)


def tables(rows: Iterable[tuple[Any, ...]], columns: np.dtype[np.void]) -> Iterator[Table]:
    """Yield rows as arrays in chunks, so that memory never holds all of them as objects."""
    remaining = iter(rows)
    while len(table := np.fromiter(islice(remaining, _CHUNK), columns)):
        yield table


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges by number. The store's ids only grow, so `id` is sorted."""

    ends: Adjacency
    id: Vector[np.int32]
    kind: Vector[np.uint8]
    via: Vector[np.int32]
    first_at: Times
    last_at: Times

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> Edges:
        """Return no edges."""
        return cls(
            ends=Adjacency.empty(smallest_fold),
            id=Vector.empty(np.int32),
            kind=Vector.empty(np.uint8),
            via=Vector.empty(np.int32),
            first_at=Times.empty(),
            last_at=Times.empty(),
        )

    def __len__(self) -> int:
        return len(self.ends)

    def merged(self, table: Table) -> tuple[Edges, Table]:
        """Return edges with new ones and new times of known ones, and the rows that were new.

        Lookups by node find the new edges once they are `indexed`.
        """
        if not len(table):
            return self, table
        # In the type of `id`: searching for another type would convert the whole array first.
        numbers = np.searchsorted(self.id.values, table["id"].astype(np.int32))
        new = numbers == len(self)
        known, added = table[~new], table[new]
        edges = replace(
            self,
            ends=self.ends.appended(added["source"], added["target"]),
            id=self.id.extended(added["id"]),
            kind=self.kind.extended(added["kind"]),
            via=self.via.extended(added["via"]),
            first_at=self.first_at.replaced(numbers[~new], known["first_at"]).extended(
                added["first_at"]
            ),
            last_at=self.last_at.replaced(numbers[~new], known["last_at"]).extended(
                added["last_at"]
            ),
        )
        return edges, added

    def indexed(self) -> Edges:
        """Return these edges for readers: every edge is found at both ends."""
        return replace(
            self,
            ends=self.ends.indexed(),
            first_at=self.first_at.settled(),
            last_at=self.last_at.settled(),
        )
