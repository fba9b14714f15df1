"""Findings and alerts at rest: recorded once, told until told, and never lost in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.model.findings import Finding, Findings, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.store.port import SqlQueries, SqlTransaction


class FindingFilter(NamedTuple):
    """Which findings: those for which everything that is given holds."""

    status: str | None = "open"
    entity: str | None = None
    kind: str | None = None
    severity: Severity | None = None  # this or worse
    since: int | None = None  # that began at or after this moment
    limit: int = 100


class QueuedAlert(NamedTuple):
    """An alert that a channel has still to tell."""

    id: int
    attempts: int
    body: bytes


class ChannelBacklog(msgspec.Struct, kw_only=True):
    """How many alerts wait for a channel, since when it fails and why."""

    channel: str
    alerts: int
    attempts: int
    error: str


class FindingQueries:
    """What the monitor has recorded, within one view of a store."""

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
        found = [_decode(row[0]) for row in rows]
        return Findings(findings=found, total=total, complete=total == len(found))

    def open_entities(self) -> set[str]:
        """Return every entity with an open finding."""
        rows = self._query("SELECT DISTINCT entity FROM findings WHERE status = 'open'")
        return {row[0] for row in rows}

    def waiting(self) -> list[ChannelBacklog]:
        """Return what each channel has still to tell."""
        sql = """
            SELECT channel, count(*), max(attempts), max(error) FROM alerts
            GROUP BY channel ORDER BY channel
        """
        return [
            ChannelBacklog(channel=channel, alerts=count, attempts=attempts, error=error)
            for channel, count, attempts, error in self._query(sql)
        ]

    def state(self, name: str) -> bytes | None:
        """Return what was kept under a name."""
        rows = self._query("SELECT body FROM watch_state WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None


def _conditions(wanted: FindingFilter) -> tuple[list[str], list[Any]]:
    given = {
        "status = ?": wanted.status,
        "entity = ?": wanted.entity,
        "kind = ?": wanted.kind,
        "severity >= ?": None if wanted.severity is None else wanted.severity.rank,
        "first_at >= ?": wanted.since,
    }
    told = {condition: value for condition, value in given.items() if value is not None}
    return list(told), list(told.values())


class FindingsTransaction:
    """The one write transaction of a monitor: findings, alerts and how far it has come."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx

    def of_entities(self, entities: Iterable[str]) -> dict[str, Finding]:
        """Return the open findings of these entities, by id."""
        found: dict[str, Finding] = {}
        sql = "SELECT body FROM findings WHERE entity = ? AND status = 'open'"
        for entity in entities:
            for row in self._tx.rows(sql, (entity,)):
                finding = _decode(row[0])
                found[finding.id] = finding
        return found

    def last_revision(self, finding_id: str) -> int:
        """Return how often a finding has been news, resolved or not."""
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

    def queue(self, channel: str, due_at: int, body: bytes) -> None:
        """Put an alert into a channel's queue, to be told at `due_at` or later."""
        number = self._tx.rows("SELECT coalesce(max(id), 0) + 1 FROM alerts")[0][0]
        self._tx.execute(
            "INSERT INTO alerts (id, channel, due_at, attempts, error, body)"
            " VALUES (?, ?, ?, 0, '', ?)",
            (number, channel, due_at, body),
        )

    def claim(self, channel: str, now: int, until: int, limit: int) -> list[QueuedAlert]:
        """Take the alerts of a channel that are due, in order; nobody else gets them `until`."""
        rows = self._tx.rows(
            "SELECT id, attempts, body FROM alerts WHERE channel = ? AND due_at <= ?"
            " ORDER BY id LIMIT ?",
            (channel, now, limit),
        )
        for row in rows:
            self._tx.execute("UPDATE alerts SET due_at = ? WHERE id = ?", (until, row[0]))
        return [QueuedAlert(number, attempts, bytes(body)) for number, attempts, body in rows]

    def told(self, alerts: Sequence[QueuedAlert]) -> None:
        """Forget alerts that reached someone."""
        for alert in alerts:
            self._tx.execute("DELETE FROM alerts WHERE id = ?", (alert.id,))

    def not_told(self, alerts: Sequence[QueuedAlert], due_at: int, error: str) -> None:
        """Keep alerts for another try."""
        for alert in alerts:
            self._tx.execute(
                "UPDATE alerts SET due_at = ?, attempts = attempts + 1, error = ? WHERE id = ?",
                (due_at, error, alert.id),
            )

    def keep(self, name: str, body: bytes) -> None:
        """Keep something under a name."""
        self._tx.execute(
            "INSERT INTO watch_state (name, body) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (name, body),
        )


def _decode(body: bytes) -> Finding:
    return msgspec.json.decode(bytes(body), type=Finding)
