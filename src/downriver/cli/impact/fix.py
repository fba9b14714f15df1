"""`downriver fix`: the patch for a change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.impact.changes import (
    ChangedArgument,
    ChangeOptions,
    ColumnsArgument,
    DropOption,
    RenameOption,
    RenameToOption,
    RetypeOption,
    TypeOption,
    parse_change_options,
)
from downriver.cli.output import JsonOption, StoreOption, err, escape, print_json
from downriver.impact import SourceFolder
from downriver.impact.report.text import format_location
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.impact import Fix

_PLACES_SHOWN = 20
_EXIT_EMPTY = 1


def fix(
    entity: ChangedArgument,
    columns: ColumnsArgument = None,
    rename: RenameOption = None,
    rename_to: RenameToOption = None,
    drop: DropOption = False,
    retype: RetypeOption = None,
    type: TypeOption = None,  # noqa: A002
    root: Annotated[
        Path, typer.Option("--root", help="The folder that the paths of the files are relative to.")
    ] = Path(),
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the steps of a change without downtime.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write a patch for the consumers that a change breaks.

    Places that a person must decide about are listed on standard error. Exit code 1: the patch is
    empty, and standard error tells why.
    """
    options = ChangeOptions(
        columns=tuple(columns or ()),
        rename_to=rename_to,
        rename=tuple(rename or ()),
        drop=drop,
        type=type,
        retype=tuple(retype or ()),
    )
    with Lineage.open(store, create=False) as lineage:
        changes = parse_change_options(lineage, entity, options)
        found = lineage.impact.fix(changes, SourceFolder(root))
    if json:
        print_json(found)
        return
    sys.stdout.write(found.diff)
    _tell(found)
    for step in found.plan if plan else ():
        err.print(f"  [bold]·[/] {escape(step)}")
    if not found.patches:
        err.print(f"[red]no patch[/]: {escape(_why_empty(found))}")
        raise typer.Exit(_EXIT_EMPTY)


def _why_empty(found: Fix) -> str:
    """Return why a patch is empty."""
    if found.absent:
        return f"not found below --root: {', '.join(found.absent[:_PLACES_SHOWN])}"
    if found.to_decide:
        return "the places above need a decision"
    if found.remaining:
        return f"the code of {', '.join(found.remaining[:_PLACES_SHOWN])} is not known"
    return "no consumer is affected"


def _tell(found: Fix) -> None:
    for patch in found.patches:
        state = "[green]verified[/]" if patch.verified else "[yellow]not verified[/]"
        err.print(f"{state} {escape(patch.path)}")
    for place in found.to_decide[:_PLACES_SHOWN]:
        where = format_location(place.reference) if place.reference is not None else ""
        err.print(f"[red]decide[/] {escape(where or place.consumer)}: {escape(place.reason)}")
    if len(found.to_decide) > _PLACES_SHOWN:
        err.print(f"[red]decide[/] … {len(found.to_decide) - _PLACES_SHOWN} more; see --json")
    if found.verified and found.patches:
        err.print("[green]verified[/]: with this patch no consumer downstream is affected")
