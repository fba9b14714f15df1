"""Verdicts of the gate in the store. They are not events: no job and no dataset is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.model.verdicts import RecordedVerdict, RecordedVerdicts

if TYPE_CHECKING:
    from downriver.store.port import SqlQueries, SqlTransaction


class VerdictFilter(NamedTuple):
    """A filter of verdicts; all conditions that are set must hold."""

    decision: str | None = None
    since: int | None = None
    limit: int = 100


class VerdictQueries:
    """Reads recorded verdicts."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def find(self, wanted: VerdictFilter) -> RecordedVerdicts:
        """Return verdicts, the latest first."""
        conditions: dict[str, Any] = {"decision = ?": wanted.decision, "at >= ?": wanted.since}
        kept = {condition: value for condition, value in conditions.items() if value is not None}
        where = f"WHERE {' AND '.join(kept)}" if kept else ""
        values = list(kept.values())
        total = self._queries.rows(f"SELECT count(*) FROM verdicts {where}", values)[0][0]
        rows = self._queries.rows(
            f"SELECT body FROM verdicts {where} ORDER BY at DESC, id LIMIT ?",
            (*values, wanted.limit),
        )
        verdicts = [msgspec.json.decode(bytes(row[0]), type=RecordedVerdict) for row in rows]
        return RecordedVerdicts(verdicts=verdicts, total=total, complete=total == len(verdicts))


def save_verdict(tx: SqlTransaction, verdict: RecordedVerdict, at: int) -> None:
    """Record a verdict; the same one is recorded once."""
    tx.execute(
        "INSERT INTO verdicts (id, at, decision, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        (verdict.id, at, verdict.decision.value, msgspec.json.encode(verdict)),
    )
