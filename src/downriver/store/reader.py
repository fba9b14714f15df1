"""The read side of a store: one consistent view, the same queries whatever the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import EntityNotFoundError
from downriver.events.facets import Column, schema_columns
from downriver.model.facts import EdgeKind, EventRef, Role, RunState, Span
from downriver.model.ids import EVERY_FIELD, DatasetId, JobId, NodeId, bounded, short_name
from downriver.store.findings import Recorded
from downriver.store.history import History
from downriver.store.keys import ApiKey
from downriver.store.packed import (
    EDGE_BYTES,
    unpack_edges,
    unpack_fields,
    unpack_ids,
    unpack_kinds,
)
from downriver.store.packing import unpack
from downriver.store.port import LogEntry, Row, StoreState
from downriver.store.tables import CHANGES_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from downriver.model.facts import Said
    from downriver.store.port import Queries


class Run(msgspec.Struct):
    """A run as the catalog knows it; times in µs since the epoch."""

    run: str
    state: RunState
    state_at: int
    started_at: int | None
    first_at: int
    last_at: int

    @property
    def ended_at(self) -> int | None:
        """When the run ended, if it has."""
        return self.state_at if self.state.terminal else None


class Counts(msgspec.Struct):
    """How much a store holds."""

    events: int
    datasets: int
    jobs: int
    runs: int
    edges: int
    columns: int
    column_edges: int


class Reader:
    """What can be asked of one snapshot of a store."""

    def __init__(self, queries: Queries) -> None:
        self._query = queries.rows
        self._rows_in = queries.rows_in
        self._scan = queries.scan
        self.history = History(queries)
        self.recorded = Recorded(queries)

    def state(self) -> StoreState:
        """Return where the store stands."""
        generation, seq = self._one("SELECT generation, projected FROM meta")
        return StoreState(generation, seq)

    def is_behind(self) -> bool:
        """Tell whether the log holds entries that are not folded into the catalog."""
        sql = "SELECT projected < coalesce((SELECT max(seq) FROM log), 0) FROM meta"
        return bool(self._one(sql)[0])

    def counts(self) -> Counts:
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
        return Counts(
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
        return unpack(bytes(rows[0][0])) if rows else None

    def last_received_at(self) -> int | None:
        """Return when the newest log entry was received."""
        sql = "SELECT received_at FROM log ORDER BY seq DESC LIMIT 1"
        rows = self._query(sql)
        return rows[0][0] if rows else None

    # What the graph index is built from

    def edges(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, kind, source, target, via, first_at, last_at), touched after a log entry."""
        sql = "SELECT id, kind, source, target, via, first_at, last_at FROM edges"
        return self._touched("edges", sql, changed_after)

    def claims(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, job, dataset, first_at, last_at), touched after a log entry."""
        sql = "SELECT id, job, dataset, first_at, last_at FROM claims"
        return self._touched("claims", sql, changed_after)

    def _touched(self, kind: str, sql: str, after: int) -> Iterator[Row]:
        """Yield the rows touched after a log entry, or all if they are many, ordered by id."""
        ids = self._touched_ids(kind, after)
        if ids is None:
            return self._scan(f"{sql} ORDER BY id")
        return iter(sorted(self._by_ids(f"{sql} WHERE id IN", ids)))

    def _touched_ids(self, kind: str, after: int) -> set[int] | None:
        if not after or self._one("SELECT projected FROM meta")[0] - after > CHANGES_KEPT:
            return None
        ids: set[int] = set()
        for (told,) in self._scan(f"SELECT {kind} FROM changes WHERE seq > ?", (after,)):
            ids.update(unpack_ids(bytes(told)))
            if len(ids) > _MOST_TOUCHED:
                return None
        return ids

    def columns(self, id_after: int) -> Iterator[Row]:
        """Yield (id, dataset, field) of columns numbered after an id."""
        sql = """
            SELECT first_id, dataset, fields FROM column_sets WHERE first_id > ? ORDER BY first_id
        """
        for first, dataset, stored in self._scan(sql, (id_after,)):
            for column, field in enumerate(unpack_fields(bytes(stored)), first):
                yield column, dataset, field

    def derivations(self, claim_after: int) -> Iterator[tuple[int, bytes, list[Said]]]:
        """Yield (claim, edges, kinds) of claims numbered after another; see `store.packed`."""
        sql = "SELECT claim, edges, kinds FROM derivations WHERE claim > ? ORDER BY claim"
        for claim, edges, kinds in self._scan(sql, (claim_after,)):
            yield claim, bytes(edges), unpack_kinds(bytes(kinds))

    # What an answer needs to know of the nodes and edges in it

    def nodes(self, ids: Iterable[int]) -> dict[int, NodeId]:
        """Return the identities behind ids."""
        rows = self._by_ids("SELECT id, kind, namespace, name FROM nodes WHERE id IN", ids)
        return {number: _node(kind, namespace, name) for number, kind, namespace, name in rows}

    def fields(self, columns: Mapping[int, int]) -> dict[int, tuple[int, str]]:
        """Return (dataset id, field) of columns, given with the ids of their datasets."""
        found: dict[int, tuple[int, str]] = {}
        for first, dataset, fields in self._column_sets(set(columns.values())):
            for column, field in enumerate(fields, first):
                if column in columns:
                    found[column] = (dataset, field)
        return found

    def _column_sets(self, datasets: Iterable[int]) -> Iterator[tuple[int, int, list[str]]]:
        sql = "SELECT first_id, dataset, fields FROM column_sets WHERE dataset IN"
        for first, dataset, stored in self._by_ids(sql, datasets):
            yield first, dataset, unpack_fields(bytes(stored))

    def edge_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of edges."""
        sql = f"SELECT id, {_SPAN_COLUMNS} FROM edges WHERE id IN"
        return {row[0]: _span(row[1:]) for row in self._by_ids(sql, ids)}

    def claim_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of claims."""
        sql = f"SELECT id, {_SPAN_COLUMNS} FROM claims WHERE id IN"
        return {row[0]: _span(row[1:]) for row in self._by_ids(sql, ids)}

    def said(self, claims: Iterable[int]) -> dict[int, list[Said]]:
        """Return the different things that claims say of their column edges."""
        rows = self._by_ids("SELECT claim, kinds FROM derivations WHERE claim IN", claims)
        return {claim: unpack_kinds(bytes(kinds)) for claim, kinds in rows}

    # Finding things by name

    def find_node(self, node: NodeId) -> int | None:
        """Return the id of exactly this node."""
        kind = 1 if isinstance(node, JobId) else 0
        rows = self._query(
            "SELECT id FROM nodes WHERE kind = ? AND namespace = ? AND name = ?",
            (kind, _as_stored(node.namespace), _as_stored(node.name)),
        )
        return rows[0][0] if rows else None

    def get_node(self, node: NodeId) -> int:
        """Return the id of exactly this node, which must exist."""
        number = self.find_node(node)
        if number is None:
            raise EntityNotFoundError(str(node))
        return number

    def children_of(self, job: int) -> list[NodeId]:
        """Return the jobs a job was seen to run."""
        return self._neighbours(
            "SELECT target FROM edges WHERE kind = ? AND source = ?", EdgeKind.PARENT, job
        )

    def inputs_of(self, job: int) -> list[NodeId]:
        """Return the datasets a job reads."""
        return self._neighbours(
            "SELECT source FROM edges WHERE kind = ? AND target = ?", EdgeKind.READS, job
        )

    def outputs_of(self, job: int) -> list[NodeId]:
        """Return the datasets a job writes."""
        return self._neighbours(
            "SELECT target FROM edges WHERE kind = ? AND source = ?", EdgeKind.WRITES, job
        )

    def writers_of(self, dataset: int) -> list[NodeId]:
        """Return the jobs that write a dataset."""
        return self._neighbours(
            "SELECT source FROM edges WHERE kind = ? AND target = ?", EdgeKind.WRITES, dataset
        )

    def _neighbours(self, sql: str, kind: EdgeKind, node: int) -> list[NodeId]:
        ids = [row[0] for row in self._query(sql, (int(kind), node))]
        return sorted(self.nodes(ids).values(), key=str)

    def nodes_named(self, name: str) -> dict[int, NodeId]:
        """Return every node whose name ends in the last part of `name`, whatever the case."""
        rows = self._query(
            "SELECT id, kind, namespace, name FROM nodes WHERE short = ?",
            (short_name(_as_stored(name)),),
        )
        return {row[0]: _node(*row[1:]) for row in rows}

    def search_nodes(
        self, words: Sequence[str], limit: int, offset: int
    ) -> tuple[dict[int, NodeId], int]:
        """Return nodes whose names hold all these words, the shortest first, and how many do."""
        condition = " AND ".join(["lower(name) LIKE ? ESCAPE '!'"] * len(words)) or "1 = 1"
        patterns = ["%" + _LIKE.sub(r"!\g<0>", word.lower()) + "%" for word in words]
        (total,) = self._one(f"SELECT count(*) FROM nodes WHERE {condition}", patterns)
        rows = self._query(
            f"SELECT id, kind, namespace, name FROM nodes WHERE {condition}"
            " ORDER BY kind, length(name), name, id LIMIT ? OFFSET ?",
            (*patterns, limit, offset),
        )
        return {row[0]: _node(*row[1:]) for row in rows}, total

    def find_column(self, dataset: int, field: str) -> tuple[int, str] | None:
        """Return a column's id and name: the exact one, or the only one that differs in case."""
        rows = [
            (column, name)
            for first, _, names in self._column_sets([dataset])
            for column, name in enumerate(names, first)
        ]
        field = _as_stored(field)
        exact = [row for row in rows if row[1] == field]
        folded = exact or [row for row in rows if row[1].casefold() == field.casefold()]
        return folded[0] if len(folded) == 1 else None

    def list_names(self, limit: int) -> list[str]:
        """Return the names of the nodes seen last, for near matches."""
        rows = self._query("SELECT name FROM nodes ORDER BY last_at DESC LIMIT ?", (limit,))
        return [row[0] for row in rows]

    def list_fields(self, dataset: int) -> list[str]:
        """Return the known columns of a dataset, whether a schema or an edge told of them."""
        names = {name for *_, fields in self._column_sets([dataset]) for name in fields}
        return sorted(names - {EVERY_FIELD})

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

    # Facets and runs

    def facets(self, node: int) -> dict[str, bytes]:
        """Return the current facets of a node as sent: of each name the one seen last."""
        current: dict[str, bytes] = {}
        sql = """
            SELECT f.name, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        for name, body in self._query(sql, (node, int(Role.NODE))):
            current[name] = unpack(bytes(body)) or b"{}"
        return {name: body for name, body in sorted(current.items()) if not _deleted(body)}

    def blind_spots(self, nodes: Iterable[int]) -> dict[int, bytes]:
        """Return the facet in which each node was last said to have blind spots, as sent."""
        sql = """
            SELECT f.node, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = 'downriver_blindSpots' AND f.role = 0 AND f.node IN
        """.strip()
        rows = sorted(self._by_ids(sql, nodes), key=lambda row: (row[2], *map(bytes, row[3:])))
        return {node: unpack(bytes(body)) or b"{}" for node, body, *_ in rows}

    def facets_named(self, name: str) -> dict[int, bytes]:
        """Return the current facet of a name, as sent, of every node that has one."""
        sql = """
            SELECT f.node, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._query(sql, (name, int(Role.NODE)))
        current = {node: unpack(bytes(body)) or b"{}" for node, body in rows}
        return {node: body for node, body in current.items() if not _deleted(body)}

    def facets_among(self, nodes: Iterable[int], prefix: str) -> Iterator[tuple[int, str, bytes]]:
        """Yield (node, name, facet as sent) of their current facets whose names begin so."""
        if not prefix.isidentifier():  # it is put into the query
            raise ValueError(prefix)
        sql = f"""
            SELECT f.node, f.name, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.role = 0 AND f.run = 0 AND f.name >= '{prefix}' AND f.name < '{prefix}~'
            AND f.node IN
        """.strip()
        latest: dict[Row, Row] = {}
        for row in self._by_ids(sql, nodes):
            known = latest.setdefault(row[:2], row)
            if known is not row and _age(row) > _age(known):
                latest[row[:2]] = row
        for node, name, stored, *_ in latest.values():
            body = unpack(bytes(stored)) or b"{}"
            if not _deleted(body):
                yield node, name, body

    def schema(self, dataset: int) -> list[Column]:
        """Return the columns of a dataset's current schema facet, in its order."""
        body = self.facets(dataset).get("schema")
        return schema_columns(body) if body else []

    def runs(self, job: int, limit: int) -> list[Run]:
        """Return a job's runs, the latest first."""
        sql = """
            SELECT run, state, state_at, started_at, first_at, last_at FROM runs
            WHERE job = ? ORDER BY first_at DESC, run LIMIT ?
        """
        return [Run(r[0], RunState(r[1]), *r[2:]) for r in self._query(sql, (job, limit))]

    def run_facets(self, job: int, run: str) -> dict[str, bytes]:
        """Return the facets of one run as sent: of each name the one seen last."""
        sql = """
            SELECT f.name, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            JOIN runs r ON r.id = f.run
            WHERE f.node = ? AND f.role = ? AND r.run = ?
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._query(sql, (job, int(Role.RUN), run))
        return {name: unpack(bytes(body)) or b"{}" for name, body in rows}

    def quality(self, dataset: int) -> list[tuple[bytes, int]]:
        """Return what checks of a dataset found, as sent, with their times, the oldest first."""
        sql = """
            SELECT b.body, f.last_at FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.name = 'dataQualityAssertions'
            ORDER BY f.last_at, f.last_event, f.digest
        """
        return [(unpack(bytes(body)) or b"{}", at) for body, at in self._query(sql, (dataset,))]

    def node_span(self, node: int) -> Span:
        """Return when a node was first and last seen."""
        sql = f"SELECT {_SPAN_COLUMNS} FROM nodes WHERE id = ?"
        return _span(self._one(sql, (node,)))

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

    def _one(self, sql: str, parameters: Sequence[Any] = ()) -> Row:
        return self._query(sql, parameters)[0]

    def _by_ids(self, sql: str, ids: Iterable[int]) -> list[Row]:
        return self._rows_in(sql, [int(i) for i in ids])  # drivers know no numpy integers


_MOST_TOUCHED = 100_000  # that are looked up one by one
_SPAN_COLUMNS = "first_at, first_event, last_at, last_event, observed"

_N = "CASE {0}.kind WHEN 0 THEN 'dataset:' ELSE 'job:' END || {0}.namespace || ':' || {0}.name"
_DUMP = {
    "nodes": f"SELECT {_N.format('n')}, n.short, {_SPAN_COLUMNS} FROM nodes n",
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


def _age(row: Row) -> tuple[int, bytes, bytes]:
    """Return what orders sightings of a facet, the last one last."""
    return row[3], bytes(row[4]), bytes(row[5])


def _as_stored(name: str) -> str:
    """Return a name as the catalog holds it: what no store can hold was read as U+FFFD."""
    return bounded(_UNSTORABLE.sub("\ufffd", name))


_LIKE = re.compile("[!%_]")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _node(kind: int, namespace: str, name: str) -> NodeId:
    return JobId(namespace, name) if kind else DatasetId(namespace, name)


def _span(row: Row) -> Span:
    first_at, first_event, last_at, last_event, observed = row
    return Span(
        EventRef(first_at, bytes(first_event)),
        EventRef(last_at, bytes(last_event)),
        bool(observed),
    )


class _Deletion(msgspec.Struct):
    _deleted: Any = msgspec.field(name="_deleted", default=False)


def _deleted(body: bytes) -> bool:
    if b"_deleted" not in body and b"\\u" not in body:
        return False
    try:
        return msgspec.json.decode(body, type=_Deletion)._deleted is True
    except msgspec.DecodeError:
        return False
