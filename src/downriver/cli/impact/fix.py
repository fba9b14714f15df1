"""`downriver fix`: the patch for a change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.impact.changes import (
    ChangedArgument,
    ChangeOptions,
    DropOption,
    RenameOption,
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


def fix(
    entity: ChangedArgument,
    rename_to: RenameOption = None,
    drop: DropOption = False,
    type: TypeOption = None,  # noqa: A002
    root: Annotated[
        Path, typer.Option("--root", help="The folder that the paths of files begin at.")
    ] = Path(),
    plan: Annotated[
        bool, typer.Option("--plan", help="Show how to change it without a break, in steps.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Write a unified diff that mends who breaks; what people must decide goes to stderr."""
    said = ChangeOptions(rename_to, drop, None, False, type, None, False, False)
    with Lineage.open(store, create=False) as lineage:
        found = lineage.fix(parse_change_options(lineage, entity, said), SourceFolder(root))
    if json:
        print_json(found)
        return
    sys.stdout.write(found.diff)
    _tell(found)
    for step in found.plan if plan else ():
        err.print(f"  [bold]·[/] {escape(step)}")


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
        err.print("[green]verified[/]: with this patch no one downstream is affected")
