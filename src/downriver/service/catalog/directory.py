"""Namespaces, sources, tags, datasets and jobs, a page at a time, and counts over time."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.ids import (
    NAMESPACE_RECORDS,
    SOURCE_RECORDS,
    TAG_RECORDS,
    DatasetId,
    JobId,
    NodeKind,
)
from downriver.openlineage.facets.custom import DELETED, RECORD, RecordFacet, parse_record
from downriver.openlineage.facets.description import TAGS, parse_tags
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.graph import CatalogSnapshot
    from downriver.model.facts import RunState
    from downriver.model.ids import NodeId
    from downriver.service.session import StoreSession
    from downriver.store.catalog.directory import NamespaceSeen

_HOUR = 3_600_000_000


class NamespaceEntry(NamedTuple):
    """A namespace with what a person registered of it."""

    name: str
    first_at: int
    last_at: int
    record: RecordFacet
    hidden: bool


class SourceEntry(NamedTuple):
    """A system that holds datasets."""

    name: str
    url: str
    first_at: int
    last_at: int
    record: RecordFacet


class TagEntry(NamedTuple):
    """A tag that is in use or registered."""

    name: str
    description: str


class Interval(NamedTuple):
    """An hour or a day, in µs since the epoch."""

    start: int
    end: int


class DirectoryApi:
    """Lists what a store contains, and counts what happened."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def namespaces(self, limit: int, offset: int) -> list[NamespaceEntry]:
        """Return namespaces by name."""
        with self._session.store.reader() as reader:
            seen = reader.directory.namespaces(limit, offset)
        return self._namespaces(seen)

    def namespace(self, name: str) -> NamespaceEntry:
        """Return one namespace."""
        with self._session.store.reader() as reader:
            seen = reader.directory.find_namespace(name)
        if seen is None:
            raise EntityNotFoundError(name)
        return self._namespaces([seen])[0]

    def _namespaces(self, seen: Sequence[NamespaceSeen]) -> list[NamespaceEntry]:
        with self._session.store.reader() as reader:
            ids = reader.nodes.find_each(DatasetId(NAMESPACE_RECORDS, n.name) for n in seen)
            numbers = {node.name: number for node, number in ids.items()}
            facets = reader.facets.of_each(numbers.values(), (RECORD, DELETED))
            deleted = reader.directory.find_deleted(numbers.values())
            spans = reader.nodes.spans(deleted)
        entries = []
        for namespace in seen:
            number = numbers.get(namespace.name, 0)
            # A later event in the namespace brings it back.
            hidden = number in deleted and spans[number].last.at >= namespace.last_at
            record = parse_record(facets.get(number, {}).get(RECORD))
            entries.append(NamespaceEntry(*namespace, record=record, hidden=hidden))
        return entries

    def sources(self) -> list[SourceEntry]:
        """Return the systems that hold datasets, by name: registered, or named by events.

        The namespace of a dataset is a source too: it names the system in OpenLineage.
        """
        with self._session.store.reader() as reader:
            records = reader.directory.records(SOURCE_RECORDS)
            facets = reader.facets.of_each(records, (RECORD,))
            spans = reader.nodes.spans(records)
            namespaces = reader.directory.dataset_namespaces()
            named = reader.directory.sources()
        entries: dict[str, SourceEntry] = {}
        for name, first, last in namespaces:
            _add_source(entries, SourceEntry(name, name, first, last, RecordFacet()))
        for source in named:
            if source.name:
                _add_source(entries, SourceEntry(*source, record=RecordFacet()))
        for number, name in records.items():
            record, span = parse_record(facets.get(number, {}).get(RECORD)), spans[number]
            entry = SourceEntry(name, record.url, span.first.at, span.last.at, record)
            _add_source(entries, entry)
        return [entries[name] for name in sorted(entries)]

    def source(self, name: str) -> SourceEntry:
        """Return one source."""
        for source in self.sources():
            if source.name == name:
                return source
        raise EntityNotFoundError(name)

    def tags(self) -> list[TagEntry]:
        """Return the tags that are registered or in use, by name."""
        with self._session.store.reader() as reader:
            records = reader.directory.records(TAG_RECORDS)
            facets = reader.facets.of_each(records, (RECORD,))
            used = reader.facets.named(TAGS)
        names = {
            name: parse_record(facets.get(number, {}).get(RECORD)).description
            for number, name in records.items()
        }
        for body in used.values():
            tags = parse_tags(body)
            for tag in {*tags.whole}.union(*tags.by_column.values()):
                names.setdefault(tag, "")
        return [TagEntry(name, names[name]) for name in sorted(names)]

    def dataset_ids(self, namespace: str, view: CatalogSnapshot) -> list[int]:
        """Return the datasets of a namespace by name. One with several names is listed once."""
        ids = np.array(view.reader.directory.dataset_ids(namespace), np.int32)
        identities = view.graph.nodes.identities
        joined = ids[identities.joined(ids)].tolist()
        names = identities.display_names(joined, view.reader, as_sent=True)
        own = view.reader.nodes.by_ids(joined)
        other = {number for number in joined if names[number].id != own[number]}
        return [number for number in ids.tolist() if number not in other]

    def job_ids(
        self, namespace: str | None, states: Iterable[RunState], limit: int, offset: int
    ) -> tuple[list[int], int]:
        """Return a page of jobs, the last mentioned first, and how many there are."""
        wanted = set(states)
        with self._session.store.reader() as reader:
            page = reader.directory.job_ids(namespace, wanted, limit, offset)
            return page, reader.directory.count_jobs(namespace, wanted)

    def get_node(self, node: NodeId, view: CatalogSnapshot) -> int:
        """Return the number of a dataset or job that is not deleted."""
        number = view.reader.nodes.find(node)
        if number is None or view.reader.directory.find_deleted([number]):
            raise EntityNotFoundError(str(node))
        return number

    def names_of(self, node: NodeId, view: CatalogSnapshot) -> list[NodeId]:
        """Return all names of a dataset or job."""
        number = self.get_node(node, view)
        if isinstance(node, JobId):
            return [node]
        group = view.graph.nodes.identities.group(number)
        return list(view.reader.nodes.by_ids(group).values())

    # Counts over time

    def count_events(self, intervals: Sequence[Interval]) -> list[dict[RunState, int]]:
        """Count the events of runs in each interval by state."""
        starts = [interval.start for interval in intervals]
        counts: list[dict[RunState, int]] = [{} for _ in intervals]
        with self._session.store.reader() as reader:
            found = reader.activity.event_counts(intervals[0].start, intervals[-1].end)
        for at, state, count in found:
            counted = counts[bisect_right(starts, at) - 1]
            counted[state] = counted.get(state, 0) + count
        return counts

    def count_nodes(self, kind: NodeKind, intervals: Sequence[Interval]) -> list[int]:
        """Count the datasets or jobs that were known at the end of each interval."""
        first = intervals[0].start
        with self._session.store.reader() as reader:
            before = reader.activity.count_nodes(kind, first)
            new = reader.activity.new_nodes(kind, first)
        return [before + sum(n for at, n in new if at < interval.end) for interval in intervals]

    def count_sources(self, intervals: Sequence[Interval]) -> list[int]:
        """Count the sources that were known at the end of each interval."""
        times = sorted(source.first_at for source in self.sources())
        return [bisect_right(times, interval.end - 1) for interval in intervals]


