"""`downriver incident`: failures of an entity, likely causes and affected entities."""

from __future__ import annotations

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
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import Incident

_SHOWN = 8
_COLOURS = {"failing": "bold red", "drifting": "yellow", "healthy": "green"}

AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Report as of this time. Default: now."),
]


def incident(
    entity: EntityArgument,
    at: AtOption = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Report the failures of a dataset, job or column, the likely causes and what is affected."""
    with Lineage.open(store, create=False) as lineage:
        report = lineage.govern.incident_report(entity, at)
    if json:
        print_json(report)
    else:
        _show_incident(report, _names(report, full=full_names))


def _names(report: Incident, *, full: bool) -> DisplayNames:
    ids = [
        report.entity,
        *(failure.entity for failure in report.failures),
        *(suspect.id for suspect in report.suspects),
        *(affected.id for affected in report.affected),
        *(each.dataset for each in report.freshness),
    ]
    messages = [failure.message for failure in report.failures]
    reasons = [reason for suspect in report.suspects for reason in suspect.reasons]
    return DisplayNames(ids, full=full, texts=[*messages, *reasons])


def _show_incident(report: Incident, names: DisplayNames) -> None:
    names.print_heading()
    colour = _COLOURS[report.status]
    since = f" since {report.since}" if report.since else ""
    out.print(f"[{colour}]{report.status.upper()}[/] {names.label(report.entity)}{since}")
    for label, value in (
        ("last success", report.last_success),
        ("last written", report.last_written),
    ):
        if value:
            out.print(f"  {label} {value}")
    for failure in report.failures:
        place = "" if failure.entity == report.entity else f"{names.label(failure.entity)}: "
        message = names.replace_in(failure.message)
        out.print(f"  {failure.severity.value:<8} {place}{message}")
    _show_suspects(report, names)
    _show_freshness(report, names)
    _show_affected(report, names)
    if not report.complete:
        out.print(
            f"[yellow]incomplete:[/] {counted(len(report.blind_spots), 'blind spot')}; "
            "--json lists them"
        )


def _show_suspects(report: Incident, names: DisplayNames) -> None:
    out.print(f"upstream suspects ({len(report.suspects)} of {report.looked_at} checked)")
    for suspect in report.suspects[:_SHOWN]:
        owners = f"  owned by {', '.join(suspect.owners)}" if suspect.owners else ""
        out.print(f"  {suspect.score:.2f}  {names.label(suspect.id)}{escape(owners)}")
        for reason in suspect.reasons[:_SHOWN]:
            out.print(f"        {names.replace_in(reason)}")


def _show_freshness(report: Incident, names: DisplayNames) -> None:
    known = [each for each in report.freshness if each.age_hours is not None]
    if known:
        out.print("upstream freshness")
    for each in sorted(known, key=lambda each: (not each.late, each.distance))[:_SHOWN]:
        late = "  [yellow]late or failed[/]" if each.late else ""
        out.print(f"  {names.label(each.dataset)} {each.age_hours:g} h old{late}")


def _show_affected(report: Incident, names: DisplayNames) -> None:
    out.print(f"affected downstream: {report.affected_count}")
    for each in report.affected[:_SHOWN]:
        marks = [*each.tags, *(f"owned by {owner}" for owner in each.owners)]
        out.print(
            f"  {names.label(each.id)}" + (f"  ({escape(', '.join(marks))})" if marks else "")
        )
    if report.affected_count > _SHOWN:
        out.print(f"  … {report.affected_count - _SHOWN} more")
    if report.owners_to_tell:
        out.print(f"notify: {escape(', '.join(report.owners_to_tell))}")
