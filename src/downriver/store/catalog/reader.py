"""The read side of a store: one consistent view, the same queries whatever the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.store.access.keys import KeyQueries
from downriver.store.audit import AuditQueries
from downriver.store.catalog.directory import ActivityQueries, DirectoryQueries
from downriver.store.catalog.encoding import (
    EDGE_BYTES,
    SPAN,
    decompress,
    rows_by_id,
    unpack_edges,
    unpack_fields,
    unpack_ids,
    unpack_kinds,
)
from downriver.store.catalog.extraction import FactQueries
from downriver.store.catalog.facets import EvidenceQueries, FacetQueries, RunQueries
from downriver.store.catalog.history import HistoryQueries
from downriver.store.catalog.nodes import ColumnQueries, NodeQueries
from downriver.store.catalog.retirement import RetirementQueries
from downriver.store.catalog.run_history import RunHistoryQueries
from downriver.store.catalog.tables import CHANGES_KEPT
from downriver.store.findings import FindingQueries
from downriver.store.hash_chain import GENESIS
from downriver.store.port import LogEntry, Row, StoreState
from downriver.store.triggers import TriggerQueries
from downriver.store.verdicts import VerdictQueries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.model.facts import ColumnTransformation
    from downriver.store.port import SqlQueries

_MOST_TOUCHED = 100_000  # ids that are looked up one by one; with more, all rows are read


class ChangeFeed:
    """All edges, claims and columns, or those added or changed after a point."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def edges(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, kind, source, target, via, first_at, last_at), changed after a log entry."""
        sql = "SELECT id, kind, source, target, via, first_at, last_at FROM edges"
        return self._touched("edges", sql, changed_after)

    def touched_edges(self, after: int) -> set[int] | None:
        """Return the edges that were added or seen after a log entry. None: any of them."""
        return self._touched_ids("edges", after)

    def touched_nodes(self, after: int) -> set[int] | None:
        """Return the nodes that events after a log entry mention. None: any of them."""
        return self._touched_ids("nodes", after)

    def datasets(self, after: int) -> Iterator[Row]:
        """Yield (id, namespace, name) of the datasets whose id is above `after`, by id."""
        # Not `kind = 0`: SQLite would then read all datasets by name, and sort them.
        sql = "SELECT id, namespace, name FROM nodes WHERE id > ? AND kind < 1 ORDER BY id"
        return self._queries.scan(sql, (after,))

    def nodes(self, after: int) -> Iterator[Row]:
        """Yield (id, kind, namespace, name) of the nodes whose id is above `after`, by id."""
        sql = "SELECT id, kind, namespace, name FROM nodes WHERE id > ? AND kind < 2 ORDER BY id"
        return self._queries.scan(sql, (after,))

    def claims(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, job, dataset, first_at, last_at), changed after a log entry."""
        sql = "SELECT id, job, dataset, first_at, last_at FROM claims"
        return self._touched("claims", sql, changed_after)

    def _touched(self, kind: str, sql: str, after: int) -> Iterator[Row]:
        """Yield the rows changed after a log entry, or all if they are many, ordered by id."""
        ids = self._touched_ids(kind, after)
        if ids is None:
            return self._queries.scan(f"{sql} ORDER BY id")
        return iter(sorted(rows_by_id(self._queries, f"{sql} WHERE id IN", ids)))

    def labelled(self, after: int) -> set[int] | None:
        """Return the nodes whose labels may have changed after a log entry. None: any of them."""
        return self._touched_ids("labelled", after)

    def _touched_ids(self, kind: str, after: int) -> set[int] | None:
        if not after:
            return None
        ((projected,),) = self._queries.rows("SELECT projected FROM meta")
        if projected - after > CHANGES_KEPT:
            return None
        ids: set[int] = set()
        for (packed,) in self._queries.scan(f"SELECT {kind} FROM changes WHERE seq > ?", (after,)):
            ids.update(unpack_ids(bytes(packed)))
            if len(ids) > _MOST_TOUCHED:
                return None
        return ids

    def columns(self, id_after: int) -> Iterator[Row]:
        """Yield (id, dataset, field) of columns with a higher id."""
        sql = """
            SELECT first_id, dataset, fields FROM column_sets WHERE first_id > ? ORDER BY first_id
        """
        for first, dataset, stored in self._queries.scan(sql, (id_after,)):
            for column, field in enumerate(unpack_fields(bytes(stored)), first):
                yield column, dataset, field

    def derivations(
        self, claim_after: int
    ) -> Iterator[tuple[int, bytes, list[ColumnTransformation]]]:
        """Yield (claim, edges, kinds) of claims with a higher id; see `encoding`."""
        sql = "SELECT claim, edges, kinds FROM derivations WHERE claim > ? ORDER BY claim"
        for claim, edges, kinds in self._queries.scan(sql, (claim_after,)):
            yield claim, bytes(edges), unpack_kinds(bytes(kinds))


class CatalogCounts(msgspec.Struct):
    """How much a store holds."""

    events: int
    datasets: int
    jobs: int
    runs: int
    edges: int
    columns: int
    column_edges: int


class LogQueries:
    """Reads the log."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def entries(self, after: int = 0) -> Iterator[LogEntry]:
        """Yield log entries in order; `body` is still compressed."""
        sql = "SELECT seq, digest, received_at, chain, body FROM log WHERE seq > ? ORDER BY seq"
        for seq, digest, received_at, chain, body in self._queries.scan(sql, (after,)):
            yield LogEntry(seq, bytes(digest), received_at, bytes(chain), bytes(body))

    def find_event(self, digest: bytes) -> bytes | None:
        """Return an event as it was sent."""
        rows = self._queries.rows("SELECT body FROM log WHERE digest = ?", (digest,))
        return decompress(bytes(rows[0][0])) if rows else None

    def find_events(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those of the events that are in the log, as they were sent."""
        if not digests:
            return {}
        sql = f"SELECT digest, body FROM log WHERE digest IN ({', '.join('?' * len(digests))})"
        rows = self._queries.rows(sql, list(digests))
        return {bytes(digest): decompress(bytes(body)) or b"{}" for digest, body in rows}

    def received_at(self, digest: bytes) -> int | None:
        """Return when an event was received."""
        rows = self._queries.rows("SELECT received_at FROM log WHERE digest = ?", (digest,))
        return rows[0][0] if rows else None

    def count(self) -> int:
        """Return the number of entries."""
        count: int = self._queries.rows("SELECT count(*) FROM log")[0][0]
        return count

    def head(self) -> tuple[int, bytes]:
        """Return the number of the last entry and its chain value; 0 and the start if empty."""
        rows = self._queries.rows("SELECT seq, chain FROM log ORDER BY seq DESC LIMIT 1")
        return (rows[0][0], bytes(rows[0][1])) if rows else (0, GENESIS)

    def last_received_at(self) -> int | None:
        """Return when the newest log entry was received."""
        rows = self._queries.rows("SELECT received_at FROM log ORDER BY seq DESC LIMIT 1")
        return rows[0][0] if rows else None


class CatalogReader:
    """One consistent view of a store. Each part answers one kind of question."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries
        self.nodes = NodeQueries(queries)
        self.columns = ColumnQueries(queries)
        self.facets = FacetQueries(queries)
        self.runs = RunQueries(queries)
        self.run_history = RunHistoryQueries(queries)
        self.evidence = EvidenceQueries(queries)
        self.changes = ChangeFeed(queries)
        self.history = HistoryQueries(queries)
        self.facts = FactQueries(queries)
        self.log = LogQueries(queries)
        self.directory = DirectoryQueries(queries)
        self.activity = ActivityQueries(queries)
        self.findings = FindingQueries(queries)
        self.keys = KeyQueries(queries)
        self.verdicts = VerdictQueries(queries)
        self.triggers = TriggerQueries(queries)
        self.audit = AuditQueries(queries)
        self.retirement = RetirementQueries(queries)

    def state(self) -> StoreState:
        """Return the generation of the catalog and the last log entry in it."""
        generation, seq = self._queries.rows("SELECT generation, projected FROM meta")[0]
        return StoreState(generation, seq)

    def log_lengths(self) -> tuple[int, int]:
        """Return the last entry of the log, and the newest entry that the catalog contains."""
        sql = """
            SELECT coalesce((SELECT max(seq) FROM log), 0), projected,
                   coalesce((SELECT max(seq) FROM changes), 0)
            FROM meta
        """
        last, projected, changed = self._queries.rows(sql)[0]
        return last, max(projected, changed)

    def rows_of(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of one of our tables in the order of its first column."""
        return self._queries.scan(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {columns[0]}")

    def is_behind(self) -> bool:
        """Return whether the log has entries that are not in the catalog yet."""
        sql = "SELECT projected < coalesce((SELECT max(seq) FROM log), 0) FROM meta"
        return bool(self._queries.rows(sql)[0][0])

    def counts(self) -> CatalogCounts:
        """Return how much the store holds."""
        datasets, jobs, runs, edges, columns, edge_bytes = self._queries.rows("""
                SELECT (SELECT count(*) FROM nodes WHERE kind = 0),
                       (SELECT count(*) FROM nodes WHERE kind = 1),
                       (SELECT count(*) FROM runs),
                       (SELECT count(*) FROM edges WHERE kind IN (1, 2, 3)),
                       (SELECT coalesce(sum(named), 0) FROM column_sets),
                       (SELECT coalesce(sum(length(edges)), 0) FROM derivations)
            """)[0]
        column_edges = int(edge_bytes) // EDGE_BYTES
        return CatalogCounts(
            self.log.count(), datasets, jobs, runs, edges, int(columns), column_edges
        )

    def dump(self) -> dict[str, list[Row]]:
        """Return every table, sorted, with names in place of ids, to compare two catalogs."""
        rows = {name: sorted(self._queries.scan(sql)) for name, sql in _DUMP.items()}
        names: dict[int, str] = dict(
            self._queries.rows(f"SELECT n.id, {_N.format('n')} FROM nodes n")
        )
        columns = {column: (names[node], field) for column, node, field in self.changes.columns(0)}
        rows["columns"] = sorted(columns.values())
        rows["derives"] = sorted(self._dump_derives(names, columns))
        return rows

    def _dump_derives(
        self, names: Mapping[int, str], columns: Mapping[int, tuple[str, str]]
    ) -> Iterator[Row]:
        claims = {
            row[0]: row[1:] for row in self._queries.scan("SELECT id, job, digest FROM claims")
        }
        for claim, edges, kinds in self.changes.derivations(0):
            job, digest = claims[claim]
            for source, target, kind in unpack_edges(edges):
                ends = (*columns[source], *columns[target])
                yield names.get(job, ""), bytes(digest), *ends, *kinds[kind]


_N = "CASE {0}.kind WHEN 1 THEN 'job:' ELSE 'dataset:' END || {0}.namespace || ':' || {0}.name"
_DUMP = {
    "nodes": f"SELECT {_N.format('n')}, n.short, {SPAN} FROM nodes n",
    "edges": f"""
        SELECT e.kind, {_N.format("s")}, {_N.format("t")}, coalesce({_N.format("v")}, ''),
               e.first_at, e.first_event, e.last_at, e.last_event, e.observed
        FROM edges e JOIN nodes s ON s.id = e.source JOIN nodes t ON t.id = e.target
        LEFT JOIN nodes v ON v.id = e.via
    """,
    "runs": f"""
        SELECT {_N.format("n")}, r.run, r.state, r.state_at, coalesce(r.started_at, 0),
               r.first_at, r.first_event, r.last_at, r.last_event
        FROM runs r JOIN nodes n ON n.id = r.job
    """,
    "bodies": "SELECT digest FROM bodies",
    "facets": f"""
        SELECT f.role, {_N.format("n")}, coalesce(r.run, ''), f.name, f.digest,
               f.first_at, f.first_event, f.last_at, f.last_event, f.observed
        FROM facets f JOIN nodes n ON n.id = f.node LEFT JOIN runs r ON r.id = f.run
    """,
    "claims": f"""
        SELECT coalesce({_N.format("j")}, ''), {_N.format("d")}, c.facet, c.digest,
               c.first_at, c.first_event, c.last_at, c.last_event, c.observed
        FROM claims c JOIN nodes d ON d.id = c.dataset LEFT JOIN nodes j ON j.id = c.job
    """,
}
