"""The past of datasets and jobs: versions of facets and claims, measures, and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from downriver.model.facts import EventRef, FacetRole, RunState, Span
from downriver.store.catalog.encoding import read_body, read_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.store.port import SqlQueries

# Bodies are joined only to the rows within the limit.
_MEASURES = """
    SELECT m.last_at, m.last_event, m.digest, m.name, m.role, m.run, b.body FROM (
        SELECT f.last_at, f.last_event, f.digest, f.name, f.role, f.run FROM facets f
        WHERE f.node = ? AND f.last_at <= ? AND f.name IN (
            'outputStatistics', 'inputStatistics', 'dataQualityMetrics', 'dataQualityAssertions'
        ) AND {}, f.digest DESC LIMIT ?
    ) AS m JOIN bodies b ON b.digest = m.digest
"""


class FacetVersion(NamedTuple):
    """One body of a facet or claim, and the times when it was first and last seen."""

    digest: bytes
    body: bytes
    span: Span
    job: int = 0
    facet: str = ""


class DatasetMeasure(NamedTuple):
    """A statistics or quality facet of a dataset; job 0 when it is not about a run."""

    name: str
    role: FacetRole
    job: int
    run: str
    at: EventRef
    body: bytes


class JobRun(NamedTuple):
    """A run of a job, with the digests of the first and last event that mention it."""

    number: int
    job: int
    run: str
    state: RunState
    state_at: int
    started_at: int | None
    first_at: int
    first_event: bytes
    last_event: bytes

    @property
    def began_at(self) -> int:
        """The start time of the run, or the time of its first event."""
        return self.first_at if self.started_at is None else min(self.first_at, self.started_at)

    @property
    def ended_at(self) -> int | None:
        """When the run ended, if it has."""
        return self.state_at if self.state.terminal else None


class HistoryQueries:
    """Reads the past of datasets and jobs."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def facet_versions(self, node: int, name: str) -> list[FacetVersion]:
        """Return every body of a facet of a node, the first seen first."""
        sql = f"""
            SELECT f.digest, b.body, {_SPAN} FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = ? AND f.role = ? AND f.name = ? AND f.run = 0
            ORDER BY f.first_at, f.first_event, f.digest
        """
        rows = self._queries.rows(sql, (node, int(FacetRole.NODE), name))
        return [FacetVersion(bytes(r[0]), read_body(r[1]), read_span(r[2:])) for r in rows]

    def claims(self, job: int, dataset: int | None = None) -> dict[int, list[FacetVersion]]:
        """Return the column lineage claims of a job, by dataset, the first seen first."""
        one = "" if dataset is None else "AND f.dataset = ?"
        sql = f"""
            SELECT f.dataset, f.digest, b.body, f.facet, {_SPAN}
            FROM claims f JOIN bodies b ON b.digest = f.digest
            WHERE f.job = ? {one} ORDER BY f.first_at, f.first_event, f.digest
        """
        versions: dict[int, list[FacetVersion]] = {}
        parameters = (job,) if dataset is None else (job, dataset)
        for dataset, digest, body, facet, *span in self._queries.rows(sql, parameters):
            version = FacetVersion(
                bytes(digest), read_body(body), read_span(tuple(span)), job, facet
            )
            versions.setdefault(dataset, []).append(version)
        return versions

    def measures(self, dataset: int, limit: int, until: int) -> list[DatasetMeasure]:
        """Return the last statistics and quality facets up to a moment, in order of time.

        Facets of runs are ordered by the first time: nearly all are sent once, and an index by the
        last time would change with every repeated facet.
        """
        of_runs = "f.run <> 0 AND f.first_at <= ? ORDER BY f.first_at DESC, f.first_event DESC"
        of_none = "f.run = 0 AND f.first_at <= ? ORDER BY f.last_at DESC, f.last_event DESC"
        measures = [
            row
            for which in (of_runs, of_none)
            for row in self._queries.rows(_MEASURES.format(which), (dataset, until, until, limit))
        ]
        measures.sort(key=lambda row: (row[0], bytes(row[1]), bytes(row[2])))
        rows = measures[-limit:]
        runs = self._runs_of({row[5] for row in rows})
        return [
            DatasetMeasure(
                name,
                FacetRole(role),
                *runs.get(run, (0, "")),
                EventRef(at, bytes(event)),
                read_body(body),
            )
            for at, event, _, name, role, run, body in rows
        ]

    def _runs_of(self, numbers: Iterable[int]) -> dict[int, tuple[int, str]]:
        rows = self._queries.rows_in("SELECT id, job, run FROM runs WHERE id IN", list(numbers))
        return {number: (job, run) for number, job, run in rows}

    def runs(self, job: int, limit: int, until: int) -> list[JobRun]:
        """Return the last runs of a job up to a moment, the first seen first."""
        sql = f"""
            SELECT {RUN_COLUMNS} FROM runs WHERE job = ? AND first_at <= ?
            ORDER BY first_at DESC, run DESC LIMIT ?
        """
        return [read_run(row) for row in reversed(self._queries.rows(sql, (job, until, limit)))]

    def run_facets(
        self, job: int, name: Literal["errorMessage", "nominalTime"], runs: Iterable[int]
    ) -> dict[int, bytes]:
        """Return the last body of a facet for each of several runs."""
        sql = f"""
            SELECT f.run, b.body, f.last_at, f.last_event, f.digest
            FROM facets f JOIN bodies b ON b.digest = f.digest
            WHERE f.node = {int(job)} AND f.role = {int(FacetRole.RUN)} AND f.name = '{name}'
              AND f.run IN
        """.strip()
        rows = self._queries.rows_in(sql, list(runs))
        rows.sort(key=lambda row: (row[2], bytes(row[3]), bytes(row[4])))
        return {row[0]: read_body(row[1]) for row in rows}

    def run_outcomes(self) -> Iterator[tuple[int, RunState, int, int]]:
        """Yield (job, state, first_at, last_at) of every run."""
        for job, state, first_at, last_at in self._queries.scan(
            "SELECT job, state, first_at, state_at FROM runs ORDER BY job, first_at"
        ):
            yield job, RunState(state), first_at, last_at

    def jobs_with_assertions(self) -> set[int]:
        """Return the jobs of which a run reported results of checks of what it read."""
        sql = """
            SELECT DISTINCT r.job FROM facets f JOIN runs r ON r.id = f.run
            WHERE f.name = 'dataQualityAssertions' AND f.role = ?
        """
        return {row[0] for row in self._queries.rows(sql, (int(FacetRole.INPUT),))}

    def nodes_of_kind(self, kind: int) -> list[int]:
        """Return the ids of all datasets (0) or all jobs (1)."""
        return [
            row[0] for row in self._queries.rows("SELECT id FROM nodes WHERE kind = ?", (kind,))
        ]


_SPAN = "f.first_at, f.first_event, f.last_at, f.last_event, f.observed"
RUN_COLUMNS = "id, job, run, state, state_at, started_at, first_at, first_event, last_event"


def read_run(row: tuple[Any, ...]) -> JobRun:
    """Return the run in a row of `RUN_COLUMNS`."""
    number, job, run, state, state_at, started_at, first_at, first, last = row
    return JobRun(
        number, job, run, RunState(state), state_at, started_at, first_at, bytes(first), bytes(last)
    )
