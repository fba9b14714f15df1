"""Schedules in a sentence (`every night at 2`): found and removed from its text."""

from __future__ import annotations

import re
from typing import NamedTuple

_TIME = r"(?:\d{1,2}(?::\d\d)?\s*(?:am|pm)?(?:\s*(?:utc|gmt|cet|est|pst))?|midnight|noon)"
_AT = rf"(?:(?:,\s*)?(?:at|around|by)\s+{_TIME}(?:\s+and\s+{_TIME})?)"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_ON = (
    rf"(?:on\s+(?:{_DAY}(?:(?:,|\s+and)\s+{_DAY})*|week(?:day|end)s?|business\s+days|"
    r"the\s+(?:first|last|\d{1,2}(?:st|nd|rd|th))(?:\s+(?:day\s+)?of\s+(?:the|each|every)\s+month)?))"
)
_NUMBER = r"(?:\d+|two|three|four|five|six|ten|twelve|fifteen|thirty|other|few|couple\s+of)"
_UNIT = (
    rf"(?:seconds?|minutes?|mins?|hours?|hrs?|days?|nights?|mornings?|evenings?|weeks?|months?|"
    rf"quarters?|years?|weekdays?|{_DAY})"
)
_ADVERB = (
    r"(?:hourly|daily|nightly|weekly|monthly|quarterly|yearly|annually|continuously|"
    r"in\s+(?:near[\s-])?real[\s-]?time|once\s+(?:a|per|every)\s+\w+|twice\s+(?:a|per)\s+\w+|"
    r"\d+\s+times\s+(?:a|per)\s+\w+|overnight)"
)
_LEAD = (
    r"(?:(?:(?:that|which)\s+)?(?:it\s+|this\s+|they\s+)?"
    r"(?:runs?|running|scheduled(?:\s+to\s+run)?|refreshed|refreshes|executed|executes|triggered)\s+"
    r"(?:again\s+)?(?:for\s+)?)"
)
_TAIL = rf"(?:\s*{_AT}|\s+{_ON}|\s+(?:{_ADVERB}|(?:every|each)\s+{_UNIT}))*"
_CORE = (
    rf"(?:(?:every|each)\s+(?:{_NUMBER}\s+)?{_UNIT}{_TAIL}"
    rf"|{_AT}{_TAIL}|{_ON}{_TAIL}|{_ADVERB}{_TAIL}"
    r"|cron(?:\s+expression)?\s*[:=]?\s*[`\"']?(?:[\d*/,\-]+\s+){4}[\d*/,\-A-Z]+[`\"']?)"
)
# Adverbs may be part of a name: `daily revenue` is a name, `the nightly job` is not.
_FREE = (
    r"(?=\s*(?:$|[,.;:)]|(?:into|onto|to|by|from|and|in|is|are|it|the|an?|we|our|out|via|using|"
    r"with|on)\b))"
)
_BEFORE_TOOL = (
    r"(?:hourly|daily|nightly|weekly|monthly)(?=\s+(?:job|batch|run|pipeline|process|script|dag|task|"
    r"sync|warehouse|etl|workflow)\b)"
)
_SCHEDULE = re.compile(
    rf"\A(?P<first>(?:every|each)\s+(?:{_NUMBER}\s+)?{_UNIT}{_TAIL})(?![\w-])"
    rf"|(?<![\w.:/-])(?:{_LEAD}(?P<led>{_CORE})(?![\w-])|(?P<tool>{_BEFORE_TOOL})|(?P<bare>{_CORE})(?![\w-]){_FREE})",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:schedule|scheduled|cadence|frequency|runs?|refresh|timing|when|cron|it runs|"
    r"they run|this runs|all of this runs|everything runs|"
    r"(?:the\s+)?(?:pipeline|job|dag|flow)s?\s+runs?|"
    r"(?:it\s+is\s+|it's\s+)?(?:refreshed|scheduled|updated))\s*[:=]?\s+(?P<when>.+?)[.!]?",
    re.IGNORECASE,
)
_CRON = re.compile(r"(?:[\d*/,\-]+\s+){4}[\d*/,\-A-Z]+")


class TextAndSchedule(NamedTuple):
    """A text without its schedule, and the schedule (empty if none)."""

    text: str
    schedule: str


def take_schedule(text: str) -> TextAndSchedule:
    """Split the first schedule off a sentence."""
    found = _SCHEDULE.search(text)
    if found is None:
        return TextAndSchedule(text, "")
    when = found["first"] or found["led"] or found["tool"] or found["bare"]
    before, after = text[: found.start()], text[found.end() :]
    if before.rstrip().endswith("(") and after.lstrip().startswith(")"):
        before, after = before.rstrip()[:-1], after.lstrip()[1:]
    rest = re.sub(r"\(\s*\)", "", f"{before.rstrip(' ,')} {after.lstrip(' ,:')}")
    return TextAndSchedule(re.sub(r"\s+", " ", rest).strip(" ,"), _tidy(when))


def parse_schedule_line(text: str) -> str:
    """Return the schedule of a line that contains only a schedule, else an empty string."""
    found = _LABEL.fullmatch(text.strip())
    when = found["when"] if found else text.strip().rstrip(".")
    if found and _CRON.fullmatch(when.strip("`\"'")):
        return when.strip("`\"'")
    timed = take_schedule(when)
    return timed.schedule if timed.schedule and not timed.text.strip(" .,()") else ""


def _tidy(when: str) -> str:
    return re.sub(r"\s+", " ", when).strip(" ,")
