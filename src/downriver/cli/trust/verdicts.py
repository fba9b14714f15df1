"""`downriver verdicts`: the recorded verdicts of the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, counted, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.verdicts import RecordedVerdicts

_COLOURS = {"APPROVED": "green", "CAUTION": "yellow", "BLOCKED": "bold red"}
_CHANGES = 5


def verdicts(
    decision: Annotated[
        str | None,
        typer.Option(
            "--decision",
            metavar="DECISION",
            help="List only verdicts with this decision: APPROVED, CAUTION or BLOCKED.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="List only verdicts since this time, or since a period ago (7d).",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N verdicts.")
    ] = 20,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the recorded verdicts of the gate: the changes, the decision, the affected consumers."""
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.govern.verdicts(decision=decision, since=since, limit=limit)
    if json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: RecordedVerdicts) -> None:
    for verdict in answer.verdicts:
        colour = _COLOURS[verdict.decision.value]
        by = f" by {escape(verdict.by)}" if verdict.by else ""
        commits = f" {verdict.base[:12]}..{verdict.head[:12]}" if verdict.base else ""
        out.print(
            f"{verdict.at}  [{colour}]{verdict.decision.value}[/] {verdict.risk.value} risk, "
            f"{verdict.affected} affected{escape(commits)}{by}"
        )
        for change in verdict.changes[:_CHANGES]:
            out.print(f"  {escape(change)}")
        if len(verdict.changes) > _CHANGES:
            out.print(f"  … {len(verdict.changes) - _CHANGES} more changes")
        for waiver in verdict.waived:
            out.print(f"  waived: {escape(waiver)}")
    out.print(f"{len(answer.verdicts)} of {counted(answer.total, 'verdict')}")
