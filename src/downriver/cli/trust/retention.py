"""`downriver forget`, `prune` and `redact`: remove entities from answers, and erase names."""

from __future__ import annotations

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
from downriver.impact import find_author
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import Pruned, RetiredEntity

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")]
_SHOWN = 50
_REMAINING_SHOWN = 10


def forget(
    entity: EntityArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason. The log records it.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Show the entity in answers again.")] = False,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove a dataset, job or registered flow from answers.

    Its events stay in the log. A later event that mentions it adds it to answers again.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.retention.forget(
            entity, reason=reason, by=find_author(Path.cwd()), undo=undo, done=not dry_run
        )
    if json:
        print_json(found)
        return
    verb = "restored" if undo else "forgotten"
    for each in found.entities:
        out.print(f"{'would be ' if dry_run else ''}{verb}: {escape(each.id)}")


def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="PERIOD",
            help="Remove what no event has mentioned for this long, such as 90d.",
        ),
    ],
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove from answers the datasets and jobs that no event has mentioned for a long time.

    The upstream of certified datasets stays, and so do jobs that run rarely. The removed entities
    are listed and recorded in the log, and `downriver forget --undo` restores them. Findings that
    were resolved before that time are deleted.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.retention.prune(older_than, by=find_author(Path.cwd()), done=not dry_run)
    if json:
        print_json(found)
    else:
        _show(found, full_names=full_names)


def _show(found: Pruned, *, full_names: bool) -> None:
    listed = [*found.retired[:_SHOWN], *found.protected[:_SHOWN]]
    names = DisplayNames((entity.id for entity in listed), full=full_names)
    names.print_heading()
    verb = "removed" if found.done else "would be removed"
    out.print(f"{len(found.retired):,} {verb}, last mentioned before {found.before}")
    _list(found.retired, names)
    out.print(f"{len(found.protected):,} of the same age are protected")
    _list(found.protected, names, reasons=True)
    out.print(f"{counted(found.resolved_findings, 'resolved finding')} {verb}")


def _list(entities: list[RetiredEntity], names: DisplayNames, *, reasons: bool = False) -> None:
    for entity in entities[:_SHOWN]:
        reason = f": {entity.reason}" if reasons else ""
        out.print(f"  {names.label(entity.id)}, last seen {entity.last_seen}{escape(reason)}")
    if len(entities) > _SHOWN:
        out.print(f"  … {len(entities) - _SHOWN:,} more (--json)")


def redact(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name or a mail address, as a whole word.")
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason. The log records it.")
    ] = "",
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Erase a name from the facets of all events: owners, descriptions, tags, errors.

    The hash chain of the log stays intact: a new entry names the changed ones. This cannot be
    undone. Names of datasets, jobs and columns stay.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.retention.redact(
            name, reason=reason, by=find_author(Path.cwd()), done=not dry_run
        )
    if json:
        print_json(found)
        return
    verb = "would be redacted" if dry_run else "redacted"
    noun = "log entry" if found.entries == 1 else "log entries"
    out.print(f"{found.entries:,} {noun} {verb}")
    if found.remaining:
        listed = ", ".join(map(str, found.remaining[:_REMAINING_SHOWN]))
        more = len(found.remaining) - _REMAINING_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        out.print(f"[yellow]the name remains outside facets in log entries[/] {listed}{rest}")
