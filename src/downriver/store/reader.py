"""The read side of a store: one consistent view, the same queries whatever the database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.errors import EntityNotFoundError
from downriver.events.facets import Column, schema_columns
from downriver.model.facts import EdgeKind, EventRef, Role, RunState, Span
from downriver.model.ids import DatasetId, JobId, NodeId, bounded, short_name
from downriver.store.findings import Recorded
from downriver.store.history import History
from downriver.store.keys import ApiKey
from downriver.store.packing import unpack
from downriver.store.port import LogEntry, Row, StoreState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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

    def counts(self) -> Counts:
        """Return how much the store holds."""
        return Counts(
            *self._one("""
                SELECT (SELECT count(*) FROM log),
                       (SELECT count(*) FROM nodes WHERE kind = 0),
                       (SELECT count(*) FROM nodes WHERE kind = 1),
                       (SELECT count(*) FROM runs),
                       (SELECT count(*) FROM edges WHERE kind IN (1, 2, 3)),
                       (SELECT count(*) FROM columns WHERE field <> '*'),
                       (SELECT count(*) FROM derives)
            """)
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
        return self._scan(
            "SELECT id, kind, source, target, via, first_at, last_at FROM edges"
            f" WHERE changed > ? ORDER BY {_by_id(changed_after)}",
            (changed_after,),
        )

    def claims(self, changed_after: int) -> Iterator[Row]:
        """Yield (id, job, dataset, first_at, last_at), touched after a log entry."""
        return self._scan(
            "SELECT id, job, dataset, first_at, last_at FROM claims WHERE changed > ?"
            f" ORDER BY {_by_id(changed_after)}",
            (changed_after,),
        )

    def columns(self, id_after: int) -> Iterator[Row]:
        """Yield (id, dataset, field) of columns numbered after an id."""
        return self._scan(
            "SELECT id, dataset, field FROM columns WHERE id > ? ORDER BY id", (id_after,)
        )

    def derives(self, id_after: int) -> Iterator[Row]:
        """Yield (id, claim, source, target, direct, subtype) of column edges after an id."""
        return self._scan(
            "SELECT id, claim, source, target, direct, subtype FROM derives"
            " WHERE id > ? ORDER BY id",
            (id_after,),
        )

    # What an answer needs to know of the nodes and edges in it

    def nodes(self, ids: Iterable[int]) -> dict[int, NodeId]:
        """Return the identities behind ids."""
        rows = self._by_ids("SELECT id, kind, namespace, name FROM nodes WHERE id IN", ids)
        return {row[0]: _node(*row[1:]) for row in rows}

    def fields(self, column_ids: Iterable[int]) -> dict[int, tuple[int, str]]:
        """Return (dataset id, field) of columns."""
        rows = self._by_ids("SELECT id, dataset, field FROM columns WHERE id IN", column_ids)
        return {row[0]: (row[1], row[2]) for row in rows}

    def edge_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of edges."""
        sql = f"SELECT id, {_SPAN_COLUMNS} FROM edges WHERE id IN"
        return {row[0]: _span(row[1:]) for row in self._by_ids(sql, ids)}

    def claim_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of claims."""
        sql = f"SELECT id, {_SPAN_COLUMNS} FROM claims WHERE id IN"
        return {row[0]: _span(row[1:]) for row in self._by_ids(sql, ids)}

    def derivations(self, ids: Iterable[int]) -> dict[int, Row]:
        """Return (subtype, description, masking, confidence) of column edges."""
        sql = "SELECT id, subtype, description, masking, confidence FROM derives WHERE id IN"
        return {row[0]: row[1:] for row in self._by_ids(sql, ids)}

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
        rows = self._query("SELECT id, field FROM columns WHERE dataset = ?", (dataset,))
        field = _as_stored(field)
        exact = [row for row in rows if row[1] == field]
        folded = exact or [row for row in rows if row[1].casefold() == field.casefold()]
        return (folded[0][0], folded[0][1]) if len(folded) == 1 else None

    def list_names(self, limit: int) -> list[str]:
        """Return the names of the nodes seen last, for near matches."""
        rows = self._query("SELECT name FROM nodes ORDER BY last_at DESC LIMIT ?", (limit,))
        return [row[0] for row in rows]

    def list_fields(self, dataset: int) -> list[str]:
        """Return the known columns of a dataset, whether a schema or an edge told of them."""
        sql = "SELECT field FROM columns WHERE dataset = ? AND field <> '*' ORDER BY field"
        return [row[0] for row in self._query(sql, (dataset,))]

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

    def facets_among(self, nodes: Iterable[int], prefix: str) -> dict[int, dict[str, bytes]]:
        """Return the current facets of these nodes whose names begin so, as sent."""
        if not prefix.isidentifier():  # it is put into the query
            raise ValueError(prefix)
        sql = f"""
            SELECT f.node, f.name, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.role = 0 AND f.run = 0 AND f.name >= '{prefix}' AND f.name < '{prefix}~'
            AND f.node IN
        """.strip()
        latest: dict[tuple[int, str], Row] = {}
        for row in self._by_ids(sql, nodes):
            known = latest.get((row[0], row[1]))
            if known is None or _age(row) > _age(known):
                latest[row[0], row[1]] = row
        found: dict[int, dict[str, bytes]] = {}
        for (node, name), row in latest.items():
            body = unpack(bytes(row[2])) or b"{}"
            if not _deleted(body):
                found.setdefault(node, {})[name] = body
        return found

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
        return {name: sorted(self._scan(sql)) for name, sql in _DUMP.items()}

    def _one(self, sql: str, parameters: Sequence[Any] = ()) -> Row:
        return self._query(sql, parameters)[0]

    def _by_ids(self, sql: str, ids: Iterable[int]) -> list[Row]:
        return self._rows_in(sql, [int(i) for i in ids])  # drivers know no numpy integers


_SPAN_COLUMNS = "first_at, first_event, last_at, last_event, observed"

_N = "CASE {0}.kind WHEN 0 THEN 'dataset:' ELSE 'job:' END || {0}.namespace || ':' || {0}.name"
_DUMP = {
    "nodes": f"SELECT {_N.format('n')}, n.short, {_SPAN_COLUMNS} FROM nodes n",
    "columns": f"SELECT {_N.format('n')}, field FROM columns c JOIN nodes n ON n.id = c.dataset",
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
    "derives": f"""
        SELECT coalesce({_N.format("j")}, ''), c.digest, {_N.format("sn")}, s.field,
               {_N.format("tn")}, t.field, d.direct, d.subtype, d.description, d.masking,
               d.confidence
        FROM derives d JOIN claims c ON c.id = d.claim LEFT JOIN nodes j ON j.id = c.job
        JOIN columns s ON s.id = d.source JOIN nodes sn ON sn.id = s.dataset
        JOIN columns t ON t.id = d.target JOIN nodes tn ON tn.id = t.dataset
    """,
}


def _age(row: Row) -> tuple[int, bytes, bytes]:
    """Return what orders sightings of a facet, the last one last."""
    return row[3], bytes(row[4]), bytes(row[5])


def _by_id(changed_after: int) -> str:
    """Return how to order rows by id: all of them along the table, few by the index of changes.

    SQLite knows not how few they are, and would walk the whole table to spare itself a sort.
    """
    return "+id" if changed_after else "id"


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
