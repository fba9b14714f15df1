"""The audit log: who wrote events, who was refused, and what administrators did.

The entry of a write is part of the transaction of that write. Identical actions of one actor within
one minute are one row with a count, and the oldest rows are removed, so that the table stays small.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver import settings
from downriver.model.access import ACTOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.store.port import SqlQueries, SqlTransaction

_MINUTE = 60 * 1_000_000  # µs
_LONGEST = 500  # characters of a text
_PRUNE_EVERY = 256  # rows


class AuditAct(msgspec.Struct, frozen=True):
    """Something that an actor did, or tried to do, once or several times."""

    actor: str
    action: str
    target: str = ""
    detail: str = ""
    count: int = 1
    seqs: tuple[int, int] | None = None  # the first and last log entry that was written

    @classmethod
    def now(cls, action: str, target: str = "", detail: str = "") -> AuditAct:
        """Return an act of the current actor."""
        return cls(ACTOR.get(), action, target, detail)


class AuditEntry(msgspec.Struct, kw_only=True, frozen=True):
    """A row of the audit log: equal acts of one actor within one minute.

    `first_seq` and `last_seq` are the first and last log entry of a write. Entries of other actors
    may lie between them. Times are in µs since the epoch.
    """

    id: int
    actor: str
    action: str
    target: str
    detail: str
    count: int
    first_at: int
    last_at: int
    first_seq: int | None
    last_seq: int | None


class AuditFilter(NamedTuple):
    """A filter of the audit log; all conditions that are set must hold."""

    actor: str | None = None
    action: str | None = None
    since: int | None = None  # µs since the epoch
    before: int | None = None  # the id of an entry: only older ones
    limit: int = 100


class AuditWriter:
    """Writes actions in the transactions of a store, and caches the row of the current minute."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], tuple[int, int]] = {}  # id, and when it began

    def forget(self) -> None:
        """Clear the cache: its rows may have been rolled back."""
        self._rows.clear()

    def record(self, tx: SqlTransaction, acts: Iterable[AuditAct]) -> None:
        """Add acts to the audit log."""
        now = time.time_ns() // 1000
        for act in acts:
            key = (act.actor, act.action, act.target)
            number, began = self._rows.get(key, (0, 0))
            if now - began < _MINUTE:
                self._extend(tx, number, act, now)
            else:
                self._rows[key] = self._insert(tx, act, now), now

    def _extend(self, tx: SqlTransaction, number: int, act: AuditAct, now: int) -> None:
        last_seq = act.seqs[1] if act.seqs else None
        tx.execute(
            "UPDATE audit SET count = count + ?, last_at = ?, last_seq = coalesce(?, last_seq)"
            " WHERE id = ?",
            (act.count, now, last_seq, number),
        )

    def _insert(self, tx: SqlTransaction, act: AuditAct, now: int) -> int:
        number: int = tx.rows("SELECT coalesce(max(id), 0) + 1 FROM audit")[0][0]
        first_seq, last_seq = act.seqs or (None, None)
        texts = (text[:_LONGEST] for text in (act.actor, act.action, act.target, act.detail))
        tx.execute(
            "INSERT INTO audit (id, actor, action, target, detail, count, first_at, last_at,"
            " first_seq, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *texts, act.count, now, now, first_seq, last_seq),
        )
        if number % _PRUNE_EVERY == 0:
            self._prune(tx, number)
        return number

    def _prune(self, tx: SqlTransaction, newest: int) -> None:
        kept = settings.read_number(settings.AUDIT_ENTRIES)
        tx.execute("DELETE FROM audit WHERE id <= ?", (newest - kept,))
        self._rows = {key: row for key, row in self._rows.items() if row[0] > newest - kept}


class AuditQueries:
    """Reads the audit log."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def find(self, wanted: AuditFilter) -> list[AuditEntry]:
        """Return entries, the newest first."""
        conditions = {
            "actor = ?": wanted.actor,
            "action = ?": wanted.action,
            "last_at >= ?": wanted.since,
            "id < ?": wanted.before,
        }
        parameters = {sql: value for sql, value in conditions.items() if value is not None}
        where = f"WHERE {' AND '.join(parameters)}" if parameters else ""
        rows = self._queries.rows(
            f"SELECT {', '.join(AuditEntry.__struct_fields__)} FROM audit {where}"
            " ORDER BY id DESC LIMIT ?",
            (*parameters.values(), wanted.limit),
        )
        return [
            AuditEntry(**dict(zip(AuditEntry.__struct_fields__, row, strict=True))) for row in rows
        ]
