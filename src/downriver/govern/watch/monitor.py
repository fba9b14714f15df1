"""The monitor: inspects changed entities, updates the recorded findings, and queues alerts."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidEventError, LakeError, StoreError
from downriver.govern.drift import Inspector
from downriver.govern.drift.series import DAY
from downriver.govern.entity_context import EntityContext
from downriver.govern.incidents import report_incident
from downriver.govern.suspects import IncidentInputs
from downriver.govern.watch.alerts import ALERT_EVENTS, Alert, AlertContext
from downriver.graph.names.resolution import find_entity
from downriver.model.facts import NodeSeen
from downriver.model.governance import Finding, FindingKind
from downriver.openlineage import fold, parse_event
from downriver.openlineage.wire import parse_time, render_time
from downriver.store.catalog.encoding import decompress
from downriver.store.findings import FindingFilter

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from downriver.govern.drift import DriftLimits
    from downriver.govern.watch.alerts import AlertEvent
    from downriver.govern.watch.channels import AlertDispatcher
    from downriver.govern.watch.config import AnyChannel, WatchConfig
    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.identities import Identities
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, Store
    from downriver.store.findings import FindingsTransaction

_SETTLES = frozenset(
    {
        FindingKind.COLUMN_ADDED,
        FindingKind.COLUMN_DROPPED,
        FindingKind.COLUMN_RENAMED,
        FindingKind.COLUMN_RETYPED,
        FindingKind.DATASET_DROPPED,
        FindingKind.EDGE_APPEARED,
        FindingKind.EDGE_VANISHED,
        FindingKind.CODE_CHANGED,
    }
)
_OVER = {
    FindingKind.ROW_COUNT_SHIFT: "the values are normal again",
    FindingKind.NULL_RATE_SHIFT: "the values are normal again",
    FindingKind.DISTRIBUTION_SHIFT: "the values are normal again",
    FindingKind.QUALITY_FAILED: "the check passes again",
    FindingKind.RUN_FAILED: "a later run completed",
    FindingKind.RUN_LATE: "a run has started",
}


def explain_resolution(finding: Finding, now: int, limits: DriftLimits) -> str:
    """Return why an open finding is resolved."""
    age = now - parse_time(finding.first_seen, "first_seen")
    if finding.kind in _SETTLES:
        if age >= limits.settle_days * DAY:
            return f"unchanged for {limits.settle_days:g} days, so it is the new baseline"
        return "the change was undone"
    if age >= limits.lateness.give_up_days * DAY:
        return "no events for a long time"
    return _OVER[finding.kind]


class FindingRecorder:
    """The changes of findings in one check. `since`: alerts are sent only for later findings."""

    def __init__(
        self, watch: WatchConfig, channels: Mapping[str, AnyChannel], now: int, since: int | None
    ) -> None:
        self._watch = watch
        self._channels = channels
        self._now = now
        self._moment = render_time(now)
        self._since = since
        self.alerts: list[Alert] = []
        self.contexts: dict[str, AlertContext] = {}  # by id of the finding

    def compare(
        self, ledger: FindingsTransaction, entities: set[str], findings: Mapping[str, Finding]
    ) -> None:
        """Record the differences to the open findings of these entities, and queue alerts."""
        known = ledger.of_entities(sorted(entities))
        for id_, finding in findings.items():
            before = known.get(id_)
            if before is None:
                self._open(ledger, finding)
            elif before.fingerprint != finding.fingerprint:
                self._change(ledger, before, finding)
            else:
                self._keep(ledger, before, finding)
        for id_, before in known.items():
            if id_ not in findings:
                self._resolve(ledger, before)

    def _open(self, ledger: FindingsTransaction, finding: Finding) -> None:
        finding.revision = ledger.last_revision(finding.id) + 1
        finding.opened_at = self._moment
        self._queue_alert(ledger, "opened", finding)

    def _change(self, ledger: FindingsTransaction, before: Finding, finding: Finding) -> None:
        finding.revision, finding.opened_at = before.revision + 1, before.opened_at
        self._queue_alert(ledger, "changed", finding)

    def _resolve(self, ledger: FindingsTransaction, before: Finding) -> None:
        before.status, before.resolved_at = "resolved", self._moment
        before.resolution = explain_resolution(before, self._now, self._watch)
        self._queue_alert(ledger, "resolved", before)

    def _keep(self, ledger: FindingsTransaction, before: Finding, finding: Finding) -> None:
        """Record changes without an alert: more evidence, another count of affected entities."""
        finding.revision, finding.opened_at = before.revision, before.opened_at
        finding.changed_at = before.changed_at
        if finding != before:
            changed_at = parse_time(before.changed_at or "", "changed_at")
            ledger.save(finding, _began(finding), changed_at)

    def _queue_alert(
        self, ledger: FindingsTransaction, event: AlertEvent, finding: Finding
    ) -> None:
        finding.changed_at = self._moment
        ledger.save(finding, _began(finding), self._now)
        if self._since is not None and _began(finding) < self._since:
            return
        context = self.contexts.get(finding.id) if event != "resolved" else None
        alert = Alert(event=event, at=self._moment, finding=finding, context=context)
        self.alerts.append(alert)
        quiet = self._watch.quiet_hours
        due = self._now if quiet is None else quiet.over_at(self._now, finding.severity)
        for name, channel in self._channels.items():
            if channel.matches_filter(finding):
                ledger.queue(name, due, msgspec.json.encode(alert))


def _began(finding: Finding) -> int:
    return parse_time(finding.first_seen, "first_seen")


_CONTEXTS = 50  # alerts of one check with a context, the worst first
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
        by_event = {
            event: [a.finding for a in alerts if a.event == event] for event in ALERT_EVENTS
        }
        return cls(at=at, inspected=inspected, **by_event)

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
    """Checks one store repeatedly. All of its state is in the store."""

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

    def check(self, now: int, since: int | None = None) -> MonitorRound:
        """Check the entities that changed since the last check. Report findings from `since` on."""
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
            resolved = find_entity(entity, reader, identities)
            if resolved is not None:
                yield resolved.node

    # Findings

    def _inspect(self, nodes: list[int], now: int, news: FindingRecorder) -> None:
        entities: set[str] = set()
        findings: dict[str, Finding] = {}
        with self._reading() as view:
            graph, reader = view
            inspector = Inspector(graph, reader, self._watch, now, self._schedules)
            around = EntityContext(graph, reader, self._stale_days)
            for node, name in graph.nodes.identities.display_names(nodes, reader).items():
                entities |= {str(name.id), *map(str, name.aliases)}
                for finding in inspector.inspect(node):
                    completed = self._weighed(around.complete(finding, node))
                    if not any(ignore.covers(completed) for ignore in self._watch.ignore):
                        findings[completed.id] = completed
                self._note_due(node, inspector, now)
            if self._channels:
                self._add_contexts(view, around, list(findings.values()), now, news)
        with self._store.ledger() as ledger:
            news.compare(ledger, entities, findings)

    def _add_contexts(
        self,
        view: CatalogSnapshot,
        around: EntityContext,
        findings: list[Finding],
        now: int,
        news: FindingRecorder,
    ) -> None:
        """Report on the entities of new findings, so that alerts carry the likely cause."""
        graph, reader = view

        def inspect_at(time: int) -> Inspector:
            return Inspector(graph, reader, self._watch, time, self._schedules, old_failures=True)

        old = now - int(self._watch.lateness.give_up_days * DAY)
        scene = IncidentInputs(reader, inspect_at, around, now, old)
        for finding in sorted(findings, key=lambda each: -each.severity.rank):
            if len(news.contexts) == _CONTEXTS:
                break
            known = reader.findings.find(FindingFilter(entity=finding.entity)).findings
            if any(finding.fingerprint == k.fingerprint for k in known if k.id == finding.id):
                continue
            entity = find_entity(finding.entity, reader, graph.nodes.identities)
            if entity is not None:
                news.contexts[finding.id] = AlertContext.of(report_incident(entity, scene))

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
    check: Callable[[], MonitorRound],
    publish: Callable[[MonitorRound], None],
    dispatcher: AlertDispatcher,
    stopped: threading.Event,
    period: float,
) -> None:
    """Check every `period` seconds; try again when the store or lake is not available."""
    dispatcher.start()
    try:
        while not stopped.is_set():
            try:
                publish(check())
                dispatcher.wake()
            except (StoreError, LakeError) as exc:
                log.warning("%s; next check in %g s", exc.message, period)
            stopped.wait(period)
    finally:
        dispatcher.stop(_PATIENCE)
