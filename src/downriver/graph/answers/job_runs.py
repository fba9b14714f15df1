"""How jobs went lately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.facts import RunState
from downriver.model.flows import LastRun
from downriver.openlineage.facets.job import ERROR_MESSAGE, parse_error_message
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, Run


_RUNS_LOOKED_AT = 50  # of a job, for one that completed


def list_last_runs(reader: CatalogReader, jobs: Iterable[NodeId], limit: int) -> list[LastRun]:
    """Return the last runs of jobs, of each job the latest first."""
    found = []
    for job in jobs:
        number = reader.nodes.get(job)
        found += [_last_run(reader, number, job, run) for run in reader.runs.latest(number, limit)]
    return found


def writers_of_all(reader: CatalogReader, names: Iterable[int]) -> list[NodeId]:
    """Return the jobs that write a dataset under any of its names."""
    return list(dict.fromkeys(job for name in names for job in reader.nodes.writers_of(name)))


def last_filled(reader: CatalogReader, jobs: Iterable[NodeId]) -> int | None:
    """Return when a run of any of the jobs that write something last completed."""
    ends = [
        run.state_at
        for job in jobs
        for run in reader.runs.latest(reader.nodes.get(job), _RUNS_LOOKED_AT)
        if run.state is RunState.COMPLETE
    ]
    return max(ends, default=None)


def _last_run(reader: CatalogReader, number: int, job: NodeId, run: Run) -> LastRun:
    failed = run.state in (RunState.FAIL, RunState.ABORT)
    errors = reader.runs.facets(number, run.run) if failed else {}
    return LastRun(
        job=str(job),
        run_id=run.run,
        state=run.state.name,
        started_at=_time(run.started_at),
        ended_at=_time(run.ended_at),
        error=parse_error_message(errors.get(ERROR_MESSAGE)),
    )


def _time(at: int | None) -> str | None:
    return None if at is None else render_time(at)
