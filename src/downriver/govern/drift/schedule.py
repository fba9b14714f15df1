"""When the next run of a job is due: by its schedule, or by the rhythm of its past runs."""

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

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from downriver.govern.drift.limits import LatenessLimits

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PERIOD = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
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
    found = _PERIOD.fullmatch(text.strip().lower())
    if found is None:
        return None
    return min(int(float(found[1]) * _UNITS[found[2]] * _MICROS), _LONGEST_PERIOD) or None


def parse_zone(name: str, field: str) -> dt.tzinfo:
    """Return the time zone of this name."""
    try:
        return dt.timezone.utc if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise InvalidRequestError(field, f"{name!r} is not a time zone") from exc


_HOUR = 3_600_000_000
_LONGEST_PERIOD = 200 * 365 * 24 * _HOUR  # as good as for ever, and in the range of a time
_MINUTE = 60_000_000
_RETRY = 0.2  # a start this soon, in usual gaps, is another try and not the next turn
_NEAR = 0.3  # a gap keeps the rhythm when it is this near to what it should be
_SEEN = 2
_NORMAL = 1.4826


class DueTime(NamedTuple):
    """When the next run is due, how late it may be, and the gap between runs."""

    at: int
    tolerance: int
    gap: int
    why: str


def next_due(starts: Sequence[int], limits: LatenessLimits) -> DueTime | None:
    """Return when the next run is due by the rhythm of the job, None when it has none."""
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
    """Return the shortest gap after this weekday; after a Friday it may be three days."""
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
        told = [(gap, self._usual[k]) for at, gap in gaps if (k := self._key(at)) in self._usual]
        kept = [abs(gap - usual) for gap, usual in told if abs(gap - usual) <= _NEAR * usual]
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
