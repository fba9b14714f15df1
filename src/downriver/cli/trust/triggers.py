"""`downriver triggers`: actions on what is downstream of findings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
)
from downriver.cli.trace import EntityArgument
from downriver.errors import InvalidRequestError
from downriver.govern.triggers import TriggerRule, read_triggers
from downriver.model.governance import FindingKind, Severity
from downriver.model.trust.triggers import ActionState
from downriver.service import Lineage
from downriver.service.limits import DEFAULT_FINDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.model.trust.triggers import TriggeredAction, TriggeredActions

_COLOURS = {ActionState.DONE: "green", ActionState.FAILED: "bold red"}
_CAUSES = 5

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Read the `triggers` section of this file. Default: downriver.yml.",
    ),
]


def _rules(config: Path | None) -> list[TriggerRule]:
    rules = read_triggers(config)
    if not rules:
        raise InvalidRequestError(
            "--config", "there are no triggers; add a section `triggers` to downriver.yml"
        )
    return rules


def run(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the actions; run and record nothing.")
    ] = False,
    config: ConfigOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Start the actions that open findings trigger downstream, and run those that are due.

    The findings are those that `downriver watch` recorded. A finding starts an action on a target
    once. The exit code is 1 if an action failed.
    """
    rules = _rules(config)
    with Lineage.open(store, create=False) as lineage:
        runner = None if dry_run else lineage.triggers.runner(rules)
        actions = lineage.triggers(rules, done=not dry_run)
        if runner is not None:
            finished = {action.id: action for action in runner.run_due()}
            listed = {**{action.id: action for action in actions.actions}, **finished}
            actions.actions = list(listed.values())
    _show(actions, full=full_names, as_json=json)
    sys.exit(int(any(action.state is ActionState.FAILED for action in actions.actions)))


def preview(
    entity: EntityArgument,
    kind: Annotated[
        FindingKind,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="The kind of the assumed finding, as for `downriver watch findings`.",
        ),
    ] = FindingKind.COLUMN_RETYPED,
    severity: Annotated[
        Severity, typer.Option("--severity", help="The severity of the assumed finding.")
    ] = Severity.WARNING,
    config: ConfigOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which actions a finding about a column or dataset would start. Nothing is run."""
    rules = _rules(config)
    with Lineage.open(store, create=False) as lineage:
        actions = lineage.triggers.preview(rules, entity, kind.value, severity.value)
    _show(actions, full=full_names, as_json=json)


def list_actions(
    trigger: Annotated[
        str | None, typer.Option("--trigger", metavar="NAME", help="List only this trigger.")
    ] = None,
    state: Annotated[
        ActionState | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="List only actions in this state: planned, waiting, running, done or failed.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="List at most N actions.")
    ] = DEFAULT_FINDINGS,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the recorded actions, the latest first."""
    with Lineage.open(store, create=False) as lineage:
        history = lineage.triggers.history(
            trigger=trigger, state=state and state.value, limit=limit
        )
    if json:
        print_json(history)
        return
    _show_actions(history.actions, full=full_names)
    more = "" if history.complete else f", of {history.total}"
    out.print(f"{counted(len(history.actions), 'action')}{more}")


def _show(answer: TriggeredActions, *, full: bool, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    _show_actions(answer.actions, full=full)
    actions, findings = counted(len(answer.actions), "action"), counted(answer.findings, "finding")
    out.print(f"{actions} for {findings}")
    if not answer.complete:
        out.print(f"[yellow]incomplete:[/] {counted(len(answer.blind_spots), 'blind spot')}")


def _show_actions(actions: Sequence[TriggeredAction], *, full: bool) -> None:
    ids = [action.target for action in actions]
    ids += [step for action in actions for cause in action.causes for step in cause.path]
    ids += [cause.entity for action in actions for cause in action.causes]
    names = DisplayNames(ids, full=full)
    names.print_heading()
    for action in actions:
        colour = _COLOURS.get(action.state, "yellow")
        owned = f", owned by {', '.join(action.owners)}" if action.owners else ""
        out.print(
            f"[{colour}]{action.state.value:<7}[/] {escape(action.trigger)} → "
            f"{names.label(action.target)}{escape(owned)}"
        )
        out.print(f"        {escape(action.action)}")
        for cause in action.causes[:_CAUSES]:
            out.print(f"        {names.label(cause.entity)}: {names.replace_in(cause.message)}")
            path = " → ".join(names[step] for step in cause.path)
            out.print(f"          [dim]{cause.certainty} lineage:[/] {path}")
        if len(action.causes) > _CAUSES:
            out.print(f"        … {len(action.causes) - _CAUSES} more findings")
        if action.result:
            out.print(f"        {escape(action.result)}")
