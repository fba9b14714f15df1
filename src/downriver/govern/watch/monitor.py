"""One look at what changed: inspect it, compare it with what is recorded, queue the news."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidEventError
from downriver.events import fold, parse_event
from downriver.events.wire import parse_time, render_time
from downriver.govern.drift import Inspector
from downriver.govern.surroundings import Surroundings
from downriver.govern.watch.alerts import Alert
from downriver.govern.watch.resolutions import resolution
from downriver.graph.resolve import find_entity
from downriver.model.facts import NodeSeen
from downriver.model.findings import Finding, Severity
from downriver.store.packing import unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from downriver.govern.watch.config import Watch
    from downriver.graph import GraphIndex
    from downriver.model.ids import NodeId
    from downriver.store import Reader, Store
    from downriver.store.findings import Ledger

_AT_ONCE = 200  # nodes inspected between two writes
_STATE = "monitor"


class Round(msgspec.Struct, kw_only=True):
    """What one look found: the news, and how much was looked at."""

    at: str
    inspected: int
    opened: list[Finding] = msgspec.field(default_factory=list)
    changed: list[Finding] = msgspec.field(default_factory=list)
    resolved: list[Finding] = msgspec.field(default_factory=list)

    def alerts(self) -> Iterator[Alert]:
        """Yield the news as alerts, resolved ones last."""
        for event, findings in (
            ("opened", self.opened),
            ("changed", self.changed),
            ("resolved", self.resolved),
        ):
            for finding in findings:
                yield Alert(event=event, at=self.at, finding=finding)  # type: ignore[arg-type]


class _Progress(msgspec.Struct):
    """How far a monitor has come: the last log entry, of which generation, with which settings."""

    generation: int = 0
    seq: int = 0
    settings: str = ""


class Monitor:
    """Looks at one store, again and again. Everything it must remember is in the store."""

    def __init__(
        self,
        store: Store,
        graph: GraphIndex,
        reading: Callable[[], AbstractContextManager[Reader]],
        watch: Watch,
        stale_days: int,
    ) -> None:
        self._store = store
        self._graph = graph
        self._reading = reading
        self._watch = watch
        self._stale_days = stale_days
        self._schedules = watch.parsed_schedules()
        self._channels = watch.named_channels()
        self._settings = hashlib.sha256(msgspec.json.encode(watch)).hexdigest()[:16]
        self._due: dict[int, int] | None = None  # when each job's next run is late
        self._generation = 0

    def look(self, now: int, since: int | None = None) -> Round:
        """Inspect what changed since the last look; tell of what began at `since` or later."""
        with self._reading() as reader:
            progress, nodes = self._to_inspect(reader, now)
        done = Round(at=render_time(now), inspected=len(nodes))
        for start in range(0, len(nodes), _AT_ONCE):
            self._inspect(nodes[start : start + _AT_ONCE], now, since, done)
        with self._store.ledger() as ledger:
            ledger.keep(_STATE, msgspec.json.encode(progress))
        return done

    # What to look at

    def _to_inspect(self, reader: Reader, now: int) -> tuple[_Progress, list[int]]:
        body = reader.recorded.state(_STATE)
        before = msgspec.json.decode(body, type=_Progress) if body else _Progress()
        state = reader.state()
        progress = _Progress(state.generation, state.seq, self._settings)
        fresh = (before.generation, before.settings) != (state.generation, self._settings)
        identities = self._graph.nodes.identities
        if self._generation != state.generation:  # numbers of nodes mean something else now
            self._generation, self._due = state.generation, None
        if fresh or not before.seq:
            self._due = {}
            nodes = {*reader.history.nodes_of_kind(0), *reader.history.nodes_of_kind(1)}
        else:
            nodes = {*self._touched(reader, before.seq), *self._with_findings(reader)}
            nodes |= self._jobs_due(reader, now)
        return progress, sorted({identities.canonical(node) for node in nodes})

    def _jobs_due(self, reader: Reader, now: int) -> set[int]:
        """Return the jobs that may be late by now: all of them when this process first looks."""
        if self._due is None:
            self._due = {}
            return set(reader.history.nodes_of_kind(1))
        return {job for job, at in self._due.items() if at <= now}

    def _touched(self, reader: Reader, after: int) -> Iterator[int]:
        named: set[NodeId] = set()
        for entry in reader.log(after):
            named |= _named_in(unpack(entry.body) or b"")
        for node in named:
            number = reader.find_node(node)
            if number is not None:
                yield number

    def _with_findings(self, reader: Reader) -> Iterator[int]:
        for entity in reader.recorded.open_entities():
            found = find_entity(entity, reader, self._graph.nodes.identities)
            if found is not None:
                yield found.node

    # What is found

    def _inspect(self, nodes: list[int], now: int, since: int | None, done: Round) -> None:
        entities: set[str] = set()
        found: dict[str, Finding] = {}
        with self._reading() as reader:
            inspector = Inspector(self._graph, reader, self._watch, now, self._schedules)
            around = Surroundings(self._graph, reader, self._stale_days)
            for node, spoken in self._graph.nodes.identities.speak(nodes, reader).items():
                entities |= {str(spoken.id), *map(str, spoken.aliases)}
                for finding in inspector.inspect(node):
                    completed = self._weighed(around.complete(finding, node))
                    if not any(ignore.covers(completed) for ignore in self._watch.ignore):
                        found[completed.id] = completed
                self._note_due(node, inspector, now)
        with self._store.ledger() as ledger:
            self._compare(ledger, entities, found, now, since, done)

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

    # What is news

    def _compare(
        self,
        ledger: Ledger,
        entities: set[str],
        found: dict[str, Finding],
        now: int,
        since: int | None,
        done: Round,
    ) -> None:
        known = ledger.of_entities(sorted(entities))
        moment = render_time(now)
        for id_, finding in found.items():
            before = known.get(id_)
            if before is None:
                finding.revision = ledger.last_revision(id_) + 1
                finding.opened_at = finding.changed_at = moment
                self._record(ledger, finding, now)
                self._tell(
                    ledger, Alert(event="opened", at=moment, finding=finding), now, since, done
                )
            elif before.fingerprint != finding.fingerprint:
                finding.revision, finding.opened_at = before.revision + 1, before.opened_at
                finding.changed_at = moment
                self._record(ledger, finding, now)
                self._tell(
                    ledger, Alert(event="changed", at=moment, finding=finding), now, since, done
                )
            else:
                self._keep(ledger, before, finding)
        for id_, before in known.items():
            if id_ not in found:
                before.status, before.resolved_at, before.changed_at = "resolved", moment, moment
                before.resolution = resolution(before, now, self._watch)
                self._record(ledger, before, now)
                self._tell(
                    ledger, Alert(event="resolved", at=moment, finding=before), now, since, done
                )

    def _keep(self, ledger: Ledger, before: Finding, finding: Finding) -> None:
        """Record what is no news: more evidence, another count, a longer list downstream."""
        finding.revision, finding.opened_at = before.revision, before.opened_at
        finding.changed_at = before.changed_at
        if finding != before:
            self._record(ledger, finding, parse_time(before.changed_at or "", "changed_at"))

    def _record(self, ledger: Ledger, finding: Finding, changed_at: int) -> None:
        ledger.save(finding, parse_time(finding.first_seen, "first_seen"), changed_at)

    def _tell(self, ledger: Ledger, alert: Alert, now: int, since: int | None, done: Round) -> None:
        finding = alert.finding
        if since is not None and parse_time(finding.first_seen, "first_seen") < since:
            return
        getattr(done, alert.event).append(finding)
        body = msgspec.json.encode(alert)
        for name, channel in self._channels.items():
            if channel.wants(finding):
                ledger.queue(name, self._may_tell_at(now, finding.severity), body)

    def _may_tell_at(self, now: int, severity: Severity) -> int:
        quiet = self._watch.quiet_hours
        return now if quiet is None else quiet.over_at(now, severity)


def _named_in(raw: bytes) -> set[NodeId]:
    """Return the jobs and datasets that an event is about."""
    try:
        facts = fold(parse_event(raw))
    except InvalidEventError:
        return set()
    return {sighting.node for sighting in facts.sightings if isinstance(sighting, NodeSeen)}
