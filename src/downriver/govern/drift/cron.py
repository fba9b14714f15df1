"""When a schedule says a job is due: five cron fields, or a period such as `15m`."""

from __future__ import annotations

import datetime as dt
import re
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from downriver.errors import InvalidRequestError

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES = {
    name: number
    for names, first in (
        (("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1),
        (("sun", "mon", "tue", "wed", "thu", "fri", "sat"), 0),
    )
    for number, name in enumerate(names, first)
}
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
_DAYS_SEARCHED = 366 * 5  # 29 February on a Monday comes round


class Schedule(NamedTuple):
    """When a job is due: every so many µs, or where all fields of a cron line match."""

    period: int
    fields: tuple[frozenset[int], ...]
    either_day: bool
    zone: dt.tzinfo

    def after(self, at: int) -> int | None:
        """Return the first moment after `at`, in µs, at which the job is due."""
        if self.period:
            return at + self.period
        moment = dt.datetime.fromtimestamp(at / _MICROS, self.zone)
        start = moment.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
        day = start.date()
        for number in range(_DAYS_SEARCHED):
            if self._is_on(day):
                found = self._first_of(day, start if number == 0 else None)
                if found is not None:
                    return int(found.timestamp() * _MICROS)
            day += dt.timedelta(days=1)
        return None

    def _is_on(self, day: dt.date) -> bool:
        _, _, days, months, weekdays = self.fields
        on_day, on_weekday = day.day in days, day.isoweekday() % 7 in weekdays
        # As cron does it: two days that are both told are either-or.
        return day.month in months and (
            (on_day or on_weekday) if self.either_day else (on_day and on_weekday)
        )

    def _first_of(self, day: dt.date, start: dt.datetime | None) -> dt.datetime | None:
        for hour in sorted(self.fields[1]):
            for minute in sorted(self.fields[0]):
                found = dt.datetime.combine(day, dt.time(hour, minute), self.zone)
                if start is None or found >= start:
                    return found
        return None


def parse_schedule(text: str, field: str, timezone: str = "UTC") -> Schedule:
    """Return the schedule that a cron line, a macro or a period means."""
    zone = parse_zone(timezone, field)
    period = parse_period(text)
    if period is not None:
        return Schedule(period, (), False, zone)
    parts = _MACROS.get(text.strip().lower(), text).split()
    if len(parts) != len(_FIELDS):
        raise InvalidRequestError(
            field, f"{text!r} is neither five cron fields nor a period such as 15m, 1h or 1d"
        )
    fields = [_parse_field(part, *kind, field) for part, kind in zip(parts, _FIELDS, strict=True)]
    fields[4] = frozenset(number % 7 for number in fields[4])
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    return Schedule(0, tuple(fields), either, zone)


def parse_period(text: str) -> int | None:
    """Return the µs that `90s`, `15m`, `1h`, `1d` or `1w` means, None when it is none."""
    found = _PERIOD.fullmatch(text.strip().lower())
    if found is None:
        return None
    return int(float(found[1]) * _UNITS[found[2]] * _MICROS) or None


def parse_zone(name: str, field: str) -> dt.tzinfo:
    """Return the time zone of this name."""
    try:
        return dt.timezone.utc if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise InvalidRequestError(field, f"{name!r} is no time zone") from exc


def _parse_field(text: str, what: str, low: int, high: int, field: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        try:
            first, last = _bounds(span, low, high, open_ended=bool(step))
            found |= set(range(first, last + 1, int(step or 1)))
        except (KeyError, ValueError) as exc:
            raise InvalidRequestError(field, f"{part!r} is no {what} of cron") from exc
        if not low <= first <= last <= high:
            raise InvalidRequestError(field, f"{part!r}: a {what} is from {low} to {high}")
    return frozenset(found)


def _bounds(span: str, low: int, high: int, *, open_ended: bool) -> tuple[int, int]:
    if span == "*":
        return low, high
    first, dash, last = span.partition("-")
    begin = _number(first)
    if dash:
        return begin, _number(last)
    return begin, high if open_ended else begin


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NAMES[text.lower()]