def _add_source(entries: dict[str, SourceEntry], entry: SourceEntry) -> None:
    known = entries.get(entry.name, entry)
    entries[entry.name] = SourceEntry(
        entry.name,
        entry.url or known.url,
        min(entry.first_at, known.first_at),
        max(entry.last_at, known.last_at),
        entry.record,
    )


def last_hours(count: int = 24) -> list[Interval]:
    """Return the last hours, the present one included."""
    present = now() // _HOUR * _HOUR
    return [
        Interval(start, start + _HOUR)
        for start in range(present - (count - 1) * _HOUR, present + _HOUR, _HOUR)
    ]


def last_days(timezone: str, count: int = 7) -> list[Interval]:
    """Return the last days of a time zone, today included. A day may have 23 or 25 hours."""
    try:
        zone = ZoneInfo(timezone)
    except (ValueError, OSError, LookupError) as exc:
        raise InvalidRequestError("timezone", f"{timezone!r} is not a time zone") from exc
    today = dt.datetime.fromtimestamp(now() / 1e6, zone).date()
    days = [today - dt.timedelta(days=ago) for ago in range(count - 1, -2, -1)]
    starts = [
        int(dt.datetime.combine(day, dt.time(), zone).timestamp()) * 1_000_000 for day in days
    ]
    return [Interval(start, end) for start, end in pairwise(starts)]
