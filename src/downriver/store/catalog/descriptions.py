"""What is known of nodes, edges, claims and runs: evidence and facets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.facts import FacetRole, RunState, Span
from downriver.openlineage.facets.schema import SchemaColumn, schema_columns
from downriver.store.catalog.encoding import unpack_kinds
from downriver.store.catalog.rows import SPAN, CatalogQueries, read_body, read_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.facts import ColumnTransformation
    from downriver.store.port import Row


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


class DescriptionQueries(CatalogQueries):
    """Tells what events said of things."""

    def edge_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of edges."""
        sql = f"SELECT id, {SPAN} FROM edges WHERE id IN"
        return {row[0]: read_span(row[1:]) for row in self._by_ids(sql, ids)}

    def claim_spans(self, ids: Iterable[int]) -> dict[int, Span]:
        """Return the evidence of claims."""
        sql = f"SELECT id, {SPAN} FROM claims WHERE id IN"
        return {row[0]: read_span(row[1:]) for row in self._by_ids(sql, ids)}

    def said(self, claims: Iterable[int]) -> dict[int, list[ColumnTransformation]]:
        """Return the different things that claims say of their column edges."""
        rows = self._by_ids("SELECT claim, kinds FROM derivations WHERE claim IN", claims)
        return {claim: unpack_kinds(bytes(kinds)) for claim, kinds in rows}

    def facets(self, node: int) -> dict[str, bytes]:
        """Return the current facets of a node as sent: of each name the one seen last."""
        current: dict[str, bytes] = {}
        sql = """
            SELECT f.name, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        for name, body in self._query(sql, (node, int(FacetRole.NODE))):
            current[name] = read_body(body)
        return {name: body for name, body in sorted(current.items()) if not _deleted(body)}

    def blind_spots(self, nodes: Iterable[int]) -> dict[int, bytes]:
        """Return the facet in which each node was last said to have blind spots, as sent."""
        sql = """
            SELECT f.node, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = 'downriver_blindSpots' AND f.role = 0 AND f.node IN
        """.strip()
        rows = sorted(self._by_ids(sql, nodes), key=lambda row: (row[2], *map(bytes, row[3:])))
        return {node: read_body(body) for node, body, *_ in rows}

    def facets_named(self, name: str) -> dict[int, bytes]:
        """Return the current facet of a name, as sent, of every node that has one."""
        sql = """
            SELECT f.node, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = ? AND f.role = ? AND f.run = 0
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._query(sql, (name, int(FacetRole.NODE)))
        current = {node: read_body(body) for node, body in rows}
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
            body = read_body(stored)
            if not _deleted(body):
                yield node, name, body

    def schema(self, dataset: int) -> list[SchemaColumn]:
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
        rows = self._query(sql, (job, int(FacetRole.RUN), run))
        return {name: read_body(body) for name, body in rows}

    def quality(self, dataset: int) -> list[tuple[bytes, int]]:
        """Return what checks of a dataset found, as sent, with their times, the oldest first."""
        sql = """
            SELECT b.body, f.last_at FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.name = 'dataQualityAssertions'
            ORDER BY f.last_at, f.last_event, f.digest
        """
        return [(read_body(body), at) for body, at in self._query(sql, (dataset,))]

    def node_span(self, node: int) -> Span:
        """Return when a node was first and last seen."""
        sql = f"SELECT {SPAN} FROM nodes WHERE id = ?"
        return read_span(self._one(sql, (node,)))


def _age(row: Row) -> tuple[int, bytes, bytes]:
    """Return what orders sightings of a facet, the last one last."""
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
