"""The monitor: inspect what changed, compare it with the recorded findings, queue alerts.

It does so once, or every few seconds until it is stopped.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidEventError, LakeError, StoreError
from downriver.govern.drift import Inspector
from downriver.govern.entity_context import EntityContext
from downriver.govern.watch.alerts import ALERT_EVENTS, Alert
from downriver.govern.watch.recorder import FindingRecorder
from downriver.graph.names.resolution import find_entity
from downriver.model.facts import NodeSeen
from downriver.model.findings import Finding
from downriver.openlineage import fold, parse_event
from downriver.openlineage.wire import render_time
from downriver.store.catalog.encoding import decompress

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from downriver.govern.watch.config import WatchConfig
    from downriver.govern.watch.delivery import AlertDispatcher
    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.identities import Identities
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, Store

_AT_ONCE = 200  # nodes inspected between two writes
_STATE = "monitor"


class MonitorRound(msgspec.Struct, kw_only=True):
    """The result of one check: new, changed and resolved findings."""

    at: str
    inspected: int
    opened: list[Finding]
    changed: list[Finding]
    resolved: list[Finding]

    @classmethod
    def of(cls, alerts: list[Alert], at: str, inspected: int) -> MonitorRound:
        """Return the round of these alerts."""
        told = {event: [a.finding for a in alerts if a.event == event] for event in ALERT_EVENTS}
        return cls(at=at, inspected=inspected, **told)

    def alerts(self) -> Iterator[Alert]:
        """Yield the alerts, resolved findings last."""
        for event in ALERT_EVENTS:
            for finding in getattr(self, event):
                yield Alert(event=event, at=self.at, finding=finding)


class _Progress(msgspec.Struct):
    """The progress of a monitor: last log entry, generation and settings."""

    generation: int = 0
    seq: int = 0
    settings: str = ""


class Monitor:
    """Looks at one store, again and again. Everything it must remember is in the store."""

    def __init__(
        self,
        store: Store,
        reading: Callable[[], AbstractContextManager[CatalogSnapshot]],
        watch: WatchConfig,
        stale_days: int,
    ) -> None:
        self._store = store
        self._reading = reading
        self._watch = watch
        self._stale_days = stale_days
        self._schedules = watch.parsed_schedules()
        self._channels = watch.named_channels()
        self._settings = hashlib.sha256(msgspec.json.encode(watch)).hexdigest()[:16]
        self._due: dict[int, int] | None = None  # when each job's next run is late
        self._generation = 0

    def look(self, now: int, since: int | None = None) -> MonitorRound:
        """Inspect what changed since the last look; tell of what began at `since` or later."""
        with self._reading() as view:
            progress, nodes = self._to_inspect(view, now)
        news = FindingRecorder(self._watch, self._channels, now, since)
        for start in range(0, len(nodes), _AT_ONCE):
            self._inspect(nodes[start : start + _AT_ONCE], now, news)
        with self._store.ledger() as ledger:
            ledger.keep(_STATE, msgspec.json.encode(progress))
        return MonitorRound.of(news.alerts, render_time(now), len(nodes))

    # Which nodes to check

    def _to_inspect(self, view: CatalogSnapshot, now: int) -> tuple[_Progress, list[int]]:
        reader, identities = view.reader, view.graph.nodes.identities
        body = reader.findings.state(_STATE)
        before = msgspec.json.decode(body, type=_Progress) if body else _Progress()
        state = reader.state()
        progress = _Progress(state.generation, state.seq, self._settings)
        fresh = (before.generation, before.settings) != (state.generation, self._settings)
        if self._generation != state.generation:  # the ids of nodes have changed
            self._generation, self._due = state.generation, None
        if fresh or not before.seq:
            self._due = {}
            nodes = {*reader.history.nodes_of_kind(0), *reader.history.nodes_of_kind(1)}
        else:
            nodes = {*self._touched(reader, before.seq), *self._with_findings(reader, identities)}
            nodes |= self._jobs_due(reader, now)
        return progress, sorted({identities.canonical(node) for node in nodes})

    def _jobs_due(self, reader: CatalogReader, now: int) -> set[int]:
        """Return the jobs that may be late now; at the first check, all jobs."""
        if self._due is None:
            self._due = {}
            return set(reader.history.nodes_of_kind(1))
        return {job for job, at in self._due.items() if at <= now}

    def _touched(self, reader: CatalogReader, after: int) -> Iterator[int]:
        named: set[NodeId] = set()
        for entry in reader.log.entries(after):
            named |= _named_in(decompress(entry.body) or b"")
        for node in named:
            number = reader.nodes.find(node)
            if number is not None:
                yield number

    def _with_findings(self, reader: CatalogReader, identities: Identities) -> Iterator[int]:
        for entity in reader.findings.open_entities():
            found = find_entity(entity, reader, identities)
            if found is not None:
                yield found.node

    # Findings

    def _inspect(self, nodes: list[int], now: int, news: FindingRecorder) -> None:
        entities: set[str] = set()
        found: dict[str, Finding] = {}
        with self._reading() as view:
            graph, reader = view
            inspector = Inspector(graph, reader, self._watch, now, self._schedules)
            around = EntityContext(graph, reader, self._stale_days)
            for node, name in graph.nodes.identities.display_names(nodes, reader).items():
                entities |= {str(name.id), *map(str, name.aliases)}
                for finding in inspector.inspect(node):
                    completed = self._weighed(around.complete(finding, node))
                    if not any(ignore.covers(completed) for ignore in self._watch.ignore):
                        found[completed.id] = completed
                self._note_due(node, inspector, now)
        with self._store.ledger() as ledger:
            news.compare(ledger, entities, found)

    def _note_due(self, node: int, inspector: Inspector, now: int) -> None:
        late_at = inspector.late_at(node)
        if self._due is None:
            self._due = {}
        self._due.pop(node, None)
        if late_at is not None and late_at > now:
            self._due[node] = late_at

    def _weighed(self, finding: Finding) -> Finding:
        severity = self._watch.severities.get(finding.kind)
        return finding if severity is None else msgspec.structs.replace(finding, severity=severity)


def _named_in(raw: bytes) -> set[NodeId]:
    """Return the jobs and datasets of an event."""
    try:
        facts = fold(parse_event(raw))
    except InvalidEventError:
        return set()
    return {sighting.node for sighting in facts.sightings if isinstance(sighting, NodeSeen)}


log = logging.getLogger("downriver")

_PATIENCE = 10.0  # seconds for running attempts when the monitor stops


def run_monitor(
    look: Callable[[], MonitorRound],
    tell: Callable[[MonitorRound], None],
    dispatcher: AlertDispatcher,
    stopped: threading.Event,
    period: float,
) -> None:
    """Check every `period` seconds; try again when the store or lake is not available."""
    dispatcher.start()
    try:
        while not stopped.is_set():
            try:
                tell(look())
                dispatcher.wake()
            except (StoreError, LakeError) as exc:
                log.warning("%s; next check in %g s", exc.message, period)
            stopped.wait(period)
    finally:
        dispatcher.stop(_PATIENCE)
