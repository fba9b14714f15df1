"""The edges between columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from downriver.graph.index.adjacency import Adjacency
from downriver.graph.index.edges import RetiredEdges, Table, tables
from downriver.graph.index.sorted_keys import SortedKeys, pair, pairs
from downriver.graph.index.vectors import SMALLEST_FOLD, Flags, Ints, Longs, Times, Vector
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.model.facts import ColumnTransformation
    from downriver.store import CatalogReader

# How a column derives from another. A path has the largest rank of its edges.
IDENTITY, TRANSFORMATION, AGGREGATION, INDIRECT = 0, 1, 2, 3
_DIRECT_RANKS = {"IDENTITY": IDENTITY, "AGGREGATION": AGGREGATION}

STAR = 0  # the field number of `*`

_COLUMNS = np.dtype([("id", np.int64), ("dataset", np.int64), ("name", np.int64)])
_CLAIMS = np.dtype([(c, np.int64) for c in ("id", "job", "dataset", "first_at", "last_at")])
_CLAIMS_AT_ONCE = 5_000  # whose edges are added together


@dataclass(frozen=True, slots=True)
class ColumnGraph:
    """Columns and claims by the store's ids, in which 0 is none; edges by number. Immutable."""

    flow: Adjacency
    claim: Vector[np.int32]  # by edge
    transformation: Vector[np.int32]  # by edge: the position of the derivation in its claim
    rank: Vector[np.uint8]  # by edge
    dataset: Vector[np.int32]  # by column
    field: Vector[np.int32]  # by column
    claim_job: Vector[np.int32]
    claim_first: Times
    claim_has_edges: Vector[np.bool_]
    claims_by_pair: SortedKeys  # (job, dataset) -> claim
    columns_by_place: SortedKeys  # (dataset, field) -> column
    starred: Vector[np.bool_]  # by dataset: whether it has a `*` column
    field_numbers: _FieldNumbers
    last_claim: int  # of those with edges

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> ColumnGraph:
        """Return a graph without columns."""
        return cls(
            flow=Adjacency.empty(smallest_fold),
            claim=Vector.empty(np.int32),
            transformation=Vector.empty(np.int32),
            rank=Vector.empty(np.uint8),
            dataset=Vector.empty(np.int32),
            field=Vector.empty(np.int32),
            claim_job=Vector.empty(np.int32),
            claim_first=Times.empty(),
            claim_has_edges=Vector.empty(np.bool_),
            claims_by_pair=SortedKeys(smallest_fold),
            columns_by_place=SortedKeys(smallest_fold),
            starred=Vector.empty(np.bool_).grown(1),
            field_numbers=_FieldNumbers.empty(smallest_fold),
            last_claim=0,
        )

    @property
    def size(self) -> int:
        """One more than the largest column id."""
        return len(self.dataset)

    def loaded(
        self,
        reader: CatalogReader,
        changed_after: int,
        retired: frozenset[int] = frozenset(),
        retired_edges: RetiredEdges = frozenset(),
    ) -> ColumnGraph:
        """Return the graph with the columns, claims and edges that are new, and new times.

        Columns of retired datasets have no edges, and retired jobs derive none. A retired edge to a
        job hides the derivations from that dataset, and one from a job those of that dataset.
        """
        graph = self
        hidden = np.array(sorted(retired), np.int64)
        ends = np.array(sorted(retired_edges), np.int64).reshape(-1, 2)
        hidden_edges = pairs(ends[:, 0], ends[:, 1])
        for table in tables(_with_hashes(reader.changes.columns(self.size - 1)), _COLUMNS):
            graph = graph._with_columns(table)
        for table in tables(reader.changes.claims(changed_after), _CLAIMS):
            graph = graph._with_claims(table)
        derivations = reader.changes.derivations(self.last_claim)
        while some := list(islice(derivations, _CLAIMS_AT_ONCE)):
            graph = graph._with_derivations(some, hidden, hidden_edges)
        return replace(
            graph,
            flow=graph.flow.indexed(),
            claim_first=graph.claim_first.settled(),
            claims_by_pair=graph.claims_by_pair.indexed(),
            columns_by_place=graph.columns_by_place.indexed(),
        )

    def places(self, columns: Iterable[int]) -> dict[int, int]:
        """Return the dataset of each column."""
        ids = list(columns)
        return dict(zip(ids, self.dataset[ids].tolist(), strict=True))

    def of(self, dataset: int) -> Ints:
        """Return the columns of a dataset, `*` included."""
        return self.columns_by_place.having(dataset)

    def find(self, dataset: int, field: int) -> int | None:
        """Return the column of a dataset with this field number."""
        return self.columns_by_place.find(pair(dataset, field))

    def find_each(self, datasets: Ints, fields: Ints) -> Ints:
        """Return the column of each dataset and field, 0 if there is none."""
        numbers = np.zeros(len(datasets), np.int32)
        columns, at = self.columns_by_place.find_each(pairs(datasets, fields))
        numbers[at] = columns
        return numbers

    def has_star(self, datasets: Ints) -> Flags:
        """Return which datasets have a `*` column."""
        flags: Flags = self.starred[np.where(datasets < len(self.starred), datasets, 0)]
        return flags

    def star_test(self) -> Callable[[int], bool]:
        """Return a function from a column to whether its dataset has a `*` column."""
        datasets, flags = self.dataset.values.data, self.starred.values.data
        last = len(flags)

        def has_star(column: int) -> bool:
            dataset = datasets[column]
            return bool(dataset < last and flags[dataset])

        return has_star

    def known_by(self, edges: Ints, as_of: int) -> Flags:
        """Return which edges a claim already stated at a time."""
        flags: Flags = self.claim_first.of(self.claim[edges]) <= as_of
        return flags

    def claimed(self, jobs: Ints, datasets: Ints, as_of: int) -> Flags:
        """Return which jobs have column lineage of a dataset. Job 0 stands for no job."""
        flags = np.zeros(len(jobs), np.bool_)
        claims, at = self.claims_by_pair.find_each(pairs(jobs, datasets))
        is_claimed = self.claim_has_edges[claims] & (self.claim_first.of(claims) <= as_of)
        flags[at[is_claimed]] = True
        return flags

    def _with_columns(self, table: Table) -> ColumnGraph:
        ids, datasets = table["id"], table["dataset"]
        fields, field_numbers = self.field_numbers.of(table["name"])
        starred = self.starred.grown(int(datasets.max()) + 1)
        # Older snapshots share this memory. There, the flag only causes a lookup without a result.
        starred.values[datasets[fields == STAR]] = True
        return replace(
            self,
            dataset=self.dataset.with_new(ids, datasets),
            field=self.field.with_new(ids, fields),
            starred=starred,
            field_numbers=field_numbers,
            columns_by_place=self.columns_by_place.appended(pairs(datasets, fields), ids),
        )

    def _with_claims(self, table: Table) -> ColumnGraph:
        ids = table["id"]
        new = table[ids >= len(self.claim_job)]
        size = int(ids.max()) + 1
        return replace(
            self,
            claim_job=self.claim_job.with_new(new["id"], new["job"]),
            claim_first=self.claim_first.grown(size).replaced(ids, table["first_at"]),
            claim_has_edges=self.claim_has_edges.grown(size),
            claims_by_pair=self.claims_by_pair.appended(
                pairs(new["job"], new["dataset"]), new["id"]
            ),
        )

    def _with_derivations(
        self,
        stored: list[tuple[int, bytes, list[ColumnTransformation]]],
        retired: Longs,
        retired_edges: Longs,
    ) -> ColumnGraph:
        edges = [np.frombuffer(packed, "<i4").reshape(3, -1) for _, packed, _ in stored]
        sources, targets, transformation = np.concatenate(edges, axis=1)
        sizes = [part.shape[1] for part in edges]
        claims = np.array([claim for claim, *_ in stored], np.int32)
        ranks = [rank for *_, kinds in stored for rank in map(_rank, kinds)]
        kinds = np.array([len(kinds) for *_, kinds in stored])
        first_kinds = np.repeat(np.cumsum(kinds) - kinds, sizes)
        # A claim and its edges are stored in one transaction, so no older snapshot has the claim.
        self.claim_has_edges.values[claims] = True
        claim, rank = (
            np.repeat(claims, sizes),
            np.array(ranks, np.uint8)[first_kinds + transformation],
        )
        if len(retired) or len(retired_edges):
            nodes = (self.dataset[sources], self.dataset[targets], self.claim_job[claim])
            read, written = pairs(nodes[0], nodes[2]), pairs(nodes[2], nodes[1])
            hidden = [np.isin(of, retired) for of in nodes]
            hidden += [np.isin(of, retired_edges) for of in (read, written)]
            shown = ~np.logical_or.reduce(hidden)
            sources, targets, transformation = sources[shown], targets[shown], transformation[shown]
            claim, rank = claim[shown], rank[shown]
        return replace(
            self,
            flow=self.flow.appended(sources, targets),
            claim=self.claim.extended(claim),
            transformation=self.transformation.extended(transformation),
            rank=self.rank.extended(rank),
            last_claim=stored[-1][0],
        )


