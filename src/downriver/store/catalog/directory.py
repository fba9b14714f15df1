"""Lists of namespaces, datasets, jobs, runs and events, a page at a time, and their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.model.facts import EdgeKind, RunState
from downriver.model.ids import NAMESPACE_RECORDS, NodeKind
from downriver.openlineage.facets.dataset import parse_data_source
from downriver.store.catalog.encoding import decompress, read_body, rows_by_id
from downriver.store.catalog.facets import Run
from downriver.store.catalog.retirement import RetirementQueries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from downriver.store.port import Row, SqlQueries

QUARTER = 900_000_000  # µs; the offset of every time zone is a multiple of a quarter of an hour

# A node is hidden when the last event that mentions it deletes it.
_DELETION = """
    SELECT 1 FROM facets d WHERE d.node = n.id AND d.role = 0 AND d.name = 'downriver_deleted'
        AND d.last_event = n.last_event
"""


# Names that occur only in the symlinks of another dataset. If two datasets name each other, the
# second one.
_OTHER_NAMES = f"""
    SELECT e.target FROM edges e WHERE e.kind = {int(EdgeKind.ALIAS)} AND e.source <> e.target
        AND (e.source < e.target OR NOT EXISTS (
            SELECT 1 FROM edges back WHERE back.kind = e.kind
                AND back.source = e.target AND back.target = e.source))
"""


class NamespaceSeen(NamedTuple):
    """A namespace and when events first and last mentioned anything in it."""

    name: str
    first_at: int
    last_at: int


class SourceSeen(NamedTuple):
    """A system that dataSource facets name, and when it was first seen with a dataset."""

    name: str
    uri: str
    first_at: int
    last_at: int


class DirectoryQueries:
    """Lists what a catalog contains. Deleted datasets and jobs are left out."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def namespaces(self, limit: int, offset: int) -> list[NamespaceSeen]:
        """Return namespaces by name."""
        sql = f"""
            SELECT name, min(first_at), max(last_at) FROM ({_NAMESPACES}) AS seen
            GROUP BY name ORDER BY name LIMIT ? OFFSET ?
        """
        rows = self._queries.rows(sql, (NAMESPACE_RECORDS, limit, offset))
        return [NamespaceSeen(*row) for row in rows]

    def find_namespace(self, name: str) -> NamespaceSeen | None:
        """Return when anything in a namespace was first and last mentioned."""
        sql = """
            SELECT min(first_at), max(last_at) FROM nodes
            WHERE (namespace = ? AND kind IN (0, 1)) OR (namespace = ? AND kind = 2 AND name = ?)
        """
        first, last = self._queries.rows(sql, (name, NAMESPACE_RECORDS, name))[0]
        return None if first is None else NamespaceSeen(name, first, last)

    def dataset_namespaces(self) -> list[NamespaceSeen]:
        """Return the namespaces of datasets by name."""
        sql = """
            SELECT namespace, min(first_at), max(first_at) FROM nodes WHERE kind = 0
            GROUP BY namespace ORDER BY namespace
        """
        return [NamespaceSeen(*row) for row in self._queries.rows(sql)]

    def sources(self) -> list[SourceSeen]:
        """Return the systems that dataSource facets name, each different facet once."""
        sql = """
            SELECT s.first_at, s.last_at, b.body FROM (
                SELECT digest, min(first_at) AS first_at, max(first_at) AS last_at
                FROM facets WHERE name = 'dataSource' GROUP BY digest
            ) AS s JOIN bodies b ON b.digest = s.digest
        """
        sources_seen = []
        for first, last, body in self._queries.rows(sql):
            source = parse_data_source(read_body(body))
            sources_seen.append(SourceSeen(source.name, source.uri, first, last))
        return sources_seen

    def dataset_ids(self, namespace: str) -> list[int]:
        """Return the ids of the datasets in a namespace, by name."""
        sql = f"""
            SELECT n.id FROM nodes n WHERE n.kind = 0 AND n.namespace = ?
                AND NOT EXISTS ({_DELETION}) ORDER BY n.name
        """
        return [row[0] for row in self._queries.rows(sql, (namespace,))]

    def job_ids(
        self, namespace: str | None, last_states: Collection[RunState], limit: int, offset: int
    ) -> list[int]:
        """Return the ids of jobs, the last mentioned first. States are those of the last run."""
        condition, parameters = _jobs(namespace, last_states)
        sql = f"""
            SELECT n.id FROM nodes n WHERE {condition}
            ORDER BY n.last_at DESC, n.id LIMIT ? OFFSET ?
        """
        return [row[0] for row in self._queries.rows(sql, (*parameters, limit, offset))]

    def count_jobs(self, namespace: str | None, last_states: Collection[RunState]) -> int:
        """Count the jobs that `job_ids` lists."""
        condition, parameters = _jobs(namespace, last_states)
        sql = f"SELECT count(*) FROM nodes n WHERE {condition}"
        count: int = self._queries.rows(sql, parameters)[0][0]
        return count

    def find_deleted(self, nodes: Iterable[int]) -> set[int]:
        """Return those of the nodes that are deleted."""
        sql = f"SELECT n.id FROM nodes n WHERE EXISTS ({_DELETION}) AND n.id IN"
        return {row[0] for row in rows_by_id(self._queries, sql, nodes)}

    def records(self, namespace: str) -> dict[int, str]:
        """Return the ids and names of all records of one kind."""
        sql = "SELECT id, name FROM nodes WHERE kind = ? AND namespace = ? ORDER BY name"
        return dict(self._queries.rows(sql, (int(NodeKind.RECORD), namespace)))

    def nodes_in(self, namespace: str) -> list[int]:
        """Return the ids of all datasets and jobs of a namespace."""
        sql = "SELECT id FROM nodes WHERE kind IN (0, 1) AND namespace = ?"
        return [row[0] for row in self._queries.rows(sql, (namespace,))]

    def runs(self, job: int, limit: int, offset: int) -> list[Run]:
        """Return runs of a job, the latest first, without retired ones."""
        sql = f"""
            SELECT {_RUN} FROM runs WHERE job = ? AND first_at >= ?
            ORDER BY first_at DESC, id DESC LIMIT ? OFFSET ?
        """
        parameters = (job, self._runs_since(job), limit, offset)
        return [_read_run(row)[1] for row in self._queries.rows(sql, parameters)]

    def _runs_since(self, job: int) -> int:
        return RetirementQueries(self._queries).retired_runs().get(job, 0)

    def find_runs(self, runs: Sequence[str]) -> list[tuple[int, Run]]:
        """Return the runs with these ids, each with its job, the latest first."""
        if not runs:
            return []
        sql = f"""
            SELECT {_RUN} FROM runs WHERE run IN ({", ".join("?" * len(runs))})
            ORDER BY first_at DESC, id DESC
        """
        return [_read_run(row) for row in self._queries.rows(sql, list(runs))]

    def count_runs(self, job: int) -> int:
        """Count the runs of a job, without retired ones."""
        sql = "SELECT count(*) FROM runs WHERE job = ? AND first_at >= ?"
        count: int = self._queries.rows(sql, (job, self._runs_since(job)))[0][0]
        return count


