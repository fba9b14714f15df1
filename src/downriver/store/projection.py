"""Facts into rows: the write side of the catalog, the same for every store.

Rows refer to each other by integer ids that this module hands out. It runs only inside the store's
one write transaction, so ids are dense, and a cached id stays true until projections are rebuilt.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.events.derivations import ColumnEdges, read_edges
from downriver.events.facets import schema_paths
from downriver.model.facts import (
    ClaimSeen,
    EdgeSeen,
    FacetSeen,
    Facts,
    NodeSeen,
    Role,
    RunState,
    Span,
)
from downriver.model.ids import EVERY_FIELD, JobId, NodeId, RunId, short_name
from downriver.store import tables
from downriver.store.packed import pack_edges, pack_fields, unpack_fields
from downriver.store.packing import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.store.port import Row, Transaction

DATASET, JOB = 0, 1

_NUMBERED = ("nodes", "edges", "runs", "claims", "column_sets")
_NEXT_IDS = (
    "SELECT "
    + ", ".join(f"(SELECT coalesce(max(id), 0) + 1 FROM {table})" for table in _NUMBERED[:-1])
    + ", coalesce((SELECT first_id + size FROM column_sets ORDER BY first_id DESC LIMIT 1), 1)"
)


class Projection:
    """Folds facts into the tables, remembering the ids and bodies it has seen."""

    def __init__(self, remembered: int = 200_000) -> None:
        self._remembered = remembered
        self.forget()

    def forget(self) -> None:
        """Drop all that is remembered: a transaction failed, or the projections were rebuilt."""
        self._known_ids: dict[str, dict[Row, int]] = {key.table: {} for key in tables.KEYS}
        self._nodes: dict[NodeId, int] = {}
        self._columns: dict[int, dict[str, int]] = {}
        self._columns_held = 0
        self._complete: set[int] = set()  # datasets of which no column is missing in `_columns`
        self._new: set[int] = set()  # nodes that this batch brought: nothing refers to them yet
        self._next_ids: dict[str, int] = {}
        self._bodies: dict[bytes, None] = {}
        self._schemas: dict[tuple[int, bytes], None] = {}

    def others_wrote(self) -> None:
        """Trust the ids known, but no longer that what is unknown does not exist, or is free."""
        self._complete.clear()
        self._next_ids = {}

    def apply(self, tx: Transaction, facts: Facts, changed: int) -> None:
        """Merge facts into the tables. `changed` marks the rows this batch touched."""
        self._make_room()
        by_kind = _by_kind(facts)
        self._apply_nodes(tx, by_kind.nodes)
        self._apply_edges(tx, by_kind.edges, changed)
        runs = self._apply_runs(tx, facts)
        self._apply_bodies(tx, facts.bodies)
        self._apply_facets(tx, by_kind.facets, runs, facts.bodies)
        self._apply_claims(tx, by_kind.claims, facts.bodies, changed)

    def _make_room(self) -> None:
        # Only between batches: within one, ids handed out must stay at hand.
        caches: list[dict[Any, Any]] = [*self._known_ids.values()]
        caches += [self._nodes, self._bodies, self._schemas]
        for cache in caches:
            if len(cache) > self._remembered:
                cache.clear()
        if self._columns_held + len(self._columns) > self._remembered:
            self._columns.clear()
            self._columns_held = 0
            self._complete.clear()

    def _apply_nodes(self, tx: Transaction, seen: dict[NodeId, Span]) -> None:
        missing = {_node_key(node): node for node in seen if node not in self._nodes}
        known = self._find(tx, tables.NODE_KEY, missing)
        ids = self._number(tx, tables.NODE_KEY, known, missing)
        self._nodes.update((node, ids[key]) for key, node in missing.items())
        # What is new has no columns, edges, runs or claims to look up.
        self._new = {ids[key] for key in missing if key not in known}
        self._complete |= self._new
        tx.merge(
            tables.NODES,
            [
                (self._nodes[node], *_node_key(node), short_name(node.name), *_span(span))
                for node, span in seen.items()
            ],
        )

    def _apply_edges(self, tx: Transaction, seen: dict[EdgeSeen, Span], changed: int) -> None:
        keys = {edge: self._edge_key(edge) for edge in seen}
        ids = self._ids(tx, tables.EDGE_KEY, keys.values())
        tx.merge(
            tables.EDGES,
            [(ids[keys[e]], *keys[e], *_span(span), changed) for e, span in seen.items()],
        )

    def _edge_key(self, edge: EdgeSeen) -> Row:
        via = 0 if edge.via is None else self._nodes[edge.via]
        return (int(edge.kind), self._nodes[edge.source], self._nodes[edge.target], via)

    def _apply_runs(self, tx: Transaction, facts: Facts) -> dict[RunId, int]:
        keys = {run: (self._nodes[run.job], run.run) for run in facts.runs}
        ids = self._ids(tx, tables.RUN_KEY, keys.values())
        tx.merge(
            tables.RUNS,
            [
                (
                    ids[keys[run]],
                    *keys[run],
                    int(min(fact.state, RunState.COMPLETE)),
                    int(fact.state),
                    fact.state_at,
                    fact.started_at,
                    *_span(fact.span),
                )
                for run, fact in facts.runs.items()
            ],
        )
        return {run: ids[key] for run, key in keys.items()}

    def _apply_bodies(self, tx: Transaction, bodies: dict[bytes, bytes]) -> None:
        new = [digest for digest in bodies if digest not in self._bodies]
        tx.merge(tables.BODIES, [(digest, pack(bodies[digest])) for digest in new])
        self._bodies.update(dict.fromkeys(new))

    def _apply_facets(
        self,
        tx: Transaction,
        seen: dict[FacetSeen, Span],
        runs: dict[RunId, int],
        bodies: dict[bytes, bytes],
    ) -> None:
        tx.merge(
            tables.FACETS,
            [
                (
                    int(facet.role),
                    self._nodes[facet.node],
                    runs[facet.run] if facet.run else 0,
                    facet.name,
                    facet.digest,
                    *_span(span),
                )
                for facet, span in seen.items()
            ],
        )
        self._apply_schemas(tx, seen, bodies)

    def _apply_schemas(
        self, tx: Transaction, seen: Iterable[FacetSeen], bodies: dict[bytes, bytes]
    ) -> None:
        """Register the columns of schemas not met before."""
        new = {
            (self._nodes[facet.node], facet.digest): None
            for facet in seen
            if facet.name == "schema" and facet.role is Role.NODE
        }
        new = {key: None for key in new if key not in self._schemas}
        wanted: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for dataset, digest in new:
            wanted[dataset].update(dict.fromkeys(schema_paths(bodies[digest])))
        self._number_columns(tx, wanted)
        self._schemas.update(new)

    def _apply_claims(
        self,
        tx: Transaction,
        seen: dict[ClaimSeen, Span],
        bodies: dict[bytes, bytes],
        changed: int,
    ) -> None:
        keys = {claim: self._claim_key(claim) for claim in seen}
        known = self._find(tx, tables.CLAIM_KEY, keys.values())
        ids = self._number(tx, tables.CLAIM_KEY, known, keys.values())
        tx.merge(
            tables.CLAIMS,
            [(ids[keys[c]], *keys[c], *_span(span), changed) for c, span in seen.items()],
        )
        new = {claim: ids[key] for claim, key in keys.items() if key not in known}
        self._apply_derivations(tx, new, bodies)

    def _claim_key(self, claim: ClaimSeen) -> Row:
        job = 0 if claim.job is None else self._nodes[claim.job]
        return (job, self._nodes[claim.dataset], claim.facet, claim.digest)

    def _apply_derivations(
        self, tx: Transaction, claims: dict[ClaimSeen, int], bodies: dict[bytes, bytes]
    ) -> None:
        found = {
            number: _Claimed(
                self._nodes[claim.dataset],
                read_edges(claim.facet, bodies[claim.digest], claim.dataset),
            )
            for claim, number in claims.items()
        }
        wanted: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for target, stated in found.values():
            own = wanted[target]
            fields = [wanted[self._nodes[dataset]] for dataset in stated.datasets]
            for place, source, derived, _ in stated.edges:
                fields[place][source] = None
                own[derived] = None
        self._number_columns(tx, wanted)
        told = {number: claimed for number, claimed in found.items() if claimed.stated.edges}
        self._write_derivations(tx, told)

    def _write_derivations(self, tx: Transaction, found: dict[int, _Claimed]) -> None:
        rows: list[Row] = []
        for number, claimed in found.items():
            sources, targets, kinds = self._numbered_edges(claimed)
            rows.append((number, *pack_edges(sources, targets, kinds, claimed.stated.said)))
        tx.merge(tables.DERIVATIONS, rows)

    def _numbered_edges(self, claimed: _Claimed) -> tuple[list[int], list[int], list[int]]:
        """Return the columns that are derived from, those derived, and what is said of each."""
        edges = claimed.stated.edges
        columns = [self._columns[self._nodes[dataset]] for dataset in claimed.stated.datasets]
        own = self._columns[claimed.dataset]
        return (
            [columns[place][source] for place, source, _, _ in edges],
            [own[derived] for _, _, derived, _ in edges],
            [kind for _, _, _, kind in edges],
        )

    def _number_columns(self, tx: Transaction, wanted: Mapping[int, dict[str, None]]) -> None:
        """Give every column an id that has none."""
        for dataset in wanted:
            self._columns.setdefault(dataset, {})
        self._load_columns(tx, wanted)
        new: dict[int, list[str]] = {}
        for dataset, fields in wanted.items():
            known = self._columns[dataset]
            missing = [field for field in fields if field not in known]
            if missing:
                new[dataset] = missing
        self._write_columns(tx, new)

    def _write_columns(self, tx: Transaction, new: dict[int, list[str]]) -> None:
        rows: list[Row] = []
        for dataset, fields in new.items():
            first = self._reserve(tx, "column_sets", len(fields))
            self._columns[dataset].update(zip(fields, count(first), strict=False))
            self._columns_held += len(fields)
            named = len(fields) - (EVERY_FIELD in fields)
            rows.append((first, dataset, len(fields), named, pack_fields(fields)))
        tx.merge(tables.COLUMN_SETS, rows)

    def _load_columns(self, tx: Transaction, wanted: Mapping[int, dict[str, None]]) -> None:
        # A dataset at a time, not a column: schemas come whole, and a new one has none to look up.
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

    def _ids(self, tx: Transaction, key: tables.Key, keys: Iterable[Row]) -> dict[Row, int]:
        wanted = dict.fromkeys(keys)
        return self._number(tx, key, self._find(tx, key, wanted), wanted)

    def _find(self, tx: Transaction, key: tables.Key, keys: Iterable[Row]) -> dict[Row, int]:
        """Return the ids of the rows that exist."""
        cache = self._known_ids[key.table]
        wanted = dict.fromkeys(keys)
        missing = [k for k in wanted if k not in cache and not self._is_new(key, k)]
        if missing:
            cache.update(tx.find_ids(key, missing))
        return {k: cache[k] for k in wanted if k in cache}

    def _is_new(self, key: tables.Key, row: Row) -> bool:
        """Tell whether no row with this key can be there: it refers to what this batch brought."""
        return any(row[place] in self._new for place in key.nodes)

    def _number(
        self, tx: Transaction, key: tables.Key, known: dict[Row, int], keys: Iterable[Row]
    ) -> dict[Row, int]:
        """Return `known` with ids for the rows that do not exist yet."""
        new = [k for k in dict.fromkeys(keys) if k not in known]
        if not new:
            return known
        first = self._reserve(tx, key.table, len(new))
        numbered = {k: first + offset for offset, k in enumerate(new)}
        self._known_ids[key.table].update(numbered)
        return known | numbered

    def _reserve(self, tx: Transaction, table: str, count: int) -> int:
        """Return the first of `count` ids that no row has yet."""
        if not self._next_ids:
            self._next_ids = dict(zip(_NUMBERED, tx.rows(_NEXT_IDS)[0], strict=True))
        first = self._next_ids[table]
        self._next_ids[table] = first + count
        return first


class _Claimed(NamedTuple):
    """What a claim states of a dataset."""

    dataset: int
    stated: ColumnEdges


class _ByKind:
    """Sightings sorted by what they are of."""

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
    return (JOB if isinstance(node, JobId) else DATASET, node.namespace, node.name)


def _span(span: Span) -> tuple[int, bytes, int, bytes, int]:
    return (span.first.at, span.first.digest, span.last.at, span.last.digest, int(span.observed))
