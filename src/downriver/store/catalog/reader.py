"""The read side of a store: one consistent view, the same queries whatever the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.store.catalog.change_feed import ChangeFeed
from downriver.store.catalog.descriptions import DescriptionQueries
from downriver.store.catalog.encoding import EDGE_BYTES, decompress, unpack_edges
from downriver.store.catalog.history import HistoryQueries
from downriver.store.catalog.nodes import NodeQueries
from downriver.store.catalog.rows import SPAN
from downriver.store.findings import FindingQueries
from downriver.store.keys import ApiKey
from downriver.store.port import LogEntry, Row, StoreState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.store.port import SqlQueries


class CatalogCounts(msgspec.Struct):
    """How much a store holds."""

    events: int
    datasets: int
    jobs: int
    runs: int
    edges: int
    columns: int
    column_edges: int


class CatalogReader(ChangeFeed, NodeQueries, DescriptionQueries):
    """What can be asked of one snapshot of a store."""

    def __init__(self, queries: SqlQueries) -> None:
        super().__init__(queries)
        self.history = HistoryQueries(queries)
        self.recorded = FindingQueries(queries)

    def state(self) -> StoreState:
        """Return where the store stands."""
        generation, seq = self._one("SELECT generation, projected FROM meta")
        return StoreState(generation, seq)

    def is_behind(self) -> bool:
        """Tell whether the log holds entries that are not folded into the catalog."""
        sql = "SELECT projected < coalesce((SELECT max(seq) FROM log), 0) FROM meta"
        return bool(self._one(sql)[0])

    def counts(self) -> CatalogCounts:
        """Return how much the store holds."""
        events, datasets, jobs, runs, edges, columns, edge_bytes = self._one("""
                SELECT (SELECT count(*) FROM log),
                       (SELECT count(*) FROM nodes WHERE kind = 0),
                       (SELECT count(*) FROM nodes WHERE kind = 1),
                       (SELECT count(*) FROM runs),
                       (SELECT count(*) FROM edges WHERE kind IN (1, 2, 3)),
                       (SELECT coalesce(sum(named), 0) FROM column_sets),
                       (SELECT coalesce(sum(length(edges)), 0) FROM derivations)
            """)
        return CatalogCounts(
            events, datasets, jobs, runs, edges, int(columns), int(edge_bytes) // EDGE_BYTES
        )

    # The log

    def log(self, after: int = 0) -> Iterator[LogEntry]:
        """Yield log entries in order; `body` is still packed."""
        sql = "SELECT seq, digest, received_at, chain, body FROM log WHERE seq > ? ORDER BY seq"
        for seq, digest, received_at, chain, body in self._scan(sql, (after,)):
            yield LogEntry(seq, bytes(digest), received_at, bytes(chain), bytes(body))

    def find_event(self, digest: bytes) -> bytes | None:
        """Return an event as it was sent."""
        rows = self._query("SELECT body FROM log WHERE digest = ?", (digest,))
        return decompress(bytes(rows[0][0])) if rows else None

    def last_received_at(self) -> int | None:
        """Return when the newest log entry was received."""
        sql = "SELECT received_at FROM log ORDER BY seq DESC LIMIT 1"
        rows = self._query(sql)
        return rows[0][0] if rows else None

    # API keys

    def list_keys(self) -> list[ApiKey]:
        """Return every key, revoked ones too, without the keys themselves."""
        sql = "SELECT name, role, created_at, revoked_at FROM api_keys ORDER BY created_at"
        return [ApiKey(*row) for row in self._query(sql, ())]

    def find_key(self, digest: bytes) -> ApiKey | None:
        """Return the key with this digest, if it is not revoked."""
        sql = """
            SELECT name, role, created_at, revoked_at FROM api_keys
            WHERE digest = ? AND revoked_at IS NULL
        """
        return next((ApiKey(*row) for row in self._query(sql, (digest,))), None)

    # The whole catalog, for comparing two

    def dump(self) -> dict[str, list[Row]]:
        """Return every projection with names in place of ids, sorted: equal iff catalogs are."""
        found = {name: sorted(self._scan(sql)) for name, sql in _DUMP.items()}
        names: dict[int, str] = dict(self._query(f"SELECT n.id, {_N.format('n')} FROM nodes n"))
        columns = {column: (names[node], field) for column, node, field in self.columns(0)}
        found["columns"] = sorted(columns.values())
        found["derives"] = sorted(self._dump_derives(names, columns))
        return found

    def _dump_derives(
        self, names: Mapping[int, str], columns: Mapping[int, tuple[str, str]]
    ) -> Iterator[Row]:
        claims = {row[0]: row[1:] for row in self._scan("SELECT id, job, digest FROM claims")}
        for claim, edges, kinds in self.derivations(0):
            job, digest = claims[claim]
            for source, target, kind in unpack_edges(edges):
                ends = (*columns[source], *columns[target])
                yield names.get(job, ""), bytes(digest), *ends, *kinds[kind]


_N = "CASE {0}.kind WHEN 0 THEN 'dataset:' ELSE 'job:' END || {0}.namespace || ':' || {0}.name"
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
