"""Which columns derive from which."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from downriver.graph.index.adjacency import (
    SMALLEST_FOLD,
    Adjacency,
    Flags,
    GrowingArray,
    Ints,
    Longs,
)
from downriver.graph.index.edges import Table, tables
from downriver.graph.index.sorted_keys import SortedKeys, pair, pairs
from downriver.graph.walk.result import VisitMarks
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.model.facts import ColumnTransformation
    from downriver.store import CatalogReader

# How a column derives, in the order in which composing makes it: the larger one remains.
IDENTITY, TRANSFORMATION, AGGREGATION, INDIRECT = 0, 1, 2, 3
_DIRECT_RANKS = {"IDENTITY": IDENTITY, "AGGREGATION": AGGREGATION}

STAR = 0  # the field number of `*`

_COLUMNS = np.dtype([("id", np.int64), ("dataset", np.int64), ("name", np.int64)])
_CLAIMS = np.dtype([(c, np.int64) for c in ("id", "job", "dataset", "first_at", "last_at")])
_CLAIMS_AT_ONCE = 5_000  # whose edges are put in together


class ColumnGraph:
    """Columns and claims by the store's ids, in which 0 is none; edges by number."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self.flow = Adjacency(smallest_fold)
        self.claim: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.said: GrowingArray[np.int32] = GrowingArray(
            np.int32
        )  # which of the things its claim says
        self.rank: GrowingArray[np.uint8] = GrowingArray(np.uint8)
        self.dataset: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.field: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.claim_job: GrowingArray[np.int32] = GrowingArray(np.int32)
        self._claim_first: GrowingArray[np.int64] = GrowingArray(np.int64)
        self._claim_speaks: GrowingArray[np.bool_] = GrowingArray(np.bool_)  # it has edges
        self._claims_by_pair = SortedKeys(smallest_fold)  # (job, dataset) -> claim
        self._columns_by_place = SortedKeys(smallest_fold)  # (dataset, field) -> column
        self._has_star: GrowingArray[np.bool_] = GrowingArray(np.bool_)  # by dataset
        self._has_star.grow(1)
        self._field_numbers = _FieldNumbers(smallest_fold)
        self._last_claim = 0  # of those with edges
        self.reached = VisitMarks()  # in the walk under way

    @property
    def size(self) -> int:
        """One more than the largest column id."""
        return self.dataset.size

    def load(self, reader: CatalogReader, changed_after: int) -> None:
        """Add new columns, claims and edges, and move the times of known claims."""
        last_column = self.size - 1
        for table in tables(_with_hashes(reader.columns(last_column)), _COLUMNS):
            self._load_columns(table)
        for table in tables(reader.claims(changed_after), _CLAIMS):
            self._load_claims(table)
        told = reader.derivations(self._last_claim)
        while some := list(islice(told, _CLAIMS_AT_ONCE)):
            self._load_derivations(some)

    def places(self, columns: Iterable[int]) -> dict[int, int]:
        """Return the dataset of each column."""
        ids = list(columns)
        return dict(zip(ids, self.dataset.view[ids].tolist(), strict=True))

    def of(self, dataset: int) -> Ints:
        """Return the columns of a dataset, `*` included."""
        return self._columns_by_place.having(dataset)

    def find(self, dataset: int, field: int) -> int | None:
        """Return the column of a dataset with this field number."""
        return self._columns_by_place.find(pair(dataset, field))

    def find_each(self, datasets: Ints, fields: Ints) -> Ints:
        """Return the column at each place, 0 where there is none."""
        found = np.zeros(len(datasets), np.int32)
        columns, at = self._columns_by_place.find_each(pairs(datasets, fields))
        found[at] = columns
        return found

    def has_star(self, datasets: Ints) -> Flags:
        """Tell which datasets have an edge at `*`."""
        within = np.where(datasets < self._has_star.size, datasets, 0)
        flags: Flags = self._has_star.view[within]
        return flags

    @property
    def starred(self) -> Flags:
        """Tells of datasets whether they have an edge at `*`; those past its end do not."""
        return self._has_star.view

    def star_stands_for(self) -> Callable[[int], bool]:
        """Return a function that tells of one column whether its dataset has an edge at `*`."""
        datasets, flags = self.dataset.view.data, self._has_star.view.data
        last = len(flags)

        def stands_for(column: int) -> bool:
            dataset = datasets[column]
            return bool(dataset < last and flags[dataset])

        return stands_for

    def known_by(self, edges: Ints, as_of: int) -> Flags:
        """Tell which edges had been claimed at a time."""
        flags: Flags = self._claim_first.view[self.claim.view[edges]] <= as_of
        return flags

    def claimed(self, jobs: Ints, datasets: Ints, as_of: int) -> Flags:
        """Tell of which jobs it is known how they fill a dataset's columns; job 0 is itself."""
        flags = np.zeros(len(jobs), np.bool_)
        claims, at = self._claims_by_pair.find_each(pairs(jobs, datasets))
        spoken = self._claim_speaks.view[claims] & (self._claim_first.view[claims] <= as_of)
        flags[at[spoken]] = True
        return flags

    def _load_columns(self, table: Table) -> None:
        ids, datasets = table["id"], table["dataset"]
        fields = self._field_numbers.of(table["name"])
        for array, values in ((self.dataset, datasets), (self.field, fields)):
            array.grow(int(ids.max()) + 1)
            array.view[ids] = values
        self._has_star.grow(int(datasets.max()) + 1)
        self._has_star.view[datasets[fields == STAR]] = True
        self._columns_by_place.extend(pairs(datasets, fields), ids)

    def _load_claims(self, table: Table) -> None:
        ids = table["id"]
        new = table[ids >= self.claim_job.size]
        size = int(ids.max()) + 1
        self.claim_job.grow(size)
        self._claim_first.grow(size)
        self._claim_speaks.grow(size)
        self.claim_job.view[ids] = table["job"]
        self._claim_first.view[ids] = table["first_at"]
        self._claims_by_pair.extend(pairs(new["job"], new["dataset"]), new["id"])

    def _load_derivations(self, told: list[tuple[int, bytes, list[ColumnTransformation]]]) -> None:
        self._last_claim = told[-1][0]
        edges = [np.frombuffer(stored, "<i4").reshape(3, -1) for _, stored, _ in told]
        sources, targets, said = np.concatenate(edges, axis=1)
        sizes = [part.shape[1] for part in edges]
        claims = np.array([claim for claim, *_ in told], np.int32)
        ranks = [rank for *_, kinds in told for rank in map(_rank, kinds)]
        kinds = np.array([len(kinds) for *_, kinds in told])
        first_kinds = np.repeat(np.cumsum(kinds) - kinds, sizes)
        self.claim.extend(np.repeat(claims, sizes))
        self.said.extend(said)
        self.rank.extend(np.array(ranks, np.uint8)[first_kinds + said])
        self.flow.extend(sources, targets)
        self._claim_speaks.view[claims] = True


class _FieldNumbers:
    """A number for every field name, so that columns of several datasets compare by name.

    Names are known by their 64-bit hash: millions of strings would weigh more than the graph.
    """

    def __init__(self, smallest_fold: int) -> None:
        self._numbers = SortedKeys(smallest_fold)
        self._count = 0
        self.of(np.array([hash(EVERY_FIELD)]))  # the first: STAR

    def of(self, names: Longs) -> Ints:
        """Return the number of each name, given by its hash."""
        distinct, places = np.unique(names, return_inverse=True)
        numbers = np.full(len(distinct), -1, np.int32)
        found, at = self._numbers.find_each(distinct)
        numbers[at] = found
        new = np.flatnonzero(numbers < 0)
        numbers[new] = np.arange(self._count, self._count + len(new))
        self._numbers.extend(distinct[new], numbers[new])
        self._count += len(new)
        return numbers[places]


def _with_hashes(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int, int]]:
    return ((column, dataset, hash(field)) for column, dataset, field in rows)


def _rank(said: ColumnTransformation) -> int:
    return _DIRECT_RANKS.get(said.subtype, TRANSFORMATION) if said.direct else INDIRECT
