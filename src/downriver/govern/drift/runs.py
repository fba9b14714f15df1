"""Failed runs and late runs."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.drift.schedule import DueTime, due_by, next_due, render_gap
from downriver.govern.drift.series import DAY
from downriver.model.facts import RunState
from downriver.model.findings import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.facets.run import parse_error_message, parse_nominal_start
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.govern.drift.limits import LatenessLimits
    from downriver.govern.drift.schedule import JobSchedule
    from downriver.model.ids import JobId
    from downriver.store.catalog.history import JobRun

_BAD = (RunState.FAIL, RunState.ABORT)
_NORMAL = 1.4826


class JobHistory(NamedTuple):
    """The runs of a job in order of first sight, with their errors and nominal times."""

    job: JobId
    runs: list[JobRun]
    errors: Mapping[int, bytes]
    nominal: Mapping[int, bytes]
    schedule: JobSchedule | None = None


def find_run_trouble(
    history: JobHistory, due: DueTime | None, limits: LatenessLimits, now: int
) -> Iterator[Finding]:
    """Yield a finding if the last run of a job failed, and one if the next run is late."""
    oldest = now - int(limits.give_up_days * DAY)
    for finding in (_failed(history, oldest), _late(history, due, limits, now)):
        if finding is not None:
            yield finding


def read_error(body: bytes | None) -> str:
    """Return the first line of an errorMessage facet."""
    lines = parse_error_message(body).strip().splitlines()
    return lines[0] if lines else ""


def failing_runs(runs: Sequence[JobRun]) -> list[JobRun]:
    """Return the failed runs since the last one that completed, the last one last."""
    ended = sorted((r for r in runs if r.state.terminal), key=lambda r: (r.state_at, r.run))
    found: list[JobRun] = []
    for run in reversed(ended):
        if run.state not in _BAD:
            break
        found.insert(0, run)
    return found


def _failed(history: JobHistory, oldest: int) -> Finding | None:
    failing = failing_runs(history.runs)
    if not failing or failing[-1].state_at < oldest:
        return None
    last = failing[-1]
    error = read_error(history.errors.get(last.number))
    times = f" {len(failing)} times in a row" if len(failing) > 1 else ""
    word = "was aborted" if last.state is RunState.ABORT else "failed"
    return Finding(
        kind=FindingKind.RUN_FAILED,
        entity=str(history.job),
        severity=Severity.CRITICAL,
        message=f"{word}{times}" + (f": {error}" if error else ""),
        first_seen=render_time(failing[0].state_at),
        state=last.state.name.lower(),
        evidence=[_evidence(history.job, run) for run in dict.fromkeys((failing[0], last))],
    )


def _evidence(job: JobId, run: JobRun) -> Evidence:
    return Evidence(event=run.event.hex(), at=render_time(run.state_at), job=str(job), run=run.run)


def expect_next(history: JobHistory, limits: LatenessLimits) -> DueTime | None:
    """Return when the next run is due, by the schedule of the job or else by its rhythm."""
    if not history.runs:
        return None
    last = max(run.began_at for run in history.runs)
    if history.schedule is not None:
        return due_by(history.schedule, last, limits)
    turns, spread = _turns(history)
    due = next_due(turns, limits)
    return None if due is None else due._replace(tolerance=due.tolerance + spread)


def _turns(history: JobHistory) -> tuple[list[int], int]:
    """Return the start times of runs, from nominal times if known, and their variation."""
    meant: dict[int, int] = {}
    for run in history.runs:
        nominal = parse_nominal_start(history.nominal.get(run.number))
        if nominal is not None:
            meant[nominal] = min(meant.get(nominal, run.began_at), run.began_at)
    if len(meant) < len(history.runs) / 2:
        return [run.began_at for run in history.runs], 0
    delays = [began - nominal for nominal, began in meant.items()]
    usual = int(median(delays))
    spread = int(3 * _NORMAL * median(abs(delay - usual) for delay in delays))
    return [nominal + usual for nominal in meant], spread


def _late(
    history: JobHistory, due: DueTime | None, limits: LatenessLimits, now: int
) -> Finding | None:
    if due is None:
        return None
    last = max(history.runs, key=lambda run: (run.began_at, run.run))
    allowed = due.at + due.tolerance
    gone = max(limits.give_up_days * DAY, 3 * due.gap)
    if now <= allowed or now - last.began_at > gone:
        return None
    missed = (now - due.at) // max(due.gap, 1)
    state = "missing" if missed else "late"
    word = f"{missed + 1} runs are missing" if missed else "the next run is late"
    return Finding(
        kind=FindingKind.RUN_LATE,
        entity=str(history.job),
        severity=Severity.CRITICAL if missed else Severity.WARNING,
        message=f"{word}: due {render_time(due.at)} by {due.why}, "
        f"and the last one began {render_time(last.began_at)}",
        first_seen=render_time(allowed),
        state=state,
        expected=render_time(due.at),
        why=[f"it may be {render_gap(due.tolerance)} late"],
        evidence=[_evidence(history.job, last)],
    )