_RUN = "job, id, run, state, state_at, started_at, first_at, last_at"


def _read_run(row: Row) -> tuple[int, Run]:
    job, number, run, state, *times = row
    return job, Run(number, run, RunState(state), *times)


def _jobs(namespace: str | None, last_states: Collection[RunState]) -> tuple[str, list[str | int]]:
    conditions = ["n.kind = 1", f"NOT EXISTS ({_DELETION})"]
    parameters: list[str | int] = []
    if namespace is not None:
        conditions.append("n.namespace = ?")
        parameters.append(namespace)
    if last_states:
        conditions.append(
            "(SELECT r.state FROM runs r WHERE r.job = n.id ORDER BY r.first_at DESC, r.id DESC"
            f" LIMIT 1) IN ({', '.join('?' * len(last_states))})"
        )
        parameters += sorted(int(state) for state in last_states)
    return " AND ".join(conditions), parameters


_NAMESPACES = """
    SELECT namespace AS name, first_at, last_at FROM nodes WHERE kind IN (0, 1)
    UNION ALL SELECT name, first_at, last_at FROM nodes WHERE kind = 2 AND namespace = ?
"""


class ActivityQueries:
    """Reads events of runs in the order of time, and counts what happened and what appeared."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def events(
        self, after: int, before: int, limit: int, offset: int, *, newest_first: bool
    ) -> list[bytes]:
        """Return events of runs as sent, from `after` to just before `before`."""
        order = "DESC" if newest_first else "ASC"
        sql = f"""
            SELECT l.body FROM (
                SELECT at, seq FROM run_events WHERE at >= ? AND at < ?
                ORDER BY at {order}, seq {order} LIMIT ? OFFSET ?
            ) AS e JOIN log l ON l.seq = e.seq ORDER BY e.at {order}, e.seq {order}
        """
        rows = self._queries.rows(sql, (after, before, limit, offset))
        return [decompress(bytes(body)) or b"{}" for (body,) in rows]

    def count_events(self, after: int, before: int) -> int:
        """Count the events of runs from `after` to just before `before`."""
        sql = "SELECT count(*) FROM run_events WHERE at >= ? AND at < ?"
        count: int = self._queries.rows(sql, (after, before))[0][0]
        return count

    def event_counts(self, after: int, before: int) -> list[tuple[int, RunState, int]]:
        """Return the number of events of each state in each quarter of an hour, by its start."""
        sql = f"""
            SELECT at / {QUARTER} AS quarter, state, count(*) FROM run_events
            WHERE at >= ? AND at < ? GROUP BY at / {QUARTER}, state
        """
        rows = self._queries.rows(sql, (after, before))
        return [(quarter * QUARTER, RunState(state), count) for quarter, state, count in rows]

    def new_nodes(self, kind: NodeKind, after: int) -> list[tuple[int, int]]:
        """Return the number of nodes that appeared in each quarter of an hour, by its start.

        A dataset with several names counts once.
        """
        sql = f"""
            SELECT first_at / {QUARTER} AS quarter, count(*) FROM nodes
            WHERE kind = ? AND first_at >= ? AND id NOT IN ({_OTHER_NAMES})
            GROUP BY first_at / {QUARTER}
        """
        rows = self._queries.rows(sql, (int(kind), after))
        return [(quarter * QUARTER, count) for quarter, count in rows]

    def count_nodes(self, kind: NodeKind, before: int) -> int:
        """Count the nodes that appeared before a moment, also one with several names once."""
        sql = f"""
            SELECT count(*) FROM nodes
            WHERE kind = ? AND first_at < ? AND id NOT IN ({_OTHER_NAMES})
        """
        count: int = self._queries.rows(sql, (int(kind), before))[0][0]
        return count
