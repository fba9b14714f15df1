"""The past: versions of a schema, and the moments at which the graph changed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from downriver import settings
from downriver.errors import InvalidRequestError
from downriver.graph.walk.node_walk import reach_from
from downriver.model.ids import JobId
from downriver.model.views.graph_view import GraphColumn
from downriver.model.views.history import (
    GraphChange,
    GraphChanges,
    RetypedColumn,
    SchemaVersion,
    SchemaVersions,
)
from downriver.openlineage.facets.dataset import SCHEMA, schema_columns
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_since
from downriver.service.session import now

if TYPE_CHECKING:
    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.vectors import Ints, Longs
    from downriver.openlineage.facets.dataset import SchemaColumn
    from downriver.service.session import StoreSession
    from downriver.store.catalog.history import FacetVersion

_DAY = 86_400_000_000
_MINUTE = 60_000_000  # changes within one minute are one moment


class HistoryApi:
    """How datasets and the graph changed over time."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def schema_versions(self, entity: str) -> SchemaVersions:
        """Return the schemas of a dataset in the order in which they were first seen."""
        with self._session.reading() as view:
            found = self._session.resolve(entity, view)
            if isinstance(found.id, JobId):
                raise InvalidRequestError("entity", f"{found.id} is a job; it has no schema")
            group = view.graph.nodes.identities.group(found.node)
            seen = [v for name in group for v in view.reader.history.facet_versions(name, SCHEMA)]
        seen.sort(key=lambda version: (version.span.first.at, version.digest))
        versions: list[SchemaVersion] = []
        known: list[SchemaColumn] = []
        for version in seen:
            columns = schema_columns(version.body)
            if versions and _types(columns) == _types(known):
                seen_last = render_time(version.span.last.at)  # another spelling of the same schema
                versions[-1].last_seen = max(versions[-1].last_seen, seen_last)
                continue
            versions.append(_version(version, columns, known if versions else columns))
            known = columns
        return SchemaVersions(versions=versions)

    def changes(
        self, entity: str | None = None, *, since: str | None = None, limit: int = 200
    ) -> GraphChanges:
        """Return the moments at which the graph changed: the latest ones, the oldest first.

        With `entity`, only changes upstream or downstream of it count.
        """
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is less than 1")
        start = 0 if since is None else parse_since(since, now())
        with self._session.reading() as view:
            edges = self._edges(entity, view)
            flow = view.graph.nodes.flow
            first = flow.first_at.of(edges)
            removals = _removal_times(view, edges)
            new = _first_sights(view, edges, first)
        added, removed = _by_minute(first, start), _by_minute(removals, start)
        nodes = _by_minute(new, start)
        minutes = sorted({*added, *removed})
        last = _last_in_minute(np.concatenate([first, removals]))
        return GraphChanges(
            changes=[
                _change(last[minute], added[minute], removed[minute], nodes[minute])
                for minute in minutes[-limit:]
            ],
            omitted_count=max(len(minutes) - limit, 0),
        )

    def _edges(self, entity: str | None, view: CatalogSnapshot) -> Ints:
        """Return the edges around an entity in both directions, or all edges."""
        graph = view.graph.nodes
        if entity is None:
            return np.arange(len(graph.flow), dtype=np.int32)
        root = np.array([graph.identities.canonical(self._session.resolve(entity, view).node)])
        reached = set[int]()
        for downstream in (True, False):
            reached |= reach_from(graph, root.astype(np.int32), downstream=downstream)
        nodes = np.array(sorted(reached), np.int32)
        names, _ = graph.identities.every_name(nodes)
        edges = np.unique(graph.flow.ends.leaving.of(names))
        inside = np.isin(graph.identities.canonicals(graph.flow.ends.target[edges]), nodes)
        chosen: Ints = edges[inside].astype(np.int32)
        return chosen


def _removal_times(view: CatalogSnapshot, edges: Ints) -> Longs:
    """Return when each stale edge turned stale."""
    graph = view.graph.nodes
    period = settings.read_number(settings.STALE_DAYS) * _DAY
    last = graph.flow.last_at.of(edges)
    stale = graph.jobs_last_seen(graph.jobs(edges)) - last > period
    times: Longs = last[stale] + period + 1
    return times


def _first_sights(view: CatalogSnapshot, edges: Ints, first: Longs) -> Longs:
    """Return when each node got its first edge."""
    graph = view.graph.nodes
    ends = graph.flow.ends
    nodes = graph.identities.canonicals(np.concatenate([ends.source[edges], ends.target[edges]]))
    times = np.concatenate([first, first])
    distinct, places = np.unique(nodes, return_inverse=True)
    earliest = np.full(len(distinct), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(earliest, places, times)
    return earliest


def _by_minute(times: Longs, start: int) -> Counter[int]:
    minutes, counts = np.unique(times[times >= start] // _MINUTE, return_counts=True)
    return Counter(dict(zip(minutes.tolist(), counts.tolist(), strict=True)))


def _last_in_minute(times: Longs) -> dict[int, int]:
    ordered = np.sort(times)
    return dict(zip((ordered // _MINUTE).tolist(), ordered.tolist(), strict=True))


def _change(at: int, added: int, removed: int, nodes: int) -> GraphChange:
    parts = [
        f"{count} {noun if count == 1 else plural} {verb}"
        for count, noun, plural, verb in (
            (added, "edge", "edges", "added"),
            (removed, "edge", "edges", "removed"),
            (nodes, "node", "nodes", "first seen"),
        )
        if count
    ]
    return GraphChange(
        at=render_time(at),
        added=added,
        removed=removed,
        nodes_added=nodes,
        summary=", ".join(parts),
    )


def _types(columns: list[SchemaColumn]) -> list[tuple[str, str]]:
    return [(column.path, column.type) for column in columns]


def _version(
    version: FacetVersion, columns: list[SchemaColumn], before: list[SchemaColumn]
) -> SchemaVersion:
    old = {column.path: column.type for column in before}
    new = {column.path: column.type for column in columns}
    return SchemaVersion(
        at=render_time(version.span.first.at),
        last_seen=render_time(version.span.last.at),
        event=version.span.first.digest.hex(),
        columns=[
            GraphColumn(
                name=column.path,
                tags=[],
                marks=[],
                type=column.type or None,
                description=column.description or None,
            )
            for column in columns
        ],
        added=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        retyped=[
            RetypedColumn(name=name, old=old[name], new=kind)
            for name, kind in new.items()
            if name in old and old[name] != kind
        ],
    )
