"""Runs of one job, of several, or of all, the latest first, with the facets of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.model.facts import FacetRole, RunState
from downriver.store.catalog.bodies import read_bodies
from downriver.store.catalog.encoding import rows_by_id
from downriver.store.catalog.history import RUN_COLUMNS, read_run
from downriver.store.catalog.retirement import RetirementQueries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from downriver.store.catalog.history import JobRun
    from downriver.store.port import SqlQueries


class RunFilter(NamedTuple):
    """Which runs to list: of these jobs (None: of all), in this state, before a position."""

    jobs: Collection[int] | None = None
    state: RunState | None = None
    before: tuple[int, int] | None = None  # time of first sight in µs, and number
    limit: int = 50


class RunFacet(NamedTuple):
    """A facet of a run, of its job, or of a dataset as the run read or wrote it."""

    run: int
    node: int
    role: FacetRole
    name: str
    body: bytes
    first_event: bytes
    last_event: bytes
    first_at: int


class RunHistoryQueries:
    """Lists runs, and reads the facts about each."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def list_runs(self, wanted: RunFilter) -> list[JobRun]:
        """Return runs, the latest first, without retired ones."""
        conditions, parameters = ["1 = 1"], list[int]()
        retired = RetirementQueries(self._queries).retired_runs()
        if wanted.jobs is not None:
            retired = {job: before for job, before in retired.items() if job in wanted.jobs}
        cuts = ", ".join(f"({int(job)}, {int(before)})" for job, before in retired.items())
        if cuts:
            conditions.append(
                "NOT EXISTS (SELECT 1 FROM cuts WHERE cuts.job = runs.job AND first_at < before)"
            )
        if wanted.jobs is not None:
            if not wanted.jobs:
                return []
            conditions.append(f"job IN ({', '.join('?' * len(wanted.jobs))})")
            parameters += sorted(wanted.jobs)
        if wanted.state is not None:
            conditions.append("state = ?")
            parameters.append(int(wanted.state))
        if wanted.before is not None:
            at, number = wanted.before
            conditions.append("(first_at < ? OR (first_at = ? AND id < ?))")
            parameters += [at, at, number]
        sql = f"""
            {f"WITH cuts (job, before) AS (VALUES {cuts})" if cuts else ""}
            SELECT {RUN_COLUMNS} FROM runs WHERE {" AND ".join(conditions)}
            ORDER BY first_at DESC, id DESC LIMIT ?
        """
        return [read_run(row) for row in self._queries.rows(sql, (*parameters, wanted.limit))]

    def find_runs(self, run: str) -> list[JobRun]:
        """Return the runs with this id: run ids of different jobs may be equal."""
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE run = ? ORDER BY first_at DESC, id DESC"
        return [read_run(row) for row in self._queries.rows(sql, (run,))]

    def by_numbers(self, runs: Iterable[int]) -> dict[int, JobRun]:
        """Return runs by their numbers."""
        rows = rows_by_id(self._queries, f"SELECT {RUN_COLUMNS} FROM runs WHERE id IN", runs)
        return {row[0]: read_run(row) for row in rows}

    def runs_during(self, jobs: Collection[int], start: int, end: int) -> list[JobRun]:
        """Return the runs of these jobs that began before `end` and had not ended at `start`."""
        sql = f"""
            SELECT {RUN_COLUMNS} FROM runs
            WHERE first_at <= ? AND (state < ? OR state_at >= ?)
              AND job IN ({", ".join("?" * len(jobs))})
            ORDER BY first_at DESC, id DESC LIMIT 100
        """
        parameters = (end, int(RunState.COMPLETE), start, *sorted(jobs))
        return [read_run(row) for row in self._queries.rows(sql, parameters)]

    def job_facets(self, jobs: Iterable[int], name: str) -> list[bytes]:
        """Return what runs of these jobs attached under a name, the oldest first."""
        if not name.isidentifier():  # it becomes part of the query
            raise ValueError(name)
        facets = f"f.role = {int(FacetRole.RUN)} AND f.name = '{name}' AND f.node IN"
        sql = f"SELECT f.node, f.digest, f.last_at FROM facets f WHERE {facets}"
        rows = sorted(rows_by_id(self._queries, sql, jobs), key=lambda row: row[2])
        bodies = read_bodies(self._queries, {bytes(row[1]): row[0] for row in rows}, facets)
        return [bodies[bytes(row[1])] for row in rows]

    def runs_with_facet(
        self, nodes: Iterable[int], name: str, roles: Iterable[FacetRole]
    ) -> list[tuple[int, int]]:
        """Return (node, run) for the runs that attached a facet to these nodes."""
        if not name.isidentifier():  # it becomes part of the query
            raise ValueError(name)
        listed = ", ".join(str(int(role)) for role in roles)
        sql = f"""
            SELECT DISTINCT node, run FROM facets
            WHERE run <> 0 AND name = '{name}' AND role IN ({listed}) AND node IN
        """.strip()
        return [(node, run) for node, run in rows_by_id(self._queries, sql, nodes)]

    def facets(self, runs: Iterable[int], names: Sequence[str] = ()) -> list[RunFacet]:
        """Return the facets of runs, of their jobs and datasets, all or by name, oldest first."""
        if not all(name.isidentifier() for name in names):  # they become part of the query
            raise ValueError(names)
        name_list = ", ".join(f"'{name}'" for name in names)
        facets = f"f.run <> 0 {f'AND f.name IN ({name_list})' if names else ''} AND f.run IN"
        sql = f"""
            SELECT f.run, f.node, f.role, f.name, f.digest, f.first_event, f.last_event, f.last_at,
                   f.first_at
            FROM facets f WHERE {facets}
        """.strip()
        rows = rows_by_id(self._queries, sql, runs)
        bodies = read_bodies(self._queries, {bytes(row[4]): row[0] for row in rows}, facets)
        rows.sort(key=lambda row: (row[7], bytes(row[6]), bytes(row[4])))
        return [
            RunFacet(
                run, node, _ROLES[role], name, bodies[bytes(digest)], bytes(first), bytes(last), at
            )
            for run, node, role, name, digest, first, last, _, at in rows
        ]


_ROLES = {int(role): role for role in FacetRole}
