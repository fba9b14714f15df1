"""The last runs of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.facts import EdgeKind, RunState
from downriver.model.flows import LastRun
from downriver.openlineage.facets.job import ERROR_MESSAGE, parse_error_message
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph.snapshot import CatalogSnapshot
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, Run


_RUNS_LOOKED_AT = 50  # runs of a job, to find one that completed


def list_last_runs(
    reader: CatalogReader, jobs: Iterable[NodeId], limit: int, until: int | None = None
) -> list[LastRun]:
    """Return the last runs of jobs, grouped by job, the latest first."""
    numbers = _numbers(reader, jobs)
    runs = reader.runs.latest_of_each(numbers.values(), limit, until)
    return [
        _last_run(reader, number, job, run)
        for job, number in numbers.items()
        for run in runs.get(number, ())
    ]


def writers_of_all(view: CatalogSnapshot, names: Iterable[int]) -> list[NodeId]:
    """Return the jobs that write a dataset under any of its names, in the order of their names."""
    writers = view.graph.nodes.neighbours(names, EdgeKind.WRITES, downstream=False)
    jobs = view.reader.nodes.by_ids({job for some in writers.values() for job in some})
    return sorted(jobs.values(), key=str)


def last_filled(
    reader: CatalogReader, jobs: Iterable[NodeId], until: int | None = None
) -> int | None:
    """Return the end of the last completed run of any of these jobs."""
    numbers = _numbers(reader, jobs).values()
    ends = [
        run.state_at
        for runs in reader.runs.latest_of_each(numbers, _RUNS_LOOKED_AT, until).values()
        for run in runs
        if run.state is RunState.COMPLETE
    ]
    return max(ends, default=None)


def _numbers(reader: CatalogReader, jobs: Iterable[NodeId]) -> dict[NodeId, int]:
    job_list = list(jobs)
    numbers = reader.nodes.find_each(job_list)
    return {job: numbers[job] for job in job_list}


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
