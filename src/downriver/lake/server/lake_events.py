"""The events of a lake, in place of the log of a store."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NoReturn

from downriver.errors import NoEventLogError
from downriver.openlineage import parse_event
from downriver.store.catalog.directory import ActivityQueries
from downriver.store.catalog.reader import LogQueries
from downriver.store.hash_chain import GENESIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import LakeVersion
    from downriver.model.facts import RunState
    from downriver.model.ids import NodeKind
    from downriver.store.port import LogEntry


class LakeEvents(LogQueries):
    """Finds events by their hash in bronze. A lake has no order of arrival and no hash chain."""

    def __init__(self, folder: Folder, version: LakeVersion) -> None:
        self._folder = folder
        self._version = version

    def entries(self, after: int = 0) -> Iterator[LogEntry]:
        """Refuse."""
        raise NoEventLogError(self._folder.location)

    def find_event(self, digest: bytes) -> bytes | None:
        """Return an event as it was sent, unless it was expired from the lake."""
        return self.find_events([digest]).get(digest)

    def find_events(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return those of the events that are in the lake, as they were sent."""
        missing = set(digests)
        found: dict[bytes, bytes] = {}
        for batch in reversed(self._version.batches):
            if not missing:
                break
            if batch.events:
                events = self._folder.find_rows(f"{batch.path}/events", "digest", missing, "body")
                found |= events
                missing -= events.keys()
        return found

    def received_at(self, digest: bytes) -> int | None:
        """Return the time of the event itself: a lake does not record when it was received."""
        body = self.find_event(digest)
        return None if body is None else parse_event(body).ref.at

    def count(self) -> int:
        """Return the number of events in the lake."""
        return sum(batch.events for batch in self._version.batches)

    def head(self) -> tuple[int, bytes]:
        """Return the head of an empty log."""
        return (0, GENESIS)

    def last_received_at(self) -> int | None:
        """Return when the version was made."""
        made_at = dt.datetime.fromisoformat(self._version.made_at)
        return int(made_at.timestamp()) * 1_000_000


class LakeRunEvents(ActivityQueries):
    """Refuses questions about events in the order of time: a lake has no index of them."""

    def __init__(self, location: str, nodes: ActivityQueries) -> None:
        self._location = location
        self._nodes = nodes

    def events(
        self, after: int, before: int, limit: int, offset: int, *, newest_first: bool
    ) -> list[bytes]:
        """Refuse."""
        self._refuse()

    def count_events(self, after: int, before: int) -> int:
        """Refuse."""
        self._refuse()

    def event_counts(self, after: int, before: int) -> list[tuple[int, RunState, int]]:
        """Refuse."""
        self._refuse()

    def new_nodes(self, kind: NodeKind, after: int) -> list[tuple[int, int]]:
        """Return the number of nodes that appeared in each quarter of an hour, by its start."""
        return self._nodes.new_nodes(kind, after)

    def count_nodes(self, kind: NodeKind, before: int) -> int:
        """Count the nodes that appeared before a moment."""
        return self._nodes.count_nodes(kind, before)

    def _refuse(self) -> NoReturn:
        raise NoEventLogError(self._location)
