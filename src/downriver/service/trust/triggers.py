"""Triggers: which actions the open findings start, and those that were recorded."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from downriver import settings
from downriver.errors import InvalidRequestError
from downriver.govern.entity_context import EntityContext
from downriver.govern.triggers import ActionRunner, match_triggers
from downriver.graph.answers.view import limit_blind_spots
from downriver.model.answers import is_complete
from downriver.model.governance import Finding, FindingKind, Severity
from downriver.model.ids import ColumnId
from downriver.model.trust.triggers import ActionState, TriggeredActions
from downriver.openlineage.wire import parse_time, render_time
from downriver.service.limits import DEFAULT_FINDINGS
from downriver.service.session import now
from downriver.store.audit import AuditAct
from downriver.store.findings import FindingFilter
from downriver.store.triggers import ActionFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from downriver.govern.triggers import TriggerRule
    from downriver.graph import CatalogSnapshot
    from downriver.model.trust.triggers import TriggeredAction, TriggerHistory
    from downriver.service.session import StoreSession
    from downriver.store.triggers import TriggerQueries

_FINDINGS = 10_000


class TriggerApi:
    """Triggers of this store. Call it to start the actions of the open findings."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self, rules: Sequence[TriggerRule], *, at: int | None = None, done: bool = True
    ) -> TriggeredActions:
        """Record the actions that open findings start, and return the new ones.

        A finding starts the action of a trigger on a target once. Without `done`, nothing is
        recorded.
        """
        moment = now() if at is None else at
        with self._session.reading() as view:
            listed = view.reader.findings.find(FindingFilter(limit=_FINDINGS))
            matches = self._match(view, rules, listed.findings, moment)
            matches.complete = matches.complete and listed.complete
            by_name = {rule.name: rule for rule in rules}
            if not done:
                matches.actions = _new(matches.actions, by_name, view.reader.triggers, moment)
                return matches
        with self._session.store.ledger() as ledger:
            # Compared again in the transaction: another process may have recorded them.
            fresh = _new(matches.actions, by_name, ledger.triggers, moment)
            matches.actions = [ledger.triggers.add(action, moment) for action in fresh]
        acts = [AuditAct.now("start action", a.target, a.trigger) for a in matches.actions]
        if acts:
            self._session.store.record(acts)
        return matches

    def preview(
        self, rules: Sequence[TriggerRule], entity: str, kind: str, severity: str = "warning"
    ) -> TriggeredActions:
        """Return the actions that a finding about a column or dataset would start."""
        moment = now()
        with self._session.reading() as view:
            found = self._session.resolve(entity, view)
            dataset = found.id.dataset if isinstance(found.id, ColumnId) else found.id
            finding = Finding(
                kind=_parse(kind, FindingKind, "kind"),
                entity=str(dataset),
                subject=found.id.field if isinstance(found.id, ColumnId) else "",
                severity=_parse(severity, Severity, "severity"),
                message=f"assumed: {kind}",
                first_seen=render_time(moment),
            )
            return self._match(view, rules, [finding], moment)

    def history(
        self,
        *,
        trigger: str | None = None,
        state: str | None = None,
        limit: int = DEFAULT_FINDINGS,
    ) -> TriggerHistory:
        """Return recorded actions, the latest first."""
        if state is not None:
            _parse(state, ActionState, "state")
        with self._session.store.reader() as reader:
            return reader.triggers.find(ActionFilter(trigger, state, limit))

    def runner(self, rules: Sequence[TriggerRule], clock: Callable[[], int] = now) -> ActionRunner:
        """Return the runner of the recorded actions."""
        return ActionRunner(self._session.store, rules, clock)

    def _match(
        self,
        view: CatalogSnapshot,
        rules: Sequence[TriggerRule],
        findings: Sequence[Finding],
        moment: int,
    ) -> TriggeredActions:
        around = EntityContext(view.graph, view.reader, settings.read_number(settings.STALE_DAYS))
        actions, spots = match_triggers(view, around, rules, findings, moment)
        return TriggeredActions(
            actions=actions,
            findings=len(findings),
            complete=is_complete(spots),
            blind_spots=limit_blind_spots(spots, len(spots)),
        )


def _new(
    actions: Iterable[TriggeredAction],
    rules: dict[str, TriggerRule],
    recorded: TriggerQueries,
    moment: int,
) -> list[TriggeredAction]:
    """Return the actions with the findings for which they were not recorded before."""
    triggered_actions: list[TriggeredAction] = []
    for action in actions:
        earlier = recorded.of_target(action.trigger, action.target)
        known = {(cause.finding, cause.opened_at) for each in earlier for cause in each.causes}
        causes = [c for c in action.causes if (c.finding, c.opened_at) not in known]
        last = max((parse_time(each.at, "at") for each in earlier), default=None)
        if causes and (last is None or last + rules[action.trigger].pause <= moment):
            triggered_actions.append(msgspec.structs.replace(action, causes=causes))
    return triggered_actions


_EnumT = TypeVar("_EnumT", bound=Enum)


def _parse(text: str, kind: type[_EnumT], field: str) -> _EnumT:
    try:
        return kind(text)
    except ValueError as exc:
        known = ", ".join(str(each.value) for each in kind)
        raise InvalidRequestError(field, f"{text!r} is not one of {known}") from exc
