"""Facets of nodes, runs of jobs, and the evidence of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.facts import FacetRole, RunState, Span
from downriver.openlineage.facets.schema import SchemaColumn, schema_columns
from downriver.store.catalog.encoding import unpack_kinds
from downriver.store.catalog.rows import SPAN, read_body, read_span, rows_by_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.facts import ColumnTransformation
    from downriver.store.port import Row, SqlQueries


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


class FacetQueries:
    """Reads the facets of datasets and jobs."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def of(self, node: int) -> dict[str, bytes]:
        """Return the current facets of a node as sent: the last one of each name."""
        current: dict[str, bytes] = {}
        sql = """
            SELECT f.name, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        for name, body in self._queries.rows(sql, (node, int(FacetRole.NODE))):
            current[name] = read_body(body)
        return {name: body for name, body in sorted(current.items()) if not _deleted(body)}

    def named(self, name: str) -> dict[int, bytes]:
        """Return the current facet with this name of every node that has one, as sent."""
        sql = """
            SELECT f.node, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._queries.rows(sql, (name, int(FacetRole.NODE)))
        current = {node: read_body(body) for node, body in rows}
        return {node: body for node, body in current.items() if not _deleted(body)}

    def among(self, nodes: Iterable[int], prefix: str) -> Iterator[tuple[int, str, bytes]]:
        """Yield (node, name, facet as sent) of current facets whose names begin with `prefix`."""
        if not prefix.isidentifier():  # it becomes part of the query
            raise ValueError(prefix)
        sql = f"""
            SELECT f.node, f.name, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.role = 0 AND f.run = 0 AND f.name >= '{prefix}' AND f.name < '{prefix}~'
            AND f.node IN
        """.strip()
        latest: dict[Row, Row] = {}
        for row in rows_by_id(self._queries, sql, nodes):
            known = latest.setdefault(row[:2], row)
            if known is not row and _age(row) > _age(known):
                latest[row[:2]] = row
        for node, name, stored, *_ in latest.values():
            body = read_body(stored)
            if not _deleted(body):
                yield node, name, body

    def blind_spots(self, nodes: Iterable[int]) -> dict[int, bytes]:
        """Return the current blind spots facet of each node that has one, as sent."""
        sql = """
            SELECT f.node, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = 'downriver_blindSpots' AND f.role = 0 AND f.node IN
        """.strip()
        rows = sorted(
            rows_by_id(self._queries, sql, nodes), key=lambda row: (row[2], *map(bytes, row[3:]))
        )
        return {node: read_body(body) for node, body, *_ in rows}

    def schema(self, dataset: int) -> list[SchemaColumn]:
        """Return the columns of a dataset's current schema facet, in its order."""
        body = self.of(dataset).get("schema")
        return schema_columns(body) if body else []

    def quality(self, dataset: int) -> list[tuple[bytes, int]]:
        """Return the results of checks of a dataset as sent, with their times, oldest first."""
        sql = """
            SELECT b.body, f.last_at FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.name = 'dataQualityAssertions'
            ORDER BY f.last_at, f.last_event, f.digest
        """
        return [(read_body(body), at) for body, at in self._queries.rows(sql, (dataset,))]


class RunQueries:
    """Reads the runs of jobs."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def latest(self, job: int, limit: int) -> list[Run]:
        """Return the runs of a job, the latest first."""
        sql = """
            SELECT run, state, state_at, started_at, first_at, last_at FROM runs
            WHERE job = ? ORDER BY first_at DESC, run LIMIT ?
        """
        return [Run(r[0], RunState(r[1]), *r[2:]) for r in self._queries.rows(sql, (job, limit))]

    def facets(self, job: int, run: str) -> dict[str, bytes]:
        """Return the facets of one run as sent: the last one of each name."""
        sql = """
            SELECT f.name, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            JOIN runs r ON r.id = f.run
            WHERE f.node = ? AND f.role = ? AND r.run = ?
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._queries.rows(sql, (job, int(FacetRole.RUN), run))
        return {name: read_body(body) for name, body in rows}


class EvidenceQueries:
    """Reads which events showed an edge or a column lineage claim."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def edges(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of edges."""
        sql = f"SELECT id, {SPAN} FROM edges WHERE id IN"
        return {row[0]: read_span(row[1:]) for row in rows_by_id(self._queries, sql, ids)}

    def claims(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of claims."""
        sql = f"SELECT id, {SPAN} FROM claims WHERE id IN"
        return {row[0]: read_span(row[1:]) for row in rows_by_id(self._queries, sql, ids)}

    def transformations(self, claims: Iterable[int]) -> dict[int, list[ColumnTransformation]]:
        """Return the different transformations of the column edges of claims."""
        rows = rows_by_id(
            self._queries, "SELECT claim, kinds FROM derivations WHERE claim IN", claims
        )
        return {claim: unpack_kinds(bytes(kinds)) for claim, kinds in rows}


def _age(row: Row) -> tuple[int, bytes, bytes]:
    """Return the key that orders the sightings of a facet by time."""
    return row[3], bytes(row[4]), bytes(row[5])


class _Deletion(msgspec.Struct):
    _deleted: Any = msgspec.field(name="_deleted", default=False)


def _deleted(body: bytes) -> bool:
    if b"_deleted" not in body and b"\\u" not in body:
        return False
    try:
        return msgspec.json.decode(body, type=_Deletion)._deleted is True
    except msgspec.DecodeError:
        return False
