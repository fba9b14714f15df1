"""Records findings: compares those of this moment with those in the store and queues alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.govern.drift.series import DAY
from downriver.govern.watch.alerts import Alert
from downriver.model.findings import FindingKind
from downriver.openlineage.wire import parse_time, render_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.govern.drift import DriftLimits
    from downriver.govern.watch.alerts import AlertEvent
    from downriver.govern.watch.config import AnyChannel, WatchConfig
    from downriver.model.findings import Finding
    from downriver.store.findings import FindingsTransaction

_SETTLES = frozenset(
    {
        FindingKind.COLUMN_ADDED,
        FindingKind.COLUMN_DROPPED,
        FindingKind.COLUMN_RENAMED,
        FindingKind.COLUMN_RETYPED,
        FindingKind.EDGE_APPEARED,
        FindingKind.EDGE_VANISHED,
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
    """The news of one moment. `since`: only of what began then or later is anyone told."""

    def __init__(
        self, watch: WatchConfig, channels: Mapping[str, AnyChannel], now: int, since: int | None
    ) -> None:
        self._watch = watch
        self._channels = channels
        self._now = now
        self._moment = render_time(now)
        self._since = since
        self.alerts: list[Alert] = []

    def compare(
        self, ledger: FindingsTransaction, entities: set[str], found: Mapping[str, Finding]
    ) -> None:
        """Record the differences to the open findings of these entities, and queue alerts."""
        known = ledger.of_entities(sorted(entities))
        for id_, finding in found.items():
            before = known.get(id_)
            if before is None:
                self._open(ledger, finding)
            elif before.fingerprint != finding.fingerprint:
                self._change(ledger, before, finding)
            else:
                self._keep(ledger, before, finding)
        for id_, before in known.items():
            if id_ not in found:
                self._resolve(ledger, before)

    def _open(self, ledger: FindingsTransaction, finding: Finding) -> None:
        finding.revision = ledger.last_revision(finding.id) + 1
        finding.opened_at = self._moment
        self._tell(ledger, "opened", finding)

    def _change(self, ledger: FindingsTransaction, before: Finding, finding: Finding) -> None:
        finding.revision, finding.opened_at = before.revision + 1, before.opened_at
        self._tell(ledger, "changed", finding)

    def _resolve(self, ledger: FindingsTransaction, before: Finding) -> None:
        before.status, before.resolved_at = "resolved", self._moment
        before.resolution = explain_resolution(before, self._now, self._watch)
        self._tell(ledger, "resolved", before)

    def _keep(self, ledger: FindingsTransaction, before: Finding, finding: Finding) -> None:
        """Record changes without an alert: more evidence, another count of affected entities."""
        finding.revision, finding.opened_at = before.revision, before.opened_at
        finding.changed_at = before.changed_at
        if finding != before:
            changed_at = parse_time(before.changed_at or "", "changed_at")
            ledger.save(finding, _began(finding), changed_at)

    def _tell(self, ledger: FindingsTransaction, event: AlertEvent, finding: Finding) -> None:
        finding.changed_at = self._moment
        ledger.save(finding, _began(finding), self._now)
        if self._since is not None and _began(finding) < self._since:
            return
        alert = Alert(event=event, at=self._moment, finding=finding)
        self.alerts.append(alert)
        quiet = self._watch.quiet_hours
        due = self._now if quiet is None else quiet.over_at(self._now, finding.severity)
        for name, channel in self._channels.items():
            if channel.wants(finding):
                ledger.queue(name, due, msgspec.json.encode(alert))


def _began(finding: Finding) -> int:
    return parse_time(finding.first_seen, "first_seen")
