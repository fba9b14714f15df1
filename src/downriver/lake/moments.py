"""Points in a lake's history: versions by number, and builds as of a time.

A build as of a time is made of all events up to then, however late they arrived. It stands beside
the versions, and is good for as long as no events are added.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.lake.snapshots import Snapshot

if TYPE_CHECKING:
    from downriver.lake.places import Folder

_FOLDER = "asof"


class Point(NamedTuple):
    """A version, or a time in µs since the epoch."""

    version: int | None
    until: int


def parse_point(text: str) -> Point:
    """Read a version's number, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."""
    if text.isascii() and text.isdigit() and len(text) < 9:
        return Point(int(text), 0)
    return Point(None, parse_moment(text))


def parse_moment(text: str, *, end: bool = True) -> int:
    """Read a time. A day means its end, or its beginning; without a zone it is UTC."""
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as exc:
        reason = f"{text!r} is neither a version nor a time such as 2026-01-31T12:00:00Z"
        raise InvalidRequestError("time", reason) from exc
    if end and len(text) == len("2026-01-31"):
        moment += dt.timedelta(days=1, microseconds=-1)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(microseconds=1)


def find_as_of(folder: Folder, until: int, base: Snapshot) -> Snapshot | None:
    """Return what was built as of a time, if it was of the events that are there now."""
    if f"{until}.json" not in folder.names(_FOLDER):
        return None
    found = msgspec.json.decode(folder.read(f"{_FOLDER}/{until}.json"), type=Snapshot)
    return found if _last(found) == _last(base) else None


def _last(snapshot: Snapshot) -> int:
    return snapshot.batches[-1].number if snapshot.batches else 0


def note_as_of(folder: Folder, until: int, made: Snapshot) -> None:
    """Note what was built as of a time."""
    folder.write(f"{_FOLDER}/{until}.json", msgspec.json.encode(made))


def list_as_of(folder: Folder) -> list[tuple[int, Snapshot]]:
    """Return all that was built as of times."""
    return [
        (
            int(name.removesuffix(".json")),
            msgspec.json.decode(folder.read(f"{_FOLDER}/{name}"), type=Snapshot),
        )
        for name in folder.names(_FOLDER)
    ]


def drop_as_of(folder: Folder, until: int) -> None:
    """Forget a build as of a time; what it names stays where it is."""
    folder.remove_file(f"{_FOLDER}/{until}.json")
