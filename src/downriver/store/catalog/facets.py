"""Facets of nodes, runs of jobs and the evidence of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.facts import FacetRole, RunState, Span
from downriver.openlineage.facets.custom import ASSET
from downriver.openlineage.facets.dataset import DATASET_TYPE, SchemaColumn, schema_columns
from downriver.openlineage.facets.description import DOCUMENTATION, OWNERSHIP, TAGS
from downriver.openlineage.facets.job import JOB_TYPE
from downriver.openlineage.facets.label_statement import (
    STATED_PREFIX,
    TAG_PREFIX,
    is_statement,
    merge_statements,
    with_statements,
)
from downriver.store.catalog.bodies import read_bodies
from downriver.store.catalog.encoding import SPAN, read_body, read_span, rows_by_id, unpack_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.model.facts import ColumnTransformation
    from downriver.store.port import Row, SqlQueries


_FOREVER = 2**63 - 1

# The facets that lists and searches show for every node. The migrations have an index on these
# names.
LABEL_FACETS = (DATASET_TYPE, ASSET, JOB_TYPE, OWNERSHIP, TAGS)
_LABELS = ", ".join(f"'{name}'" for name in LABEL_FACETS)


def has_labels(facet: str) -> bool:
    """Return whether a facet of a node has labels: it is one of these, or a statement."""
    return facet in LABEL_FACETS or is_statement(facet)


class Run(msgspec.Struct):
    """A run in the catalog; times in µs since the epoch."""

    number: int
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
        """Return the current facets of a node: the last facet of each name.

        Tags, owners and descriptions that a person states replace those that producers send.
        """
        return self.of_each([node]).get(node, {})

    def of_each(
        self, nodes: Iterable[int], names: Sequence[str] = (), until: int | None = None
    ) -> dict[int, dict[str, bytes]]:
        """Return the facets, all or those with these names, of each node that has any.

        Without `until` they are the current ones, else those that were current at that moment.
        """
        current = self._named_facets(nodes, names, until)
        return {node: merge_statements(facets) for node, facets in current.items()}

    def stated(self, nodes: Iterable[int]) -> dict[int, dict[str, bytes]]:
        """Return the statements of people about labels of each node that has any, as sent."""
        return self._current(nodes, f"AND {_STATED}")

    def sent(self, nodes: Iterable[int], names: Sequence[str]) -> dict[int, dict[str, bytes]]:
        """Return the current facets with these names as producers send them."""
        return {
            node: {name: body for name, body in facets.items() if not is_statement(name)}
            for node, facets in self._named_facets(nodes, names).items()
        }

    def _named_facets(
        self, nodes: Iterable[int], names: Sequence[str], until: int | None = None
    ) -> dict[int, dict[str, bytes]]:
        if not all(name.isidentifier() for name in names):  # they become part of the query
            raise ValueError(names)
        name_list = ", ".join(f"'{name}'" for name in with_statements(names))
        condition = f"f.name IN ({name_list})"
        if TAGS in names:
            condition += f" OR {_OF_TAGS}"
        return self._current(nodes, f"AND ({condition})" if names else "", until)

    def starting_with(self, nodes: Iterable[int], prefix: str) -> dict[int, dict[str, bytes]]:
        """Return the current facets of each node whose names begin with `prefix`."""
        if not prefix.isidentifier():  # it becomes part of the query
            raise ValueError(prefix)
        return self._current(nodes, f"AND f.name >= '{prefix}' AND f.name < '{prefix}~'")

    def _current(
        self, nodes: Iterable[int], condition: str, until: int | None = None
    ) -> dict[int, dict[str, bytes]]:
        if until is not None:
            condition += f" AND f.first_at <= {int(until)}"
        facets = f"f.role = {int(FacetRole.NODE)} AND f.run = 0 {condition} AND f.node IN"
        sql = f"""
            SELECT f.node, f.name, f.digest, f.last_at, f.last_event, f.first_at FROM facets f
            WHERE {facets}
        """.strip()
        latest: dict[tuple[int, str], Row] = {}
        for row in rows_by_id(self._queries, sql, nodes):
            latest_row = latest.setdefault(row[:2], row)
            if latest_row is not row and _age_at(row, until) > _age_at(latest_row, until):
                latest[row[:2]] = row
        digests = {bytes(row[2]): row[0] for row in latest.values()}
        bodies = read_bodies(self._queries, digests, facets)
        current: dict[int, dict[str, bytes]] = {}
        for node, name in sorted(latest):
            body = bodies[bytes(latest[node, name][2])]
            if not _deleted(body):
                current.setdefault(node, {})[name] = body
        return current

    def named(self, name: str) -> dict[int, bytes]:
        """Return the current facet with this name of every node that has one, as sent."""
        # Exactly the condition of the partial index: SQLite cannot derive it from a single name.
        indexed = f"AND f.name IN ({_LABELS})" if name in LABEL_FACETS else ""
        sql = f"""
            SELECT f.node, b.body FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.name = ? AND f.role = 0 AND f.run = 0 {indexed}
            ORDER BY f.last_at, f.last_event, f.digest
        """
        rows = self._queries.rows(sql, (name,))
        current = {node: read_body(body) for node, body in rows}
        current = {node: body for node, body in current.items() if not _deleted(body)}
        return self._with_statements(name, current)

    def _with_statements(self, name: str, sent: dict[int, bytes]) -> dict[int, bytes]:
        """Return the facet of every node for which a producer or a person states one."""
        condition = _OF_TAGS if name == TAGS else _OF_LABELS
        if name not in (TAGS, OWNERSHIP, DOCUMENTATION):
            return sent
        sql = f"SELECT DISTINCT f.node FROM facets f WHERE {condition} AND f.role = 0"
        nodes = [node for (node,) in self._queries.rows(sql)]
        merged = self.of_each(nodes, (name,))
        return sent | {node: of[name] for node, of in merged.items() if name in of}

    def labels(self, nodes: Iterable[int] | None) -> dict[int, dict[str, bytes]]:
        """Return the current facets with labels of each of these nodes, or of all, as sent."""
        if nodes is not None:
            return self.of_each(nodes, LABEL_FACETS)
        bodies: dict[int, dict[str, bytes]] = {}
        for name in LABEL_FACETS:
            for node, body in self.named(name).items():
                bodies.setdefault(node, {})[name] = body
        return bodies

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

    def with_blind_spots(self) -> list[int]:
        """Return the nodes that have, or had, a blind spots facet."""
        sql = """
            SELECT DISTINCT node FROM facets WHERE role = 0 AND name = 'downriver_blindSpots'
        """
        return [node for (node,) in self._queries.rows(sql)]

    def schema(self, dataset: int) -> list[SchemaColumn]:
        """Return the columns of a dataset's current schema facet, in its order."""
        body = self.of(dataset).get("schema")
        return schema_columns(body) if body else []

    def quality(self, dataset: int, until: int | None = None) -> list[tuple[bytes, int]]:
        """Return the results of checks of a dataset as sent, with their times, oldest first."""
        latest = _FOREVER if until is None else until
        sql = """
            SELECT b.body, CASE WHEN f.last_at <= ? THEN f.last_at ELSE f.first_at END AS checked_at
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.name = 'dataQualityAssertions' AND f.first_at <= ?
            ORDER BY checked_at, f.last_event, f.digest
        """
        rows = self._queries.rows(sql, (latest, dataset, latest))
        return [(read_body(body), at) for body, at in rows]