@dataclass(frozen=True, slots=True)
class _FieldNumbers:
    """A number for every field name, so that columns of several datasets compare by name.

    A name is stored as its 64-bit hash: millions of strings would be larger than the graph.
    """

    numbers: SortedKeys
    size: int

    @classmethod
    def empty(cls, smallest_fold: int) -> _FieldNumbers:
        """Return the number of `*` alone."""
        first = np.array([hash(EVERY_FIELD)]), np.array([STAR])
        return cls(SortedKeys(smallest_fold).appended(*first).indexed(), 1)

    def of(self, names: Longs) -> tuple[Ints, _FieldNumbers]:
        """Return the number of each name, given by its hash, and the numbers with new ones."""
        distinct, places = np.unique(names, return_inverse=True)
        numbers = np.full(len(distinct), -1, np.int32)
        found, at = self.numbers.find_each(distinct)
        numbers[at] = found
        new = np.flatnonzero(numbers < 0)
        numbers[new] = np.arange(self.size, self.size + len(new))
        more = self.numbers.appended(distinct[new], numbers[new]).indexed()
        return numbers[places], _FieldNumbers(more, self.size + len(new))


def _with_hashes(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, int, int]]:
    return ((column, dataset, hash(field)) for column, dataset, field in rows)


def _rank(transformation: ColumnTransformation) -> int:
    return (
        _DIRECT_RANKS.get(transformation.subtype, TRANSFORMATION)
        if transformation.direct
        else INDIRECT
    )
