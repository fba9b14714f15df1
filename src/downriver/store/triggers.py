"""Triggered actions in the store. An action is recorded before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.model.trust.triggers import ActionState, TriggeredAction, TriggerHistory

if TYPE_CHECKING:
    from downriver.store.port import SqlQueries, SqlTransaction


class ActionFilter(NamedTuple):
    """A filter of actions; all conditions that are set must hold."""

    trigger: str | None = None
    state: str | None = None
    limit: int = 100


class TriggerQueries:
    """Reads recorded actions."""

    def __init__(self, queries: SqlQueries) -> None:
        self._query = queries.rows

    def find(self, wanted: ActionFilter) -> TriggerHistory:
        """Return actions, the latest first."""
        conditions = {"trigger_name = ?": wanted.trigger, "state = ?": wanted.state}
        kept = {condition: value for condition, value in conditions.items() if value is not None}
        where = f"WHERE {' AND '.join(kept)}" if kept else ""
        total = self._query(f"SELECT count(*) FROM triggered {where}", list(kept.values()))[0][0]
        rows = self._query(
            f"SELECT body FROM triggered {where} ORDER BY id DESC LIMIT ?",
            (*kept.values(), wanted.limit),
        )
        actions = [_decode(row[0]) for row in rows]
        return TriggerHistory(actions=actions, total=total, complete=total == len(actions))

    def of_target(self, trigger: str, target: str) -> list[TriggeredAction]:
        """Return the actions of a trigger on a target, in the order in which they were recorded."""
        sql = "SELECT body FROM triggered WHERE trigger_name = ? AND target = ? ORDER BY id"
        return [_decode(row[0]) for row in self._query(sql, (trigger, target))]


class TriggerTransaction(TriggerQueries):
    """Records actions and their outcome."""

    def __init__(self, tx: SqlTransaction) -> None:
        super().__init__(tx)
        self._tx = tx

    def add(self, action: TriggeredAction, due_at: int) -> TriggeredAction:
        """Record an action that is to run at `due_at` or later."""
        number = self._tx.rows("SELECT coalesce(max(id), 0) + 1 FROM triggered")[0][0]
        added = msgspec.structs.replace(action, id=number, state=ActionState.WAITING)
        self._tx.execute(
            "INSERT INTO triggered (id, trigger_name, target, state, due_at, body)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                added.trigger,
                added.target,
                added.state.value,
                due_at,
                msgspec.json.encode(added),
            ),
        )
        return added

    def claim(self, now: int, until: int) -> TriggeredAction | None:
        """Return the next due action and reserve it `until` a time.

        An action that still runs after that time was interrupted, and is due again.
        """
        rows = self._tx.rows(
            "SELECT body FROM triggered WHERE state IN ('waiting', 'running') AND due_at <= ?"
            " ORDER BY id LIMIT 1",
            (now,),
        )
        if not rows:
            return None
        action = _decode(rows[0][0])
        action.state = ActionState.RUNNING
        action.attempts += 1
        self.save(action, until)
        return action

    def save(self, action: TriggeredAction, due_at: int) -> None:
        """Record the state of an action."""
        self._tx.execute(
            "UPDATE triggered SET state = ?, due_at = ?, body = ? WHERE id = ?",
            (action.state.value, due_at, msgspec.json.encode(action), action.id),
        )


def _decode(body: bytes) -> TriggeredAction:
    return msgspec.json.decode(bytes(body), type=TriggeredAction)
