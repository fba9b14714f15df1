"""Moments in a question: `as of last week`, `yesterday`, `3 days ago`, `on 2026-01-31`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10,
    "couple of": 2,
}  # fmt: skip
_DAYS = {"hour": 1 / 24, "day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
_MOMENT = re.compile(
    r"\b(?:as\s+(?:of|at)\s+|as\s+it\s+was\s+|back\s+in\s+|back\s+)?(?:on\s+)?(?:"
    r"(?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)"
    r"|(?P<yesterday>yesterday)|last\s+(?P<last>day|week|month|quarter|year)(?!\w)"
    rf"|(?P<number>\d+|{'|'.join(_NUMBERS)})\s+(?P<unit>hour|day|week|month|quarter|year)s?\s+"
    r"(?:ago|earlier|before))",
    re.IGNORECASE,
)
AS_OF = re.compile(r"\bas\s+(?:of|at)\b|\bas\s+it\s+was\b", re.IGNORECASE)


class TextAndMoment(NamedTuple):
    """A text without its moment, and the moment in ISO 8601; None if there is none."""

    text: str
    moment: str | None


def take_moment(text: str, now: datetime | None = None) -> TextAndMoment:
    """Split the moment off a question."""
    match = _MOMENT.search(text)
    if match is None:
        return TextAndMoment(text, None)
    rest = re.sub(r"\s+([?.!])", r"\1", text[: match.start()] + text[match.end() :])
    if match["date"]:
        day = match["date"].replace(" ", "T")
        moment = day if "T" in day else f"{day}T23:59:59Z"
        return TextAndMoment(rest, moment if moment.endswith("Z") else f"{moment}Z")
    back = (now or datetime.now(timezone.utc)) - timedelta(days=_days_back(match))
    return TextAndMoment(rest, back.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _days_back(match: re.Match[str]) -> float:
    if match["yesterday"]:
        return 1
    if match["last"]:
        return _DAYS[match["last"].lower()]
    number = match["number"].lower()
    count = int(number) if number.isdigit() else _NUMBERS[number]
    return count * _DAYS[match["unit"].lower()]
