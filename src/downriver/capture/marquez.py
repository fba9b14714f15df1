"""Events that a Marquez server has stored, read through its API or from its database.

Both sources give events in the order of their time, from a given time on. An import that was
interrupted continues at the time of the last event that was stored: the log recognises the events
of that time that it already has.
"""

from __future__ import annotations

import http.client
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from downriver.errors import (
    InvalidEventError,
    InvalidRequestError,
    MissingDependencyError,
    ServerError,
    ServerUnreachableError,
    describe_failure,
)
from downriver.openlineage.wire import parse_time, render_time

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = 500  # events
_ATTEMPTS = 4
_FIRST_DELAY = 0.5  # seconds, doubled with each attempt
_TIMEOUT = 60  # seconds
_BEFORE = "2100-01-01T00:00:00Z"


class MarquezPage(NamedTuple):
    """Some events as stored, and the time in µs of the last of them."""

    events: list[bytes]
    last_at: int


class MarquezSource(Protocol):
    """A place with the events of a Marquez server."""

    name: str  # to show: without a password

    def count(self, since: int) -> int:
        """Return how many events there are from a time on."""

    def pages(self, since: int) -> Iterator[MarquezPage]:
        """Yield the events from a time on, in the order of time."""


def open_marquez(location: str, key: str | None = None) -> MarquezSource:
    """Return the events behind the URL of a Marquez server or of its PostgreSQL database."""
    scheme = urlsplit(location).scheme
    if scheme in ("http", "https"):
        return MarquezApi(location, key)
    if scheme in ("postgresql", "postgres"):
        return MarquezDatabase(location)
    reason = f"{location!r} is not an http://, https:// or postgresql:// URL"
    raise InvalidRequestError("source", reason)


class _Events(msgspec.Struct):
    events: list[msgspec.Raw]
    totalCount: int  # noqa: N815


class _EventTime(msgspec.Struct):
    eventTime: str = ""  # noqa: N815


class MarquezApi:
    """The events that `GET /api/v1/events/lineage` lists: those of runs."""

    def __init__(self, url: str, key: str | None = None, first_delay: float = _FIRST_DELAY) -> None:
        parts = urlsplit(url)
        if not parts.hostname:
            raise InvalidRequestError("source", f"{url!r} has no host")
        self.name = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._parts = parts
        self._headers = {"Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._first_delay = first_delay

    def count(self, since: int) -> int:
        """Return how many events there are from a time on."""
        return self._page(since, 0, 1).totalCount

    def pages(self, since: int) -> Iterator[MarquezPage]:
        """Yield the events from a time on, in the order of time.

        Each page starts at the time of the last event of the page before, and leaves out the events
        of that time that were read: with an offset, each page would be slower than the last, and
        events of the same time may change their order.
        """
        at, offset, known = since, 0, set[bytes]()
        while True:
            events = [bytes(raw) for raw in self._page(at, offset, PAGE).events]
            new = [event for event in events if event not in known]
            last = max((_time_of(event, at) for event in events), default=at)
            if new:
                yield MarquezPage(new, last)
            if len(events) < PAGE:
                return
            if last > at:
                known = {event for event in events if _time_of(event, at) == last}
                at, offset = last, 0
            else:
                known |= set(events)
                offset += len(events)

    def _page(self, since: int, offset: int, limit: int) -> _Events:
        query = (
            f"after={quote(render_time(since))}&before={quote(_BEFORE)}"
            f"&sortDirection=asc&limit={limit}&offset={offset}"
        )
        body = self._get(f"{self._parts.path.rstrip('/')}/api/v1/events/lineage?{query}")
        try:
            return msgspec.json.decode(body, type=_Events)
        except msgspec.DecodeError as exc:
            reason = f"the response is not a list of Marquez events: {exc}"
            raise ServerError(self.name, reason) from exc

    def _get(self, target: str) -> bytes:
        delay = self._first_delay
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, body = self._request(target)
            except (OSError, http.client.HTTPException) as exc:
                if attempt == _ATTEMPTS:
                    raise ServerUnreachableError(self.name, describe_failure(exc)) from exc
            else:
                if status == 200:
                    return body
                if status < 500 or attempt == _ATTEMPTS:
                    hint = "; give a key with --api-key" if status in (401, 403) else ""
                    raise ServerError(self.name, f"answered {status}{hint}")
            time.sleep(delay)
            delay *= 2
        raise AssertionError("unreachable")

    def _request(self, target: str) -> tuple[int, bytes]:
        secure = self._parts.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = connect(self._parts.hostname or "", self._parts.port, timeout=_TIMEOUT)
        try:
            connection.request("GET", target, headers=self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


class MarquezDatabase:
    """The table `lineage_events` of Marquez: events of runs, jobs and datasets."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
        self._url = url

    def count(self, since: int) -> int:
        """Return how many events there are from a time on."""
        return int(next(self._rows(_COUNT, since, ""))[0])

    def pages(self, since: int) -> Iterator[MarquezPage]:
        """Yield the events from a time on, in the order of time."""
        events, last = list[bytes](), since
        for text, at in self._rows(_EVENTS, since, "downriver_import"):
            events.append(text.encode())
            last = at
            if len(events) == PAGE:
                yield MarquezPage(events, last)
                events = []
        if events:
            yield MarquezPage(events, last)

    def _rows(self, sql: str, since: int, cursor: str) -> Iterator[tuple[str, int]]:
        try:
            import psycopg
        except ImportError as exc:
            raise MissingDependencyError("psycopg", "postgres") from exc
        try:
            with (
                psycopg.connect(self._url, connect_timeout=10) as connection,
                connection.cursor(cursor) as rows,  # on the server, so that memory holds one page
            ):
                yield from rows.execute(sql, (since,))
        except psycopg.errors.UndefinedTable as exc:
            reason = "has no table lineage_events: it is not the database of a Marquez server"
            raise ServerError(self.name, reason) from exc
        except psycopg.OperationalError as exc:
            raise ServerUnreachableError(self.name, str(exc).strip()) from exc


_COUNT = """
    SELECT count(*) FROM lineage_events
    WHERE event_time >= 'epoch'::timestamptz + %s::bigint * interval '1 microsecond'
"""
_EVENTS = """
    SELECT event::text, (extract(epoch FROM event_time) * 1000000)::bigint FROM lineage_events
    WHERE event_time >= 'epoch'::timestamptz + %s::bigint * interval '1 microsecond'
    ORDER BY event_time
"""


def _time_of(event: bytes, default: int) -> int:
    """Return the time of an event, or `default` if it cannot be read."""
    try:
        return parse_time(msgspec.json.decode(event, type=_EventTime).eventTime, "eventTime")
    except (msgspec.DecodeError, InvalidEventError):
        return default
