"""Findings and alerts in the store. An alert stays in the queue until it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.model.governance import Finding, Findings, Severity
from downriver.store.triggers import TriggerTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.store.port import SqlQueries, SqlTransaction


class FindingFilter(NamedTuple):
    """A filter of findings; all conditions that are set must hold."""

    status: str | None = "open"
    entity: str | None = None
    kind: str | None = None
    severity: Severity | None = None  # this or worse
    since: int | None = None  # began at or after this moment
    limit: int = 100


class QueuedAlert(NamedTuple):
    """An alert in the queue of a channel."""

    id: int
    attempts: int
    body: bytes


class ChannelBacklog(msgspec.Struct, kw_only=True):
    """The number of alerts in the queue of a channel, with its failed attempts and last error."""

    channel: str
    alerts: int
    attempts: int
    error: str


class FindingQueries:
    """Reads recorded findings and queued alerts."""

    def __init__(self, queries: SqlQueries) -> None:
        self._query = queries.rows

    def find(self, wanted: FindingFilter) -> Findings:
        """Return findings, the latest to change first."""
        conditions, values = _conditions(wanted)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        total = self._query(f"SELECT count(*) FROM findings {where}", values)[0][0]
        rows = self._query(
            f"SELECT body FROM findings {where} ORDER BY changed_at DESC, id LIMIT ?",
            (*values, wanted.limit),
        )
        findings = [_decode(row[0]) for row in rows]
        return Findings(findings=findings, total=total, complete=total == len(findings))

    def count_resolved(self, before: int) -> int:
        """Count the findings that were resolved before a time."""
        sql = "SELECT count(*) FROM findings WHERE status = 'resolved' AND changed_at < ?"
        count: int = self._query(sql, (before,))[0][0]
        return count

    def open_entities(self) -> set[str]:
        """Return every entity with an open finding."""
        rows = self._query("SELECT DISTINCT entity FROM findings WHERE status = 'open'")
        return {row[0] for row in rows}

    def waiting(self) -> list[ChannelBacklog]:
        """Return the channels with queued alerts."""
        sql = """
            SELECT channel, count(*), max(attempts), max(error) FROM alerts
            GROUP BY channel ORDER BY channel
        """
        return [
            ChannelBacklog(channel=channel, alerts=count, attempts=attempts, error=error)
            for channel, count, attempts, error in self._query(sql)
        ]

    def state(self, name: str) -> bytes | None:
        """Return the value that was saved under a name."""
        rows = self._query("SELECT body FROM watch_state WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None


def _conditions(wanted: FindingFilter) -> tuple[list[str], list[Any]]:
    conditions = {
        "status = ?": wanted.status,
        "entity = ?": wanted.entity,
        "kind = ?": wanted.kind,
        "severity >= ?": None if wanted.severity is None else wanted.severity.rank,
        "first_at >= ?": wanted.since,
    }
    kept = {condition: value for condition, value in conditions.items() if value is not None}
    return list(kept), list(kept.values())


class FindingsTransaction:
    """The write transaction of a monitor: findings, alerts, triggered actions and its progress."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx
        self.triggers = TriggerTransaction(tx)

    def of_entities(self, entities: Iterable[str]) -> dict[str, Finding]:
        """Return the open findings of these entities, by id."""
        findings: dict[str, Finding] = {}
        sql = "SELECT body FROM findings WHERE entity = ? AND status = 'open'"
        for entity in entities:
            for row in self._tx.rows(sql, (entity,)):
                finding = _decode(row[0])
                findings[finding.id] = finding
        return findings

    def last_revision(self, finding_id: str) -> int:
        """Return the last revision of a finding, open or resolved."""
        rows = self._tx.rows("SELECT body FROM findings WHERE id = ?", (finding_id,))
        return _decode(rows[0][0]).revision if rows else 0

    def save(self, finding: Finding, first_at: int, changed_at: int) -> None:
        """Record a finding as it is now."""
        self._tx.execute(
            """
            INSERT INTO findings (id, kind, entity, severity, status, first_at, changed_at, body)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET severity = excluded.severity, status = excluded.status,
                first_at = excluded.first_at, changed_at = excluded.changed_at,
                body = excluded.body
            """,
            (
                finding.id,
                finding.kind.value,
                finding.entity,
                finding.severity.rank,
                finding.status,
                first_at,
                changed_at,
                msgspec.json.encode(finding),
            ),
        )

    def delete_resolved(self, before: int) -> None:
        """Delete the findings that were resolved before a time."""
        self._tx.execute(
            "DELETE FROM findings WHERE status = 'resolved' AND changed_at < ?", (before,)
        )

    def queue(self, channel: str, due_at: int, body: bytes) -> None:
        """Add an alert to the queue of a channel, to be sent at `due_at` or later."""
        number = self._tx.rows("SELECT coalesce(max(id), 0) + 1 FROM alerts")[0][0]
        self._tx.execute(
            "INSERT INTO alerts (id, channel, due_at, attempts, error, body)"
            " VALUES (?, ?, ?, 0, '', ?)",
            (number, channel, due_at, body),
        )

    def claim(self, channel: str, now: int, until: int, limit: int) -> list[QueuedAlert]:
        """Return the due alerts of a channel in order, and reserve them `until` a time."""
        rows = self._tx.rows(
            "SELECT id, attempts, body FROM alerts WHERE channel = ? AND due_at <= ?"
            " ORDER BY id LIMIT ?",
            (channel, now, limit),
        )
        for row in rows:
            self._tx.execute("UPDATE alerts SET due_at = ? WHERE id = ?", (until, row[0]))
        return [QueuedAlert(number, attempts, bytes(body)) for number, attempts, body in rows]

    def delete_sent(self, alerts: Sequence[QueuedAlert]) -> None:
        """Delete alerts that were sent."""
        for alert in alerts:
            self._tx.execute("DELETE FROM alerts WHERE id = ?", (alert.id,))

    def postpone(self, alerts: Sequence[QueuedAlert], due_at: int, error: str) -> None:
        """Keep alerts that failed, for another attempt at `due_at`."""
        for alert in alerts:
            self._tx.execute(
                "UPDATE alerts SET due_at = ?, attempts = attempts + 1, error = ? WHERE id = ?",
                (due_at, error, alert.id),
            )

    def keep(self, name: str, body: bytes) -> None:
        """Save a value under a name."""
        self._tx.execute(
            "INSERT INTO watch_state (name, body) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (name, body),
        )


def _decode(body: bytes) -> Finding:
    return msgspec.json.decode(bytes(body), type=Finding)
