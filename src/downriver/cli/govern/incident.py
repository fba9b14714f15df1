"""`downriver incident`: what failed, since when, the likely causes, and who is affected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.cli.trace import EntityArgument
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import Incident

_SHOWN = 8
_COLOURS = {"failing": "bold red", "drifting": "yellow", "healthy": "green"}

AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Report as of this time. By default it is now."),
]


def incident(
    entity: EntityArgument,
    at: AtOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Report what is wrong with an entity: failures, likely causes, and who is affected."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.incident_report(entity, at)
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: Incident) -> None:
    colour = _COLOURS[found.status]
    since = f" since {found.since}" if found.since else ""
    out.print(f"[{colour}]{found.status.upper()}[/] {escape(found.entity)}{since}")
    for label, value in (
        ("last success", found.last_success),
        ("last written", found.last_written),
    ):
        if value:
            out.print(f"  {label} {value}")
    for failure in found.failures:
        place = "" if failure.entity == found.entity else f"{failure.entity}: "
        out.print(f"  {failure.severity.value:<8} {escape(place + failure.message)}")
    _show_suspects(found)
    _show_affected(found)
    if not found.complete:
        out.print(f"[yellow]incomplete:[/] {len(found.blind_spots)} blind spots; --json lists them")


def _show_suspects(found: Incident) -> None:
    out.print(f"upstream suspects ({len(found.suspects)} of {found.looked_at} checked)")
    for suspect in found.suspects[:_SHOWN]:
        owners = f"  owned by {', '.join(suspect.owners)}" if suspect.owners else ""
        out.print(f"  {suspect.score:.2f}  {escape(suspect.id + owners)}")
        for reason in suspect.reasons[:_SHOWN]:
            out.print(f"        {escape(reason)}")


def _show_affected(found: Incident) -> None:
    out.print(f"affected downstream: {found.affected_count}")
    for each in found.affected[:_SHOWN]:
        marks = [*each.tags, *(f"owned by {owner}" for owner in each.owners)]
        out.print(f"  {escape(each.id)}" + (f"  ({escape(', '.join(marks))})" if marks else ""))
    if found.affected_count > _SHOWN:
        out.print(f"  … {found.affected_count - _SHOWN} more")
    if found.owners_to_tell:
        out.print(f"notify: {escape(', '.join(found.owners_to_tell))}")
