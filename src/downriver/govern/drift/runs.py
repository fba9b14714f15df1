"""Failed runs, late runs, and when the next run of a job is due."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from downriver.errors import InvalidRequestError
from downriver.govern.drift.series import DAY
from downriver.model.facts import RunState
from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.facets.job import parse_error_message, parse_nominal_start
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from downriver.govern.drift.series import LatenessLimits
    from downriver.model.ids import JobId
    from downriver.store.catalog.history import JobRun

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PERIOD = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])")
_MICROS = 1_000_000
_CRON_FIELDS = 5


class JobSchedule(NamedTuple):
    """When a job is due: every `period` µs, or at the times of a cron expression in a time zone."""

    period: int
    cron: str
    zone: dt.tzinfo

    def after(self, at: int) -> int | None:
        """Return the first moment after `at`, in µs, at which the job is due."""
        if self.period:
            return at + self.period
        moment = dt.datetime.fromtimestamp(at / _MICROS, self.zone)
        due = next(CronSim(self.cron, moment), None)
        return None if due is None else int(due.timestamp() * _MICROS)


def parse_schedule(text: str, field: str, timezone: str = "UTC") -> JobSchedule:
    """Return the schedule of a cron expression, a macro such as `@daily`, or a period."""
    zone = parse_zone(timezone, field)
    period = parse_period(text)
    if period is not None:
        return JobSchedule(period, "", zone)
    cron = _MACROS.get(text.strip().lower(), text)
    if len(cron.split()) != _CRON_FIELDS:
        raise InvalidRequestError(
            field, f"{text!r} is neither five cron fields nor a period such as 15m, 1h or 1d"
        )
    try:
        CronSim(cron, dt.datetime.now(zone))
    except CronSimError as exc:
        raise InvalidRequestError(field, f"{text!r} is not a cron expression: {exc}") from exc
    return JobSchedule(0, cron, zone)


def parse_period(text: str) -> int | None:
    """Return the µs of `90s`, `15m`, `1h`, `1d` or `1w`, None when the text is not a period."""
    match = _PERIOD.fullmatch(text.strip().lower())
    if match is None:
        return None
    micros = float(match[1]) * _UNITS[match[2]] * _MICROS  # infinite for very many digits
    return int(min(micros, _LONGEST_PERIOD)) or None


def parse_zone(name: str, field: str) -> dt.tzinfo:
    """Return the time zone of this name."""
    try:
        return dt.timezone.utc if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise InvalidRequestError(field, f"{name!r} is not a time zone") from exc


_HOUR = 3_600_000_000
_LONGEST_PERIOD = 200 * 365 * 24 * _HOUR  # longer than any schedule, and in the range of a time
_MINUTE = 60_000_000
_RETRY = 0.2  # a start after less than this share of the usual gap is a retry, not the next run
_NEAR = 0.3  # a gap follows the rhythm when it differs from the expected gap by at most this share
_SEEN = 2
_NORMAL = 1.4826


class DueTime(NamedTuple):
    """When the next run is due, how late it may be, and the gap between runs."""

    at: int
    tolerance: int
    gap: int
    why: str


def next_due(starts: Sequence[int], limits: LatenessLimits) -> DueTime | None:
    """Return when the next run is due by the rhythm of the job, or None without a rhythm."""
    turns = _without_retries(sorted(set(starts)))
    if len(turns) < max(limits.min_runs, 3):
        return None
    gaps = [(one, other - one) for one, other in pairwise(turns)]
    best = max((_Pattern(name, gaps) for name in _KEYS), key=lambda p: p.share)
    if best.share < limits.regular:
        return None
    gap = max(best.expected(turns[-1]), _shortest_alike(gaps, turns[-1]))
    tolerance = max(limits.grace_minutes * _MINUTE, limits.tolerance * best.least, best.spread * 3)
    return DueTime(turns[-1] + gap, int(tolerance), gap, f"{best.words} over {len(turns)} runs")


def due_by(schedule: JobSchedule, last: int, limits: LatenessLimits) -> DueTime | None:
    """Return when the next run is due by a configured schedule."""
    # A run that started a little early counts for the next due time.
    begun = last + int(limits.grace_minutes * _MINUTE) // 2
    due = schedule.after(last if schedule.period else begun)
    then = None if due is None else schedule.after(due)
    if due is None or then is None:
        return None
    gap = then - due
    tolerance = max(limits.grace_minutes * _MINUTE, limits.tolerance * min(gap, DAY))
    return DueTime(due, int(tolerance), gap, "its schedule")


def _shortest_alike(gaps: Sequence[tuple[int, int]], last: int) -> int:
    """Return the shortest gap after this weekday. After a Friday it may be three days."""
    same = [gap for at, gap in gaps if _KEYS["weekday"](at) == _KEYS["weekday"](last)]
    return min(same, default=0)


def _without_retries(starts: Sequence[int]) -> list[int]:
    if len(starts) < 3:
        return list(starts)
    usual = median(other - one for one, other in pairwise(starts))
    kept = list(starts[:1])
    for start in starts[1:]:
        if start - kept[-1] >= _RETRY * usual:
            kept.append(start)
    return kept


_KEYS: dict[str, Callable[[int], Hashable]] = {
    "": lambda at: 0,
    "hour": lambda at: at // _HOUR % 24,
    "weekday": lambda at: at // DAY % 7,
    "hour and weekday": lambda at: at // _HOUR % 168,
}


class _Pattern:
    """Gaps that are constant, or depend on the hour or weekday of the run before."""

    def __init__(self, name: str, gaps: Sequence[tuple[int, int]]) -> None:
        self._key = _KEYS[name]
        self._name = name
        by_key: defaultdict[Hashable, list[int]] = defaultdict(list)
        for at, gap in gaps:
            by_key[self._key(at)].append(gap)
        self._usual = {key: median(of) for key, of in by_key.items() if len(of) >= _SEEN}
        self._longest = max(gap for _, gap in gaps)
        known_gaps = [
            (gap, self._usual[k]) for at, gap in gaps if (k := self._key(at)) in self._usual
        ]
        kept = [abs(gap - usual) for gap, usual in known_gaps if abs(gap - usual) <= _NEAR * usual]
        # A gap without a rule counts against the pattern, which must explain all gaps.
        self.share = len(kept) / len(gaps)
        self.spread = _NORMAL * median(kept) if kept else 0.0
        self.least = min(self._usual.values(), default=self._longest)

    def expected(self, last: int) -> int:
        """Return the expected gap after a run, or the longest gap if none is known."""
        return int(self._usual.get(self._key(last), self._longest))

    @property
    def words(self) -> str:
        """The rhythm in words."""
        usual = render_gap(int(median(self._usual.values()) if self._usual else self._longest))
        return f"every {usual}" + (f", by {self._name}" if self._name else "")


def render_gap(micros: int) -> str:
    """Return a duration in words."""
    seconds = micros / 1_000_000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


_BAD = (RunState.FAIL, RunState.ABORT)


class JobHistory(NamedTuple):
    """The runs of a job in order of first sight, with their errors and nominal times."""

    job: JobId
    runs: list[JobRun]
    errors: Mapping[int, bytes]
    nominal: Mapping[int, bytes]
    schedule: JobSchedule | None = None


def find_run_trouble(
    history: JobHistory,
    due: DueTime | None,
    limits: LatenessLimits,
    now: int,
    *,
    old_failures: bool = False,
) -> Iterator[Finding]:
    """Yield a finding if the last run of a job failed, and one if the next run is late.

    `old_failures`: a failed run counts until a later one completes, whatever its age.
    """
    oldest = 0 if old_failures else now - int(limits.give_up_days * DAY)
    for finding in (_failed(history, oldest), _late(history, due, limits, now)):
        if finding is not None:
            yield finding


def read_error(body: bytes | None) -> str:
    """Return the first line of an errorMessage facet."""
    lines = parse_error_message(body).strip().splitlines()
    return lines[0] if lines else ""


def failing_runs(runs: Sequence[JobRun]) -> list[JobRun]:
    """Return the failed runs since the last completed run, in order."""
    ended = sorted((r for r in runs if r.state.terminal), key=lambda r: (r.state_at, r.run))
    job_runs: list[JobRun] = []
    for run in reversed(ended):
        if run.state not in _BAD:
            break
        job_runs.insert(0, run)
    return job_runs


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
    return Evidence(
        event=run.last_event.hex(), at=render_time(run.state_at), job=str(job), run=run.run
    )


def expect_next(history: JobHistory, limits: LatenessLimits) -> DueTime | None:
    """Return when the next run is due, by the schedule of the job or else by its rhythm."""
    if not history.runs:
        return None
    last = max(run.began_at for run in history.runs)
    if history.schedule is not None:
        return due_by(history.schedule, last, limits)
    turns, spread = _start_times(history)
    due = next_due(turns, limits)
    return None if due is None else due._replace(tolerance=due.tolerance + spread)


def _start_times(history: JobHistory) -> tuple[list[int], int]:
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
    retired_after = max(limits.give_up_days * DAY, 3 * due.gap)
    if now <= allowed or now - last.began_at > retired_after:
        return None
    missed = (now - due.at) // max(due.gap, 1)
    state = "missing" if missed else "late"
    word = f"{missed + 1} runs are missing" if missed else "the next run is late"
    return Finding(
        kind=FindingKind.RUN_LATE,
        entity=str(history.job),
        severity=Severity.CRITICAL if missed else Severity.WARNING,
        message=f"{word}: it was due {render_time(due.at)} ({due.why}); "
        f"the last run began {render_time(last.began_at)}",
        first_seen=render_time(allowed),
        state=state,
        expected=render_time(due.at),
        why=[f"a delay of {render_gap(due.tolerance)} is tolerated"],
        evidence=[_evidence(history.job, last)],
    )