class RunQueries:
    """Reads the runs of jobs."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def latest(self, job: int, limit: int) -> list[Run]:
        """Return the runs of a job, the latest first."""
        return self.latest_of_each([job], limit).get(job, [])

    def latest_of_each(
        self, jobs: Iterable[int], limit: int, until: int | None = None
    ) -> dict[int, list[Run]]:
        """Return the runs of each job that has any, begun until a moment, the latest first.

        A run that ended after that moment was running then.
        """
        latest = _FOREVER if until is None else int(until)
        # The time of the last run to show limits the index scan, however many runs a job has.
        sql = f"""
            SELECT r.job, r.id, r.run, r.state, r.state_at, r.started_at, r.first_at, r.last_at
            FROM nodes n JOIN runs r ON r.job = n.id AND r.first_at >= (
                SELECT min(first_at) FROM (
                    SELECT first_at FROM runs WHERE job = n.id AND first_at <= {latest}
                    ORDER BY first_at DESC LIMIT {int(limit)}
                ) AS shown
            )
            WHERE r.first_at <= {latest} AND n.id IN
        """.strip()
        runs_by_job: dict[int, list[Run]] = {}
        for job, number, run, state, *times in rows_by_id(self._queries, sql, jobs):
            seen = Run(number, run, RunState(state), *times)
            runs_by_job.setdefault(job, []).append(_run_at(seen, latest))
        for runs in runs_by_job.values():
            runs.sort(key=lambda run: (-run.first_at, run.run))
            del runs[limit:]
        return runs_by_job

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


def _run_at(run: Run, moment: int) -> Run:
    if run.state_at <= moment:
        return run
    return msgspec.structs.replace(run, state=RunState.RUNNING, state_at=moment)


# Exactly the conditions of two partial indexes. No other name begins like this.
_OF_TAGS = f"(f.name >= '{TAG_PREFIX}' AND f.name < '{TAG_PREFIX}~')"
_OF_LABELS = f"(f.name >= '{STATED_PREFIX}' AND f.name < '{STATED_PREFIX}~')"
_STATED = f"({_OF_TAGS} OR {_OF_LABELS})"


def _age_at(row: Row, until: int | None) -> Row:
    """Return a sort key for sightings: by the last time seen until a moment, then by the start."""
    seen = (bytes(row[4]), bytes(row[2]))
    if until is None or row[3] <= until:
        return row[3], 0, *seen
    return until, row[5], *seen


class _Deletion(msgspec.Struct):
    _deleted: Any = msgspec.field(name="_deleted", default=False)


def _deleted(body: bytes) -> bool:
    if b"_deleted" not in body and b"\\u" not in body:
        return False
    try:
        return msgspec.json.decode(body, type=_Deletion)._deleted is True
    except msgspec.DecodeError:
        return False
