"""Writes facts as rows of the catalog, the same for every store.

Rows refer to each other by integer ids that this module assigns. It runs only inside the write
transaction of the store, so ids are dense, and a cached id stays valid until the next rebuild.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from downriver.model.facts import (
    ClaimSeen,
    ColumnTransformation,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
    Span,
)
from downriver.model.ids import EVERY_FIELD, NodeId, RunId, node_kind, short_name
from downriver.openlineage.facets.column_lineage import ColumnEdge, parse_edges
from downriver.openlineage.facets.dataset import schema_paths
from downriver.store.catalog import tables
from downriver.store.catalog.encoding import (
    compress,
    pack_edges,
    pack_fields,
    pack_ids,
    unpack_fields,
)
from downriver.store.catalog.facets import has_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.store.port import Row, SqlTransaction

T = TypeVar("T")

_NUMBERED = ("nodes", "edges", "runs", "claims", "column_sets")
_NEXT_IDS = (
    "SELECT "
    + ", ".join(f"(SELECT coalesce(max(id), 0) + 1 FROM {table})" for table in _NUMBERED[:-1])
    + ", coalesce((SELECT first_id + size FROM column_sets ORDER BY first_id DESC LIMIT 1), 1)"
)


class Projection:
    """Merges facts into the tables, with a cache of known ids and bodies."""

    def __init__(self, remembered: int = 200_000) -> None:
        self._remembered = remembered
        self.forget()

    def forget(self) -> None:
        """Clear the caches: a transaction failed, or the catalog was rebuilt."""
        self._known_ids: dict[str, dict[Row, int]] = {key.table: {} for key in tables.KEYS}
        self._nodes: dict[NodeId, int] = {}
        self._columns: dict[int, dict[str, int]] = {}
        self._columns_held = 0
        self._complete: set[int] = set()  # datasets with all columns in `_columns`
        self._new: set[int] = set()  # nodes new in this batch, to which no stored row refers
        self._next_ids: dict[str, int] = {}
        self._bodies: dict[bytes, None] = {}
        self._schemas: dict[tuple[int, bytes], None] = {}
        self._swept = 0  # the step at which old changes were last deleted

    def others_wrote(self) -> None:
        """Keep cached ids, but drop cached misses and free ids: another process has written."""
        self._complete.clear()
        self._next_ids = {}

    def apply(self, tx: SqlTransaction, facts: Facts, changed: int) -> None:
        """Merge facts into the tables. `changed` is the last log entry they are from."""
        self._make_room()
        seen = _by_kind(facts)
        # All lookups come before the first write: in a pipeline, a result waits for every row that
        # was sent before the query.
        self._number_nodes(tx, seen.nodes)
        edges, _ = self._numbered(tx, tables.EDGE_KEY, {e: self._edge_key(e) for e in seen.edges})
        runs, _ = self._numbered(tx, tables.RUN_KEY, {r: self._run_key(r) for r in facts.runs})
        claims, new = self._numbered(
            tx, tables.CLAIM_KEY, {c: self._claim_key(c) for c in seen.claims}
        )
        claim_edges = {claims[claim][0]: self._claim_edges(claim, facts.bodies) for claim in new}
        self._number_columns(
            tx, self._columns_named(seen.facets, facts.bodies, claim_edges.values())
        )

        tx.merge(tables.NODES, [self._node_row(node, span) for node, span in seen.nodes.items()])
        tx.merge(tables.EDGES, [(*edges[edge], *_span(s)) for edge, s in seen.edges.items()])
        tx.merge(tables.RUNS, [(*runs[run], *_run(fact)) for run, fact in facts.runs.items()])
        tx.merge(tables.CLAIMS, [(*claims[claim], *_span(s)) for claim, s in seen.claims.items()])
        self._write_bodies(tx, facts.bodies)
        self._write_facets(tx, seen.facets, runs)
        self._write_derivations(
            tx, {id_: claim for id_, claim in claim_edges.items() if claim.edges}
        )
        touched = [pack_ids([row[0] for row in rows.values()]) for rows in (edges, claims)]
        labelled = pack_ids(sorted(self._labelled(seen.facets)))
        nodes = pack_ids([self._nodes[node] for node in seen.nodes])
        tx.merge(tables.CHANGES, [(changed, *touched, labelled, nodes)])
        self._forget_changes(tx, changed)

    def _labelled(self, facets: Iterable[FacetSeen]) -> set[int]:
        """Return the nodes that have a facet with labels in this batch."""
        return {
            self._nodes[facet.node]
            for facet in facets
            if facet.role is FacetRole.NODE and has_labels(facet.name)
        }

    def _forget_changes(self, tx: SqlTransaction, changed: int) -> None:
        """Delete changes from time to time that are older than any reader needs."""
        step = tables.CHANGES_KEPT // 100
        if changed // step != self._swept:
            self._swept = changed // step
            tx.execute("DELETE FROM changes WHERE seq < ?", (changed - tables.CHANGES_KEPT,))

    def _make_room(self) -> None:
        # Only between batches: within a batch, assigned ids must stay in the cache.
        caches: list[dict[Any, Any]] = [*self._known_ids.values()]
        caches += [self._nodes, self._bodies, self._schemas]
        for cache in caches:
            if len(cache) > self._remembered:
                cache.clear()
        if self._columns_held + len(self._columns) > self._remembered:
            self._columns.clear()
            self._columns_held = 0
            self._complete.clear()

    def _number_nodes(self, tx: SqlTransaction, seen: dict[NodeId, Span]) -> None:
        missing = {_node_key(node): node for node in seen if node not in self._nodes}
        existing = self._find(tx, tables.NODE_KEY, missing)
        ids = self._number(tx, tables.NODE_KEY, existing, missing)
        self._nodes.update((node, ids[key]) for key, node in missing.items())
        # A new node has no columns, edges, runs or claims to look up.
        self._new = {ids[key] for key in missing if key not in existing}
        self._complete |= self._new

    def _node_row(self, node: NodeId, span: Span) -> Row:
        return (self._nodes[node], *_node_key(node), short_name(node.name), *_span(span))

    def _edge_key(self, edge: EdgeSeen) -> Row:
        via = 0 if edge.via is None else self._nodes[edge.via]
        return (int(edge.kind), self._nodes[edge.source], self._nodes[edge.target], via)

    def _run_key(self, run: RunId) -> Row:
        return (self._nodes[run.job], run.run)

    def _claim_key(self, claim: ClaimSeen) -> Row:
        job = 0 if claim.job is None else self._nodes[claim.job]
        return (job, self._nodes[claim.dataset], claim.facet, claim.digest)

    def _claim_edges(self, claim: ClaimSeen, bodies: dict[bytes, bytes]) -> _ClaimEdges:
        edges = parse_edges(claim.facet, bodies[claim.digest], claim.dataset)
        sources = [self._nodes[dataset] for dataset in edges.datasets]
        return _ClaimEdges(self._nodes[claim.dataset], sources, edges.edges, edges.transformations)

    def _columns_named(
        self, facets: Iterable[FacetSeen], bodies: dict[bytes, bytes], claims: Iterable[_ClaimEdges]
    ) -> dict[int, dict[str, None]]:
        """Return the columns, by dataset, of schemas that are not cached and of new claims."""
        fields_by_dataset: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for facet in facets:
            if facet.name == "schema" and facet.role is FacetRole.NODE:
                key = (self._nodes[facet.node], facet.digest)
                if key not in self._schemas:
                    self._schemas[key] = None
                    fields_by_dataset[key[0]].update(
                        dict.fromkeys(schema_paths(bodies[facet.digest]))
                    )
        for claim in claims:
            own = fields_by_dataset[claim.dataset]
            fields = [fields_by_dataset[source] for source in claim.sources]
            for place, source, derived, _ in claim.edges:
                fields[place][source] = None
                own[derived] = None
        return fields_by_dataset

    def _write_bodies(self, tx: SqlTransaction, bodies: dict[bytes, bytes]) -> None:
        new = [digest for digest in bodies if digest not in self._bodies]
        tx.merge(tables.BODIES, [(digest, compress(bodies[digest])) for digest in new])
        self._bodies.update(dict.fromkeys(new))

    def _write_facets(
        self, tx: SqlTransaction, seen: dict[FacetSeen, Span], runs: dict[RunId, Row]
    ) -> None:
        tx.merge(
            tables.FACETS,
            [
                (
                    int(facet.role),
                    self._nodes[facet.node],
                    runs[facet.run][0] if facet.run else 0,
                    facet.name,
                    facet.digest,
                    *_span(span),
                )
                for facet, span in seen.items()
            ],
        )

    def _write_derivations(self, tx: SqlTransaction, claims: dict[int, _ClaimEdges]) -> None:
        rows: list[Row] = []
        for number, claim in claims.items():
            sources, targets, kinds = zip(*self._edges(claim), strict=True)
            rows.append((number, *pack_edges(sources, targets, kinds, claim.transformations)))
        tx.merge(tables.DERIVATIONS, rows)

    def _edges(self, claim: _ClaimEdges) -> list[tuple[int, int, int]]:
        """Return the source, target and transformation of every column edge."""
        columns = [self._columns[source] for source in claim.sources]
        own = self._columns[claim.dataset]
        return [
            (columns[place][source], own[derived], kind)
            for place, source, derived, kind in claim.edges
        ]

    def _number_columns(self, tx: SqlTransaction, wanted: Mapping[int, dict[str, None]]) -> None:
        """Assign ids to new columns."""
        for dataset in wanted:
            self._columns.setdefault(dataset, {})
        self._load_columns(tx, wanted)
        new: dict[int, list[str]] = {}
        for dataset, fields in wanted.items():
            cached = self._columns[dataset]
            missing = [field for field in fields if field not in cached]
            if missing:
                new[dataset] = missing
        self._write_columns(tx, new)

    def _write_columns(self, tx: SqlTransaction, new: dict[int, list[str]]) -> None:
        rows: list[Row] = []
        for dataset, fields in new.items():
            first = self._reserve(tx, "column_sets", len(fields))
            self._columns[dataset].update(zip(fields, count(first), strict=False))
            self._columns_held += len(fields)
            named = len(fields) - (EVERY_FIELD in fields)
            rows.append((first, dataset, len(fields), named, pack_fields(fields)))
        tx.merge(tables.COLUMN_SETS, rows)

    def _load_columns(self, tx: SqlTransaction, wanted: Mapping[int, dict[str, None]]) -> None:
        # By dataset, not by column: a schema arrives whole, and a new dataset needs no lookup.
        unsure = [
            dataset
            for dataset, fields in wanted.items()
            if dataset not in self._complete and not fields.keys() <= self._columns[dataset].keys()
        ]
        if unsure:
            sql = "SELECT dataset, first_id, fields FROM column_sets WHERE dataset IN"
            for dataset, first, stored in tx.rows_in(sql, unsure):
                fields = unpack_fields(bytes(stored))
                self._columns[dataset].update(zip(fields, count(first), strict=False))
                self._columns_held += len(fields)
            self._complete.update(unsure)

    def _numbered(
        self, tx: SqlTransaction, key: tables.NaturalKey, keys: dict[T, Row]
    ) -> tuple[dict[T, Row], list[T]]:
        """Return the id and key of each, as the start of its row, and those that are new."""
        existing = self._find(tx, key, keys.values())
        ids = self._number(tx, key, existing, keys.values())
        rows = {item: (ids[k], *k) for item, k in keys.items()}
        return rows, [item for item, k in keys.items() if k not in existing]

    def _find(
        self, tx: SqlTransaction, key: tables.NaturalKey, keys: Iterable[Row]
    ) -> dict[Row, int]:
        """Return the ids of the rows that exist."""
        cache = self._known_ids[key.table]
        distinct_keys = dict.fromkeys(keys)
        missing = [k for k in distinct_keys if k not in cache and not self._is_new(key, k)]
        if missing:
            cache.update(tx.find_ids(key, missing))
        return {k: cache[k] for k in distinct_keys if k in cache}

    def _is_new(self, key: tables.NaturalKey, row: Row) -> bool:
        """Return whether no row can have this key, because it refers to a node of this batch."""
        return any(row[place] in self._new for place in key.nodes)

    def _number(
        self, tx: SqlTransaction, key: tables.NaturalKey, known: dict[Row, int], keys: Iterable[Row]
    ) -> dict[Row, int]:
        """Return `known` with ids for the rows that do not exist yet."""
        new = [k for k in dict.fromkeys(keys) if k not in known]
        if not new:
            return known
        first = self._reserve(tx, key.table, len(new))
        numbered = {k: first + offset for offset, k in enumerate(new)}
        self._known_ids[key.table].update(numbered)
        return known | numbered

    def _reserve(self, tx: SqlTransaction, table: str, count: int) -> int:
        """Return the first of `count` free ids."""
        if not self._next_ids:
            self._next_ids = dict(zip(_NUMBERED, tx.rows(_NEXT_IDS)[0], strict=True))
        first = self._next_ids[table]
        self._next_ids[table] = first + count
        return first


class _ClaimEdges(NamedTuple):
    """The column edges of a claim, with datasets by their ids."""

    dataset: int
    sources: list[int]
    edges: tuple[ColumnEdge, ...]
    transformations: tuple[ColumnTransformation, ...]


class _ByKind:
    """Sightings by their kind."""

    def __init__(self) -> None:
        self.nodes: dict[NodeId, Span] = {}
        self.edges: dict[EdgeSeen, Span] = {}
        self.facets: dict[FacetSeen, Span] = {}
        self.claims: dict[ClaimSeen, Span] = {}


def _by_kind(facts: Facts) -> _ByKind:
    sorted_out = _ByKind()
    for sighting, span in facts.sightings.items():
        match sighting:
            case NodeSeen(node):
                sorted_out.nodes[node] = span
            case EdgeSeen():
                sorted_out.edges[sighting] = span
            case FacetSeen():
                sorted_out.facets[sighting] = span
            case ClaimSeen():
                sorted_out.claims[sighting] = span
    return sorted_out


def _node_key(node: NodeId) -> Row:
    return (int(node_kind(node)), node.namespace, node.name)


def _run(fact: RunFact) -> Row:
    return (
        int(min(fact.state, RunState.COMPLETE)),
        int(fact.state),
        fact.state_at,
        fact.started_at,
        *_span(fact.span),
    )


def _span(span: Span) -> tuple[int, bytes, int, bytes, int]:
    return (span.first.at, span.first.digest, span.last.at, span.last.digest, int(span.certainty))
